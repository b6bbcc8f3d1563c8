"""Lower bounds for private means along paths of two- and three-point distributions.

A sharper form of paper 004, Theorem 2.1.1; proof: `docs/theory/trilemma.md`. Units: the moment's
size is 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.theory import three_point as triples
from shoal.theory.problem import Setting

Floats = NDArray[np.float64]

# No numbers below this: their squares would vanish.
_TINY = 1e-140


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

    `spread`: q = p (1 - p), the variance of the bit, from above 0 to 1/4, of any shape.
    """
    if epsilon == 0:
        return np.full_like(spread, delta)
    flat = math.exp(-epsilon) / math.expm1(-epsilon) ** 2
    return np.asarray((1 - delta) * spread / (spread + flat) + delta)


def resistance(n: int, epsilon: float, delta: float, chance: Floats, points: int = 256) -> Floats:
    """Most that the expectation of a private estimator with RMSE 1 moves, as P[X = v] grows from 0.

    With R(q) the `influence`, at most the integral over p from 0 to b of
    min(n sqrt(R(q)), sqrt(n)) / sqrt(q), q = p (1 - p); with p = sin^2 t the integrand
    2 min(n sqrt(R), sqrt(n)) grows in t, so that right ends give an upper sum.

    `chance`: each a probability b, above 0 to 1/2, of any shape; returns an upper bound for each b,
    same shape, as a factor of the RMSE.
    """
    end = np.arcsin(np.sqrt(chance))
    angle = end[:, None] * (np.arange(1, points + 1) / points)
    share = influence(epsilon, delta, np.sin(2 * angle) ** 2 / 4)
    return np.asarray(end * 2 * np.minimum(n * np.sqrt(share), math.sqrt(n)).mean(axis=1))


def half_range(order: float, width: float, chance: Floats) -> Floats:
    """How far the mean moves from the middle: v b with v = (b (1 - b))^(-1/order), or width/2.

    X = v with probability p <= b, else 0, has a central moment of at most v^order p (1 - p) <= 1.

    `chance`: each a probability b, of any shape.
    """
    reached = chance ** (1 - 1 / order) * (1 - chance) ** (-1 / order)
    # Rounded downwards here: a bias is subtracted from it later.
    return np.asarray(np.minimum(reached, width / 2) * (1 - 2.0**-45))


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
    n, epsilon, delta = setting.n, setting.epsilon, setting.delta
    two = half_range(setting.order, setting.width, chance)
    three = triples.triple_range(setting.order, setting.width, chance)
    against_two = resistance(n, epsilon, delta, chance, steps)
    against_three = triples.triple_resistance(n, epsilon, delta, chance)
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
