"""How far an estimator that leaves out or down-weights users is from the mean, over the width.

Every value is exact: the largest difference over all data sets with the given counts.

Source: docs/theory/grouping.md#linear-estimators-and-their-bias.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def kept_mean(kept: NDArray[np.int64], totals: NDArray[np.int64]) -> NDArray[np.float64]:
    """Bias of the mean of the kept records: 1 - K/n of the width.

    Attained when the kept values lie at one bound and the others at the other
    (docs/theory/grouping.md#linear-estimators-and-their-bias).

    `kept`: K, records kept of each cell, shape (cells,); at least 1; `totals`: n, records of each
    cell, same shape.
    """
    return np.asarray((totals - kept) / totals)
