"""How far an estimator that leaves out or down-weights users is from the mean, over the width.

Every value is exact: the largest difference over all data sets with the given counts.

Source: docs/theory/grouping.md#linear-estimators-and-their-bias.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

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
