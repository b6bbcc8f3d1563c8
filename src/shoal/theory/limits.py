"""What no plan can beat: the least worst-case error of one cell, and the bound it clips at."""

import math

import numpy as np

from shoal import checks
from shoal.arrays import Floats, Ints
from shoal.errors import InputError
from shoal.theory import variance


def threshold(counts: Ints, epsilon: float, dimension: int = 1) -> int:
    """T over U: no user moves the sum of the cell by more than T records' worth.

    T is the ceil(2d/epsilon)-th largest count, 0 if there are fewer users: the largest one for
    epsilon >= 2d, 0 for epsilon < 2d/L (docs/theory/cells.md#limits-of-vectors; errata 5 and 6).
    """
    checks.number(epsilon, "epsilon", above=0, infinite=True)
    if dimension < 1:
        raise InputError(f"the dimension is {dimension!r}", "give dimension=1 for a number")
    # One unit of the last place downwards keeps ceil(2d/epsilon) from rising above the exact one.
    wanted = 2 * dimension / epsilon * (1 - 2.0**-52)
    if wanted > len(counts):
        return 0
    place = len(counts) - max(1, math.ceil(wanted))
    return int(np.partition(counts, place)[place])


def least_mean_error(cell: Ints, counts: Ints, n_cells: int, epsilon: float | Floats) -> Floats:
    """E_OPT over U of every cell: no bounding of users with Laplace noise does better at epsilon.

    E_OPT = (1/n) [ sum_l max(0, (U m_l - T)/2) + T/epsilon ] with T as of `threshold`
    (docs/theory/cells.md#limits-of-means; paper 001, Theorem III.1). One epsilon, or one a cell.
    """
    # Cell and falling count in one integer: a plain sort is far faster than one by two keys.
    most = int(counts.max()) + 1
    where, falling = np.divmod(np.sort(cell * most + (most - counts)), most)
    sorted_counts = (most - falling).astype(np.float64)
    size = np.bincount(cell, minlength=n_cells)
    start = np.cumsum(size) - size
    loss = np.broadcast_to(np.asarray(epsilon, dtype=np.float64), (n_cells,))
    if not (loss > 0).all():
        return np.full(n_cells, 0.5)
    # One unit of the last place downwards keeps ceil(2/epsilon) from rising above the exact one.
    rank = np.ceil(2 / loss * (1 - 2.0**-52))
    threshold = np.zeros(n_cells)
    enough = size >= rank
    threshold[enough] = sorted_counts[start[enough] + rank[enough].astype(np.int64) - 1]
    cut = np.bincount(
        where, np.maximum(0.0, (sorted_counts - threshold[where]) / 2), minlength=n_cells
    )
    total = np.bincount(cell, counts.astype(np.float64), minlength=n_cells)
    return (cut + threshold / loss) / total


def least_variance_error(
    cell: Ints, counts: Ints, n_cells: int, epsilon: float, error: Floats
) -> Floats:
    """The least error of a variance, over U^2/4, given that some plan has an error of at most e.

    The missing mass is at most d_max, at which the bias alone is e, and weights move the variance
    by at least their slope at 1 - d_max: then it is least as for means
    (docs/theory/cells.md#limits-of-variances).
    """
    most = np.minimum(error, 0.5)
    if epsilon <= 0:
        return most
    missing = (1 - np.sqrt(np.maximum(1 - 2 * most, 0.0))) / 2
    total = np.bincount(cell, counts.astype(np.float64), minlength=n_cells)
    heaviest = np.zeros(n_cells)
    np.maximum.at(heaviest, cell, counts / total[cell])
    kept = 1 - missing
    slope = variance.mass_slope(np.minimum(heaviest, kept), kept)
    chord = 2 * (1 - missing)
    least = least_mean_error(cell, counts, n_cells, 2 * chord * epsilon / slope)
    return np.asarray(np.minimum(most, 2 * chord * least))
