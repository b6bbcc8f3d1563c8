"""The mean of the values of a cell."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from shoal.cells.statistics.base import Linear

if TYPE_CHECKING:
    from shoal.data.value_lattice import Bounds


@dataclass(frozen=True)
class Mean(Linear):
    """Sum of the values over their number, in the value's unit.

    Example:
        >>> Mean().name
        'mean'
    """

    power = 1
    name = "mean"

    def statistic_range(self, bounds: Bounds) -> tuple[Fraction, Fraction]:
        """The bounds."""
        return Fraction(bounds.lo), bounds.width
