"""Scores the candidates of private selections by permute-and-flip from a public list.

If no user changes any score by more than d, the selected position costs 2 d / scale to each user
on whose values the scores depend, and nothing to anybody else (McKenna and Sheldon,
"Permute-and-Flip", NeurIPS 2020, Theorem 1). It is never worse than the exponential mechanism.
"""

import math
from fractions import Fraction

import numpy as np

from shoal.arrays import Ints

# Scores are whole numbers: one user counts for this much.
UNIT = 1 << 10
# The candidates of a quantile divide the width into this many steps.
CELLS = 1 << 12


def loss(sensitivity: int, scale: float) -> Fraction:
    """Returns the exact loss 2 d / scale of one selection."""
    return Fraction(2 * sensitivity) / Fraction(scale)


def middle_scores(values: Ints, bins: int, top: int) -> Ints:
    """Returns -max(values below, values above) for each of `bins` equal bins.

    Each value is in the bin of its nearest midpoint. One value that changes moves a score by at
    most 1 (paper 002, Algorithm 3; docs/theory/privacy.md#selections). Values are whole numbers in
    0..top.

    Example:
        >>> middle_scores(np.array([1, 1, 9]), bins=5, top=10).tolist()
        [-1, -2, -2, -2, -2]
    """
    where = np.minimum(values * bins // top, bins - 1)
    inside = np.bincount(where, minlength=bins)
    upto = np.cumsum(inside)
    return np.asarray(-np.maximum(upto - inside, len(values) - upto))


def quantile_scores(values: Ints, rank: int, candidates: Ints) -> Ints:
    """Returns minus the distance of the wanted rank from a candidate's ranks, times UNIT.

    A candidate t has the ranks from #{y < t} to #{y <= t}; one value that changes moves a score by
    at most UNIT (Smith, STOC 2011, on a grid of candidates instead of the whole interval).
    Candidates ascend; the wanted rank is given times UNIT.

    Example:
        >>> quantile_scores(np.array([2, 4, 6]), 2 * UNIT, np.array([1, 4, 7])).tolist()
        [-2048, 0, -1024]
    """
    ordered = np.sort(values)
    below = np.searchsorted(ordered, candidates, side="left") * UNIT
    upto = np.searchsorted(ordered, candidates, side="right") * UNIT
    return -np.maximum(np.maximum(below - rank, rank - upto), 0)


def grid(top: int) -> Ints:
    """Returns candidates from 0 to top: `CELLS` equal steps, or all whole numbers if fewer."""
    steps = min(CELLS, top)
    return np.arange(steps + 1, dtype=np.int64) * top // steps


def intervals(halvings: int, top: int) -> tuple[Ints, Ints, Ints]:
    """Returns low, high and twice the halvings of every candidate interval of [0, top].

    Intervals of the width top 2^(-step/2) lie at equal distances of a quarter of it or less.
    """
    lows = []
    widths = []
    steps = []
    for step in range(2 * halvings + 1):
        # Whole-number square roots are the same on every machine; even widths have a middle.
        width = math.isqrt(top * top >> step) & ~1
        gaps = -(-(top - width) // max(width // 4, 1))
        lows.append(np.arange(gaps + 1, dtype=np.int64) * (top - width) // max(gaps, 1))
        widths.append(np.full(gaps + 1, width, dtype=np.int64))
        steps.append(np.full(gaps + 1, step, dtype=np.int64))
    low = np.concatenate(lows)
    return low, low + np.concatenate(widths), np.concatenate(steps)
