"""What a plan of cells is made of: five choices that are made apart, where they go together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shoal.cells.allocation.base import LinearProgram, SharedNoise
from shoal.cells.allocation.equalised import Equalised
from shoal.cells.allocation.uniform import Uniform
from shoal.cells.contributions.capped_counts import CappedCounts
from shoal.cells.contributions.cells_left_out import CellsLeftOut
from shoal.cells.contributions.every_record import EveryRecord
from shoal.cells.contributions.nearly_full_counts import NearlyFullCounts
from shoal.cells.contributions.parts_of_weights import PartsOfWeights
from shoal.cells.contributions.user_sums import UserSums
from shoal.cells.mechanism import Mechanism
from shoal.cells.noise_rule import NoiseRule
from shoal.cells.ranges.levy_interval import LevyInterval
from shoal.cells.ranges.one_interval import OneInterval
from shoal.cells.ranges.public import PublicRange
from shoal.cells.shrinkage_rule import ShrinkageRule
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.cells.allocation.base import AllocationRule
    from shoal.cells.contributions.base import ContributionRule
    from shoal.cells.ranges.base import RangeRule
    from shoal.data.value_lattice import Lattice

_PLANNED = "parts that a proof and a planner cover together (docs/reference/methods.md)"


@dataclass(frozen=True)
class PlanParts:
    """Contributions, range, allocation, noise and shrinkage: what a method stands for.

    Two with the same parts are equal, whatever they are called.

    Attributes:
        name: What plans and the literature call the contributions within the range.
        contributions: How much of every user counts in every cell.
        range: Where values are clipped.
        allocation: How noise is allocated among cells.
        noise: Which noise may be drawn.
        shrinkage: How released means are shrunk afterwards.

    Raises:
        InputError: No proof or no planner covers these parts together.

    Guarantees: G-LOSS.

    Example:
        >>> from shoal.cells.allocation.base import BalancedLosses
        >>> PlanParts("mine", CappedCounts(), OneInterval(), BalancedLosses()).mean_alone
        True
    """

    name: str = field(compare=False)
    contributions: ContributionRule
    range: RangeRule
    allocation: AllocationRule
    noise: NoiseRule = field(default_factory=NoiseRule)
    shrinkage: ShrinkageRule = field(default_factory=ShrinkageRule)

    def __post_init__(self) -> None:
        for wrong, got in self._refused():
            if wrong:
                raise InputError(got, _PLANNED, "choose other parts, or a method by its name")

    def mechanism(self, lattice: Lattice) -> Mechanism:
        """What bounds users, selects ranges and releases numbers of values on a lattice."""
        return Mechanism(self.name, self.contributions, self.range, lattice)

    @property
    def shares(self) -> bool:
        """Whether every record counts, and the noise of all cells is all there is to plan."""
        return isinstance(self.allocation, SharedNoise) and not self.contributions.together

    @property
    def selects(self) -> bool:
        """Whether a range is selected privately."""
        return self.range.selects != "nothing"

    @property
    def mean_alone(self) -> bool:
        """Whether only means can be released."""
        return self.allocation.by_cell or self.selects

    @property
    def takes_error(self) -> bool:
        """Whether an error can be asked for instead of a loss."""
        return not self.mean_alone and not isinstance(self.contributions, CellsLeftOut)

    @property
    def takes_delta(self) -> bool:
        """Whether noise may be Gaussian."""
        return self.shares or self.range.of_vectors

    @property
    def overcounts(self) -> bool:
        """Whether noise is planned by the paper's accounting, which counts losses too high."""
        return isinstance(self.allocation, Uniform) or isinstance(self.contributions, CellsLeftOut)

    def _refused(self) -> tuple[tuple[bool, str], ...]:
        """What is refused, and whether this is it: everything that is not told apart here is."""
        who, where, how = self.contributions, self.range, self.allocation
        both, noisy = f"{who.title} within the range: {where.title}", f"{how.title}: {who.title}"
        shared, program = isinstance(how, SharedNoise), isinstance(how, LinearProgram)
        parts, sums = isinstance(who, PartsOfWeights), isinstance(who, UserSums)
        left_out = isinstance(who, CellsLeftOut)
        widens = isinstance(who, CappedCounts) and who.widens
        vectors = where.of_vectors
        return (
            # A range of sums starts at 0 and clips sums; one of means does not bound them.
            (sums != where.of_sums, both),
            # The interval's length follows from how many records a mean is made of.
            (isinstance(where, LevyInterval) and "cap" not in who.least, both),
            (widens and not self.selects, both),
            (parts != program, noisy),
            (parts and not isinstance(where, PublicRange | OneInterval), both),
            (shared and not (isinstance(who, EveryRecord) or left_out), noisy),
            (shared and self.selects, f"{how.title} noise within the range: {where.title}"),
            (left_out and (not shared or isinstance(how, Equalised)), noisy),
            (not (shared or program or how.by_cell), noisy),
            (vectors != isinstance(who, NearlyFullCounts), both),
            (vectors and not how.by_cell, noisy),
            (self.noise.delta > 0 and not self.takes_delta, f"Gaussian noise with {noisy}"),
            (sums and self.shrinkage.weighed, f"shrinkage of weighed users with {who.title}"),
        )
