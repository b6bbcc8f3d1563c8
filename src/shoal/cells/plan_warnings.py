"""What a plan's counts say against it: where its typical error or its intervals may not hold."""

from collections.abc import Iterator

import numpy as np

from shoal.cells.estimates import Estimates
from shoal.cells.plan_facts import PlanFacts
from shoal.cells.typical_error import typical_errors
from shoal.cells.weights import largest
from shoal.errors import printable

# Of a cell's records: whoever owns so many decides what the cell's mean is.
_HEAVY = 0.25
# Of the population's deviation: what a constant would err.
_COARSE = 0.5
# Fewer cells than that are not many: it is epsilon that is small.
_FEW_CELLS = 10
# Of the width: a smaller radius around cells' own centres says that most values may be equal.
_NARROW = 1 / 64
# Cells: in fewer a radius leaves out more users than the noise is worth.
_FEW_FOR_RADIUS = 30
# Of the users, and of the records of released cells: equal, geometric and moderately skewed counts
# stay below (docs/theory/user-clipped.md#few-users-with-much-of-the-records).
_FREQUENT = ((1 / 20, 3 / 10), (1 / 10, 9 / 20))
# Users: of fewer a twentieth is nobody.
_ENOUGH_USERS = 20
# Epsilon times users: with less the second of two radii is often far too small.
_TWICE = 250.0


def plan_warnings(plan: PlanFacts) -> list[str]:
    """Sentences that a custodian should read before spending anything; empty if there are none."""
    if not plan.decision.method.range.of_vectors:
        return []
    return [
        *_too_few_users(plan),
        *few_cell_warnings(plan),
        *heavy_user_warnings(plan),
        *_fine_cells(plan),
    ]


def release_warnings(numbers: Estimates) -> list[str]:
    """Sentences that a reader of released numbers should know; what was released alone decides."""
    plan, width = numbers.plan, numbers.plan.width
    if numbers.radius is None or not len(plan.decision.selection_scale):
        return []
    # What is as near to the centre as its bin is wide may be the same value.
    bins = width / int(plan.parameters["centres"][0])
    if numbers.radius > (bins if plan.rounds == 1 else _NARROW * width):
        return []
    return [
        f"the private radius is {numbers.radius:.3g}, no more than its centre is known by, and the "
        f"bounds are {width:.3g} apart: if most values are equal (yes or no, amounts that are "
        'mostly 0) errors are larger than intervals say, and objective="worst_case" is right'
    ]


def _too_few_users(plan: PlanFacts) -> Iterator[str]:
    everyone = plan.epsilon * len(np.unique(plan.weights.user))
    if plan.rounds > 1 and everyone < _TWICE:
        yield (
            f"epsilon times users is {everyone:.3g}: too few for two rounds, whose intervals may "
            'cover far less often than they say; take settings={"rounds": 1} '
            "(--setting rounds=1)"
        )
    if not len(plan.decision.selection_scale):
        yield (
            f"epsilon times users is {everyone:.3g}: too few for a private range; "
            'objective="worst_case" may have smaller errors'
        )


def few_cell_warnings(plan: PlanFacts) -> Iterator[str]:
    """What a private radius in few cells may miss, before anything is spent."""
    selects = plan.decision.method.range.of_vectors and len(plan.decision.selection_scale) > 0
    if selects and len(plan.released) < _FEW_FOR_RADIUS:
        yield (
            f"in fewer than {_FEW_FOR_RADIUS} cells a private radius leaves out more users than "
            f"the noise is worth, here {int(plan.parameters['clipped'][0])} of "
            f"{len(np.unique(plan.weights.user))}: if a few percent of users are far from all "
            "others (outliers, long tails) errors are several times larger, and intervals of 95% "
            'may cover a third; objective="worst_case" holds for any values'
        )


def heavy_user_warnings(plan: PlanFacts) -> Iterator[str]:
    """What typical intervals of vectors of users suppose of those who own much, in one sentence."""
    if plan.decision.method.range.of_vectors:
        yield from (*_heavy_users(plan), *_frequent_users(plan))


def private_range_warnings(numbers: Estimates) -> Iterator[str]:
    """What the typical interval of one cell supposes, where a range was selected for it."""
    if numbers.chosen is not None and not numbers.plan.decision.method.range.of_vectors:
        yield (
            "the typical interval supposes that what the private range cuts off balances: with a "
            "second kind of user, outliers or long tails it may cover a third as often as it says; "
            "the certified interval holds for any values"
        )


def _heavy_users(plan: PlanFacts) -> Iterator[str]:
    weights = plan.weights
    share = largest(weights.cell, weights.share, weights.n_cells)
    # Alone in its cell a user is not unlike others, but it is the cell.
    heavy = np.flatnonzero(share >= _HEAVY)
    if len(heavy):
        worst = int(heavy[np.argmax(share[heavy])])
        label = printable(plan.counts.labels[int(plan.released[worst])])
        yield (
            f"in {len(heavy)} cell{'s' * (len(heavy) > 1)} one user owns a quarter of the records "
            f"or more ({label}: {share[worst]:.0%}): if it is unlike the others errors are larger "
            'than stated, and intervals do not cover; objective="worst_case" holds for any user'
        )


def _frequent_users(plan: PlanFacts) -> Iterator[str]:
    """Few users with much of the records, of any cells: errors are foretold from all others."""
    owned = np.bincount(plan.weights.user, plan.weights.count.astype(np.float64))
    owned = np.sort(owned[owned > 0])[::-1]
    if len(owned) < _ENOUGH_USERS:
        return
    for part, most in _FREQUENT:
        few = int(part * len(owned))
        share = owned[:few].sum() / owned.sum()
        if share >= most:
            yield (
                f"the {few:,} most frequent of {len(owned):,} users own {share:.0%} of the "
                "records: if these differ from the others errors may be several times larger than "
                'stated, and intervals hardly cover; objective="worst_case" '
                "(--objective worst_case) holds for any users"
            )
            return


def _fine_cells(plan: PlanFacts) -> Iterator[str]:
    middle = float(np.median(typical_errors(plan)))
    if middle >= _COARSE:
        what, first, then = "cells are too fine", "larger cells", "a larger epsilon"
        if len(plan.released) < _FEW_CELLS:
            what, first, then = f"epsilon is too small, or {what}", then, first
        yield (
            f"{what}: half of the cells err by {middle:.2g} of the standard deviation of the "
            "values or more, and one common number would not err by more; use "
            f"{first}, fewer key columns, or {then}"
        )
