"""Weights of users that were chosen, and the noise and loss that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import InputError
from shoal.theory import variance

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.queries import Queries

    Floats = NDArray[np.float64]

# Noise of a cell in which nobody counts: it releases a constant.
_CONSTANT = 2.0**-12
_BISECTIONS = 60
_MOST_FACTOR = 2.0**200


@dataclass(frozen=True, eq=False)
class Weighed:
    """Weights that were chosen, with all that follows from them."""

    queries: Queries
    parameters: dict[str, NDArray[np.int64]]
    targets: Floats

    @cached_property
    def shape(self) -> Floats:
        """Noise scales within each cell, with the least sum of errors; one row a statistic."""
        return self.queries.per_statistic(self.queries.shape(least_sum=True))

    @cached_property
    def bias(self) -> Floats:
        """Sum of the biases of each cell."""
        return np.asarray(self.queries.per_statistic(self.queries.bias).sum(axis=0))

    @cached_property
    def unit(self) -> Floats:
        """Loss of each member at scales of the shape."""
        return self.queries.member_losses(self.shape.ravel())

    @cached_property
    def counts(self) -> NDArray[np.bool_]:
        """Whether anybody counts in each cell."""
        return np.bincount(self.queries.design.number, self.queries.design.contribution) > 0

    def error(self, scale: Floats) -> Floats:
        """Sum over the statistics of bias and mean absolute noise, of each cell."""
        rows = self.queries.per_statistic(scale)
        found = self.bias + rows.sum(axis=0)
        if self.queries.joint:
            first = rows[self.queries.pair[0]]
            found = found + 4 * variance.joint_error(first, np.zeros_like(first))
        return np.asarray(found)

    def noise(self, factor: float) -> Floats:
        """Sum of the scales of each cell that its target allows; not above 0 if none does."""
        capacity = room = factor * self.targets - self.bias
        if self.queries.joint:
            first = self.shape[self.queries.pair[0]]
            slope, square = 1 + 4 * first, 4 * variance.SQUARE_NOISE * first**2
            capacity = (
                2 * capacity / (slope + np.sqrt(slope**2 + 4 * square * np.maximum(capacity, 0)))
            )
        # A constant needs no noise, but it has the error of its bias.
        return np.where(self.counts, capacity, np.where(room >= 0, _CONSTANT, 0.0))

    def loss(self, factor: float) -> float:
        """Of the user with the largest loss at errors s e_g; infinite if they cannot be met."""
        noise = self.noise(factor)
        if not (noise > 0).all():
            return float("inf")
        design = self.queries.design
        return float(np.bincount(design.user, self.unit / noise[design.number]).max())

    def least(self, epsilon: float) -> float:
        """The least factor at which the loss is at most epsilon."""
        high = 1.0
        while self.loss(high) > epsilon:
            high *= 2
            if high > _MOST_FACTOR:
                raise InputError(
                    "errors that no factor of the targets allows",
                    "targets above the bias of their cells",
                    "ask for larger errors",
                )
        low = 0.0
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.loss(middle) > epsilon else (low, middle)
        return high

    @property
    def scale(self) -> Floats:
        """Noise scales at errors of exactly the targets, one row a statistic."""
        return np.asarray(self.shape * self.noise(1.0))
