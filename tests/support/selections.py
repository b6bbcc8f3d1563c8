"""Exact probabilities of permute-and-flip, for audits and enumerations."""

import itertools
import math

import numpy as np
from numpy.typing import NDArray

_NODE, _WEIGHT = np.polynomial.legendre.leggauss(400)
_NODE, _WEIGHT = (_NODE + 1) / 2, _WEIGHT / 2


def by_permutations(scores: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
    """Visit candidates in random order, stop at one with probability exp((q - max)/scale)."""
    stop = np.exp((scores - scores.max()) / scale)
    chance = np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        left = 1.0
        for at in order:
            chance[at] += left * stop[at]
            left *= 1 - stop[at]
    return chance / math.factorial(len(scores))


def probabilities(scores: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
    """The same for many candidates: the highest score with exponential noise, by integration.

    P[i] = integral over x of the density of q_i + E at x times the product over the others of
    P[q_j + E <= x]; equal scores are taken together. Gauss-Legendre on u = exp(-(x - max)/scale).
    """
    levels, level, size = np.unique(scores, return_inverse=True, return_counts=True)
    apart = np.exp((levels - levels.max()) / scale)
    u, weight = _NODE, _WEIGHT
    # At x >= max: P[q_j + E <= x] = 1 - u apart_j, and the density is apart_i times that of u.
    below = np.log1p(-np.minimum(u[:, None] * apart[None, :], 1 - 1e-16))
    whole = below @ size
    each = np.exp(whole[:, None] - below) * apart[None, :]
    return np.asarray((weight @ each)[level])
