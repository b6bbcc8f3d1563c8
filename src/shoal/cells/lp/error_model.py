"""Plans that weigh users in every cell, for any statistics: their errors, and what none can beat.

The error of a cell is the sum over its statistics of bias and noise over their ranges. For linear
statistics alone (means, shares of records) the least loss is a linear program; a variance adds a
bias 2 d (1 - d) that is concave in the missing mass d, and a sensitivity that depends on it. A
chord below the one and the least slope of the other bound every plan from below by a linear
program of the same kind (docs/theory/optimal.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.lp.dual_bound import dual_bound
from shoal.theory import variance

if TYPE_CHECKING:
    from shoal.cells.lp.problem import Floats, TargetProblem

_BISECTIONS = 60
# Tangents of the bias are taken where it still rises.
_STEEPEST, _LEAST = 0.45, 1e-6
# Joint releases lose (1 + r)^2/(4 r b1) at b2 = r b1 with an error of b1 + 4 (b1 + b2) over the
# ranges; the product is least where 8 r^2 + 5 r = 5.
_RATIO = (185**0.5 - 5) / 16
JOINT_COST = (1 + _RATIO) ** 2 / (4 * _RATIO) * (5 + 4 * _RATIO) * (1 - 2.0**-50)


@dataclass(frozen=True, eq=False)
class Family:
    """The statistics of every cell, and the largest share of a user in each.

    Attributes:
        problem: Shares, and the relative error e_g that each cell may have, as `target`.
        linear: How many linear statistics.
        variance: Whether the variance is released too.
        paired: Whether the variance may be released jointly with the mean.
    """

    problem: TargetProblem
    linear: int
    variance: bool = False
    paired: bool = False

    @property
    def heaviest(self) -> Floats:
        """The largest share of each cell."""
        top = np.zeros(self.problem.n_cells)
        np.maximum.at(top, self.problem.cell, self.problem.share)
        return top

    def at(self, missing: Floats) -> TargetProblem:
        """The linear program of plans that miss about this mass of each cell.

        Args:
            missing: d of each cell; chord and slope of the variance are taken there.
        """
        slope = self.linear / 2 + np.full(len(missing), 0.0)
        if self.variance:
            slope = slope + 2 * (1 - np.minimum(missing, 0.5))
        kept = 1 - missing
        part = np.minimum(self.problem.share, kept[self.problem.cell])
        cost = self._cost(part, kept[self.problem.cell]) / (2 * slope[self.problem.cell])
        return self._normal(self.problem.target, slope, cost)

    def tangent(self, missing: Floats, factor: float) -> TargetProblem:
        """The same at errors of factor times e_g, with the tangent of the bias at these masses.

        The bias of a variance is concave, so the tangent is above it: the loss of the program's
        plan is no higher than that of the plan that misses `missing`, but for what sensitivities
        change with the masses.
        """
        near = np.minimum(missing, _STEEPEST)
        slope = np.full(len(missing), self.linear / 2)
        error = factor * self.problem.target
        if self.variance:
            slope, error = slope + 2 * (1 - 2 * near), error - 2 * near**2
        kept = (1 - missing)[self.problem.cell]
        cost = self._cost(np.minimum(self.problem.share, kept), kept)
        target = np.maximum(error, _LEAST * self.problem.target)
        return self._normal(target, slope, cost / (2 * slope[self.problem.cell]))

    def lowest(self, factor: float) -> TargetProblem:
        """A linear program below every plan with errors of at most factor times e_g."""
        error = factor * self.problem.target
        slope = np.full(len(error), self.linear / 2)
        cost = np.full(len(error), float(self.linear**2))
        if self.variance:
            most = self._most_missing(error)
            slope = slope + np.where(most > 0, _chord(most), 2.0)
            kept = 1 - most
            cost = self._cost(np.minimum(self.heaviest, kept), kept)
        each = (cost / (2 * slope))[self.problem.cell]
        return self._normal(error, slope, each)

    def bound(self, duals: Floats, factor: float) -> float:
        """No plan with errors of at most factor times e_g costs less, whatever the duals."""
        return dual_bound(self.lowest(factor), duals)

    def least(self, duals: Floats, epsilon: float, most: float) -> float:
        """A factor that no plan of loss epsilon gets below, proved by these dual variables.

        Args:
            duals: Of each user's loss.
            epsilon: Loss.
            most: A factor that some plan reaches.
        """
        low, high = 0.0, most
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if self.bound(duals, middle) >= epsilon:
                low = middle
            else:
                high = middle
        return low

    def _cost(self, part: Floats, kept: Floats) -> Floats:
        """Loss at weight 1 and a sum of noise scales of 1, split with the least loss.

        By Cauchy-Schwarz (sum of roots of the slopes)^2; the slope of the variance is its
        sensitivity over the weight, and with the mean together it is `JOINT_COST`.
        """
        if not self.variance:
            return np.full(len(part), float(self.linear**2))
        alone = np.where(part > 0, variance.mass_slope(part, kept), 1.0)
        direct = (self.linear + np.sqrt(alone)) ** 2
        if not self.paired:
            return np.asarray(direct)
        return np.asarray(np.minimum(direct, (self.linear - 1 + JOINT_COST**0.5) ** 2))

    def _most_missing(self, error: Floats) -> Floats:
        """Largest d with linear d/2 + 2 d (1 - d) <= error (1/2 in place of the latter beyond)."""
        low, high = np.zeros(len(error)), np.ones(len(error))
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            fits = self.linear * middle / 2 + middle * _chord(middle) <= error
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        return high

    def _normal(self, error: Floats, slope: Floats, cost: Floats) -> TargetProblem:
        """With slope 1/2 of the missing mass, as the solvers want it."""
        return replace(self.problem, target=error / (2 * slope), cost=cost)


def _chord(missing: Floats) -> Floats:
    """Bias of a variance over its range by the missing mass: 2 (1 - d), 1/(2 d) from 1/2 on."""
    return np.asarray(np.where(missing <= 1 / 2, 2 * (1 - missing), 0.5 / np.maximum(missing, 0.5)))
