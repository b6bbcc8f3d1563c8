"""Holds the assumed distribution of values, and simple estimators to compare plans with.

The simple estimators add continuous noise without a lattice: they must never make a release.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shoal import checks
from shoal.arrays import Floats, Ints, largest
from shoal.cells.estimates.typical_error import CELLS, PLACE, SD, USERS
from shoal.cells.mechanisms import caps
from shoal.data.memberships import Memberships
from shoal.data.value_lattice import Bounds
from shoal.theory import user_clipping

Rng = np.random.Generator
Distribution = Callable[[Rng, Ints, Ints], Floats]
Estimator = Callable[[Memberships, Floats, float, Rng], Floats]
# Sums and products of values up to this size stay finite.
_LARGEST = 1e280


@dataclass(frozen=True)
class Normal:
    """Normal values, whose variance lies partly between users and partly between cells.

    Source: docs/theory/cells.md#adaptive-mean, where users are exchangeable in the same way.

    Args:
        mean: Mean of all values, in the value's unit.
        deviation: Standard deviation of one record of a cell, in the value's unit.
        between: The part of this record's variance that lies between users, 0 to 1.
        cells: Standard deviation of the means of cells, in the value's unit.

    Raises:
        InputError: A deviation below 0 or a part outside 0 to 1.

    Example:
        >>> import numpy as np
        >>> users, cells = np.repeat([0, 1], 5000), np.zeros(10000, np.int64)
        >>> values = Normal(20.0, 10.0, between=1.0)(np.random.default_rng(1), users, cells)
        >>> len(np.unique(values))
        2
    """

    mean: float
    deviation: float
    between: float = 0.0
    cells: float = 0.0

    def __post_init__(self) -> None:
        limits = {"mean": _LARGEST, "deviation": _LARGEST, "between": 1.0, "cells": _LARGEST}
        for name, largest_allowed in limits.items():
            least = -largest_allowed if name == "mean" else 0.0
            number = checks.number(getattr(self, name), name, least=least, most=largest_allowed)
            object.__setattr__(self, name, number)

    def __str__(self) -> str:
        """The distribution in words, with six significant digits."""
        parts = [f"standard deviation {self.deviation:g}"]
        if self.between:
            parts.append(f"{self.between:.3g} of the variance between users")
        if self.cells:
            parts.append(f"means of cells with {self.cells:g}")
        return f"normal values of mean {self.mean:g}, {', '.join(parts)}"

    def __call__(self, rng: Rng, user: Ints, cell: Ints) -> Floats:
        """Draws one value for each record; a user's deviation is the same in all cells."""
        within_users = self.deviation * math.sqrt(1 - self.between)
        values = self.mean + within_users * rng.standard_normal(len(user))
        if self.between:
            of_user = rng.standard_normal(int(user.max()) + 1)
            values += self.deviation * math.sqrt(self.between) * of_user[user]
        if self.cells:
            values += self.cells * rng.standard_normal(int(cell.max()) + 1)[cell]
        return values


def usual(bounds: Bounds) -> Normal:
    """Returns the distribution that is assumed if nobody says more: that of typical errors."""
    deviation = float(bounds.width) * SD
    within_cells = 1 - CELLS
    mean = bounds.lo + PLACE * float(bounds.width)
    return Normal(
        mean,
        deviation * within_cells**0.5,
        USERS / within_cells,
        deviation * CELLS**0.5,
    )


def midpoint(counts: Memberships, mean: Floats, epsilon: float, rng: Rng) -> Floats:
    """Returns the middle of the range in every cell, without looking at the data."""
    del mean, epsilon, rng
    return np.full(counts.n_cells, 0.5)


def one_constant(counts: Memberships, mean: Floats, epsilon: float, rng: Rng) -> Floats:
    """Returns the mean of all users' means, with Laplace noise of scale 1/(users epsilon)."""
    sums = np.bincount(counts.user, counts.count * mean)
    user_means = sums / np.bincount(counts.user, counts.count)
    noisy = float(user_means.mean()) + rng.laplace(0, 1 / (counts.n_users * epsilon))
    return np.full(counts.n_cells, min(max(noisy, 0.0), 1.0))


def laplace_of_users(counts: Memberships, mean: Floats, epsilon: float, rng: Rng) -> Floats:
    """Returns means in which every user has one vote; a user's cells share epsilon equally."""
    return _laplace(counts, mean, np.ones(len(mean)), epsilon, rng)


def laplace_with_caps(counts: Memberships, mean: Floats, epsilon: float, rng: Rng) -> Floats:
    """Returns means of records, capped for the least error; a user's cells share epsilon equally.

    The cap weighs the noise against the error from heavy users who count less than their records.
    """
    cell_epsilon = np.full(counts.n_cells, epsilon / int(counts.cells_per_user.max()))
    cap = caps.of_vectors(
        counts.cell,
        counts.count,
        counts.n_cells,
        cell_epsilon,
        penalty=1.0,
        width=user_clipping.WHOLE_WIDTH,
    )
    weight = np.minimum(counts.count, cap[counts.cell]).astype(np.float64)
    return _laplace(counts, mean, weight, epsilon, rng)


NAIVE: dict[str, Estimator] = {
    "midpoint": midpoint,
    "one constant": one_constant,
    "Laplace, one vote a user": laplace_of_users,
    "Laplace, best caps": laplace_with_caps,
}


def _laplace(counts: Memberships, mean: Floats, weight: Floats, epsilon: float, rng: Rng) -> Floats:
    """Returns weighted means with Laplace noise; a user's cells share epsilon equally."""
    total = np.bincount(counts.cell, weight)
    exact = np.bincount(counts.cell, weight * mean) / total
    cell_epsilon = epsilon / int(counts.cells_per_user.max())
    heaviest = largest(counts.cell, weight, counts.n_cells)
    return np.clip(exact + rng.laplace(0, heaviest / total / cell_epsilon), 0, 1)
