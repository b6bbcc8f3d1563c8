"""What anybody writes in ten lines, to compare plans with: guesses, and Laplace noise cell by cell.

Each is private at the stated loss by the simplest accounting, with continuous noise and no lattice:
for comparisons on made-up values, never for a release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.cells import caps
from shoal.theory import user_clipping

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from shoal.data.occupancy import Counts

    Floats = NDArray[np.float64]
    Estimator = Callable[[Counts, Floats, float, np.random.Generator], Floats]


def midpoint(occupancy: Counts, mean: Floats, epsilon: float, rng: np.random.Generator) -> Floats:
    """The middle of the range in every cell, without a look at the data."""
    del mean, epsilon, rng
    return np.full(occupancy.n_cells, 0.5)


def one_constant(
    occupancy: Counts, mean: Floats, epsilon: float, rng: np.random.Generator
) -> Floats:
    """The mean of all users' means in every cell, with Laplace noise of scale U/(users epsilon)."""
    users = occupancy.n_users
    own = np.bincount(occupancy.user, occupancy.count * mean) / np.bincount(
        occupancy.user, occupancy.count
    )
    noisy = float(own.mean()) + rng.laplace(0, 1 / (users * epsilon))
    return np.full(occupancy.n_cells, min(max(noisy, 0.0), 1.0))


def laplace_of_users(
    occupancy: Counts, mean: Floats, epsilon: float, rng: np.random.Generator
) -> Floats:
    """Users' means, one vote a user, with an equal split of epsilon among a user's cells."""
    weight = np.ones(len(mean))
    return _laplace(occupancy, mean, weight, epsilon, rng)


def laplace_with_caps(
    occupancy: Counts, mean: Floats, epsilon: float, rng: np.random.Generator
) -> Floats:
    """Records capped where noise and what heavy users may differ by are least, the same split."""
    cells = occupancy.n_cells
    split = np.full(cells, epsilon / int(occupancy.cells_per_user.max()))
    cap = caps.of_vectors(
        occupancy.cell, occupancy.count, cells, split, penalty=1.0, width=user_clipping.WHOLE_WIDTH
    )
    weight = np.minimum(occupancy.count, cap[occupancy.cell]).astype(np.float64)
    return _laplace(occupancy, mean, weight, epsilon, rng)


NAIVE: dict[str, Estimator] = {
    "midpoint": midpoint,
    "one constant": one_constant,
    "Laplace, one vote a user": laplace_of_users,
    "Laplace, best caps": laplace_with_caps,
}


def _laplace(
    occupancy: Counts, mean: Floats, weight: Floats, epsilon: float, rng: np.random.Generator
) -> Floats:
    cells = occupancy.n_cells
    total = np.bincount(occupancy.cell, weight, minlength=cells)
    heaviest = np.zeros(cells)
    np.maximum.at(heaviest, occupancy.cell, weight)
    exact = np.bincount(occupancy.cell, weight * mean, minlength=cells) / total
    split = epsilon / int(occupancy.cells_per_user.max())
    return np.clip(exact + rng.laplace(0, heaviest / total / split), 0, 1)
