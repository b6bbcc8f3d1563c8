"""Sums of disjoint groups of units from which questions follow, such as the means of arms."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# Of the largest weight: parts that differ by less are the same.
_DIGITS = 12


def disjoint_parts(rows: Floats) -> Floats | None:
    """Positive and negative parts of questions, each once, if no unit is in two of them.

    A unit that is in one part alone moves one number: noise for all parts costs no more than noise
    for one. Effects of many arms against one control are differences of such parts, and as
    questions of their own they all move with each unit of the control.

    Source: docs/theory/questions.md#laplace-noise.

    Args:
        rows: Weights of the questions, shape (questions, units).

    Returns:
        Largest weight 1, shape (parts, units); None if parts overlap.

    Example:
        >>> disjoint_parts(np.array([[2.0, -1.0, 0.0], [0.0, -3.0, 1.0]])).tolist()
        [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
        >>> disjoint_parts(np.array([[1.0, 1.0], [0.0, 1.0]])) is None
        True
    """
    both = np.concatenate([np.maximum(rows, 0), np.maximum(-rows, 0)])
    most = both.max(axis=1)
    both, most = both[most > 0], most[most > 0]
    parts = np.unique(np.round(both / most[:, None], _DIGITS), axis=0)
    if int((parts > 0).sum(axis=0).max()) > 1:
        return None
    return np.asarray(parts)
