"""Programs above and below the errors of plans that release a variance, and what none can beat.

A variance has a concave bias 2 d (1 - d): a chord below it and the least slope of its sensitivity
bound every plan from below (docs/theory/cells.md#programs-with-a-variance).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shoal.arrays import Floats, largest
from shoal.cells.facts.accounting import MEAN_AND_VARIANCE, ReleasedStatistics
from shoal.cells.facts.program import Program, dual_bound
from shoal.cells.facts.weighted import WeightedPlan
from shoal.cells.mechanisms.cell_statistics import Linear, Statistic, Variance
from shoal.theory import variance

_BISECTIONS = 60
# Tangents of the bias are taken where it still rises.
_STEEPEST = 0.45
_LEAST = 1e-6
# Joint releases lose (1 + r)^2/(4 r b1) at b2 = r b1 with an error of b1 + 4 (b1 + b2) over the
# ranges; the product is least where 8 r^2 + 5 r = 5.
_RATIO = (185**0.5 - 5) / 16
JOINT_COST = (1 + _RATIO) ** 2 / (4 * _RATIO) * (5 + 4 * _RATIO) * (1 - 2.0**-50)


@dataclass(frozen=True, eq=False)
class StatisticPrograms:
    """Programs of cells with so many `linear` statistics and, if `varies`, a variance."""

    program: Program
    linear: int
    varies: bool
    joint: bool

    @classmethod
    def of(cls, program: Program, statistics: tuple[Statistic, ...]) -> StatisticPrograms:
        """Returns the programs of these statistics; costs of the program do not count."""
        linear = sum(isinstance(each, Linear) for each in statistics)
        joint = set(MEAN_AND_VARIANCE)
        return cls(program, linear, Variance() in statistics, joint <= set(statistics))

    @cached_property
    def heaviest(self) -> Floats:
        """The largest share of each cell."""
        return np.asarray(largest(self.program.cell, self.program.share, len(self.program.target)))

    def at(self, missing: Floats) -> Program:
        """Returns the program with chord and slope of the variance at missing masses, (cells,)."""
        chord = 2 * (1 - np.minimum(missing, 0.5)) * self.varies
        return self._with_slope(self.program.target, self.linear / 2 + chord, missing)

    def tangent(self, missing: Floats, factor: float) -> Program:
        """The program of factor times the errors, above the concave bias at these masses."""
        near = np.minimum(missing, _STEEPEST) * self.varies
        slope = self.linear / 2 + 2 * (1 - 2 * near) * self.varies
        error = np.maximum(factor * self.program.target - 2 * near**2, _LEAST * self.program.target)
        return self._with_slope(error, slope, missing)

    def _with_slope(self, error: Floats, slope: Floats, missing: Floats) -> Program:
        kept = (1 - missing)[self.program.cell]
        return self._normal(error, slope, self._cost(np.minimum(self.program.share, kept), kept))

    def lowest(self, factor: float) -> Program:
        """Returns a program below every plan with errors of at most factor times the targets."""
        error = factor * self.program.target
        slope = np.full(len(error), self.linear / 2)
        cost = np.full(len(error), self.linear**2.0)
        if self.varies:
            most = self._most_missing(error)
            slope = slope + np.where(most > 0, _chord(most), 2.0)
            cost = self._cost(np.minimum(self.heaviest, 1 - most), 1 - most)
        return self._normal(error, slope, cost[self.program.cell])

    def least_factor(self, duals: Floats, epsilon: float, most: float) -> float:
        """Returns a factor up to `most` that no plan of loss epsilon gets below, by these duals."""
        low, high = 0.0, most
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            above = dual_bound(self.lowest(middle), duals) >= epsilon
            low, high = (middle, high) if above else (low, middle)
        return low

    def _cost(self, part: Floats, kept: Floats) -> Floats:
        """Losses at weight 1, and scales that add up to 1, of the least loss (Cauchy-Schwarz)."""
        if not self.varies:
            return np.full(len(part), self.linear**2.0)
        alone = np.where(part > 0, variance.mass_slope(part, kept), 1.0)
        direct = np.asarray((self.linear + np.sqrt(alone)) ** 2)
        together = (self.linear - 1 + JOINT_COST**0.5) ** 2 if self.joint else np.inf
        return np.asarray(np.minimum(direct, together))

    def _most_missing(self, error: Floats) -> Floats:
        """Returns the largest d with linear d/2 + 2 d (1 - d) <= error, 1/2 in place beyond it."""
        low, high = np.zeros(len(error)), np.ones(len(error))
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            fits = self.linear * middle / 2 + middle * _chord(middle) <= error
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        return high

    def _normal(self, error: Floats, slope: Floats, cost: Floats) -> Program:
        """Returns the program with slope 1/2 of the missing mass, as solvers want it."""
        cost = cost / (2 * slope)[self.program.cell]
        return replace(self.program, target=error / (2 * slope), cost=cost)


def _chord(missing: Floats) -> Floats:
    """Returns the variance's bias over its range by the missing mass: 2 (1 - d), then 1/(2 d)."""
    return np.asarray(np.where(missing <= 1 / 2, 2 * (1 - missing), 0.5 / np.maximum(missing, 0.5)))


def largest_factor(weighted: WeightedPlan, scale: Floats) -> float:
    """Returns the largest error over its target, without roundings, at scales over the ranges."""
    return float((weighted.error(scale) / weighted.targets).max())


def gap(
    numbers: ReleasedStatistics, targets: Floats, duals: Floats, scale: Floats, loss: float
) -> float:
    """How far a plan's factor can be above the best one's, at the loss of its noise."""
    weights = numbers.weights
    own = largest_factor(WeightedPlan(numbers, targets), scale)
    share = weights.share
    users = weights.counts.n_users
    program = Program(weights.user, weights.cell, share, np.ones(len(share)), targets, users)
    low = StatisticPrograms.of(program, numbers.statistics).least_factor(duals, loss, own)
    return own / low - 1 if low > 0 else float("inf")
