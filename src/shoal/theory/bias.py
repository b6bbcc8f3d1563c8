"""How far an estimator that leaves out or down-weights users is from the mean, over the width.

Every value is exact: the largest difference over all data sets with the given counts.

Source: docs/theory/grouping.md#linear-estimators-and-their-bias.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def kept_mean(kept: NDArray[np.int64], totals: NDArray[np.int64]) -> NDArray[np.float64]:
    """Bias of the mean of the kept records: 1 - K/n of the width.

    Attained when the kept values lie at one bound and the others at the other
    (docs/theory/grouping.md#linear-estimators-and-their-bias).

    Args:
        kept: K, records kept of each cell, shape (cells,); at least 1.
        totals: n, records of each cell, same shape.

    Returns:
        (n - K)/n, shape (cells,), as a part of the width.

    Example:
        >>> kept_mean(np.array([3, 4]), np.array([4, 4])).tolist()
        [0.25, 0.0]
    """
    return np.asarray((totals - kept) / totals)


def linear(weights: NDArray[np.float64], shares: NDArray[np.float64], offset: float) -> float:
    """Bias of sum w_l mean_l + c, where mean_l is the mean of user l, of one cell.

    max( sum (v - w)^+ - c, sum (w - v)^+ + c ), for weights and c of any sign
    (docs/theory/grouping.md#linear-estimators-and-their-bias). With sum w = 1 and c = 0 it is half
    the l1 distance of w and v.

    Args:
        weights: w, shape (users,), as parts of the whole.
        shares: v = m/n, same shape.
        offset: c, as a part of the width.

    Returns:
        The bias as a part of the width.

    Example:
        >>> linear(np.array([0.25, 0.25]), np.array([0.75, 0.25]), 0.25)
        0.25
    """
    missing = shares - weights
    above, below = np.maximum(missing, 0).sum(), np.maximum(-missing, 0).sum()
    return float(max(above - offset, below + offset))


def clipped_linear(
    weights: NDArray[np.float64],
    shares: NDArray[np.float64],
    offset: float,
    low: NDArray[np.float64] | float,
    high: NDArray[np.float64] | float,
) -> float:
    """Bias of sum w_l clip(mean_l, low_l, high_l) + c, of one cell.

    max( sum_l max_x g_l - c, c - sum_l min_x g_l ) with g_l(x) = v_l x - w_l clip(x, low, high).
    The users' means are free of each other, and g_l is linear between 0, low, high and 1: its
    extremes are among these four. Without clipping it is `linear`.

    Source: docs/theory/grouping.md#linear-estimators-and-their-bias.

    Args:
        weights: w, shape (users,), as parts of the whole.
        shares: v = m/n, same shape.
        offset: c, as a part of the width.
        low: Lower ends of the intervals, shape (users,) or one for all, as a part of the width.
        high: Upper ends, same shape, as parts of the width, not below the lower ones.

    Returns:
        The bias as a part of the width.

    Raises:
        InputError: An interval is empty or leaves [0, 1].

    Example:
        >>> half = np.array([0.5, 0.5])
        >>> clipped_linear(half, half, 0.0, low=0.25, high=0.5)
        0.5
    """
    if not (np.all(low >= np.float64(0)) and np.all(low <= high) and np.all(high <= np.float64(1))):
        raise InputError(
            "clipping intervals that are empty or leave the bounds",
            "0 <= low <= high <= 1, relative to the width",
            "give the smaller end first",
        )
    ends = np.stack(
        [np.broadcast_to(np.float64(end), weights.shape) for end in (0.0, low, high, 1.0)]
    )
    moved = shares * ends - weights * np.clip(ends, low, high)
    return float(max(moved.max(axis=0).sum() - offset, offset - moved.min(axis=0).sum()))
