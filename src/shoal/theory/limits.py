"""What no plan can beat: the least worst-case error of one cell."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def least_mean_error(
    cell: NDArray[np.int64], counts: NDArray[np.int64], n_cells: int, epsilon: float
) -> NDArray[np.float64]:
    """E_OPT over U of every cell: no bounding of users with Laplace noise does better at epsilon.

    E_OPT = (1/n) [ sum_l max(0, (U m_l - T)/2) + T/epsilon ] with T the ceil(2/epsilon)-th
    largest of U m_l, 0 if there are fewer users (Theory 1, section 6; paper 001, Theorem III.1).

    Args:
        cell: Cell of each membership, 0..n_cells-1.
        counts: Records of each membership.
        n_cells: Number of cells.
        epsilon: Privacy loss that the cell may use; of a whole plan, its total is a valid bound.

    Returns:
        One number a cell, relative to the width.

    Example:
        >>> least_mean_error(np.array([0, 0, 0]), np.array([3, 1, 1]), 1, 1.0).tolist()
        [0.4]
    """
    # Cell and falling count in one integer: a plain sort is far faster than one by two keys.
    most = int(counts.max()) + 1
    where, falling = np.divmod(np.sort(cell * most + (most - counts)), most)
    sorted_counts = (most - falling).astype(np.float64)
    size = np.bincount(cell, minlength=n_cells)
    start = np.cumsum(size) - size
    # One unit of the last place downwards keeps ceil(2/epsilon) from rising above the exact one.
    rank = math.ceil(2 / epsilon * (1 - 2.0**-52))
    threshold = np.zeros(n_cells)
    enough = size >= rank
    threshold[enough] = sorted_counts[start[enough] + rank - 1]
    cut = np.bincount(
        where, np.maximum(0.0, (sorted_counts - threshold[where]) / 2), minlength=n_cells
    )
    total = np.bincount(cell, counts.astype(np.float64), minlength=n_cells)
    return np.asarray((cut + threshold / epsilon) / total)
