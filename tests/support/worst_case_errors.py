"""The worst-case error of truncated users at the threshold that the library takes."""

import numpy as np
from numpy.typing import NDArray

from shoal.theory import limits


def error(counts: NDArray[np.int64], epsilon: float, dimension: int = 1) -> float:
    """Bias plus noise over the width, of numbers or of vectors in the l1 ball.

    docs/theory/cells.md#limits-of-means: half of what is cut for numbers, all of it for vectors,
    whose noise is for twice the norm.

    Args:
        counts: Records of each user.
        epsilon: Privacy loss of the cell.
        dimension: Estimates in one record.
    """
    most = limits.threshold(counts, epsilon, dimension)
    cut = float(np.maximum(0, counts - most).sum())
    if dimension == 1:
        return (cut / 2 + most / epsilon) / int(counts.sum())
    return (cut + 2 * dimension * most / epsilon) / int(counts.sum())
