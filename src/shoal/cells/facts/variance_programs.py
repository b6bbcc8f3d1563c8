"""Bounds plans that release a variance by linear programs, from above and from below.

With a missing mass d, a variance has the concave bias 2 d (1 - d). A chord below it, with the least
slope of its sensitivity, bounds every plan from below
(docs/theory/cells.md#programs-with-a-variance).
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

# Halvings of an interval until floating-point numbers are no finer.
_BISECTIONS = 60
# The largest missing mass at which a tangent of the bias is taken: there it still rises.
_STEEPEST = 0.45
# The least error of a tangent program, as a part of the target.
_LEAST = 1e-6
# With scales b1 and b2 = r b1, a joint release loses (1 + r)^2/(4 r b1) and has an error of
# b1 + 4 (b1 + b2), as a part of the ranges. The product is least where 8 r^2 + 5 r = 5.
_RATIO = (185**0.5 - 5) / 16
_JOINT_LOSS = (1 + _RATIO) ** 2 / (4 * _RATIO)
JOINT_COST = _JOINT_LOSS * (5 + 4 * _RATIO) * (1 - 2.0**-50)


@dataclass(frozen=True, eq=False)
class StatisticPrograms:
    """Programs of cells with `linear` means or shares and, if `varies`, a variance."""

    program: Program
    linear: int
    varies: bool
    joint: bool

    @classmethod
    def of(cls, program: Program, statistics: tuple[Statistic, ...]) -> StatisticPrograms:
        """Returns the programs of these statistics; the costs of `program` are not used."""
        linear = sum(isinstance(each, Linear) for each in statistics)
        varies = Variance() in statistics
        joint = set(MEAN_AND_VARIANCE) <= set(statistics)
        return cls(program, linear, varies, joint)

    @cached_property
    def heaviest(self) -> Floats:
        """The largest share of each cell."""
        program = self.program
        return largest(program.cell, program.share, len(program.target))

    def at(self, missing: Floats) -> Program:
        """Returns the program with the variance's chord and slope at missing masses, (cells,)."""
        chord = 2 * (1 - np.minimum(missing, 0.5)) * self.varies
        # A mean or share has half the missing mass as its bias.
        slope = self.linear / 2 + chord
        return self._with_slope(self.program.target, slope, missing)

    def tangent(self, missing: Floats, factor: float) -> Program:
        """Returns the program of `factor` times `target`, with tangents above the variance's bias.

        They touch it at these missing masses.
        """
        target = self.program.target
        near = np.minimum(missing, _STEEPEST) * self.varies
        slope = self.linear / 2 + 2 * (1 - 2 * near) * self.varies
        error = factor * target - 2 * near**2
        error = np.maximum(error, _LEAST * target)
        return self._with_slope(error, slope, missing)

    def _with_slope(self, error: Floats, slope: Floats, missing: Floats) -> Program:
        """Returns the program with these errors and slopes, and with costs at missing masses."""
        kept = (1 - missing)[self.program.cell]
        part = np.minimum(self.program.share, kept)
        return self._normal(error, slope, self._cost(part, kept))

    def lowest(self, factor: float) -> Program:
        """Returns a program whose loss no plan with errors of `factor` times `target` can beat."""
        error = factor * self.program.target
        slope = np.full(len(error), self.linear / 2)
        cost = np.full(len(error), self.linear**2.0)
        if self.varies:
            missing = self._most_missing(error)
            slope = slope + np.where(missing > 0, _chord(missing), 2.0)
            kept = 1 - missing
            cost = self._cost(np.minimum(self.heaviest, kept), kept)
        return self._normal(error, slope, cost[self.program.cell])

    def least_factor(self, duals: Floats, epsilon: float, most: float) -> float:
        """Returns a factor, at most `most`, below which these duals prove no plan of this loss."""
        low = 0.0
        for _ in range(_BISECTIONS):
            middle = (low + most) / 2
            if dual_bound(self.lowest(middle), duals) >= epsilon:
                low = middle
            else:
                most = middle
        return low

    def _cost(self, part: Floats, kept: Floats) -> Floats:
        """Returns the losses at weight 1 if a cell's noise scales add up to 1 in the best ratio.

        They follow from the inequality of Cauchy and Schwarz.
        """
        if not self.varies:
            return np.full(len(part), self.linear**2.0)
        # A mean or share costs 1, a variance its slope: the least cost is the square of the sum of
        # their roots.
        slope = np.where(part > 0, variance.mass_slope(part, kept), 1.0)
        cost: Floats = (self.linear + np.sqrt(slope)) ** 2
        if self.joint:
            # One mean is released together with the variance.
            roots = self.linear - 1 + JOINT_COST**0.5
            cost = np.minimum(cost, roots**2)
        return cost

    def _most_missing(self, error: Floats) -> Floats:
        """Returns the largest missing mass d whose bias, linear d/2 + 2 d (1 - d), fits the error.

        Beyond d = 1/2 the second term stays at 1/2.
        """
        low = np.zeros(len(error))
        high = np.ones(len(error))
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            bias = self.linear * middle / 2 + middle * _chord(middle)
            fits = bias <= error
            low = np.where(fits, middle, low)
            high = np.where(fits, high, middle)
        return high

    def _normal(self, error: Floats, slope: Floats, cost: Floats) -> Program:
        """Returns the program, scaled so that bias is half the missing mass, as solvers assume."""
        twice = 2 * slope
        cost = cost / twice[self.program.cell]
        return replace(self.program, target=error / twice, cost=cost)


def _chord(missing: Floats) -> Floats:
    """Returns a variance's bias, as a part of its range, divided by the missing mass d.

    It is 2 (1 - d), and 1/(2 d) beyond d = 1/2.
    """
    beyond = 0.5 / np.maximum(missing, 0.5)
    return np.where(missing <= 1 / 2, 2 * (1 - missing), beyond)


def largest_factor(weighted: WeightedPlan, scale: Floats) -> float:
    """Returns the largest error divided by its target, without rounding, at these noise scales."""
    factor = weighted.error(scale) / weighted.targets
    return float(factor.max())


def gap(
    numbers: ReleasedStatistics,
    targets: Floats,
    duals: Floats,
    scale: Floats,
    loss: float,
) -> float:
    """Returns the most by which a plan's factor exceeds the best one, as a part of the best one.

    `loss` is the loss of the plan's noise, which the best plan has too.
    """
    weights = numbers.weights
    factor = largest_factor(WeightedPlan(numbers, targets), scale)
    program = Program(
        user=weights.user,
        cell=weights.cell,
        share=weights.share,
        cost=np.ones(len(weights.share)),
        target=targets,
        n_users=weights.counts.n_users,
    )
    programs = StatisticPrograms.of(program, numbers.statistics)
    bound = programs.least_factor(duals, loss, factor)
    if bound > 0:
        return factor / bound - 1
    return float("inf")
