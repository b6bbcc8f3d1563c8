"""Computes the least worst-case error of one cell, and the threshold at which users are cut."""

import math

import numpy as np

from shoal import checks
from shoal.arrays import Floats, Ints
from shoal.errors import InputError
from shoal.theory import variance


def threshold(counts: Ints, epsilon: float, dimension: int = 1) -> int:
    """Returns the best threshold: no user moves a cell's sum by more than this many records would.

    With dimension d and L users it is the ceil(2d/epsilon)-th largest count, or 0 if there are
    fewer users. So it is the largest count for epsilon >= 2d, and 0 for epsilon < 2d/L
    (docs/theory/cells.md#limits-of-vectors; errata 5 and 6).
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
    """Returns each cell's least error as a part of the width, whatever the bounding of users.

    With Laplace noise, n records, counts m_l and the `threshold` T, no error is below
    (1/n) [ sum_l max(0, (m_l - T)/2) + T/epsilon ] (docs/theory/cells.md#limits-of-means; paper
    001, Theorem III.1). `epsilon` is one number for all cells, or one for each.
    """
    # Cell and falling count in one integer: a plain sort is far faster than one by two keys.
    base = int(counts.max()) + 1
    sorted_cell, falling = np.divmod(np.sort(cell * base + (base - counts)), base)
    sorted_counts = (base - falling).astype(np.float64)
    size = np.bincount(cell, minlength=n_cells)
    start = np.cumsum(size) - size
    loss = np.broadcast_to(np.asarray(epsilon, dtype=np.float64), (n_cells,))
    if not (loss > 0).all():
        # Without a loss nothing is better than guessing.
        return np.full(n_cells, 0.5)
    # One unit of the last place downwards keeps ceil(2/epsilon) from rising above the exact one.
    rank = np.ceil(2 / loss * (1 - 2.0**-52))
    threshold = np.zeros(n_cells)
    enough = size >= rank
    threshold[enough] = sorted_counts[start[enough] + rank[enough].astype(np.int64) - 1]
    half_beyond = np.maximum(0.0, (sorted_counts - threshold[sorted_cell]) / 2)
    bias = np.bincount(sorted_cell, half_beyond, minlength=n_cells)
    total = np.bincount(cell, counts.astype(np.float64), minlength=n_cells)
    return (bias + threshold / loss) / total


def least_variance_error(
    cell: Ints, counts: Ints, n_cells: int, epsilon: float, error: Floats
) -> Floats:
    """Returns a lower bound on the error of a variance, in parts of U^2/4, up to `error`.

    A plan with a smaller error than `error` misses at most the mass whose bias alone is that large.
    At this mass a chord bounds the bias from below, and a slope the sensitivity; the bound for
    means then applies (docs/theory/cells.md#limits-of-variances).
    """
    largest = np.minimum(error, 0.5)
    if epsilon <= 0:
        return largest
    # The mass d with the bias 2 d (1 - d) = `largest`.
    missing = (1 - np.sqrt(np.maximum(1 - 2 * largest, 0.0))) / 2
    total = np.bincount(cell, counts.astype(np.float64), minlength=n_cells)
    largest_share = np.zeros(n_cells)
    np.maximum.at(largest_share, cell, counts / total[cell])
    kept = 1 - missing
    slope = variance.mass_slope(np.minimum(largest_share, kept), kept)
    chord = 2 * (1 - missing)
    # A mean has the bias d/2 and the slope 1: so its error is scaled by 2 chord.
    mean_error = least_mean_error(cell, counts, n_cells, 2 * chord * epsilon / slope)
    return np.asarray(np.minimum(largest, 2 * chord * mean_error))
