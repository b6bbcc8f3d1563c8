"""Every rule of contributions with every rule of ranges: those that go together, and the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shoal.cells.allocation.base import BalancedLosses
from shoal.cells.contributions.averaged_arrays import AveragedArrays
from shoal.cells.contributions.capped_counts import CappedCounts
from shoal.cells.contributions.cells_left_out import CellsLeftOut
from shoal.cells.contributions.clipped_arrays import ClippedArrays
from shoal.cells.contributions.every_record import EveryRecord
from shoal.cells.contributions.parts_of_weights import PartsOfWeights
from shoal.cells.contributions.truncated_users import TruncatedUsers
from shoal.cells.contributions.user_sums import UserSums
from shoal.cells.noise_rule import NoiseRule
from shoal.cells.plan_parts import PlanParts
from shoal.cells.presets import METHODS, parts_of
from shoal.cells.ranges.levy_interval import LevyInterval
from shoal.cells.ranges.one_interval import OneInterval
from shoal.cells.ranges.public import PublicRange
from shoal.cells.ranges.quantile_pair import QuantilePair
from shoal.cells.ranges.sum_threshold import SumThreshold
from shoal.cells.request import Request, mean_request
from shoal.cells.shrinkage_rule import ShrinkageRule
from shoal.errors import InputError

if TYPE_CHECKING:
    from fractions import Fraction

    from shoal.cells.contributions.base import ContributionRule
    from shoal.cells.ranges.base import RangeRule

CONTRIBUTIONS: tuple[ContributionRule, ...] = (
    EveryRecord(),
    CellsLeftOut(),
    PartsOfWeights(),
    AveragedArrays(2, "wrap_around"),
    ClippedArrays(2, "wrap_around"),
    CappedCounts(),
    CappedCounts(widens=False),
    UserSums(),
    TruncatedUsers(),
)
# So large a gamma that Levy's interval has more than one bin.
RANGES: tuple[RangeRule, ...] = (
    PublicRange(),
    LevyInterval(0.99),
    QuantilePair("optimised"),
    SumThreshold(),
    OneInterval(),
)


def composed(who: ContributionRule, where: RangeRule) -> PlanParts | None:
    """The two with balanced losses; None if they are refused."""
    name = f"{who.title} within {where.title}"
    shrinkage = ShrinkageRule(weighed=not isinstance(who, UserSums))
    try:
        return PlanParts(name, who, where, BalancedLosses(), NoiseRule(), shrinkage)
    except InputError:
        return None


def _label(made: PlanParts) -> str:
    plain = isinstance(made.contributions, CappedCounts) and not made.contributions.widens
    return made.name + (", nothing widened" if plain else "")


ALLOWED = {
    _label(made): made
    for who in CONTRIBUTIONS
    for where in RANGES
    if (made := composed(who, where))
}


def _kind(made: PlanParts) -> tuple[object, ...]:
    widens = isinstance(made.contributions, CappedCounts) and made.contributions.widens
    return type(made.contributions), widens, type(made.range), type(made.allocation)


_KINDS = {_kind(made) for made in map(parts_of, METHODS)}
# Those that no method names.
NEW = {name: made for name, made in ALLOWED.items() if _kind(made) not in _KINDS}


@dataclass(frozen=True)
class Composed(Request):
    """A request for parts that no method names.

    Attributes:
        own: What is asked for, whatever the method says.
    """

    own: PlanParts = field(default_factory=lambda: parts_of("baseline"))

    @property
    def parts(self) -> PlanParts:
        """What was given."""
        return self.own


def request(parts: PlanParts, epsilon: Fraction) -> Request:
    """A request for means of every cell by these parts."""
    own = mean_request("baseline", epsilon, {})
    facts = {name: getattr(own, name) for name in own.__dataclass_fields__}
    return Composed(**facts, own=parts)
