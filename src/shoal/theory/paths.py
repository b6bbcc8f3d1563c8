"""Lower bounds for means: along paths of two- and three-point distributions, and without privacy.

A sharper form of paper 004, Theorem 2.1.1. On two points X = v with probability p, else 0. On three
X = v with probability b (1 + s)/2, -v with b (1 - s)/2, else 0, and s from -1 to 1: the mean moves
by 2 v b while most users hold 0, twice as sharp for small epsilon. Bounds on the RMSE are lower
ones. Units: the moment's size is 1.
Proofs: docs/theory/means.md#the-trilemma.
"""

import math
from dataclasses import dataclass

import numpy as np

from shoal.arrays import Floats
from shoal.theory.problem import Setting

# No numbers below this: their squares would vanish.
_TINY = 1e-140
# Beyond, e^epsilon is far above any number of users; two points say more.
_MOST_EPSILON = 100
_MOST_LEFT = 4 - 2.0**-40


@dataclass(frozen=True)
class PathBounds:
    """What a path shows about the root mean squared error, over the moment's size.

    Attributes:
        promised: If the bias is promised, else 0.
        always: Whatever the bias.
    """

    promised: float
    always: float


def influence(epsilon: float, delta: float, spread: Floats) -> Floats:
    """Most that one bit with variance q explains of an (epsilon, delta)-private outcome.

    The largest squared correlation of the bit with any function of the outcome,
        (1 - delta) q / (q + 1/(4 sinh^2(epsilon/2))) + delta,
    attained by randomised response that shows the bit openly with probability delta.
    """
    if epsilon == 0:
        return np.full_like(spread, delta)
    flat = math.exp(-epsilon) / math.expm1(-epsilon) ** 2
    return (1 - delta) * spread / (spread + flat) + delta


def resistance(n: int, epsilon: float, delta: float, chance: Floats, points: int = 256) -> Floats:
    """Most that the expectation of a private estimator with RMSE 1 moves, as P[X = v] grows from 0.

    With R(q) the `influence`, at most the integral over p from 0 to b of
    min(n sqrt(R(q)), sqrt(n)) / sqrt(q), q = p (1 - p); with p = sin^2 t the integrand
    2 min(n sqrt(R), sqrt(n)) grows in t, so that right ends give an upper sum.
    """
    end = np.arcsin(np.sqrt(chance))
    angle = end[:, None] * (np.arange(1, points + 1) / points)
    share = influence(epsilon, delta, np.sin(2 * angle) ** 2 / 4)
    return np.asarray(end * 2 * np.minimum(n * np.sqrt(share), math.sqrt(n)).mean(axis=1))


def half_range(order: float, width: float, chance: Floats) -> Floats:
    """How far the mean moves from the middle: v b with v = (b (1 - b))^(-1/order), or width/2.

    X = v with probability p <= b, else 0, has a central moment of at most v^order p (1 - p) <= 1.
    """
    reached = chance ** (1 - 1 / order) * (1 - chance) ** (-1 / order)
    # Rounded downwards here: a bias is subtracted from it later.
    return np.minimum(reached, width / 2) * (1 - 2.0**-45)


def triple_distance(epsilon: float, delta: float = 0.0) -> float:
    """Most that E_0 (r - s)^2 can be for ratios r, s of three epsilon-close distributions.

    With e = exp(epsilon), (e - 1)^2/e (1 + 2 delta) for e <= 2, else
    (e - 1) (2 (e - 1) + 4 delta)/(e + 2), of ratios to the middle one. Masses may lack 2 delta; at
    delta = 0 it is attained.
    """
    e = math.exp(epsilon)
    over = math.expm1(epsilon)
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
    """
    root = np.sqrt(n * chance)
    if epsilon > _MOST_EPSILON:
        return math.pi / 2 * root
    steep = n * chance / 2 * np.sqrt(triple_distance(epsilon, delta) / (1 - chance))
    turn = np.sqrt(np.maximum(1 - (root / np.maximum(steep, root)) ** 2, 0))
    pure = 2 * (root * np.arcsin(turn) + steep * (1 - turn))
    leak = 4 * math.sqrt(2) * n * np.sqrt(delta * chance)
    return np.asarray(np.minimum(pure + leak, math.pi * root) / 2)


def triple_range(order: float, width: float, chance: Floats) -> Floats:
    """How far the mean moves from the middle: v b = b^(1 - 1/order), or width/2; 0 beyond its b."""
    moved = np.minimum(chance ** (1 - 1 / order), width / 2) * (1 - 2.0**-45)
    return np.where(chance <= most_chance(order), moved, 0.0)


def path_bounds(setting: Setting, points: int = 200) -> PathBounds:
    """The best of all two- and three-point paths, b on a grid that is refined where it is best.

    With M half the range of the mean and J the resistance of b, RMSE >= (M - bias)/J, and
    RMSE >= M/(1 + J) since no bias exceeds the RMSE. Any grid is valid. Without delta and bias
    the first grows beyond all bounds: no such estimator exists.
    """
    coarse = np.geomspace(_least_chance(setting), 0.5, points)
    promised, always = _at(setting, coarse, points)
    tops = []
    for values, column in ((promised, 0), (always, 1)):
        best = int(values.argmax())
        low, high = coarse[max(best - 1, 0)], coarse[min(best + 1, points - 1)]
        finer = _at(setting, np.geomspace(low, high, points // 3), 5 * points)[column]
        tops.append(max(float(values[best]), float(finer.max())))
    if setting.bias == setting.delta == 0:
        tops[0] = math.inf
    return PathBounds(promised=tops[0], always=tops[1])


def _at(setting: Setting, chance: Floats, steps: int) -> tuple[Floats, Floats]:
    n = setting.n
    epsilon = setting.epsilon
    delta = setting.delta
    two = half_range(setting.order, setting.width, chance)
    three = triple_range(setting.order, setting.width, chance)
    against_two = resistance(n, epsilon, delta, chance, steps)
    against_three = triple_resistance(n, epsilon, delta, chance)
    promised = np.maximum(
        (two - setting.bias) / against_two, (three - setting.bias) / against_three
    )
    always = np.maximum(two / (1 + against_two), three / (1 + against_three))
    return np.maximum(promised, 0), always


def _least_chance(setting: Setting) -> float:
    """Below it no path is best: the bias eats it, delta rules alone, or J is far below 1."""
    ends = [1e-3 / setting.n]
    if 0 < setting.bias < math.inf:
        ends.append(min(setting.bias, 1.0) ** (setting.order / (setting.order - 1)))
    elif setting.bias == 0 and setting.epsilon > 0 and setting.delta > 0:
        ends.append(1e-6 * setting.delta * math.exp(-setting.epsilon))
        ends.append(1e-6 * setting.delta / (4 * math.sinh(min(setting.epsilon, 600) / 2) ** 2))
    return max(min(*ends, 1e-3), _TINY)


def normal_bound(setting: Setting) -> float:
    """RMSE over normal distributions with the largest allowed sigma.

    RMSE >= sigma / sqrt(n + 4 pi^2 sigma^2 / width^2), sigma^order E|Z|^order = 1: van Trees with
    the prior density proportional to cos^2 on the interval.
    """
    order = setting.order
    moment = order / 2 * math.log(2) + math.lgamma((order + 1) / 2) - math.log(math.pi) / 2
    sigma = math.exp(-moment / order)
    return sigma / math.sqrt(setting.n + (2 * math.pi * sigma / setting.width) ** 2)


def coin_bound(setting: Setting) -> float:
    """RMSE over X = v with probability p, else 0, p within h of 1/2: sharp for large n.

    RMSE^2 >= v^2 / (n/(1/4 - h^2) + pi^2/h^2) (van Trees), v = min(width/(2h), w) with
    w^-order = ((1/2 + h)^(order - 1) + (1/2 - h)^(order - 1))/4, the largest central moment at
    v = 1; best over h on a grid.
    """
    near = np.geomspace(1e-6, 0.499, 400)
    most = ((0.5 + near) ** (setting.order - 1) + (0.5 - near) ** (setting.order - 1)) / 4
    step = np.minimum(most ** (-1 / setting.order), setting.width / (2 * near))
    square = step**2 / (setting.n / (0.25 - near**2) + (math.pi / near) ** 2)
    return math.sqrt(float(square.max()))


def bit_bound(setting: Setting) -> float:
    """RMSE over X = v with probability p, else 0, any p: v / (2 (1 + sqrt(n))).

    The minimax error of a share (Hodges and Lehmann 1950), v = min(width, 4^(1/order)).
    """
    step = min(setting.width, 4 ** (1 / setting.order))
    return step / (2 * (1 + math.sqrt(setting.n)))


def printed_bound(setting: Setting) -> float:
    """1/sqrt(6 (n + 2)), as printed (paper 004, Proposition A.2.1); needs a width of 1."""
    return 1 / math.sqrt(6 * (setting.n + 2)) if setting.width >= 1 else 0.0
