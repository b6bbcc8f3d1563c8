"""The least worst-case error of one cell over all ways of bounding its users, over the width."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def threshold(counts: NDArray[np.int64], epsilon: float, dimension: int = 1) -> int:
    """T over U: no user moves the sum of the cell by more than T records' worth.

    T is the ceil(2d/epsilon)-th largest count, 0 if there are fewer users: the largest one for
    epsilon >= 2d, 0 for epsilon < 2d/L (docs/theory/worst-case.md; errata 5 and 6).

    Args:
        counts: m, records of each user, shape (users,).
        epsilon: Privacy loss of the cell.
        dimension: d, numbers in one record.

    Returns:
        A count of records.

    Raises:
        InputError: epsilon is not above 0, or there is not even one dimension.

    Example:
        >>> threshold(np.array([3, 1, 2]), 1.0)
        2
    """
    if not epsilon > 0:
        raise InputError(
            f"epsilon is {epsilon!r}", "a number above 0", "give for example epsilon=1"
        )
    if dimension < 1:
        raise InputError(
            f"a dimension of {dimension!r}", "whole numbers from 1", "give dimension=1 for a number"
        )
    # One unit of the last place downwards keeps ceil(2d/epsilon) from rising above the exact one.
    wanted = 2 * dimension / epsilon * (1 - 2.0**-52)
    if wanted > len(counts):
        return 0
    place = len(counts) - max(1, math.ceil(wanted))
    return int(np.partition(counts, place)[place])


def error(counts: NDArray[np.int64], epsilon: float, dimension: int = 1) -> float:
    """E_OPT over U: the least worst-case error, for numbers or for vectors in the l1 ball.

    d = 1: (1/n) [ sum_l max(0, (m_l - T)/2) + T/epsilon ], records in [0, U].
    d >= 2: (1/n) [ sum_l max(0, m_l - T) + 2 d T / epsilon ], records x >= 0 with |x|_1 <= U and
    the error in l1; lower clipping never helps (docs/theory/worst-case.md#vectors; errata 4 and 5).

    Args:
        counts: m, records of each user, shape (users,).
        epsilon: Privacy loss of the cell.
        dimension: d, numbers in one record.

    Returns:
        Bias plus noise; multiply by U. Never increases with epsilon.

    Raises:
        InputError: epsilon is not above 0, or there is not even one dimension.

    Example:
        >>> error(np.array([3, 1, 1]), 1.0)
        0.4
        >>> error(np.array([3, 1, 1]), 4.0, dimension=2)
        0.6
    """
    most = threshold(counts, epsilon, dimension)
    cut = float(np.maximum(0, counts - most).sum())
    if dimension == 1:
        return (cut / 2 + most / epsilon) / int(counts.sum())
    return (cut + 2 * dimension * most / epsilon) / int(counts.sum())


def error_in_cube(counts: NDArray[np.int64], epsilon: float, dimension: int) -> float:
    """Least worst-case l1 error over U when each of d numbers lies in [0, U] by itself.

    Each coordinate is a number of its own at epsilon/d, and the l1 error is the sum of theirs:
    (d/n) [ sum_l max(0, (m_l - T)/2) + d T / epsilon ] (docs/theory/worst-case.md#vectors). It is
    the least for coordinates treated alike and alone.

    Args:
        counts: m, records of each user, shape (users,).
        epsilon: Privacy loss of the cell, shared by the coordinates.
        dimension: d, numbers in one record.

    Returns:
        Bias plus noise of all coordinates, as a part of the width.

    Raises:
        InputError: epsilon is not above 0, or there is not even one dimension.

    Example:
        >>> error_in_cube(np.array([3, 1, 1]), 2.0, 2)
        0.8
    """
    most = threshold(counts, epsilon, dimension)
    cut = float(np.maximum(0, counts - most).sum())
    return dimension * (cut / 2 + dimension * most / epsilon) / int(counts.sum())
