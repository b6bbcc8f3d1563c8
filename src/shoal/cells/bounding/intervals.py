"""Intervals of values for each user with the least worst-case error, relative to the width.

Whoever adds noise computes the sensitivity from the returned numbers, not from the formula.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.theory import worst_case

if TYPE_CHECKING:
    from numpy.typing import NDArray


def worst_case_optimal(
    counts: NDArray[np.int64], epsilon: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The interval [a, b] to which every record of a user is projected, for numbers in [0, U].

    a = max(0, (m - T)/(2m)), b = min(1, (m + T)/(2m)) with T of `worst_case.threshold`
    (docs/theory/worst-case.md#numbers). The error is `worst_case.error`.

    Args:
        counts: m, records of each user, shape (users,).
        epsilon: Privacy loss of the cell.

    Returns:
        a and b over U, same shape.

    Raises:
        InputError: epsilon is not above 0.

    Example:
        >>> low, high = worst_case_optimal(np.array([4, 2, 2]), 1.0)
        >>> low.tolist(), high.tolist()
        ([0.25, 0.0, 0.0], [0.75, 1.0, 1.0])
    """
    return worst_case_optimal_cube(counts, epsilon, 1)


def worst_case_optimal_cube(
    counts: NDArray[np.int64], epsilon: float, dimension: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The interval of every coordinate of a record in the cube [0, U]^d: numbers at epsilon/d.

    T is the ceil(2d/epsilon)-th largest count (docs/theory/worst-case.md#vectors). The error of all
    coordinates is `worst_case.error_in_cube`.

    Args:
        counts: m, records of each user, shape (users,).
        epsilon: Privacy loss of the cell, shared by the coordinates.
        dimension: d, numbers in one record.

    Returns:
        a and b over U, same shape.

    Raises:
        InputError: epsilon is not above 0, or there is not even one dimension.

    Example:
        >>> low, high = worst_case_optimal_cube(np.array([4, 2, 2]), 2.0, 2)
        >>> low.tolist(), high.tolist()
        ([0.25, 0.0, 0.0], [0.75, 1.0, 1.0])
    """
    most = worst_case.threshold(counts, epsilon, dimension)
    cut = np.maximum(0, counts - most) / (2 * counts)
    return cut, 1 - cut


def worst_case_optimal_ball(
    counts: NDArray[np.int64], epsilon: float, dimension: int
) -> tuple[float, NDArray[np.float64]]:
    """The norms between which every record x >= 0 of a user is scaled, |x|_1 <= U and d >= 2.

    a = 0, b = min(1, T/m): two records of norm b without a common coordinate are 2b apart,
    whatever a is (docs/theory/worst-case.md#vectors; errata 4 and 5). With d = 1 use
    `worst_case_optimal`.

    Args:
        counts: m, records of each user, shape (users,).
        epsilon: Privacy loss of the cell.
        dimension: d, numbers in one record.

    Returns:
        a = 0, and b over U of each user.

    Raises:
        InputError: epsilon is not above 0, or there is not even one dimension.

    Example:
        >>> low, high = worst_case_optimal_ball(np.array([4, 2, 2]), 2.0, 2)
        >>> low, high.tolist()
        (0.0, [0.5, 1.0, 1.0])
    """
    most = worst_case.threshold(counts, epsilon, dimension)
    return 0.0, np.minimum(1.0, most / counts)


def project_to_annulus(
    points: NDArray[np.float64],
    inner: NDArray[np.float64] | float,
    outer: NDArray[np.float64] | float,
) -> NDArray[np.float64]:
    """Scale each point x >= 0 to a norm a <= |x|_1 <= b; 0 goes to (a, 0, ..., 0).

    Scaling is the l1 projection: it moves a point by a - |x|_1 or |x|_1 - b, and nothing moves
    it less (docs/theory/worst-case.md#vectors).

    Args:
        points: Points over U, none negative, shape (points, d).
        inner: a over U, one a point or one for all.
        outer: b over U, likewise, not below a.

    Returns:
        Points of the annulus, same shape; norms hold up to the rounding of d + 1 operations.

    Example:
        >>> project_to_annulus(np.array([[0.5, 0.5], [0.0, 0.0]]), 0.25, 0.5).tolist()
        [[0.25, 0.25], [0.25, 0.0]]
    """
    norm = points.sum(axis=1)
    wanted = np.clip(norm, inner, outer)
    start = np.zeros(points.shape[1])
    start[0] = 1.0
    # Divide before multiplying: a tiny norm would make the factor overflow.
    direction = np.divide(points, norm[:, None], out=start + 0 * points, where=norm[:, None] > 0)
    return np.where((norm == wanted)[:, None], points, direction * wanted[:, None])
