"""Bias bounds, worst-case errors and lower bounds of a manifest, for the second opinion.

Nothing is imported from statistics, planning, mechanisms, bounding, records or theory, as in
`verify`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shoal.verification.cells import gaussian as verify_gaussian
from shoal.verification.cells.facts import TOLERANCE
from shoal.verification.cells.statistics import (
    MEAN,
    VARIANCE,
    rounding,
    statistic_range,
    variance_errs,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.verification.cells.design import Design

# E|X^2 - 2| of a Laplace variable with scale 1.
LAPLACE_QUADRATIC = 4 * (1 + math.sqrt(2)) * math.exp(-math.sqrt(2))


@dataclass(frozen=True, eq=False)
class Errors:
    """The errors of the numbers over their ranges, statistic by statistic.

    Attributes:
        design: Weights and contributions.
    """

    design: Design

    @cached_property
    def statistic_ranges(self) -> dict[str, tuple[Fraction, Fraction]]:
        """Lower end and length of the range of each statistic, in its unit."""
        facts = self.design.facts
        return {name: statistic_range(name, facts.lo, facts.width) for name in facts.statistics}

    @cached_property
    def biases(self) -> dict[str, list[Fraction]]:
        """Bias by bounding of each statistic, in every data set, one a number."""
        linear = self.design.biases()
        return {
            name: [error for error, _ in self._variances] if name == VARIANCE else linear
            for name in self.design.facts.statistics
        }

    @property
    def middles(self) -> list[Fraction]:
        """What is added to the variance of each number, half of what missing mass may add."""
        return [middle for _, middle in self._variances]

    @cached_property
    def _variances(self) -> list[tuple[Fraction, Fraction]]:
        # Half the missing mass, or the mass that is moved: either way what linear biases come from.
        pairs = zip(self.design.missing(), self.design.biases(), strict=True)
        return [variance_errs(missing, distance) for missing, distance in pairs]

    def rounding(self, name: str, at: int, range_width: Fraction = Fraction(1)) -> Fraction:
        """Of values to ticks, means to ticks over 2^10, and numbers to steps.

        Args:
            name: Statistic.
            at: Number.
            range_width: Of a selected range, over the width.
        """
        facts = self.design.facts
        ticks = Fraction(1025, 1024 << (facts.tick_bits + 1))
        means = Fraction(0 if self.design.mechanism.shares else 1, facts.top)
        step = self.half_step(name, at) * range_width
        if facts.joint and name == VARIANCE:
            # Four times the square of a first moment of at most 1/2.
            first = self.half_step(MEAN, at)
            step += 4 * (first + first**2)
        return rounding(name, ticks, means) + step

    def half_step(self, name: str, at: int) -> Fraction:
        """Half a lattice step of a number."""
        facts = self.design.facts
        return facts.scales(name)[at] / (2 << facts.bits)

    def noise(self, name: str, at: int) -> float:
        """Mean absolute noise of an estimate over its range; of a joint variance, a bound."""
        facts = self.design.facts
        steps = 2.0**facts.bits
        mean = verify_gaussian.MEAN_ABSOLUTE if facts.gaussian else 1 / math.sinh(1 / steps) / steps
        found = float(facts.scales(name)[at]) * mean
        if facts.joint and name == VARIANCE:
            square = verify_gaussian.MEAN_QUADRATIC if facts.gaussian else LAPLACE_QUADRATIC
            first = float(facts.scales(MEAN)[at])
            found += 4 * (first * mean + square * first**2)
        return found

    def bias_bounds(self) -> list[float]:
        """Most that an estimate before noise is off, in any data set and range, in its unit."""
        facts = self.design.facts
        if self.design.mechanism.selects:
            return [float(facts.width)] * len(facts.released)
        return [
            float(
                self.statistic_ranges[name][1] * (self.rounding(name, at) + self.biases[name][at])
            )
            for name in facts.statistics
            for at in range(len(facts.released))
        ]

    def worst_case(self) -> list[float]:
        """Bias bound and mean absolute noise; the width where a range is selected."""
        facts, bounds = self.design.facts, self.bias_bounds()
        if self.design.mechanism.selects:
            return bounds
        noise = [
            float(self.statistic_ranges[name][1]) * self.noise(name, at)
            for name in facts.statistics
            for at in range(len(facts.released))
        ]
        return [one + other for one, other in zip(bounds, noise, strict=True)]

    def least(self, epsilon: Fraction) -> list[float]:
        """Error that no Laplace noise beats: the minimum over all thresholds, not a closed form.

        The error of a linear statistic is half the mass that is cut, and w/epsilon. A variance that
        is off by no more than this one misses a mass of at most d_max, where 2 d (1 - d) is that
        error; so it has an error of 2 (1 - d_max) of the mass that is cut, and of k w/epsilon, with
        k what a unit of the heaviest share moves it by at the least mass 1 - d_max.
        """
        facts, loss = self.design.facts, float(epsilon)
        order = np.lexsort((facts.count, facts.cell))
        ends = np.cumsum(np.bincount(facts.cell, minlength=len(facts.total)))
        groups = np.split(facts.count[order], ends[:-1])
        found = []
        for name in facts.statistics:
            length = float(self.statistic_ranges[name][1])
            for at, g in enumerate(facts.released):
                counts, total = groups[g], int(facts.total[g])
                if name != VARIANCE:
                    found.append(length * _least(counts, total, 0.5, loss))
                    continue
                most = min(float(self.relative(name, at)), 0.5)
                kept = (1 + math.sqrt(max(1 - 2 * most, 0.0))) / 2
                move = _steepness(min(int(counts.max()) / total, kept), kept)
                least = _least(counts, total, 2 * kept, loss / move)
                found.append(length * min(least, most))
        return found

    def relative(self, name: str, at: int) -> float:
        """Worst-case error of a number over its range."""
        bias = float(self.rounding(name, at) + self.biases[name][at])
        return bias + self.noise(name, at)


def _steepness(part: float, kept: float) -> float:
    """Sensitivity of a variance over the weight w, at mass W: 1 + what the others add."""
    others = kept - part
    if part >= 1:
        return 1.0
    added = (others**2 / (1 - part) - max(others - part, 0.0) ** 2) / part
    return 1 + max(added, 0.0)


def _least(ascending: NDArray[np.int64], total: int, cut: float, epsilon: float) -> float:
    # Cutting every m to at most T costs a convex, piecewise linear error: least at 0 or some m.
    threshold = np.append(0, ascending)
    at = np.searchsorted(ascending, threshold, side="right")
    below = np.append(0, np.cumsum(ascending))
    lost = below[-1] - below[at] - threshold * (len(ascending) - at)
    if epsilon == 0:
        return cut
    return float((cut * lost + threshold / epsilon).min()) / total


def compare(truth: list[float], claimed: object) -> tuple[bool, str]:
    """Whether claims are the truth, up to the last places of floating-point numbers."""
    one, other = np.asarray(truth, dtype=np.float64), np.asarray(claimed, dtype=np.float64)
    if one.shape != other.shape or not np.isfinite(other).all():
        return False, "not one number for each statistic of a released cell"
    holds = bool((np.abs(one - other) <= TOLERANCE * np.abs(one)).all())
    return holds, f"{len(one)} numbers, the largest {one.max():.6g}"
