"""What a cap on the records of a user costs: functions of the public counts of one cell.

With a cap m every user keeps min(m_l, m) records, K(m) in all. Over the reals each function has
kinks at the counts only (and the surrogate at their mean), where `shoal.cells.bounding.caps` looks.

Source: docs/theory/grouping.md#caps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.theory import sensitivity

if TYPE_CHECKING:
    from numpy.typing import NDArray


def kept(counts: NDArray[np.int64], cap: NDArray[np.int64] | int) -> NDArray[np.int64]:
    """K(m) = sum_l min(m_l, m), the records kept with each cap, in O((L + caps) log L).

    Args:
        counts: m_l, records of each user, shape (users,).
        cap: m, any shape.

    Returns:
        Records kept, of the shape of the caps.

    Example:
        >>> kept(np.array([1, 1, 10]), np.array([1, 4, 10])).tolist()
        [3, 6, 12]
    """
    ordered = np.sort(counts)
    below = np.concatenate([[0], np.cumsum(ordered)])
    small = np.searchsorted(ordered, cap, side="right")
    return np.asarray(below[small] + (len(ordered) - small) * cap)


def minimax_objective(
    counts: NDArray[np.int64], cap: NDArray[np.int64] | int, epsilon: float
) -> NDArray[np.float64]:
    """E(m) over U = 1 - K(m)/n + m/(epsilon K(m)): bias plus noise of the capped mean.

    Concave between two counts, so that a least value lies at a count
    (docs/theory/grouping.md#caps).

    Args:
        counts: m_l, records of each user, shape (users,).
        cap: m >= 1, any shape.
        epsilon: Privacy loss of the cell.

    Returns:
        One number a cap, the cap's shape, as a part of the width.

    Example:
        >>> minimax_objective(np.array([1, 1, 10]), np.array([1, 10]), 2.0).round(6).tolist()
        [0.916667, 0.416667]
    """
    left = kept(counts, cap)
    return np.asarray(sensitivity.kept_mean(left, counts.sum()) + cap / (epsilon * left))


def levy_objective(counts: NDArray[np.int64], cap: NDArray[np.int64] | int) -> NDArray[np.float64]:
    """Sum min(m_l, m) / sqrt(m), to be made large: pseudo-users times the square root of m.

    Between two counts it is (A + B m)/sqrt(m), whose only stationary point is a least value, so
    that a largest value lies at a count (docs/theory/grouping.md#caps).

    Args:
        counts: m_l, records of each user, shape (users,).
        cap: m >= 1, any shape.

    Returns:
        One number a cap, the cap's shape; it has no unit.

    Example:
        >>> levy_objective(np.array([1, 1, 10]), np.array([1, 4])).tolist()
        [3.0, 3.0]
    """
    return np.asarray(kept(counts, cap) / np.sqrt(cap))
