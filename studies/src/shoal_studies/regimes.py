"""Which of three estimators has the least certified error: the regimes of paper 004, Theorem 1.2.2.

Certificates are those of docs/theory/means.md, with the sharp margin of paper 004, Lemma B.1.2.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal import checks
from shoal.theory.problem import Amount, Moment, Setting

Floats = NDArray[np.float64]

CLIPPED = "clipped_mean"
RESIDUAL = "clipped_plus_residual"
SAMPLED = "sampled_mean"

_WORDS = {
    CLIPPED: "Clip and accept the bias: no use of delta gives a smaller error.",
    RESIDUAL: "Clip, and sample what clipping cut off: the delta allows an unbiased mean.",
    SAMPLED: "Only a sampled mean keeps the bias: it publishes each value with probability delta.",
    "none": "No estimator of the library fits: without delta an unbiased mean for such a class "
    "has an infinite error. Allow some bias or delta.",
}
_SMALL_PRICE = 1.1
# No clipping is of use for a smaller bias, over the moment's size.
_LEAST_BIAS = 1e-200


@dataclass(frozen=True)
class Regime:
    """The estimator with the least certified error, and the errors of all three.

    Source: docs/theory/means.md#which-estimator; paper 004, Theorem 1.2.2.

    Attributes:
        name: "clipped_mean", "clipped_plus_residual", "sampled_mean", or "none".
        sentence: What that means.
        rmse: Certified root mean squared error of the best one (of the average of the releases), in
            the value's unit.
        errors: The same for all three, in the value's unit, infinite where one is impossible.
        clip_bias: The bias bound that the clipped mean should use, in the value's unit.
    """

    name: str
    sentence: str
    rmse: float
    errors: dict[str, float]
    clip_bias: float


def regime(
    n: int,
    epsilon: Amount,
    delta: Amount,
    bias: float,
    moment: Moment,
    *,
    width: float | None = None,
    releases: int = 1,
) -> Regime:
    """The estimator with the least certified error: clipping, clipping and sampling, or sampling.

    Mean squared errors, for size 1, width W and R releases on other users each, averaged:

    - clipped, bias b <= `bias`: b^2 + [1/n + 2 (W + 2c)^2/(n epsilon)^2]/R with the margin
      c = ((order - 1)^(order - 1)/order^order / b)^(1/(order - 1)), b the best;
    - clipped and sampled residual, unbiased: [1/n + 2 (W + 2c)^2/(n epsilon)^2 +
      kappa c^(2 - order)/(n delta)]/R with kappa = (4/order^2)(1 - 2/order)^(order - 2), c best
      (the paper: 2/n, 4 W^2 + 16 c^2 and 2 kappa);
    - sampled about the middle of the interval, unbiased: (1 + (1 - delta) W^2/4)/(n delta R).

    Bias does not average out: with many releases the unbiased ones win.

    Source: docs/theory/means.md#which-estimator; paper 004, Theorem 1.2.2.

    Args:
        n: Users of each release.
        epsilon: Privacy loss of each release.
        delta: From 0 to below 1.
        bias: Most bias that is accepted, in the value's unit.
        moment: (order, size), or an object with these.
        width: Length of the interval that holds the mean, in the value's unit; without it, the size
            of the moment.
        releases: How many such releases will be averaged, from 1.

    Returns:
        The estimator with the least error, and the errors of all three.

    Raises:
        InputError: A number is outside its range.

    Example:
        >>> regime(10_000, 0.1, 1e-6, 0.1, (4, 1.0)).name
        'clipped_mean'
        >>> regime(10_000, 0.1, 0.01, 0.1, (4, 1.0), releases=10_000).name
        'clipped_plus_residual'
        >>> regime(10_000, 0.001, 0.01, 0, (2, 1.0)).name
        'sampled_mean'
    """
    averaged = checks.whole(releases, "releases", least=1)
    return regime_of(Setting.of(n, epsilon, delta, bias, moment, width), averaged)


def regime_of(setting: Setting, releases: int = 1) -> Regime:
    """`regime` of a checked problem."""
    clipped, bias = _clipped(setting, releases)
    squares = {
        CLIPPED: clipped,
        RESIDUAL: _residual(setting) / releases,
        SAMPLED: _sampled(setting) / releases,
    }
    errors = {name: math.sqrt(square) * setting.size for name, square in squares.items()}
    best = min(errors, key=lambda name: errors[name])
    if errors[best] == math.inf:
        return Regime("none", _WORDS["none"], math.inf, errors, 0.0)
    free = setting.size / math.sqrt(setting.n * releases)
    price = errors[best] / free
    cost = "privacy costs little here" if price <= _SMALL_PRICE else f"{price:.3g} times that"
    sentence = (
        f"{_WORDS[best]} Error at most {errors[best]:.3g}; without privacy {free:.3g}: {cost}."
    )
    return Regime(best, sentence, errors[best], errors, bias * setting.size)


def clip_margin(order: float, bias: Floats) -> Floats:
    """How far beyond the interval of the mean to clip: E(|X - mean| - c)^+ <= bias at size 1.

    Paper 004, Lemma B.1.1: c = ((order - 1)^(order - 1)/order^order / bias)^(1/(order - 1)).
    """
    power = order - 1
    constant = power * math.log(power) - order * math.log(order)
    return np.asarray(np.exp((constant - np.log(bias)) / power))


def _clipped(setting: Setting, releases: int) -> tuple[float, float]:
    """Least mean squared error of the average, and the bias it takes; a grid finds it."""
    # The setting rounds a bias upwards; an estimator must keep it.
    most = min(math.nextafter(setting.bias, 0), 1e3)
    if most < _LEAST_BIAS or setting.epsilon == 0:
        return math.inf, 0.0
    bias = most * np.geomspace(1e-12, 1, 1000)
    reach = setting.width + 2 * clip_margin(setting.order, bias)
    # Too much noise for a float is infinite, and never the least.
    with np.errstate(over="ignore"):
        noise = 2 * (reach / (setting.n * setting.epsilon)) ** 2
    square = bias**2 + (1 / setting.n + noise) / releases
    best = int(square.argmin())
    return float(square[best]), float(bias[best])


def _residual(setting: Setting) -> float:
    """Least over margins, by a grid: what sampling adds to the values' mean is uncorrelated."""
    order = setting.order
    n = setting.n
    epsilon = setting.epsilon
    delta = setting.delta
    if epsilon == 0 or delta == 0:
        return math.inf
    kappa = 4 / order**2 * float((1 - 2 / order) ** (order - 2))
    middle = float((n * epsilon**2 * kappa * (order - 2) / (16 * delta)) ** (1 / order))
    margin = np.append(0.0, middle * np.geomspace(1e-2, 1e2, 1000))
    # Within the interval alone the whole deviation may be cut off.
    tail = np.ones_like(margin)
    with np.errstate(over="ignore", divide="ignore"):
        tail[1:] = np.minimum(kappa * margin[1:] ** (2 - order), 1)
        noise = 2 * ((setting.width + 2 * margin) / (n * epsilon)) ** 2
        return float((1 / n + noise + tail / (n * delta)).min())


def _sampled(setting: Setting) -> float:
    delta = setting.delta
    if delta == 0:
        return math.inf
    return (1 + (1 - delta) * setting.width**2 / 4) / (setting.n * delta)
