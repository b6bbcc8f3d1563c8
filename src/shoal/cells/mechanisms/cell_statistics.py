"""What can be released of a cell: the mean, the variance, and the share of records above a limit.

Inside the library every statistic is a share of its range in 0..1: 1/2 is what guessing achieves.
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
from shoal.data.records import Measure
from shoal.data.value_lattice import Bounds, Lattice
from shoal.errors import InputError
from shoal.theory import sensitivity, variance
from shoal.theory.sensitivity import OUTWARD

# Half of a range is the error of guessing its middle.
MIDPOINT_ERROR = 0.5
# One (part, whole) a cell.
Fractions: TypeAlias = "list[tuple[int, int]]"
NAMES = ("mean", "variance", "share_above(60)")
_MOST = 8
_SHARES = "ask for several share_above(...), the shares above public thresholds"
_ELSEWHERE = "OpenDP, Tumult Analytics or PipelineDP release it"
# What to do who asks for something else.
_INSTEAD = {
    "count": "counts are public: take records.counts().to_pandas()",
    "sum": "ask for the mean, and multiply it by the public number of records",
    "std": "ask for the variance: the table has its square root as std",
    "median": f"{_SHARES}; {_ELSEWHERE}",
    "quantile": f"{_SHARES}; {_ELSEWHERE}",
    "histogram": _SHARES,
    "presence": f"who is in which cell is public here; where that is secret, {_ELSEWHERE}",
}
_SHARE_ABOVE = re.compile(r"share_above\((?P<threshold>[-+.0-9eE]{1,30})\)")


class Moments(Protocol):
    """Private weighted sums of each cell, as fractions of whole numbers."""

    def mean(self, measure: str) -> Fractions:
        """Mean of a measure over its range; missing mass lies in the middle."""

    def variance(self) -> Fractions:
        """Four times the variance of the centred values, with half of what missing mass may add."""


@dataclass(frozen=True)
class InCounts:
    """A statistic over its range when whole records are left out, as Clip-User does.

    `sensitivity` takes (heaviest kept count, kept records), `bias` (left out, all records).
    """

    sensitivity: Callable[[Ints, Ints], Floats]
    bias: Callable[[Ints, Ints], Floats]


MEAN = InCounts(sensitivity.mean, lambda dropped, totals: np.asarray(dropped / totals))
# Theorem IV.2 of paper 000 with its two cases the right way round (erratum 1), over U^2/4.
VARIANCE = InCounts(
    lambda heaviest, kept: 4 * variance.sensitivity(heaviest, kept),
    lambda dropped, totals: 4 * variance.bias(dropped, totals),
)


def cell_errors(
    forms: Sequence[InCounts], epsilon_per_cell: float, ranges: Sequence[float] = ()
) -> Callable[[Ints, Ints, Ints], Floats]:
    """A cell's error, given m*, K and n (docs/theory/cells.md#clip-user)."""
    share = epsilon_per_cell / len(forms)
    lengths = ranges or [1.0] * len(forms)

    def error(heaviest: Ints, kept: Ints, totals: Ints) -> Floats:
        found = np.zeros(np.shape(kept))
        for form, length in zip(forms, lengths, strict=True):
            found += length * (
                form.bias(totals - kept, totals) + form.sensitivity(heaviest, kept) / share
            )
        return found

    return error


def mean_error(epsilon_per_cell: float) -> Callable[[int, int, int], float]:
    """Returns the error of one cell's mean, as `cell_errors` does for arrays of cells."""

    def error(heaviest: int, kept: int, total: int) -> float:
        part = heaviest / kept * OUTWARD
        # Clip-User asks for every pair again and again: a comparison is faster than `min`.
        return (total - kept) / total + (1.0 if part > 1.0 else part) / epsilon_per_cell

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
        """What the engine has to add up besides values and squares, if anything."""
        return None

    @abstractmethod
    def statistic_range(self, bounds: Bounds) -> tuple[Fraction, Fraction]:
        """Lower end and length of its range, in its unit."""

    @abstractmethod
    def sensitivity(self, weights: Weights) -> Floats:
        """Most that each member moves it, over its range, rounded upwards."""

    @abstractmethod
    def bias(self, weights: Weights) -> Floats:
        """Most that bounding moves it in any data set, of each cell, over its range."""

    @abstractmethod
    def rounding(self, ticks: float, means: float) -> float:
        """Most that rounding values to ticks, and means of users, moves it, over its range."""

    @abstractmethod
    def fractions(self, moments: Moments) -> Fractions:
        """Its private value in each cell, over its range, before noise."""


@dataclass(frozen=True)
class Linear(Statistic):
    """A mean of something that each record has: a user moves it by its weight."""

    in_counts: ClassVar[InCounts] = MEAN

    def sensitivity(self, weights: Weights) -> Floats:
        """The weight w (docs/theory/privacy.md#sensitivity)."""
        return np.minimum(1.0, weights.part * OUTWARD)

    def bias(self, weights: Weights) -> Floats:
        """As of any linear estimator (docs/theory/cells.md#linear-estimators)."""
        return weights.bias

    def rounding(self, ticks: float, means: float) -> float:
        """Both together; a measure is made of ticks, exactly."""
        return means if self.measure else ticks + means

    def fractions(self, moments: Moments) -> Fractions:
        """Weighted means."""
        return moments.mean("" if self.measure is None else self.measure.name)


@dataclass(frozen=True)
class Mean(Linear):
    """Sum of the values over their number, in the value's unit."""

    name = "mean"

    def statistic_range(self, bounds: Bounds) -> tuple[Fraction, Fraction]:
        """The bounds."""
        return Fraction(bounds.lo), bounds.width


@dataclass(frozen=True)
class Variance(Statistic):
    """Mean of squared deviations from the mean, in the value's unit squared."""

    in_counts = VARIANCE
    name = "variance"

    def statistic_range(self, bounds: Bounds) -> tuple[Fraction, Fraction]:
        """0 to U^2/4: half of the values at each bound."""
        return Fraction(0), bounds.width**2 / 4

    def sensitivity(self, weights: Weights) -> Floats:
        """V of the member's mass (docs/theory/cells.md#variance)."""
        return variance.mass_sensitivity(weights.part, weights.kept)

    def bias(self, weights: Weights) -> Floats:
        """V of the mass that bounding moves, half of it if it is missing."""
        return variance.mass_bias(weights.missing, weights.distance)

    def rounding(self, ticks: float, means: float) -> float:
        """Values a distance t from their ticks move a standard deviation of at most U/2 by t."""
        moved = ticks + means
        return 4 * moved * (1 + moved)

    def fractions(self, moments: Moments) -> Fractions:
        """Exact variances of the weighted values."""
        return moments.variance()


@dataclass(frozen=True)
class ShareAbove(Linear):
    """Records above a public threshold over all records: 0 to 1.

    Values and threshold are rounded to ticks by one rule: a value equal to the threshold is never
    above it, and one that is more than a tick above it always is.
    """

    threshold: float

    def __post_init__(self) -> None:
        # Minus zero is zero.
        object.__setattr__(self, "threshold", checks.number(self.threshold, "a threshold") + 0.0)

    @property
    def name(self) -> str:
        """The text that asks for it."""
        return f"share_above({repr(self.threshold).removesuffix('.0')})"

    @property
    def measure(self) -> Self:
        """Itself: it adds records up."""
        return self

    def statistic_range(self, bounds: Bounds) -> tuple[Fraction, Fraction]:
        """0 to 1."""
        return Fraction(0), Fraction(1)

    def edge(self, lattice: Lattice) -> int:
        """The threshold's tick from the middle of the bounds: a value equal to it is not above."""
        within = self.threshold >= lattice.bounds.lo
        place = int(lattice.ticks(np.array([self.threshold]))[0]) if within else -1
        return place - (1 << lattice.bits >> 1)


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
        pass
    raise InputError(
        f"there is no statistic {checks.shown(text)}",
        _INSTEAD.get(text, f"choose one of {', '.join(NAMES)}, or another threshold"),
    )


def statistics(names: Sequence[str]) -> tuple[Statistic, ...]:
    """Returns several statistics, none twice."""
    found = tuple(statistic(each) for each in checks.items(names, "statistics", most=_MOST))
    if len({each.name for each in found}) < len(found):
        raise InputError("a statistic is named twice", "name each statistic once")
    return found
