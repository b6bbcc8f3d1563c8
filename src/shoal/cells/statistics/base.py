"""What every statistic of a cell answers: its range, how users move it, what bounding costs it.

Inside the library every statistic is a share of its range in 0..1, so that 1/2 is what guessing
achieves: the range of a mean is U, of a variance U^2/4, of a share of records 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from shoal.cells.bounding.statistics import MEAN
from shoal.cells.bounding.statistics import Statistic as InCounts
from shoal.theory.sensitivity import OUTWARD

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from shoal.data.records import Measure
    from shoal.data.value_lattice import Bounds

Fractions = list[tuple[int, int]]


class Bounding(Protocol):
    """Public facts of how users are bounded, one row a member (a user in a released cell)."""

    @property
    def part(self) -> NDArray[np.float64]:
        """w: effective weight of each member, rounded upwards."""

    @property
    def kept(self) -> NDArray[np.float64]:
        """W: sum of the weights of the cell of each member, rounded upwards; at most 1."""

    @property
    def missing(self) -> NDArray[np.float64]:
        """1 - W of each cell; above 0 only if no weight exceeds its user's share."""

    @property
    def distance(self) -> NDArray[np.float64]:
        """Mass by which weights (with the missing mass) and shares differ in each cell."""

    @property
    def bias(self) -> NDArray[np.float64]:
        """Bias of a linear statistic over its range, of each cell."""


class Moments(Protocol):
    """Private weighted sums of each cell, as fractions of whole numbers."""

    def mean(self, measure: str) -> Fractions:
        """Mean of a measure over its range; missing mass lies in the middle."""

    def second_moment(self) -> Fractions:
        """Four times the mean of y^2, with y the centred value over the width."""

    def variance(self) -> Fractions:
        """Four times the variance of y, with half of what missing mass may add."""


@dataclass(frozen=True)
class Statistic(ABC):
    """One number of a cell.

    Class attributes: `power`, the unit is the value's to this power; `in_counts`, sensitivity and
    bias in closed form when whole records are left out, as Clip-User and the capping step need.
    """

    power: ClassVar[int]
    in_counts: ClassVar[InCounts]

    @property
    @abstractmethod
    def name(self) -> str:
        """What people call it; the text that asks for it."""

    @property
    def measure(self) -> Measure | None:
        """What the engine has to add up besides values and squares, if anything."""
        return None

    @abstractmethod
    def statistic_range(self, bounds: Bounds) -> tuple[Fraction, Fraction]:
        """Lower end and length of its range, in its unit."""

    @abstractmethod
    def sensitivity(self, bounding: Bounding) -> NDArray[np.float64]:
        """Most that each member moves it, over its range, rounded upwards."""

    @abstractmethod
    def bias(self, bounding: Bounding) -> NDArray[np.float64]:
        """Most that bounding moves it in any data set, of each cell, over its range."""

    @abstractmethod
    def rounding(self, ticks: float, means: float) -> float:
        """Most that rounding moves it, over its range.

        Args:
            ticks: Most that rounding to ticks moves a value, over the width.
            means: Most that rounding moves the mean of a user.
        """

    @abstractmethod
    def fractions(self, moments: Moments) -> Fractions:
        """Its private value in each cell, over its range, before noise."""


@dataclass(frozen=True)
class Linear(Statistic):
    """A mean of something that each record has: a user moves it by its weight."""

    in_counts: ClassVar[InCounts] = MEAN

    def sensitivity(self, bounding: Bounding) -> NDArray[np.float64]:
        """The weight w (docs/theory/sensitivity.md)."""
        return np.minimum(1.0, bounding.part * OUTWARD)

    def bias(self, bounding: Bounding) -> NDArray[np.float64]:
        """As of any linear estimator (docs/theory/grouping.md#linear-estimators-and-their-bias)."""
        return bounding.bias

    def rounding(self, ticks: float, means: float) -> float:
        """Both together; a measure is made of ticks, exactly."""
        return means if self.measure else ticks + means

    def fractions(self, moments: Moments) -> Fractions:
        """Weighted means."""
        return moments.mean("" if self.measure is None else self.measure.name)
