"""Carrying a mean mechanism out: select the ranges, add up exactly, round to the lattice, draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.cells.moments import WeighedMoments
from shoal.cells.ranges.private_means import PrivateMeans
from shoal.cells.statistics.mean import Mean
from shoal.cells.statistics.variance import Variance
from shoal.cells.user_vectors import UserVectors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    from shoal.cells.contributions.base import Parameters
    from shoal.cells.contributions.design import Design
    from shoal.cells.mechanism import Mechanism
    from shoal.cells.ranges.selected import Range
    from shoal.cells.statistics.base import Fractions, Statistic
    from shoal.data.aggregate import Aggregate
    from shoal.privacy.noise import Noise


@dataclass(frozen=True, eq=False)
class Drawn:
    """What left the mechanism: public from now on.

    Attributes:
        steps: Noisy whole number of lattice steps of each number: statistic by statistic, each in
            the order of the released cells.
        chosen: The selected ranges, or None.
    """

    steps: list[int]
    chosen: Range | None


@dataclass(frozen=True, eq=False)
class Drawing:
    """The public facts of a draw.

    Formal guarantee: user l loses what `planning.losses.Losses` says, whatever the values, and
    nothing but the values of one user differs between neighbours.

    Attributes:
        mechanism: Which one.
        design: What each user contributes.
        parameters: Of the mechanism.
        selection_scale: Of its private selections.
        relative_scale: b over the range (the selected range, if there is one) of each number.
        bits: j; noise has the scale of 2^j steps.
        statistics: What is released of every cell.
        joint: Whether mean and variance are drawn as first and second moment.
        gaussian: Whether noise is Gaussian.
        recentre: Draws a first round: the centres of the cells, in ticks over 2^FINE.
    """

    mechanism: Mechanism
    design: Design
    parameters: Parameters
    selection_scale: NDArray[np.float64]
    relative_scale: NDArray[np.float64]
    bits: int
    statistics: tuple[Statistic, ...] = (Mean(),)
    joint: bool = False
    gaussian: bool = False
    recentre: Callable[[Aggregate, Noise], NDArray[np.int64]] | None = None

    def draw(self, aggregate: Aggregate, noise: Noise) -> Drawn:
        """Selections first, then one noisy number for each statistic of each cell.

        Args:
            aggregate: Private sums.
            noise: The source of randomness.
        """
        exact, chosen = self.select(aggregate, noise)
        add = noise.add_gaussian if self.gaussian else noise.add_laplace
        return Drawn(add(exact, self.bits), chosen)

    def select(self, aggregate: Aggregate, noise: Noise) -> tuple[list[int], Range | None]:
        """The exact lattice numbers, which noise is yet to hide, and the selected ranges.

        Args:
            aggregate: Private sums.
            noise: The source of randomness.
        """
        means = PrivateMeans(self.design, aggregate)
        if self.mechanism.range.of_vectors:
            vectors = UserVectors.of(means, self.relative_scale, self.bits, gaussian=self.gaussian)
            if self.recentre is not None:
                centres = self.recentre(aggregate, noise)
                last = float(self.selection_scale[-1])
                within = vectors.select_around(centres, self.parameters, last, noise)
                return vectors.steps(within, int(self.parameters["ball"][0])), within
            within, ball = vectors.select(self.parameters, self.selection_scale, noise)
            return vectors.steps(within, ball), within
        chosen = self.mechanism.range.select(means, self.parameters, self.selection_scale, noise)
        private = self._numbers(aggregate) if chosen is None else self._within(means, chosen)
        exact = [
            to_steps(part, whole, scale, self.bits)
            for (part, whole), scale in zip(private, self.relative_scale.tolist(), strict=True)
        ]
        return exact, chosen

    def _numbers(self, aggregate: Aggregate) -> Fractions:
        moments = WeighedMoments(self.design, aggregate, linear=self.joint)
        private: Fractions = []
        for statistic in self.statistics:
            second = self.joint and statistic == Variance()
            private += moments.second_moment() if second else statistic.fractions(moments)
        return private

    def _within(self, means: PrivateMeans, chosen: Range) -> Fractions:
        size = range_widths(self.design, chosen, means.top)
        return [
            (part, whole * range_width)
            for part, whole, range_width in zip(
                means.add_up(chosen), self.design.total.tolist(), size, strict=True
            )
        ]


def range_widths(design: Design, chosen: Range | None, top: int) -> list[int]:
    """The range of each number in ticks over 2^FINE."""
    found: list[int] = [top] * design.n_numbers if chosen is None else chosen.range_width.tolist()
    return found


def to_steps(total: int, most: int, relative_scale: float, bits: int) -> int:
    """The share total/most in lattice steps b/2^j, rounded to the nearest, halves upwards.

    Exact integer arithmetic: non-decreasing in the total, and a shift by whole steps shifts it.

    Example:
        >>> to_steps(1, 4, 0.5, 3), to_steps(5, 32, 1.0, 3)
        (4, 1)
    """
    up, down = relative_scale.as_integer_ratio()
    numerator, denominator = (total << bits) * down, most * up
    return (2 * numerator + denominator) // (2 * denominator)


def values(
    statistic_ranges: Iterable[tuple[Fraction, Fraction]],
    steps: Iterable[int],
    relative_scales: Iterable[float],
    bits: int,
    range_widths: Iterable[Fraction],
) -> list[float]:
    """What lattice numbers x stand for, correctly rounded: low + length x range b/2^j.

    Args:
        statistic_ranges: Lower end and length of the range of each number's statistic.
        steps: The lattice numbers x.
        relative_scales: b over the range.
        bits: j.
        range_widths: Of the selected ranges, as parts of the width; 1 if there is none.

    Example:
        >>> from fractions import Fraction
        >>> values([(Fraction(-1), Fraction(2))], [3], [0.5], 2, [Fraction(1)])
        [-0.25]
    """
    each = zip(statistic_ranges, steps, relative_scales, range_widths, strict=True)
    return [
        _value(statistic_range, x, scale, bits, range_width)
        for statistic_range, x, scale, range_width in each
    ]


def _value(
    statistic_range: tuple[Fraction, Fraction],
    steps: int,
    relative_scale: float,
    bits: int,
    range_width: Fraction,
) -> float:
    low, length = statistic_range
    (up, down), moved = relative_scale.as_integer_ratio(), length * range_width
    whole = low.denominator * moved.denominator * down << bits
    part = low.numerator * moved.denominator * (down << bits)
    # Dividing two integers rounds once, unlike floating-point arithmetic on the parts.
    return (part + moved.numerator * steps * up * low.denominator) / whole
