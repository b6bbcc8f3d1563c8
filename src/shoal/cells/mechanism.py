"""A mechanism of means: one rule of contributions within one rule of ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.cells.contributions.base import largest_counts
from shoal.cells.contributions.design import FINE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shoal.cells.contributions.base import ContributionRule, Parameters
    from shoal.cells.contributions.design import Design
    from shoal.cells.ranges.base import RangeRule
    from shoal.data.occupancy import Counts
    from shoal.data.value_lattice import Lattice


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

    def parameters(
        self, occupancy: Counts, cells: NDArray[np.int64], epsilon: NDArray[np.float64]
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

    def design(self, occupancy: Counts, cells: NDArray[np.int64], parameters: Parameters) -> Design:
        """Weights and contributions that follow from the parameters."""
        return self.contributions.design(occupancy, cells, parameters)

    def check(self, parameters: Parameters, occupancy: Counts, cells: NDArray[np.int64]) -> bool:
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

    @property
    def _top(self) -> int:
        """The width in ticks over 2^FINE."""
        return 1 << (self.lattice.bits + FINE)
