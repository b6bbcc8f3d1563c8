"""Computes lower bounds for means, along paths of distributions and without privacy.

The path bounds sharpen paper 004, Theorem 2.1.1. On a two-point path, X = v with probability p and
0 otherwise, and p moves. On a three-point path, X = v with probability b (1 + s)/2, X = -v with
probability b (1 - s)/2 and 0 otherwise, and s moves from -1 to 1: the mean moves by 2 v b while
most users hold 0, which is twice as sharp for small epsilon. All bounds on the RMSE are lower
bounds. The size of the moment is 1.
Proofs: docs/theory/means.md#the-trilemma.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shoal.arrays import Floats
from shoal.theory.problem import Setting

# The least probability on a path: squares of smaller numbers would vanish.
_TINY = 1e-140
# With a larger epsilon, e^epsilon is far above any number of users, and two points say more.
_MOST_EPSILON = 100
# The limit of 4 in `most_chance`, rounded downwards.
_MOST_LEFT = 4 - 2.0**-40


@dataclass(frozen=True)
class PathBounds:
    """Lower bounds of the best paths on the RMSE, divided by the moment's size.

    Attributes:
        promised: The bound if the bias is promised; 0 if the bias is too large for one.
        always: The bound whatever the bias is.
    """

    promised: float
    always: float


def influence(epsilon: float, delta: float, spread: Floats) -> Floats:
    """Returns how much one bit explains of an (epsilon, delta)-private outcome.

    For a bit with variance `spread` it is the largest squared correlation with any function of the
    outcome,
        (1 - delta) spread / (spread + 1/(4 sinh^2(epsilon/2))) + delta,
    which randomised response attains if it shows the bit openly with probability delta.
    """
    if epsilon == 0:
        return np.full_like(spread, delta)
    flat = math.exp(-epsilon) / math.expm1(-epsilon) ** 2
    return (1 - delta) * spread / (spread + flat) + delta


def resistance(n: int, epsilon: float, delta: float, chance: Floats, points: int = 256) -> Floats:
    """Bounds how far the expectation of a private estimator with RMSE 1 moves on a two-point path.

    The path is P[X = v] = p for p from 0 to `chance`. With q = p (1 - p) and R(q) the `influence`,
    the bound is the integral of min(n sqrt(R(q)), sqrt(n)) / sqrt(q) over p. Substituting
    p = sin^2 t makes the integrand 2 min(n sqrt(R), sqrt(n)). It grows in t, so that its values at
    the right ends of `points` steps give an upper sum.
    """
    end = np.arcsin(np.sqrt(chance))
    angle = end[:, None] * (np.arange(1, points + 1) / points)
    share = influence(epsilon, delta, np.sin(2 * angle) ** 2 / 4)
    return np.asarray(end * 2 * np.minimum(n * np.sqrt(share), math.sqrt(n)).mean(axis=1))


def half_range(order: float, width: float, chance: Floats) -> Floats:
    """Returns how far the mean moves from the middle of a two-point path, at most width/2.

    It is v b with b = `chance` and v = (b (1 - b))^(-1/order): if X = v with probability p <= b,
    else 0, its central moment is at most v^order p (1 - p) <= 1.
    """
    reached = chance ** (1 - 1 / order) * (1 - chance) ** (-1 / order)
    # This is rounded downwards here, because a bias is subtracted from it later.
    return np.minimum(reached, width / 2) * (1 - 2.0**-45)


def triple_distance(epsilon: float, delta: float = 0.0) -> float:
    """Bounds E_0 (r - s)^2 for ratios r and s of three epsilon-close distributions.

    The ratios are those of two distributions to the middle one. With e = exp(epsilon) the bound is
    (e - 1)^2/e (1 + 2 delta) for e <= 2, else (e - 1) (2 (e - 1) + 4 delta)/(e + 2). Masses may
    lack 2 delta; at delta = 0 it is attained.
    """
    e = math.exp(epsilon)
    # Precise for a small epsilon, unlike e - 1.
    e_minus_1 = math.expm1(epsilon)
    change = 2
    if e <= change:
        return e_minus_1**2 / e * (1 + 2 * delta)
    return e_minus_1 * (2 * e_minus_1 + 4 * delta) / (e + 2)


def most_chance(order: float) -> float:
    """Returns the largest b with b order ((1 + b)^(order - 2) + 1) <= 4.

    Up to this b the central moment of a three-point path is at most v^order b.
    """
    b = np.linspace(0, 0.5, 4097)
    # A large power overflows to infinity, and that b is then refused.
    with np.errstate(over="ignore"):
        left_side = b * order * ((1 + b) ** (order - 2) + 1)
    return float(b[left_side <= _MOST_LEFT].max())


def triple_resistance(n: int, epsilon: float, delta: float, chance: Floats) -> Floats:
    """Bounds half of how far a private estimator's expectation moves on a three-point path.

    The estimator has an RMSE of 1. With b = `chance`, the `triple_distance` D and
    c = n (b/2) sqrt(D/(1 - b)), the whole way is at most the integral of
    min(c, sqrt(n b/(1 - s^2))) over s from -1 to 1 plus 4 sqrt(2) n sqrt(delta b), and at most
    pi sqrt(n b).
    """
    root = np.sqrt(n * chance)
    if epsilon > _MOST_EPSILON:
        return math.pi / 2 * root
    c = n * chance / 2 * np.sqrt(triple_distance(epsilon, delta) / (1 - chance))
    # The integrand is c where |s| is above `turn`, at which both terms are equal, else the root.
    turn = np.sqrt(np.maximum(1 - (root / np.maximum(c, root)) ** 2, 0))
    integral = 2 * (root * np.arcsin(turn) + c * (1 - turn))
    by_delta = 4 * math.sqrt(2) * n * np.sqrt(delta * chance)
    return np.asarray(np.minimum(integral + by_delta, math.pi * root) / 2)


def triple_range(order: float, width: float, chance: Floats) -> Floats:
    """Returns how far the mean moves from the middle of a three-point path, at most width/2.

    It is v b = b^(1 - 1/order) with b = `chance`, and 0 where b is above `most_chance`.
    """
    moved = np.minimum(chance ** (1 - 1 / order), width / 2) * (1 - 2.0**-45)
    return np.where(chance <= most_chance(order), moved, 0.0)


def path_bounds(setting: Setting, points: int = 200) -> PathBounds:
    """Returns the best bounds of two- and three-point paths on a grid, refined where it is best.

    Let M be half the range of the mean and J the `resistance` of a path. Then RMSE >= (M - bias)/J,
    and RMSE >= M/(1 + J) because no bias exceeds the RMSE. Any grid gives valid bounds. If delta
    and bias are 0, the first bound grows without limit as b falls: no such estimator exists.
    """
    coarse = np.geomspace(_least_chance(setting), 0.5, points)

    def around(best: int) -> _Bounds:
        """Returns the bounds between the neighbours of a point of the grid, more precisely."""
        low = coarse[max(best - 1, 0)]
        high = coarse[min(best + 1, points - 1)]
        return _at(setting, np.geomspace(low, high, points // 3), 5 * points)

    bounds = _at(setting, coarse, points)
    promised = bounds.promised.max()
    always = bounds.always.max()
    promised = max(promised, around(int(bounds.promised.argmax())).promised.max())
    always = max(always, around(int(bounds.always.argmax())).always.max())
    if setting.bias == setting.delta == 0:
        promised = math.inf
    return PathBounds(promised=float(promised), always=float(always))


class _Bounds(NamedTuple):
    """Both bounds of `PathBounds` for several paths."""

    promised: Floats
    always: Floats


def _at(setting: Setting, chance: Floats, steps: int) -> _Bounds:
    """Returns both bounds of the paths that end at each probability."""
    n = setting.n
    epsilon = setting.epsilon
    delta = setting.delta
    two_range = half_range(setting.order, setting.width, chance)
    three_range = triple_range(setting.order, setting.width, chance)
    two_resistance = resistance(n, epsilon, delta, chance, steps)
    three_resistance = triple_resistance(n, epsilon, delta, chance)
    promised = np.maximum(
        (two_range - setting.bias) / two_resistance,
        (three_range - setting.bias) / three_resistance,
    )
    always = np.maximum(two_range / (1 + two_resistance), three_range / (1 + three_resistance))
    return _Bounds(np.maximum(promised, 0), always)


def _least_chance(setting: Setting) -> float:
    """Returns a probability b below which no path is best.

    There the bias exceeds the range, delta alone decides, or the resistance is far below 1.
    """
    candidates = [1e-3, 1e-3 / setting.n]
    if 0 < setting.bias < math.inf:
        candidates.append(min(setting.bias, 1.0) ** (setting.order / (setting.order - 1)))
    elif setting.bias == 0 and setting.epsilon > 0 and setting.delta > 0:
        # The hyperbolic sine of a much larger epsilon overflows.
        sinh = math.sinh(min(setting.epsilon, 600) / 2)
        candidates.append(1e-6 * setting.delta * math.exp(-setting.epsilon))
        candidates.append(1e-6 * setting.delta / (4 * sinh**2))
    return max(min(candidates), _TINY)


def normal_bound(setting: Setting) -> float:
    """Bounds the RMSE without privacy over normal distributions with the largest allowed sigma.

    RMSE >= sigma / sqrt(n + 4 pi^2 sigma^2 / width^2) with sigma^order E|Z|^order = 1, by van
    Trees' inequality with a prior density proportional to cos^2 on the interval.
    """
    order = setting.order
    moment = order / 2 * math.log(2) + math.lgamma((order + 1) / 2) - math.log(math.pi) / 2
    sigma = math.exp(-moment / order)
    return sigma / math.sqrt(setting.n + (2 * math.pi * sigma / setting.width) ** 2)


def coin_bound(setting: Setting) -> float:
    """Bounds the RMSE without privacy if X = v with probability p within h of 1/2, and else 0.

    RMSE^2 >= v^2 / (n/(1/4 - h^2) + pi^2/h^2) by van Trees' inequality, for the best h of a grid.
    Here v = min(width/(2h), w), where w^-order =
    ((1/2 + h)^(order - 1) + (1/2 - h)^(order - 1))/4 is the largest central moment at v = 1. The
    bound is sharp for large n.
    """
    h = np.geomspace(1e-6, 0.499, 400)
    moment = ((0.5 + h) ** (setting.order - 1) + (0.5 - h) ** (setting.order - 1)) / 4
    v = np.minimum(moment ** (-1 / setting.order), setting.width / (2 * h))
    square = v**2 / (setting.n / (0.25 - h**2) + (math.pi / h) ** 2)
    return math.sqrt(float(square.max()))


def bit_bound(setting: Setting) -> float:
    """Bounds the RMSE without privacy if X = v with any probability, and else 0.

    It is v / (2 (1 + sqrt(n))) with v = min(width, 4^(1/order)), from the minimax error of a share
    (Hodges and Lehmann 1950).
    """
    v = min(setting.width, 4 ** (1 / setting.order))
    return v / (2 * (1 + math.sqrt(setting.n)))


def printed_bound(setting: Setting) -> float:
    """Returns 1/sqrt(6 (n + 2)) as in paper 004, Proposition A.2.1; 0 for a width below 1."""
    return 1 / math.sqrt(6 * (setting.n + 2)) if setting.width >= 1 else 0.0
