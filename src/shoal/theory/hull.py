"""Computes with noise on counts of users who may be in every cell, drawn for all cells together.

There are `cells` numbers, and a user raises some of them by the same amount u. The norm is
max(z, 0) + max(-z, 0), of the largest number above 0 and the smallest below it. It then moves by at
most u, in however many cells the user is; noise as likely as exp(-norm/scale) has a mean size of
(cells + 2)/3 scales in each cell.

Source: docs/theory/private-counts.md#counts-without-a-cap.
"""

from scipy.optimize import brentq
from scipy.special import gammaincc

# No quantile that is asked for is beyond this many scales for each cell.
_FAR = 40.0


def mean_absolute(cells: int) -> float:
    """Returns the mean size of the noise of one cell, in scales.

    Example:
        >>> mean_absolute(1)
        1.0
    """
    return (cells + 2) / 3


def variance(cells: int) -> float:
    """Variance of the noise of one cell, in squared scales.

    Example:
        >>> variance(1)
        2.0
    """
    return (cells + 2) * (cells + 3) / 6


def tail(size: float, cells: int) -> float:
    """Returns the chance that the noise of one cell is larger than `size` scales, on either side.

    With the regularised gamma function Q and G cells it is Q(G+1, x) - 2x/(G+1) Q(G, x) +
    x^2/(G(G+1)) Q(G-1, x).

    Example:
        >>> tail(0.0, 4), round(tail(1.0, 1), 4)
        (1.0, 0.3679)
    """
    if size <= 0:
        return 1.0
    first = float(gammaincc(cells + 1, size))
    second = 2 * size / (cells + 1) * float(gammaincc(cells, size))
    # Q(0, x) is 0.
    third = 0.0
    if cells > 1:
        third = size**2 / (cells * (cells + 1)) * float(gammaincc(cells - 1, size))
    # Far in the tail, rounding may bring the sum below 0.
    return max(first - second + third, 0.0)


def tail_quantile(cells: int, miss: float) -> float:
    """Returns the size, in scales, that the noise of one cell exceeds with this chance at most.

    Example:
        >>> round(tail_quantile(1, 0.05), 3)
        2.996
    """
    if miss >= 1:
        return 0.0
    return float(brentq(lambda size: tail(size, cells) - miss, 0.0, _FAR * (cells + 5)))
