"""Projection of whole-number vectors onto an l1 ball: the part of a user that its noise hides.

Two vectors of the ball of radius T are at most 2 T apart in l1, wherever they point: that is all
the accounting needs (docs/theory/user-clipped.md#privacy).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Sums of a user's absolute numbers stay below this, so that no sum of 64 bits overflows.
MOST = 1 << 61


def project(vector: NDArray[np.int64], owner: NDArray[np.int64], radius: int) -> NDArray[np.int64]:
    """Each owner's vector moved into the l1 ball: sign(x) max(|x| - t, 0).

    t is the least whole number >= 0 with sum max(|x| - t, 0) <= radius. With C_j the sum of the j
    largest |x| it is max(0, max_j ceil((C_j - radius)/j)). A vector in the ball is not moved.

    Source: docs/theory/user-clipped.md#projection.

    `vector`: whole numbers, shape (memberships,); their absolute values sum to at most 2^61 an
    owner; `owner`: owner of each, from 0, same shape; `radius`: T, at least 0.
    """
    size = np.abs(vector)
    beyond = norms(size, owner) > radius
    # The same steps where nobody is beyond: whether anybody is, is private.
    inside = np.flatnonzero(beyond[owner])
    found = vector.copy()
    order = inside[np.lexsort((-size[inside], owner[inside]))]
    whose, falling = owner[order], size[order]
    first = np.flatnonzero(np.diff(whose, prepend=-1))
    place = np.cumsum(np.diff(whose, prepend=-1) != 0) - 1
    # Sums of differences of one running sum are exact even where it wraps around.
    total = np.cumsum(falling)
    so_far = total - (total - falling)[first][place]
    rank = np.arange(len(order)) - first[place] + 1
    least = np.maximum.reduceat(-((radius - so_far) // rank), first)
    found[order] = np.sign(vector[order]) * np.maximum(falling - least[place], 0)
    return found


def norms(size: NDArray[np.int64], owner: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sum of each owner's absolute values, exact.

    `size`: absolute values, shape (memberships,); `owner`: owner of each, from 0, same shape.
    """
    about = np.bincount(owner, size.astype(np.float64))
    if about.max(initial=0.0) > MOST:
        raise OverflowError("a vector whose absolute values sum to more than 2^61")
    exact = np.zeros(len(about), dtype=np.int64)
    np.add.at(exact, owner, size)
    return exact
