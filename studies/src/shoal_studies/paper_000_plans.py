"""Errors as paper 000 adds them up, and our plans at exactly these errors.

The error of a cell is U times that of its mean plus U^2 times that of its variance, both over the
width. The planner weighs the two by their ranges, U and U^2/4: for an equal footing with the
paper these plans are made here, from the same linear program and the same proofs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from shoal.arrays import Floats, largest
from shoal.cells.facts.program import Program, Solution, dual_bound
from shoal.cells.planners.optimal.interior import solve
from shoal.data.counts import Counts
from shoal.theory import allocation, variance

TOLERANCE = 1e-3
# Linear programs for one plan, errors tried for one loss, and how close they come.
_ROUNDS = 6
_TRIALS = 10
_CLOSE = 0.01
_BISECTIONS = 48
_RATIOS = np.geomspace(0.02, 1.0, 2000)
_TINY = 1e-12


@dataclass(frozen=True)
class Units:
    """What an error of one width counts: E = mean (d/2 + b1) + variance (f(d) + b2).

    d is the missing mass, b1 and b2 are noise scales over U and U^2, and f(d) = d (1 - d)/2, or 1/8
    from d = 1/2 on, is the bias of the variance with the missing mass in the middle
    (`theory.variance.mass_bias`). `mean` is U, `variance` U^2, or 0 if no variance is released.
    """

    mean: float
    variance: float

    @property
    def guess(self) -> float:
        """Error of guessing: U/2 for a mean, U^2/8 for a variance."""
        return self.mean / 2 + self.variance / 8

    def bias(self, missing: Floats) -> Floats:
        """Worst-case bias at missing mass d."""
        moved = np.minimum(missing, 0.5)
        return np.asarray(self.mean * missing / 2 + self.variance * moved * (1 - moved) / 2)

    def slope(self, missing: Floats) -> Floats:
        """Its derivative: a tangent lies above this concave function."""
        return np.asarray(self.mean / 2 + self.variance * (1 / 2 - np.minimum(missing, 0.5)))

    def chord(self, missing: Floats) -> Floats:
        """Bias over missing mass: a chord from 0 lies below."""
        least = np.maximum(missing, _TINY)
        return np.where(missing > 0, self.bias(least) / least, self.slope(np.zeros(len(missing))))

    def most_missing(self, error: Floats) -> Floats:
        """The largest missing mass whose bias is at most an error."""
        low, high = np.zeros(len(error)), np.ones(len(error))
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            fits = self.bias(middle) <= error
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        return high

    def least_cost(self, kappa: Floats) -> Floats:
        """Loss at weight 1 and a sum of noise of 1, split best: (sqrt U + sqrt(kappa U^2)/2)^2."""
        direct = (np.sqrt(self.mean) + np.sqrt(kappa * self.variance) / 2) ** 2
        if not self.variance:
            return np.asarray(direct)
        errors = self.mean + self.variance * (1 + _RATIOS)
        joint = float((variance.joint_loss(1.0, _RATIOS) * errors).min())
        return np.asarray(np.minimum(direct, joint))


class Optimal(NamedTuple):
    """The loss, or the error, of the best plan found, and what no plan of its family is below."""

    value: float
    lower_bound: float


@dataclass(frozen=True, eq=False)
class Weighed:
    """Weights 0 <= w <= v of entries, with what follows from them at any error."""

    cells: Cells
    weight: Floats
    duals: Floats
    split: Floats | None = None

    @cached_property
    def kept(self) -> Floats:
        """W of each cell, at most 1."""
        return np.minimum(self.cells.by_cell(self.weight), 1.0)

    @cached_property
    def bias(self) -> Floats:
        """Worst-case bias of each cell."""
        return self.cells.units.bias(1 - self.kept)

    @cached_property
    def moved(self) -> Floats:
        """How far each entry moves the variance, over U^2."""
        kept = self.kept[self.cells.counts.cell]
        return variance.mass_sensitivity(np.minimum(self.weight, kept), kept) / 4

    @cached_property
    def part(self) -> Floats:
        """The mean's part of each cell's noise: the cheapest at these dual variables."""
        if self.split is not None:
            return self.split
        units = self.cells.units
        dual = self.duals[self.cells.counts.user] + _TINY
        first = np.sqrt(units.mean * self.cells.by_cell(dual * self.weight))
        second = np.sqrt(units.variance * self.cells.by_cell(dual * self.moved))
        return np.where(first + second > 0, first / np.maximum(first + second, 1e-300), 1.0)

    @cached_property
    def unit(self) -> Floats:
        """Loss of each entry at a sum of noise of 1 in its cell."""
        units = self.cells.units
        part = self.part[self.cells.counts.cell]
        lost = self.weight * units.mean / np.maximum(part, _TINY)
        if units.variance:
            lost = lost + self.moved * units.variance / np.maximum(1 - part, _TINY)
        return np.where(self.weight > 0, lost, 0.0)

    def loss(self, error: Floats) -> float:
        """Of the user with the largest loss; infinite if a cell has no room for noise."""
        capacity = error - self.bias
        if not (capacity[self.kept > 0] > 0).all() or (self.bias > error * (1 + _TINY)).any():
            return float("inf")
        noise = np.where(self.kept > 0, capacity, 1.0)
        counts = self.cells.counts
        return float(np.bincount(counts.user, self.unit / noise[counts.cell]).max())

    def least_error(self, epsilon: float) -> float:
        """The least common error of all cells at a loss."""
        low, high = float(self.bias.max()), self.cells.units.guess
        while self.loss(self.cells.alike(high)) > epsilon:
            high *= 2
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            dear = self.loss(self.cells.alike(middle)) > epsilon
            low, high = (middle, high) if dear else (low, middle)
        return high


@dataclass(frozen=True, eq=False)
class Cells:
    """Counts, with the units of errors."""

    counts: Counts
    units: Units

    @cached_property
    def share(self) -> Floats:
        """Share v of each entry."""
        return np.asarray(self.counts.count / self.counts.totals[self.counts.cell])

    @cached_property
    def heaviest(self) -> Floats:
        """The largest share of each cell."""
        return largest(self.counts.cell, self.share, self.counts.n_cells)

    def by_cell(self, entry: Floats) -> Floats:
        """Sums over the entries of each cell."""
        return np.bincount(self.counts.cell, entry, self.counts.n_cells).astype(np.float64)

    def alike(self, error: float) -> Floats:
        """The same error for every cell."""
        return np.full(self.counts.n_cells, error)

    @cached_property
    def everybody(self) -> Weighed:
        """All records count; noise is split for the heaviest user of each cell."""
        cell = self.counts.cell
        whole = Weighed(self, self.share, np.zeros(self.counts.n_users))
        top = np.where(self.share == self.heaviest[cell], whole.moved, 0.0)
        first = np.sqrt(self.units.mean * self.heaviest)
        second = np.sqrt(self.units.variance * largest(cell, top, self.counts.n_cells))
        return Weighed(self, self.share, whole.duals, first / (first + second))

    def equalised(self, error: float) -> float:
        """Loss of noise that fits each cell: all have the same error, nobody is bounded."""
        return self.everybody.loss(self.alike(error))

    def balanced(self, error: float) -> float:
        """Loss of proportionally fair noise whose worst cell has this error."""
        counts = self.counts
        unit = self.everybody.unit
        columns = counts.user, counts.cell, unit, counts.n_users, np.ones(counts.n_cells)
        return float(allocation.balanced(allocation.Problem(*columns)).noise_scale.max()) / error

    def optimal(self, error: Floats) -> Optimal:
        """The least loss at errors of the cells (docs/theory/cells.md#optimal-plan)."""
        if not (error < self.units.guess).any():
            return Optimal(0.0, 0.0)
        plan, proof = self._descend(error)
        return Optimal(plan.loss(error), dual_bound(self._below(error), proof))

    def optimal_error(self, epsilon: float) -> Optimal:
        """The least common error of all cells at a loss, between what is reached and proved."""
        high = min(self.everybody.least_error(epsilon), self.units.guess)
        low = 0.0
        lower = 0.0
        start = self.everybody
        for _ in range(_TRIALS):
            low = max(low, lower)
            middle = (low * high) ** 0.5 if low else high / 3
            plan, proof = self._descend(self.alike(middle), start)
            lower = max(lower, self._proved(proof, epsilon, lower, middle))
            found = plan.least_error(epsilon)
            low = middle if found > middle else low
            high, start = (found, plan) if found < high else (high, start)
            if high < max(low, lower) * (1 + (2 if self.units.variance else 1) * _CLOSE):
                break
        return Optimal(high, lower)

    def _proved(self, duals: Floats, epsilon: float, low: float, high: float) -> float:
        """The largest error in a range at which these duals prove a loss of at least epsilon."""
        for _ in range(_BISECTIONS // 6):
            middle = (low + high) / 2
            dear = dual_bound(self._below(self.alike(middle)), duals) >= epsilon
            low, high = (middle, high) if dear else (low, middle)
        return low

    def _descend(self, error: Floats, near: Weighed | None = None) -> tuple[Weighed, Floats]:
        """The best plan of some linear programs, and the duals of the one below all plans."""
        lowest = solve(self._below(error), TOLERANCE)
        plan = self._weigh(lowest, error)
        if not self.units.variance:
            return plan, lowest.duals
        starts = (plan, self.everybody) if near is None else (near,)
        tried = [self._improve(start, error) for start in starts]
        return min(tried, key=lambda each: each.loss(error)), lowest.duals

    def _improve(self, plan: Weighed, error: Floats) -> Weighed:
        """Linear programs with tangents of the bias, and slopes of the sensitivities, at a plan."""
        best = min((plan, self.everybody), key=lambda each: each.loss(error))
        for _ in range(_ROUNDS):
            plan = self._weigh(solve(self._above(error, plan), TOLERANCE), error)
            before = best.loss(error)
            now = plan.loss(error)
            best = plan if now < before else best
            if now > before * (1 - _CLOSE):
                break
        return best

    def _weigh(self, solution: Solution, error: Floats) -> Weighed:
        """Its weights; none where guessing does."""
        free = (error >= self.units.guess)[self.counts.cell]
        return Weighed(self, np.where(free, 0.0, solution.weight), solution.duals)

    def _above(self, error: Floats, plan: Weighed) -> Program:
        """A linear program whose plans meet the errors: tangents of the bias."""
        missing = 1 - plan.kept
        slope = self.units.slope(missing)
        capacity = error - (self.units.bias(missing) - slope * missing)
        entry = plan.unit / np.maximum(plan.weight, 1e-300)
        start = self._cost(self.share, (1 - missing)[self.counts.cell])
        return self._normal(capacity, slope, np.where(plan.weight > 0, entry, start))

    def _below(self, error: Floats) -> Program:
        """A linear program below every plan: chords of the bias, least slopes of sensitivities."""
        most = self.units.most_missing(error)
        cost = self._cost(self.heaviest, 1 - most)[self.counts.cell]
        return self._normal(error, self.units.chord(most), cost)

    def _cost(self, share: Floats, kept: Floats) -> Floats:
        part = np.minimum(share, kept)
        kappa = np.where(part > 0, variance.mass_slope(part, kept), 1.0)
        return self.units.least_cost(kappa)

    def _normal(self, error: Floats, slope: Floats, cost: Floats) -> Program:
        """With slope 1/2 of the missing mass, as the solvers want it."""
        user = self.counts.user
        cell = self.counts.cell
        target = np.maximum(error, _TINY) / (2 * slope)
        cost = cost / (2 * slope)[cell]
        return Program(user, cell, self.share, cost, target, self.counts.n_users)
