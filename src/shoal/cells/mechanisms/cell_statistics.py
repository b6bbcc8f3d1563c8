"""Defines the statistics of a cell: the mean, the variance, and shares of records above a limit.

Those of private counts are in `shoal.presence.request`.

Inside the library every statistic is a part of its range, in 0..1: guessing the middle, 1/2, has
an error of at most 1/2.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol, Self, TypeAlias

import numpy as np

from shoal import checks
from shoal.arrays import Floats, Ints
from shoal.cells.mechanisms.weights import Weights
from shoal.data.records import Measure, above
from shoal.data.value_lattice import Bounds, Lattice
from shoal.errors import InputError
from shoal.theory import sensitivity, variance
from shoal.theory.sensitivity import OUTWARD

# The error of guessing the middle of a range, as a part of the range.
MIDPOINT_ERROR = 0.5
# A fraction (numerator, denominator) for each cell.
Fractions: TypeAlias = "list[tuple[int, int]]"
NAMES = ("mean", "variance", "share_above(60)")
_MOST = 8
_SHARE_ABOVE = re.compile(r"share_above\((?P<threshold>[-+.0-9eE]{1,30})\)")


class Moments(Protocol):
    """Private weighted sums of each cell, as fractions of whole numbers."""

    def mean(self, measure: str) -> Fractions:
        """Returns means of a measure as parts of its range; missing mass lies in the middle."""

    def variance(self) -> Fractions:
        """Returns four times the variance, plus the middle of what missing mass may add to it."""


@dataclass(frozen=True)
class InCounts:
    """Sensitivity and bias of a statistic, as parts of its range, when records are left out.

    Clip-User leaves records out. `sensitivity` takes the heaviest kept count and the number of kept
    records; `bias` takes the number of records that are left out and the number of all records.
    """

    sensitivity: Callable[[Ints, Ints], Floats]
    bias: Callable[[Ints, Ints], Floats]


MEAN = InCounts(sensitivity.mean, lambda dropped, totals: np.asarray(dropped / totals))
# Theorem IV.2 of paper 000 with its two cases exchanged (erratum 1), divided by U^2/4.
VARIANCE = InCounts(
    lambda heaviest, kept: 4 * variance.sensitivity(heaviest, kept),
    lambda dropped, totals: 4 * variance.bias(dropped, totals),
)


def cell_errors(
    forms: Sequence[InCounts], epsilon_per_cell: float, ranges: Sequence[float] = ()
) -> Callable[[Ints, Ints, Ints], Floats]:
    """Returns the function for errors of cells, from heaviest counts, kept and all records.

    It adds up the errors of the statistics, each times the length of its range, which is 1 by
    default (docs/theory/cells.md#clip-user).
    """
    epsilon_of_statistic = epsilon_per_cell / len(forms)
    lengths = ranges or [1.0] * len(forms)

    def error(heaviest: Ints, kept: Ints, totals: Ints) -> Floats:
        total_error = np.zeros(np.shape(kept))
        for form, length in zip(forms, lengths, strict=True):
            noise = form.sensitivity(heaviest, kept) / epsilon_of_statistic
            total_error += length * (form.bias(totals - kept, totals) + noise)
        return total_error

    return error


def mean_error(epsilon_per_cell: float) -> Callable[[int, int, int], float]:
    """Returns the function for the error of one cell's mean; `cell_errors` is for arrays."""

    def error(heaviest: int, kept: int, total: int) -> float:
        part = heaviest / kept * OUTWARD
        # Clip-User calls this very often, and a comparison is faster than `min`.
        sensitivity = 1.0 if part > 1.0 else part
        return (total - kept) / total + sensitivity / epsilon_per_cell

    return error


@dataclass(frozen=True)
class Statistic(ABC):
    """One number of a cell."""

    in_counts: ClassVar[InCounts]

    @property
    @abstractmethod
    def name(self) -> str:
        """The text that asks for it."""

    @property
    def measure(self) -> Measure | None:
        """The measure that the engine has to add up besides values and squares, if any."""
        return None

    @abstractmethod
    def statistic_range(self, bounds: Bounds) -> tuple[Fraction, Fraction]:
        """Returns lower end and length of its range, in its unit."""

    @abstractmethod
    def sensitivity(self, weights: Weights) -> Floats:
        """Returns the most that each member moves it, as a part of its range, rounded upwards."""

    @abstractmethod
    def bias(self, weights: Weights) -> Floats:
        """Returns the most that bounding users moves it in any data set, as a part of its range."""

    @abstractmethod
    def rounding(self, ticks: float, means: float) -> float:
        """Returns the most that rounding values and means moves it, as a part of its range."""

    @abstractmethod
    def fractions(self, moments: Moments) -> Fractions:
        """Returns its private value in each cell, as a part of its range, before noise."""


@dataclass(frozen=True)
class Linear(Statistic):
    """A mean over records, which a user moves by its weight at most."""

    in_counts: ClassVar[InCounts] = MEAN

    def sensitivity(self, weights: Weights) -> Floats:
        """Returns the weight of each member (docs/theory/privacy.md#sensitivity)."""
        return np.minimum(1.0, weights.part * OUTWARD)

    def bias(self, weights: Weights) -> Floats:
        """Returns the bias of a linear estimator (docs/theory/cells.md#linear-estimators)."""
        return weights.bias

    def rounding(self, ticks: float, means: float) -> float:
        """Returns the sum of both; a measure is exact in ticks, so only means are rounded."""
        return means if self.measure else ticks + means

    def fractions(self, moments: Moments) -> Fractions:
        """Returns weighted means."""
        return moments.mean("" if self.measure is None else self.measure.name)


@dataclass(frozen=True)
class Mean(Linear):
    """The sum of the values divided by their number, in the value's unit."""

    name = "mean"

    def statistic_range(self, bounds: Bounds) -> tuple[Fraction, Fraction]:
        """Returns the lower bound and the width of the bounds."""
        return Fraction(bounds.lo), bounds.width


@dataclass(frozen=True)
class Variance(Statistic):
    """The mean of squared deviations from the mean, in the square of the value's unit."""

    in_counts = VARIANCE
    name = "variance"

    def statistic_range(self, bounds: Bounds) -> tuple[Fraction, Fraction]:
        """Returns 0 and a quarter of the squared width: half of the values may be at each bound."""
        return Fraction(0), bounds.width**2 / 4

    def sensitivity(self, weights: Weights) -> Floats:
        """Returns `mass_sensitivity` of each member's mass (docs/theory/cells.md#variance)."""
        return variance.mass_sensitivity(weights.part, weights.kept)

    def bias(self, weights: Weights) -> Floats:
        """Returns `mass_bias` of the mass that bounding users moves or leaves out."""
        return variance.mass_bias(weights.missing, weights.distance)

    def rounding(self, ticks: float, means: float) -> float:
        """Returns a bound: moving values by t moves a standard deviation, at most U/2, by t."""
        moved = ticks + means
        return 4 * moved * (1 + moved)

    def fractions(self, moments: Moments) -> Fractions:
        """Returns exact variances of the weighted values."""
        return moments.variance()


@dataclass(frozen=True)
class ShareAbove(Linear):
    """The share of records above a public threshold, 0 to 1.

    A value equal to the threshold is not above it.
    """

    threshold: float

    def __post_init__(self) -> None:
        # Adding 0.0 turns minus zero into zero.
        object.__setattr__(self, "threshold", checks.number(self.threshold, "a threshold") + 0.0)

    @property
    def name(self) -> str:
        """The text that asks for the share."""
        return f"share_above({repr(self.threshold).removesuffix('.0')})"

    @property
    def measure(self) -> Self:
        """The share itself, for which the engine counts records."""
        return self

    def statistic_range(self, bounds: Bounds) -> tuple[Fraction, Fraction]:
        """Returns 0 and 1."""
        return Fraction(0), Fraction(1)

    def amount(self, lattice: Lattice) -> str:
        """Returns SQL of 2^bits for each record above the threshold, and 0 for the others."""
        return f"CASE WHEN {above(self.threshold, lattice)} THEN {2**lattice.bits} ELSE 0 END"


def statistic(name: str) -> Statistic:
    """Returns the statistic that a text such as `share_above(60)` asks for."""
    text = checks.text(name, "a statistic")
    if text in ("mean", "variance"):
        return Mean() if text == "mean" else Variance()
    match = _SHARE_ABOVE.fullmatch(text)
    try:
        if match:
            return ShareAbove(float(match["threshold"]))
    except ValueError:
        # The pattern allows texts that are no numbers, such as 1e or --1.
        pass
    raise InputError(
        f"there is no statistic {checks.shown(text)}",
        f"choose one of {', '.join(NAMES)}, or another threshold",
    )


def statistics(names: Sequence[str]) -> tuple[Statistic, ...]:
    """Returns several statistics, none twice."""
    found = tuple(statistic(each) for each in checks.items(names, "statistics", most=_MOST))
    if len({each.name for each in found}) < len(found):
        raise InputError("a statistic is named twice", "name each statistic once")
    return found
