"""How far one user can move a variance, and how far dropping records can, over the squared width.

Both are V(k, n): what changing, or leaving out, k of n values does to Var = sum (x - f)^2 / n.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Four roundings of a double stay below this relative margin.
_OUTWARD = 1 + 2.0**-50


def sensitivity(counts: NDArray[np.int64], totals: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sensitivity of a variance to k of its n values: V(k, n) over U^2.

    V(k, n) = k (n - k) / n^2 if n > 2k, else 1/4 (n even) or 1/4 (1 - 1/n^2) (n odd). All three
    are j (n - j) / n^2 with j = min(k, floor(n/2)): the values split between the two bounds as
    evenly as k of them can make it. Exact (Theory 1, section 2; erratum 3).

    Args:
        counts: k, records of each user in the cell, shape (memberships,); at most n.
        totals: n, records of that cell, same shape; at least 1.

    Returns:
        V, rounded upwards; multiply by U^2. Non-decreasing in k.

    Example:
        >>> sensitivity(np.array([1, 3, 3]), np.array([4, 4, 5])).round(6).tolist()
        [0.1875, 0.25, 0.24]
    """
    moved = np.minimum(counts, totals // 2)
    split = moved / totals * ((totals - moved) / totals)
    return np.minimum(0.25, split * _OUTWARD)


def bias(dropped: NDArray[np.int64], totals: NDArray[np.int64]) -> NDArray[np.float64]:
    """Bias of the variance of the kept records: V(q, n) over U^2, 0 if none is dropped.

    Exact over all data sets: the product q (n - q) / n^2 holds if n > 2q, with q the records
    dropped, not kept (Theory 1, section 3; erratum 1).

    Args:
        dropped: q, records left out of each cell, shape (cells,); fewer than n.
        totals: n, records of each cell, same shape.

    Returns:
        Largest difference of the two variances, rounded upwards; multiply by U^2.

    Example:
        >>> bias(np.array([0, 1]), np.array([100, 100])).round(6).tolist()
        [0.0, 0.0099]
    """
    return sensitivity(dropped, totals)
