"""Projection of whole-number vectors into an l2 ball: the part of a user that Gaussian noise hides.

Two vectors of the ball of radius T are at most 2 T apart in l2, wherever they point: that is all
the accounting needs (docs/theory/user-clipped.md#gaussian-noise).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Remainders of up to twice a norm stay 64-bit numbers.
MOST = 1 << 60
# A radius stays a whole number to floating-point arithmetic, with six places to spare.
MOST_RADIUS = 1 << 46
# A sum of 2^28 squares in floating point is below the truth by less than this share.
_OUTWARD = 1 + 2.0**-22


def project(vector: NDArray[np.int64], owner: NDArray[np.int64], radius: int) -> NDArray[np.int64]:
    """Each owner's vector moved into the l2 ball: sign(x) floor(|x| radius/n), n its norm.

    n is a whole number that is no less than the norm (`norms`), so that the norm of the result is
    at most the radius, in exact arithmetic. A vector with n <= radius is not moved.

    Source: docs/theory/user-clipped.md#gaussian-noise.

    `vector`: whole numbers, shape (memberships,), with an l2 norm of at most 2^60 an owner;
    `owner`: owner of each, from 0, same shape; `radius`: T, from 0 to 2^46.
    """
    if not 0 <= radius <= MOST_RADIUS:
        raise OverflowError("a radius beyond 2^46")
    size = np.abs(vector)
    norm = norms(size, owner)[owner]
    beyond = norm > radius
    # The same steps for every vector: whether anybody is beyond is private.
    divisor = np.maximum(norm, 1)
    guess = np.floor(size.astype(np.float64) * (radius / divisor)).astype(np.int64)
    # The guess is off by one at most, so that wrapped products leave the exact remainder.
    rest = size * np.int64(radius) - guess * divisor
    scaled = guess + rest // divisor
    return np.where(beyond, np.sign(vector) * scaled, vector)


def norms(size: NDArray[np.int64], owner: NDArray[np.int64]) -> NDArray[np.int64]:
    """A whole number for each owner that is at least its l2 norm, and hardly more.

    `size`: absolute values, shape (memberships,), at most 2^28 of an owner; `owner`: owner of each,
    from 0, same shape.
    """
    square = np.bincount(owner, size.astype(np.float64) ** 2)
    root = np.ceil(np.sqrt(square) * _OUTWARD)
    if root.max(initial=0.0) > MOST:
        raise OverflowError("a vector with a norm of more than 2^60")
    return np.asarray(root.astype(np.int64))
