"""The variance of the values of a cell, released directly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from shoal.cells.bounding import statistics
from shoal.cells.statistics.base import Fractions, Statistic
from shoal.theory import variance

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shoal.cells.statistics.base import Bounding, Moments
    from shoal.data.value_lattice import Bounds

_COUNTED = statistics.VARIANCE
# The closed forms are over U^2, four times the range.
_OVER_RANGE = statistics.Statistic(
    "variance",
    2,
    lambda heaviest, kept: 4 * _COUNTED.sensitivity(heaviest, kept),
    lambda dropped, totals: 4 * _COUNTED.bias(dropped, totals),
)


@dataclass(frozen=True)
class Variance(Statistic):
    """Sum of squared deviations from the mean over their number, in the value's unit squared.

    Example:
        >>> Variance().name
        'variance'
    """

    power = 2
    in_counts = _OVER_RANGE
    name = "variance"

    def statistic_range(self, bounds: Bounds) -> tuple[Fraction, Fraction]:
        """0 to U^2/4: half of the values at each bound."""
        return Fraction(0), bounds.width**2 / 4

    def sensitivity(self, bounding: Bounding) -> NDArray[np.float64]:
        """V of the member's mass (docs/theory/variance.md#weighted-users-and-missing-mass)."""
        return variance.mass_sensitivity(bounding.part, bounding.kept)

    def bias(self, bounding: Bounding) -> NDArray[np.float64]:
        """V of the mass that bounding moves, half of it if it is missing."""
        return variance.mass_bias(bounding.missing, bounding.distance)

    def rounding(self, ticks: float, means: float) -> float:
        """Values a distance t from their ticks move a standard deviation of at most U/2 by t."""
        moved = ticks + means
        return 4 * moved * (1 + moved)

    def fractions(self, moments: Moments) -> Fractions:
        """Exact variances of the weighted values."""
        return moments.variance()
