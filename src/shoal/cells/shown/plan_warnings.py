"""Warns where a plan's counts suggest that its typical error or its intervals may not hold."""

import math
from collections.abc import Iterator

import numpy as np

from shoal.cells.estimates.intervals import (
    WARNED,
    dominated,
    far_users,
    judges_reliability,
    statuses,
)
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.estimates.typical_error import typical_harm
from shoal.cells.facts.facts import Facts
from shoal.cells.facts.request import FEWEST_USERS
from shoal.files.text_table import counted, text_of
from shoal.theory.user_clipping import MEASURED

# The part of users who are called frequent.
_FREQUENT = 1 / 20
# The part of the records at which frequent users have much: it is less for equal, geometric and
# moderately skewed counts (docs/theory/cells.md#few-cells).
_MUCH = 3 / 10
# The fewest users of whom a twentieth is somebody.
_ENOUGH_USERS = 20
# The numbers below are of epsilon times users, as `shoal bench warned` measures them.
# From here on, the interval of a single cell also covers if a few users are far from the others.
_FEW = 2_500.0
# From here on, intervals also cover if the users far from the others are the most frequent ones.
_OFTEN = 5_000.0
# Below this, the second of two radii is often far too small.
_TWICE = 250.0


def plan_warnings(plan: Facts) -> list[str]:
    """Returns sentences that a custodian should read before spending anything, if any."""
    sentences = [*single_user_warnings(plan)]
    if not plan.of_vectors:
        return sentences
    sentences += [*few_cell_warnings(plan), *frequent_user_warnings(plan), *_round_warnings(plan)]
    harm = typical_harm(plan) if judges_reliability(plan) else 0.0
    if harm > WARNED:
        sentences.append(
            "with so few users and such bounds, users at the bounds whom nothing would show could "
            f"move an average cell by {harm:.0f} times its noise: give narrower bounds, or more "
            "epsilon"
        )
    return sentences


def release_warnings(plan: Facts, numbers: Estimates) -> list[str]:
    """Returns the plan's warnings, with what its ball says of far users in place of a forecast.

    Warnings of frequent users matter only if a cell is reliable, and those of far users also if it
    is for them that none is.
    """
    found = [*single_user_warnings(plan)]
    status = statuses(numbers)
    if plan.of_vectors and "reliable" in status:
        found += [*few_cell_warnings(plan), *frequent_user_warnings(plan), *_round_warnings(plan)]
    if plan.of_vectors and not {"reliable", "wide bounds"}.isdisjoint(status):
        found += _far_user_warnings(numbers)
    return found


def _round_warnings(plan: Facts) -> Iterator[str]:
    """Warns of two rounds with few users."""
    total_epsilon = _total_epsilon(plan)
    if plan.rounds > 1 and total_epsilon < _TWICE:
        yield (
            f"epsilon times the number of users is {total_epsilon:.3g}, too little for two rounds: "
            'intervals may cover far less often than stated; use settings={"rounds": 1} '
            "(--setting rounds=1)"
        )


def _far_user_warnings(numbers: Estimates) -> Iterator[str]:
    """Warns of bounds so wide that users there could move cells without being seen."""
    found = far_users(numbers)
    if found is None or found.harm <= WARNED:
        return
    enough = found.reach * WARNED / found.harm
    if numbers.basis.most is not None:
        # These are squares of distances from means.
        distance = math.sqrt(found.middle + enough)
        yield (
            f"of deviations: {found.seen:,.0f} users as far from the cells' means as the bounds "
            "allow would not be seen, and could move the average square by "
            f"{found.harm:.0f} times its noise. With bounds that reach at most about "
            f"{_rough(distance)} from the means they would be seen, in another release at its own "
            "charge"
        )
    else:
        bounds = numbers.basis.bounds
        low = max(bounds.lo, found.middle - enough)
        high = min(bounds.hi, found.middle + enough)
        yield (
            f"bounds reach {_rough(found.reach)} from most users, who are around "
            f"{_rough(found.middle)}. {found.seen:,.0f} users there would not be seen, and could "
            f"move an average cell by {found.harm:.0f} times its noise. With bounds of about "
            f"{_rough(low)} to {_rough(high)} they would be seen, in another release at its own "
            "charge"
        )


def assumption(numbers: Estimates) -> Iterator[str]:
    """Yields what intervals of clipped users rest on, in numbers, once the ball is known."""
    found = far_users(numbers)
    if found is None or "reliable" not in statuses(numbers):
        return
    yield (
        f"Intervals allow for {found.allowed:,.0f} users as far as the bounds reach "
        f"({_rough(found.reach)} from the others), or {10 * found.allowed:,.0f} a tenth as far, if "
        "they are not all in the same few cells."
    )
    if found.possible:
        yield (
            f"About {max(found.number, 0.0):,.0f} ± {found.seen:,.0f} users are far: by more than "
            f"{_rough(found.distance)} in all of their cells, or more if they are in few. With "
            f"more than {found.seen:,.0f} no cell would be reliable."
        )


def _rough(number: float) -> str:
    """Returns a number in two digits."""
    return text_of(number, 2)


def single_user_warnings(plan: Facts) -> Iterator[str]:
    """Warns of cells whose totals are those of one or two users, if a request allows them."""
    users = plan.counts.users_per_cell[plan.shown]
    many = int((users < FEWEST_USERS).sum())
    if many:
        have = "has" if many == 1 else "have"
        yield (
            f"{counted(many, 'cell')} {have} fewer than {FEWEST_USERS} users, as min_users="
            f"{plan.request.min_users} allows: what is published of them is about single users"
        )


def _total_epsilon(plan: Facts) -> float:
    """Returns epsilon times the number of users."""
    return plan.epsilon * plan.weights.n_users


def few_cell_warnings(plan: Facts) -> Iterator[str]:
    """Warns of what a private radius in few cells may miss, before anything is spent."""
    selects = plan.decision.method.range.of_vectors and len(plan.decision.selection_scale) > 0
    if selects and len(plan.planned) < MEASURED and _total_epsilon(plan) < _FEW:
        yield (
            f"with fewer than {MEASURED} cells a private radius clips more users than is best, "
            f"here {int(plan.parameters['clipped'][0])} of {plan.weights.n_users}: if "
            "a few percent of users are far from all others (outliers, long tails) errors are "
            f"several times larger, and 95% intervals may cover in only 72% of releases; "
            'objective="worst_case" certifies errors for any values'
        )


def private_range_warnings(numbers: Estimates) -> Iterator[str]:
    """Warns of what the typical interval of one cell assumes, if a range was selected for it."""
    if numbers.chosen is not None and not numbers.of_vectors:
        yield (
            "the typical interval assumes that the private range cuts off as much below as above: "
            "with a second kind of user, outliers or long tails it may cover a third as often as "
            "stated; the certified interval holds for any values"
        )


def frequent_user_warnings(plan: Facts) -> Iterator[str]:
    """Warns if few users have much of the records, as they may differ from the other users."""
    vectors = plan.decision.method.range.of_vectors
    if not vectors or _total_epsilon(plan) >= _OFTEN or dominated(plan).all():
        return
    records = np.bincount(plan.weights.user, plan.weights.count.astype(np.float64))
    falling = np.sort(records[records > 0])[::-1]
    if len(falling) < _ENOUGH_USERS:
        return
    few = int(_FREQUENT * len(falling))
    share = falling[:few].sum() / falling.sum()
    if share >= _MUCH:
        yield (
            f"the {few:,} most frequent of {len(falling):,} users have {share:.0%} of the records: "
            "if they differ from the others by half of the bounds, errors may be several times "
            "larger than stated, and with the worst such users that were tried 95% intervals "
            "covered in only 35% of releases; if they are like the others, all holds; errors with "
            'objective="worst_case" (--objective worst_case) hold for any users'
        )
