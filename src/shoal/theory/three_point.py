"""Lower bounds for private means along a path of three-point distributions.

X = v with probability b (1 + s)/2, -v with b (1 - s)/2, else 0, and s from -1 to 1: the mean moves
by 2 v b while most users hold 0. Twice as sharp as two points for small epsilon; proof:
`docs/theory/trilemma.md`. Units: the moment's size is 1.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Beyond, e^epsilon is far above any number of users; two points say more.
_MOST_EPSILON = 100
_MOST_LEFT = 4 - 2.0**-40


def triple_distance(epsilon: float, delta: float = 0.0) -> float:
    """Most that E_0 (r - s)^2 can be for ratios r, s of three epsilon-close distributions.

    With e = exp(epsilon), (e - 1)^2/e (1 + 2 delta) for e <= 2, else
    (e - 1) (2 (e - 1) + 4 delta)/(e + 2). Masses may lack 2 delta; at delta = 0 it is attained.

    The ratios are to the middle one.

    Returns an upper bound; the ratio of probabilities has no unit.
    """
    e, over = math.exp(epsilon), math.expm1(epsilon)
    few = 2
    if e <= few:
        return over**2 / e * (1 + 2 * delta)
    return over * (2 * over + 4 * delta) / (e + 2)


def most_chance(order: float) -> float:
    """Up to this b the moment is at most v^order b: b order ((1 + b)^(order - 2) + 1) <= 4."""
    tries = np.linspace(0, 0.5, 4097)
    # A large power overflows to infinity, where nothing holds.
    with np.errstate(over="ignore"):
        left = tries * order * ((1 + tries) ** (order - 2) + 1)
    return float(tries[left <= _MOST_LEFT].max())


def triple_resistance(n: int, epsilon: float, delta: float, chance: Floats) -> Floats:
    """Half of what the expectation of a private estimator with RMSE 1 moves, s from -1 to 1.

    With c = n (b/2) sqrt(D/(1 - b)), D the `triple_distance`, an upper bound on the integral of
    min(c, sqrt(n b/(1 - s^2))), plus 4 sqrt(2) n sqrt(delta b); at most pi sqrt(n b).

    `chance`: each a probability b, above 0 to 1/2, of any shape; returns an upper bound for each,
    same shape, as a factor of the RMSE.
    """
    root = np.sqrt(n * chance)
    if epsilon > _MOST_EPSILON:
        return np.asarray(math.pi / 2 * root)
    steep = n * chance / 2 * np.sqrt(triple_distance(epsilon, delta) / (1 - chance))
    turn = np.sqrt(np.maximum(1 - (root / np.maximum(steep, root)) ** 2, 0))
    pure = 2 * (root * np.arcsin(turn) + steep * (1 - turn))
    leak = 4 * math.sqrt(2) * n * np.sqrt(delta * chance)
    return np.asarray(np.minimum(pure + leak, math.pi * root) / 2)


def triple_range(order: float, width: float, chance: Floats) -> Floats:
    """How far the mean moves from the middle: v b = b^(1 - 1/order), or width/2; 0 beyond its b.

    `chance`: each a probability b, of any shape.
    """
    moved = np.minimum(chance ** (1 - 1 / order), width / 2) * (1 - 2.0**-45)
    return np.asarray(np.where(chance <= most_chance(order), moved, 0.0))
