"""What a plan's counts say against it: where its typical error or its intervals may not hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.coarser import best_coarser
from shoal.cells.typical_error import typical_errors
from shoal.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shoal.cells.plan_facts import PlanFacts

# Of a cell's records: whoever owns so many decides what the cell's mean is.
_HEAVY = 0.25
# Epsilon times users: below it private ranks are about as uncertain as there are users.
_FEW = 60.0
_MOST_CLIPPED = 0.35
# Of the population's deviation: what a constant would err.
_COARSE = 0.5


def warnings(plan: PlanFacts) -> list[str]:
    """Sentences that a custodian should read before spending anything; empty if there are none.

    Args:
        plan: A plan whose typical error is stated.
    """
    if not plan.mechanism.range.of_vectors:
        return []
    return [*_few_users(plan), *_heavy_users(plan), *_fine_cells(plan)]


def _few_users(plan: PlanFacts) -> Iterator[str]:
    users = len(np.unique(plan.design.user))
    everyone = plan.epsilon * users
    if everyone < _FEW:
        yield (
            f"epsilon times users is {everyone:.3g}: too few for a private range; "
            'objective="worst_case" may have smaller errors'
        )
    elif int(plan.parameters["clipped"][0]) >= int(_MOST_CLIPPED * users):
        yield (
            f"{users} users are few for {len(plan.released)} cells at this epsilon: many of them "
            "are clipped, and intervals may cover less often than they say"
        )


def _heavy_users(plan: PlanFacts) -> Iterator[str]:
    design = plan.design
    share = np.zeros(design.n_numbers)
    np.maximum.at(share, design.number, design.share)
    # Alone in its cell a user is not unlike others, but it is the cell.
    heavy = np.flatnonzero(share >= _HEAVY)
    if len(heavy):
        worst = int(heavy[np.argmax(share[heavy])])
        label = printable(plan.occupancy.labels[int(plan.released[worst])])
        yield (
            f"in {len(heavy)} cells one user owns a quarter of the records or more ({label}: "
            f"{share[worst]:.0%}): if it is unlike the others the error is larger than stated, and "
            'intervals do not cover; objective="worst_case" holds for any user'
        )


def _fine_cells(plan: PlanFacts) -> Iterator[str]:
    middle = float(np.median(typical_errors(plan)))
    if middle >= _COARSE:
        other = best_coarser(plan)
        better = "use fewer key columns, larger cells, or a larger epsilon"
        if other is not None and other.error < middle:
            better = (
                f"{other.name} there are {other.cells:,} cells, half of which err by at most "
                f"{other.error:.2g}"
            )
        yield (
            f"cells are too fine: half of them err by {middle:.2g} of the users' spread or more, "
            f"about as much as one common number; {better}"
        )
