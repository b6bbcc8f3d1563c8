"""Derives noise and loss from chosen weights of users."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shoal.arrays import Bools, Floats
from shoal.cells.facts.accounting import ReleasedStatistics
from shoal.theory import variance

# The noise scale of a cell in which nobody counts: it releases a constant.
_CONSTANT = 2.0**-12
# Halvings of an interval until floating-point numbers are no finer.
_BISECTIONS = 60


@dataclass(frozen=True, eq=False)
class WeightedPlan:
    """A plan with chosen weights and with errors in proportion to `targets`, shape (cells,)."""

    numbers: ReleasedStatistics
    targets: Floats

    @cached_property
    def shape(self) -> Floats:
        """Ratios of noise scales in each cell with the least sum of errors; a row a statistic."""
        return self.numbers.per_statistic(self.numbers.shape(least_sum=True))

    @cached_property
    def bias(self) -> Floats:
        """Sum of the biases of each cell."""
        rows = self.numbers.per_statistic(self.numbers.bias)
        bias: Floats = rows.sum(axis=0)
        return bias

    @cached_property
    def unit(self) -> Floats:
        """Loss of each member at noise scales equal to `shape`."""
        return self.numbers.member_losses(self.shape.ravel())

    @cached_property
    def costly(self) -> Bools:
        """Whether anybody counts in each cell."""
        weights = self.numbers.weights
        return np.bincount(weights.cell, weights.reach) > 0

    def error(self, scale: Floats) -> Floats:
        """Returns each cell's bias and mean absolute noise, summed over its statistics."""
        rows = self.numbers.per_statistic(scale)
        error: Floats = self.bias + rows.sum(axis=0)
        if self.numbers.joint:
            first = rows[self.numbers.pair[0]]
            error = error + 4 * variance.joint_error(first, np.zeros_like(first))
        return error

    def noise(self, factor: float) -> Floats:
        """Returns the sum of noise scales that each cell's target allows; 0 or less for none."""
        room = factor * self.targets - self.bias
        capacity = room
        if self.numbers.joint:
            first = self.shape[self.numbers.pair[0]]
            # The sum s of the scales solves slope s + square s^2 = room.
            slope = 1 + 4 * first
            square = 4 * variance.SQUARE_NOISE * first**2
            root = np.sqrt(slope**2 + 4 * square * np.maximum(room, 0))
            capacity = 2 * room / (slope + root)
        # A constant needs no noise, but it has the error of its bias.
        constant = np.where(room >= 0, _CONSTANT, 0.0)
        return np.where(self.costly, capacity, constant)

    def loss(self, factor: float) -> float:
        """Returns the largest loss of a user at errors of `factor` times `targets`.

        It is infinite if some cell cannot keep its error.
        """
        noise = self.noise(factor)
        if not (noise > 0).all():
            return float("inf")
        weights = self.numbers.weights
        lost = np.bincount(weights.user, self.unit / noise[weights.cell])
        return float(lost.max())

    def least(self, epsilon: float) -> float:
        """Returns the least factor at which the loss is at most epsilon."""
        high = 1.0
        # The loss falls as errors rise.
        while self.loss(high) > epsilon:
            high *= 2
        low = 0.0
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if self.loss(middle) > epsilon:
                low = middle
            else:
                high = middle
        return high

    @property
    def scale(self) -> Floats:
        """Noise scales at errors of exactly the targets, one row for each statistic."""
        return self.shape * self.noise(1.0)
