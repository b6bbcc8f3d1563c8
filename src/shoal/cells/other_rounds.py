"""One round or two: what each would err where cells differ more than users, and where less.

Counts do not tell which of the two it is. Both are simulated on the plan's own counts, and said
beside the plan: whoever knows the cells can choose (docs/theory/user-clipped.md#two-rounds).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from shoal.cells import user_clipped_plan
from shoal.cells.statistics.mean import Mean
from shoal.cells.typical_error import simulated
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.cells.plan_facts import PlanFacts

# Of the variance, what lies between cells.
APART, ALIKE = 0.9, 0.05
_TURNS = 3
# Nobody waits for another plan of a large table.
_MOST_MEMBERS, _FEWEST_CELLS = 50_000, 3
# Public facts are frozen, so that what was simulated of them stays right.
_KNOWN: WeakKeyDictionary[PlanFacts, OtherRounds | None] = WeakKeyDictionary()


@dataclass(frozen=True)
class OtherRounds:
    """What a plan with the other number of rounds would err.

    Attributes:
        rounds: Of the other plan.
        apart: Its error over the plan's where nine tenths of the variance lie between cells.
        alike: The same where one twentieth does.
    """

    rounds: int
    apart: float
    alike: float


@np.errstate(all="ignore")
def other_rounds(plan: PlanFacts) -> OtherRounds | None:
    """The plan with one round in place of two, or two in place of one, by simulated errors.

    Args:
        plan: Of users' vectors.

    Returns:
        None if there is nothing to choose: with few cells, or too few users for private
        selections; or if the table is large.
    """
    if plan not in _KNOWN:
        _KNOWN[plan] = _found(plan)
    return _KNOWN[plan]


def _found(plan: PlanFacts) -> OtherRounds | None:
    if (
        not plan.mechanism.range.of_vectors
        or plan.statistics != (Mean(),)
        or len(plan.released) < _FEWEST_CELLS
        or len(plan.selection_scale) == 0
        or len(plan.occupancy.user) > _MOST_MEMBERS
    ):
        return None
    request = replace(plan.request, settings={"rounds": 3 - plan.rounds})
    try:
        other = user_clipped_plan.solve(
            plan.occupancy, plan.lattice, request, plan.released, plan.status
        )
    except InputError:
        return None
    return OtherRounds(other.rounds, _ratio(other, plan, APART), _ratio(other, plan, ALIKE))


def _ratio(other: PlanFacts, plan: PlanFacts, between: float) -> float:
    found = [
        np.mean([simulated(each, turn, between=between).error.mean() for turn in range(_TURNS)])
        for each in (other, plan)
    ]
    return float(found[0] / found[1])
