"""Ways to choose a cap on the records of a user, from the public counts of one cell."""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import InputError
from shoal.theory import capping

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

NAMES = ("median", "levy", "minimax", "surrogate")
# Objectives this close are compared again in exact arithmetic, so that ties have a rule.
_CLOSE = 1e-12


def median(counts: NDArray[np.int64]) -> int:
    """The ceil(L/2)-th largest count: at least half of what any cap can gain.

    Source: docs/theory/grouping.md#caps.

    Args:
        counts: Records of each user, shape (users,).

    Example:
        >>> median(np.array([1, 2, 3, 10]))
        3
    """
    place = len(counts) // 2
    return int(np.partition(counts, place)[place])


def levy(counts: NDArray[np.int64]) -> int:
    """The smallest cap that makes sum min(m_l, m)/sqrt(m) largest (docs/theory/grouping.md#caps).

    Args:
        counts: Records of each user, shape (users,).

    Example:
        >>> levy(np.array([1, 1, 10]))
        10
    """
    return _smallest_minimiser(
        counts,
        lambda cap: -capping.levy_objective(counts, cap),
        lambda cap, kept: -Fraction(kept**2, cap),
    )


def minimax(counts: NDArray[np.int64], epsilon: float) -> int:
    """The smallest cap with the least bias plus noise, 1 - K/n + m/(epsilon K).

    It is one of the counts, and never decreases with epsilon (docs/theory/grouping.md#caps).

    Args:
        counts: Records of each user, shape (users,).
        epsilon: Privacy loss of the cell.

    Raises:
        InputError: epsilon is not a number above 0.

    Example:
        >>> minimax(np.array([1, 1, 10]), 2.0)
        10
        >>> minimax(np.array([1, 1, 10]), 0.5)
        1
    """
    if not 0 < epsilon < math.inf:
        raise InputError(
            f"epsilon is {epsilon!r}", "a number above 0", "give for example epsilon=1"
        )
    total, dual = int(counts.sum()), Fraction(epsilon)
    return _smallest_minimiser(
        counts,
        lambda cap: capping.minimax_objective(counts, cap, epsilon),
        lambda cap, kept: Fraction(-kept, total) + Fraction(cap, kept) / dual,
    )


def surrogate(counts: NDArray[np.int64]) -> int:
    """The smallest whole cap with the least 1 - K/n + max(m, mean count)/m*.

    Over the reals: the mean count if at most n/m* users are above it, else the smallest count
    with at most n/m* users above it; a mean that is not whole gives way to the better of its two
    neighbours (docs/theory/grouping.md#caps; erratum 10). In exact arithmetic.

    Args:
        counts: Records of each user, shape (users,).

    Example:
        >>> surrogate(np.array([1, 1, 10]))
        4
    """
    users, total, most = len(counts), int(counts.sum()), int(counts.max())
    few = total // most
    # The smallest count with at most n/m* users above it, or one not above the mean.
    smallest = int(np.partition(counts, users - few - 1)[users - few - 1]) if few < users else 0
    if smallest * users > total:
        return smallest
    below = total // users
    near = [below, -(-total // users)]
    kept = capping.kept(counts, np.array(near)).tolist()
    # The objective times n L m*, less a constant.
    costs = [
        max(cap * users, total) * total - left * users * most
        for cap, left in zip(near, kept, strict=True)
    ]
    return near[costs.index(min(costs))]


def choose(cap: str | int, counts: NDArray[np.int64], epsilon: float) -> int:
    """A cap by its name, or a number: above the largest count it acts as the largest count.

    Args:
        cap: "median", "levy", "minimax", "surrogate" or a whole number from 1.
        counts: Records of each user, shape (users,).
        epsilon: Privacy loss of the cell; only "minimax" looks at it.

    Raises:
        InputError: An unknown name, or a number that is not whole or below 1.

    Example:
        >>> choose("median", np.array([1, 2, 3]), 1.0)
        2
        >>> choose(100, np.array([1, 2, 3]), 1.0)
        3
    """
    match cap:
        case "median":
            return median(counts)
        case "levy":
            return levy(counts)
        case "minimax":
            return minimax(counts, epsilon)
        case "surrogate":
            return surrogate(counts)
    try:
        # True would pass as 1.
        number = 0 if isinstance(cap, bool) else operator.index(cap)  # type: ignore[arg-type]
    except TypeError:
        number = 0
    if number < 1:
        raise InputError(
            f"a cap of {cap!r}",
            f"a whole number from 1, or one of {', '.join(NAMES)}",
            'give for example cap="minimax"',
        )
    return min(number, int(counts.max()))


def _smallest_minimiser(
    counts: NDArray[np.int64],
    cost: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    exact: Callable[[int, int], Fraction],
) -> int:
    """The smallest count of least cost, given the cost in floating point and, of (m, K), exact."""
    sizes = np.unique(counts)
    costs = cost(sizes)
    least = float(costs.min())
    near = sizes[costs <= least + _CLOSE * max(1.0, abs(least))]
    pairs = zip(near.tolist(), capping.kept(counts, near).tolist(), strict=True)
    best: int = min(pairs, key=lambda pair: exact(*pair))[0]
    return best
