"""What one lattice number of a manifest stands for: its value, its interval, its moments.

Nothing is imported from statistics, planning, mechanisms, bounding, records or theory, as in
`verify`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from shoal.verification.cells import gaussian as verify_gaussian
from shoal.verification.cells.facts import MOST_STEPS, TOLERANCE
from shoal.verification.strict import real, whole

if TYPE_CHECKING:
    from shoal import documents
    from shoal.verification.cells.errors import Errors
    from shoal.verification.cells.facts import Facts
    from shoal.verification.cells.ranges import Ends

# Rounding moves a number by little of half its interval, and in its last places.
_LITTLE, _LAST = 1e-6, 1e-15


@dataclass(frozen=True, eq=False)
class Row:
    """What one number stands for.

    Attributes:
        errors: Of the numbers.
        name: Statistic.
        at: Number.
        ends: Of the selected range, if there is one.
    """

    errors: Errors
    name: str
    at: int
    ends: Ends

    @property
    def _beyond(self) -> bool:
        """Whether the estimate may leave the range: of sums, and if lighter users' are wider."""
        mechanism = self.errors.design.mechanism
        free = mechanism.name in {"akmv", "user_clipped"}
        return free or mechanism.parameters.get("widened") == [1]

    @cached_property
    def range_width(self) -> Fraction:
        """Of the selected range, over the width."""
        top = self.errors.design.facts.top
        return Fraction(self.ends[1] - self.ends[0], top) if self.ends else Fraction(1)

    @property
    def statistic_range(self) -> tuple[Fraction, Fraction]:
        """Lower end and length of the statistic's range."""
        return self.errors.statistic_ranges[self.name]

    @cached_property
    def noise(self) -> Fraction:
        """Noise scale in the statistic's unit."""
        return (
            self.errors.design.facts.scales(self.name)[self.at]
            * self.range_width
            * self.statistic_range[1]
        )

    @property
    def inside(self) -> tuple[float, float]:
        """Where the estimate is moved to if it lies outside."""
        facts, (lo, length) = self.errors.design.facts, self.statistic_range
        low, high = (0, facts.top) if self.ends is None or self._beyond else self.ends
        return float(lo + low * length / facts.top), float(lo + high * length / facts.top)

    @cached_property
    def bias(self) -> float:
        """Most that the estimate without noise is off in any data set with this range."""
        errors, at = self.errors, self.at
        off = errors.rounding(self.name, at, self.range_width) + errors.biases[self.name][at]
        if self.ends:
            off = min(off + errors.design.range_bias(at, *self.ends), Fraction(1))
        return float(self.statistic_range[1] * off)

    def drawn(self, steps: object) -> Fraction:
        """What a lattice number stands for; of a joint variance, the second moment."""
        number = whole(steps, -MOST_STEPS, MOST_STEPS)
        return self.statistic_range[0] + self.noise * Fraction(
            number, 1 << self.errors.design.facts.bits
        )

    def around(self, exact: Fraction, quantile: float) -> tuple[float, float]:
        """Bias bound and a quantile of the noise, in noise scales, on both sides."""
        half = self.bias + float(self.noise) * quantile
        return float(exact) - half, float(exact) + half

    def follows(
        self,
        result: documents.Document,
        exact: float,
        ends: list[tuple[float, float]],
        off: tuple[float, float],
    ) -> bool:
        """Whether value and interval follow from an estimate.

        Args:
            result: What is stated.
            exact: The estimate.
            ends: Intervals around it; any of them may be stated.
            off: What floating-point arithmetic may have moved the estimate by, and these ends.
        """
        value, low, high = real(result["value"]), *map(real, result["interval"])
        least, most = self._moved(exact - off[0]), self._moved(exact + off[0])
        half = max(high - low for low, high in ends) / 2
        return (
            abs(exact - real(result["unclamped"])) <= off[0]
            and self._between(value, least, most, half)
            and any(self._cut(pair, off[1], value, (low, high)) for pair in ends)
        )

    def _moved(self, estimate: float) -> float:
        return min(max(estimate, self.inside[0]), self.inside[1])

    def _between(self, stated: float, least: float, most: float, half: float) -> bool:
        """Whether a stated number is there, but for rounding: little of half an interval."""
        lo, length = map(float, self.statistic_range)
        slack = min(TOLERANCE * length, _LITTLE * half) + _LAST * (abs(lo) + length)
        return least - slack <= stated <= most + slack

    def _cut(
        self, ends: tuple[float, float], off: float, value: float, stated: tuple[float, float]
    ) -> bool:
        """Whether stated ends are these, cut to the bounds; the bounds if nothing is within."""
        low, high = ends
        half = (high - low) / 2
        lo, hi = (
            float(self.statistic_range[0]),
            float(self.statistic_range[0] + self.statistic_range[1]),
        )
        cuts = []
        if low - off <= hi and high + off >= lo:
            cuts.append((low - off, low + off, high - off, high + off))
        if low + off > hi or high - off < lo:
            cuts.append((lo, lo, hi, hi))
        return any(
            self._between(stated[0], min(max(a, lo), value), min(max(b, lo), value), half)
            and self._between(stated[1], max(min(c, hi), value), max(min(d, hi), value), half)
            for a, b, c, d in cuts
        )


@dataclass(frozen=True)
class Moments:
    """Noisy first and second moment of a cell over their ranges, and their noise scales.

    Attributes:
        centre: c, the mean less 1/2.
        second: Four times the mean square of the centred values.
        first_scale: b1, noise of c.
        second_scale: b2, noise of the second.
    """

    centre: Fraction
    second: Fraction
    first_scale: Fraction
    second_scale: Fraction

    def estimate(self, *, gaussian: bool) -> Fraction:
        """The variance over its range: the square of the noise adds b1^2, or 2 b1^2, to c^2."""
        square = self.first_scale**2 * (1 if gaussian else 2)
        return self.second - 4 * (self.centre**2 - square)

    def interval(self, quantile: Fraction) -> tuple[Fraction, Fraction]:
        """The least and the largest variance with both noises within their quantiles."""
        places = [self.centre + sign * quantile * self.first_scale for sign in (-1, 1)]
        least = Fraction(0) if places[0] <= 0 <= places[1] else min(place**2 for place in places)
        # Nobody's mean is further than 1/2 from the middle.
        most = min(max(place**2 for place in places), Fraction(1, 4))
        noise = quantile * self.second_scale
        return self.second - noise - 4 * most, self.second + noise - 4 * least


def quantiles(facts: Facts, miss: float) -> list[float]:
    """Noise exceeded with at most this probability, in noise scales.

    Of Gaussian noise the planner may give a step more, or the last places of a double.
    """
    scale = 2.0**facts.bits
    if not facts.gaussian:
        return [_laplace(scale, miss) / scale]
    least = verify_gaussian.quantile(scale, miss)
    return [least / scale, (least + 1) / scale]


def _laplace(scale: float, beta: float) -> int:
    """Least z with 2 q^(z+1) / (1 + q) <= beta, by bisection on the tail itself."""

    def tail(z: int) -> float:
        return 2 * math.exp(-(z + 1) / scale) / (1 + math.exp(-1 / scale))

    low, high = -1, 1
    while tail(high) > beta:
        high = verify_gaussian.doubled(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if tail(middle) > beta else (low, middle)
    return high
