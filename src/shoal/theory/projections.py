"""Projects users' whole-number vectors into a ball whose diameter the noise hides.

Two vectors in a ball of radius T are at most 2 T apart in its norm, and the accounting needs
nothing else. The ball is an l1 ball for Laplace noise and an l2 ball for Gaussian noise.
Source: docs/theory/cells.md#user-clipped-mean and #centre-radius-and-noise.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from shoal.arrays import Ints

# The largest l1 norm: larger sums might overflow 64 bits.
MOST_L1 = 1 << 61
# The largest l2 norm: remainders of up to twice a norm fit 64 bits.
MOST_L2 = 1 << 60
# The largest radius: floating-point arithmetic has it exactly, with six bits to spare.
MOST_RADIUS = 1 << 46
# A factor that covers the rounding of the root of a floating-point sum of 2^28 squares.
_OUTWARD = 1 + 2.0**-22


def project_l1(vector: Ints, owner: Ints, radius: int) -> Ints:
    """Moves each owner's vector x into the l1 ball: the result is sign(x) max(|x| - t, 0).

    t is the least whole number >= 0 with sum max(|x| - t, 0) <= radius. If C_j is the sum of the j
    largest |x|, it is max(0, max_j ceil((C_j - radius)/j)). A vector in the ball is not moved.
    """
    size = np.abs(vector)
    beyond = norms_l1(size, owner) > radius
    # The same statements run if no vector is beyond the ball, since it is private whether one is.
    to_move = np.flatnonzero(beyond[owner])
    projected = vector.copy()
    # The entries of these vectors by owner, the largest first.
    order = to_move[np.lexsort((-size[to_move], owner[to_move]))]
    falling = size[order]
    owner_changes = np.diff(owner[order], prepend=-1) != 0
    # Where each vector begins, and the number of each entry's vector among those beyond the ball.
    first = np.flatnonzero(owner_changes)
    number = np.cumsum(owner_changes) - 1
    # Differences of this running sum are exact even where the sum itself wraps around.
    total = np.cumsum(falling)
    # C_j and j of each entry; the floor of the negative is minus the ceiling.
    sum_of_largest = total - (total - falling)[first][number]
    rank = np.arange(len(order)) - first[number] + 1
    t = np.maximum.reduceat(-((radius - sum_of_largest) // rank), first)
    projected[order] = np.sign(vector[order]) * np.maximum(falling - t[number], 0)
    return projected


def norms_l1(size: Ints, owner: Ints) -> Ints:
    """Returns the exact sum of each owner's absolute values."""
    # Sums in floating point do not wrap around: they show whether exact ones would.
    about = np.bincount(owner, size.astype(np.float64))
    if about.max(initial=0.0) > MOST_L1:
        raise OverflowError("the absolute values of a vector sum to more than 2^61")
    exact = np.zeros(len(about), dtype=np.int64)
    np.add.at(exact, owner, size)
    return exact


def project_l2(vector: Ints, owner: Ints, radius: int) -> Ints:
    """Moves each owner's vector x into the l2 ball: the result is sign(x) floor(|x| radius/n).

    n is a whole number not below the norm of x (`norms_l2`), so that the norm of the result is at
    most the radius, in exact arithmetic. A vector with n <= radius is not moved.
    """
    if not 0 <= radius <= MOST_RADIUS:
        raise OverflowError("a radius is beyond 2^46")
    size = np.abs(vector)
    norm = norms_l2(size, owner)[owner]
    beyond = norm > radius
    # The same statements run for every vector, since it is private whether one is beyond the ball.
    divisor = np.maximum(norm, 1)
    guess = np.floor(size.astype(np.float64) * (radius / divisor)).astype(np.int64)
    # The guess is off by one at most: so the remainder is exact even if its products wrap around.
    rest = size * np.int64(radius) - guess * divisor
    scaled = guess + rest // divisor
    return np.where(beyond, np.sign(vector) * scaled, vector)


def norms_l2(size: Ints, owner: Ints) -> Ints:
    """Returns a whole number for each owner that is at least its l2 norm, and hardly more."""
    square = np.bincount(owner, size.astype(np.float64) ** 2)
    root = np.ceil(np.sqrt(square) * _OUTWARD)
    if root.max(initial=0.0) > MOST_L2:
        raise OverflowError("the norm of a vector is more than 2^60")
    return root.astype(np.int64)


class Ball(NamedTuple):
    """The projection into a ball, and the norms of owners' vectors."""

    project: Callable[[Ints, Ints, int], Ints]
    norms: Callable[[Ints, Ints], Ints]


L1 = Ball(project_l1, norms_l1)
L2 = Ball(project_l2, norms_l2)
