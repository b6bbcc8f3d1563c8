"""A mechanism of means: one rule of contributions within one rule of ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shoal.cells.contributions.base import largest_counts
from shoal.cells.contributions.design import FINE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shoal.cells.contributions.base import ContributionRule, Parameters
    from shoal.cells.contributions.design import Design
    from shoal.cells.ranges.base import RangeRule
    from shoal.cells.ranges.private_means import PrivateMeans
    from shoal.cells.ranges.selected import Range
    from shoal.data.occupancy import Occupancy
    from shoal.data.value_lattice import Lattice
    from shoal.privacy.noise import Noise


@dataclass(frozen=True)
class Mechanism:
    """What bounds users, selects ranges and releases the numbers: public until it draws.

    It spends `selecting` of its budget on private selections and the rest on one draw for every
    cell; noise costs each user its own contribution. Parameters of the two rules are kept together,
    by names that no two rules share.

    Attributes:
        name: What plans, manifests and the literature call it.
        contributions: How much of every user counts.
        range: Where values are clipped.
        lattice: Bounds and ticks of the values.
    """

    name: str
    contributions: ContributionRule
    range: RangeRule
    lattice: Lattice

    @property
    def selects(self) -> Literal["nothing", "per cell", "for all"]:
        """What is selected privately: nothing, a range per cell, or one for all cells."""
        return self.range.selects

    @property
    def rounds(self) -> int:
        """Selections of each kind."""
        return self.range.rounds

    @property
    def per_member(self) -> tuple[str, ...]:
        """Parameters of which every member has one."""
        return self.contributions.per_member

    def parameters(
        self, occupancy: Occupancy, cells: NDArray[np.int64], epsilon: NDArray[np.float64]
    ) -> Parameters:
        """Public whole numbers that follow from the counts and the loss of each cell.

        Args:
            occupancy: The counts.
            cells: The cells to be released.
            epsilon: Loss that the mechanism may use in each of them.
        """
        own = self.contributions.parameters(occupancy, cells, epsilon)
        if not self.range.least:
            return own
        design = self.design(occupancy, cells, own)
        return own | self.range.parameters(design, own, epsilon, self._top)

    def design(
        self, occupancy: Occupancy, cells: NDArray[np.int64], parameters: Parameters
    ) -> Design:
        """Weights and contributions that follow from the parameters."""
        return self.contributions.design(occupancy, cells, parameters)

    def check(self, parameters: Parameters, occupancy: Occupancy, cells: NDArray[np.int64]) -> bool:
        """Whether these could be this mechanism's parameters for these cells."""
        who, where = self.contributions, self.range
        if parameters.keys() != who.least.keys() | where.least.keys():
            return False
        own = {name: parameters[name] for name in who.least}
        rest = {name: parameters[name] for name in where.least}
        largest = largest_counts(occupancy, cells)
        return who.check(own, occupancy, cells) and where.check(rest, largest)

    def most_narrowing(self, parameters: Parameters) -> int:
        """The width over the shortest range that a selection can give, rounded upwards."""
        return self.range.most_narrowing(parameters, self._top)

    def widest_range(self, parameters: Parameters) -> NDArray[np.float64] | float:
        """The longest range over the width, of each number or of all."""
        return self.range.widest_range(parameters)

    def selecting(self, design: Design, epsilon: float) -> float:
        """Part of the budget for selections, at a total loss of epsilon."""
        return self.range.selecting(design, epsilon)

    def score_sensitivity(self, design: Design) -> int:
        """Most that one user moves a score of a selection."""
        return self.range.score_sensitivity(design)

    def tune(
        self,
        design: Design,
        parameters: Parameters,
        epsilon: float,
        relative_scale: NDArray[np.float64],
        selecting: float,
    ) -> Parameters:
        """Parameters of the selection, once the noise and its own part of the loss are known."""
        return self.range.tune(design, parameters, epsilon, relative_scale, selecting)

    def select(
        self,
        means: PrivateMeans,
        parameters: Parameters,
        scale: NDArray[np.float64],
        noise: Noise,
    ) -> Range | None:
        """The range of every number, by private selections; None if there are none."""
        return self.range.select(means, parameters, scale, noise)

    @property
    def _top(self) -> int:
        """The width in ticks over 2^FINE."""
        return 1 << (self.lattice.bits + FINE)
