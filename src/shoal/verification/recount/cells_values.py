"""Values, errors that are claimed in advance, and certified intervals of cells."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from shoal.verification.recount import noise
from shoal.verification.recount.cells_loss import Losses
from shoal.verification.recount.reading import Release

# Mechanisms that select a range in private.
_SELECTING = ("levy", "quantile", "akmv", "adaptive", "optimal_in_range", "user_clipped")


@dataclass(frozen=True, eq=False)
class Values:
    """What the noisy integers of cells stand for."""

    cells: Release
    losses: Losses

    def differences(self) -> Iterator[str]:
        """Claims, values and intervals that do not follow."""
        cells = self.cells
        places = [(name, at) for name in cells.statistics for at in range(cells.size)]
        stated = zip(cells.bias_bound, cells.worst_case_error, strict=True)
        for (name, at), claims in zip(places, stated, strict=True):
            true = [float(self.cells.ranges[name][1]) * each for each in self.errors(name, at)]
            if not np.allclose(claims, true, rtol=1e-9, atol=0):
                yield f"{name} of cell {at}: bias bound and largest error are {true}, not {claims}"
            yield from self._result(name, at)

    def errors(self, name: str, at: int) -> tuple[float, float]:
        """Bias bound and worst-case error over the range; 1 where a smaller range is selected."""
        if self.cells.name in _SELECTING:
            return 1.0, 1.0
        bias = float(self._bias(name, at, Fraction(1)))
        return bias, bias + self.mean_noise(name, at)

    def bounding_bias(self, name: str, at: int) -> tuple[Fraction, Fraction]:
        """Bias by bounding over the range, and what is added (docs/theory/variance.md)."""
        moved, missing = self.losses.bias[at], 2 * self.losses.bias[at]
        if name != "variance":
            return moved, Fraction(0)
        if self.cells.name not in ("optimal", "optimal_in_range"):
            moved = min(moved, Fraction(1, 2))
            return 4 * moved * (1 - moved), Fraction(0)
        # What is missing is taken to lie in the middle of the bounds.
        below = missing * (1 - missing)
        above = 3 * below if 2 * missing <= 1 else 1 - below
        return (above + below) / 2, (above - below) / 2

    def _bias(self, name: str, at: int, width: Fraction) -> Fraction:
        """Most that an estimate is off before noise, over its range, in a range of this width."""
        cells, half_step = self.cells, Fraction(1, 2 << self.cells.lattice_bits)
        shares = cells.method in ("balanced", "equalised", "uniform")
        means = Fraction(0 if shares else 1, cells.top)
        moved = means + Fraction(1025, 1024 << (cells.tick_bits + 1))
        rounding = {"mean": moved, "variance": 4 * (moved + moved**2)}.get(name, means)
        rounding += half_step * cells.scale[name][at] * width
        if name == "variance" and cells.joint:
            first = half_step * cells.scale["mean"][at]
            rounding += 4 * (first + first**2)
        return rounding + self.bounding_bias(name, at)[0]

    def mean_noise(self, name: str, at: int) -> float:
        """Mean absolute noise over the range; of a joint variance, a bound."""
        cells, step = self.cells, 2.0**-self.cells.lattice_bits
        mean = math.sqrt(2 / math.pi) if cells.gaussian else step / math.sinh(step)
        error = float(cells.scale[name][at]) * mean
        if name == "variance" and cells.joint:
            first = float(cells.scale["mean"][at])
            square = noise.GAUSSIAN_SQUARE if cells.gaussian else noise.LAPLACE_SQUARE
            error += 4 * (first * mean + square * first**2)
        return error

    def _result(self, name: str, at: int) -> Iterator[str]:
        """Whether a value and its interval follow from lattice steps."""
        cells, (low, length) = self.cells, self.cells.ranges[name]
        steps, ends, unclamped, value, interval = cells.results[name][at]
        width = Fraction(ends[1] - ends[0], cells.top) if ends else Fraction(1)
        bias, joint = self._bias(name, at, width), cells.joint and name == "variance"
        if ends:
            bias = min(bias + self.losses.range_bias(at, ends[0], ends[1]), Fraction(1))
        miss = (1 - cells.confidence) / (2 if joint else 1)
        far = Fraction(noise.quantile(cells.lattice_bits, miss, gaussian=cells.gaussian))
        scale = cells.scale[name][at] * width
        drawn = scale * Fraction(steps, 2**cells.lattice_bits)
        exact, least, most, size = drawn, drawn - far * scale, drawn + far * scale, 1 + abs(drawn)
        if joint:
            exact, least, most, size = self._variance(at, drawn, far)
        digits = 1e-14 * float(abs(low) + length * size)
        true, *span = (float(low + length * each) for each in (exact, least - bias, most + bias))
        # Sums are clamped to the selected range where everybody is clipped to it.
        if ends is None or cells.widened or cells.name in ("akmv", "user_clipped"):
            ends = [0, cells.top]
        inside = [float(low + length * end / cells.top) for end in ends]
        clamped = min(max(true, inside[0]), inside[1])
        if not np.allclose([unclamped, value], [true, clamped], rtol=0, atol=digits):
            yield f"{name} of cell {at} is {true:.12g}, not {unclamped:.12g} and {value:.12g}"
        bottom, top = float(low), float(low + length)
        if span[0] > top or span[1] < bottom:
            span = [bottom, top]
        span = [min(max(span[0], bottom), value), max(min(span[1], top), value)]
        slack = 1e-6 * float(length * (bias + (most - least) / 2)) + digits
        if not np.allclose(interval, span, rtol=0, atol=slack):
            yield f"{name} of cell {at} is in {span}, not in {interval}"

    def _variance(self, at: int, second: Fraction, far: Fraction) -> tuple[Fraction, ...]:
        """A variance by both moments, its ends but for the bias, and the size of its parts."""
        cells, middle = self.cells, self.bounding_bias("variance", at)[1]
        scale, steps = cells.scale["mean"][at], cells.results["mean"][at][0]
        centre = scale * Fraction(steps, 2**cells.lattice_bits) - Fraction(1, 2)
        squares = sorted((centre + side * far * scale) ** 2 for side in (-1, 1))
        least = Fraction(0) if abs(centre) <= far * scale else squares[0]
        moved, most = far * cells.scale["variance"][at], min(squares[1], Fraction(1, 4))
        # The square of the noise adds b^2, or 2 b^2, to that of the mean.
        exact = second - 4 * (centre**2 - (1 if cells.gaussian else 2) * scale**2)
        ends = (exact, second - moved - 4 * most, second + moved - 4 * least)
        size = 1 + abs(second) + 4 * centre**2 + 8 * scale**2
        return (*(each + middle for each in ends), size)
