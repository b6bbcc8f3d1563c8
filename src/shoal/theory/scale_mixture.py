"""Noisy estimates around predictions: a scale mixture of normals is the prior.

    theta_g = prediction_g + sum_j pi_j N(0, t_j^2),   y_g = theta_g + noise

The noise is Laplace with the scale b_g, or normal with the deviation b_g.

A few cells are always unlike the rest: a mixture lets them be, where a single normal would pull
them in or let go of all.
Source: docs/theory/cells.md#values.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]

_NORMALS, _ROUNDS, _PSEUDO = 8, 30, 0.3
_HALVINGS = 44
_ROOT = float(np.log(2 * np.pi) / 2)
_WIDEST = 8.0  # root mean squares of what the predictions miss


@dataclass(frozen=True, eq=False)
class Mixture:
    """A fitted prior of the residuals, and how much each of its normals explains of each cell.

    Attributes:
        deviation: t_j, shape (normals,), in the value's unit.
        share: Posterior probability of normal j for cell g, shape (cells, normals).
        likelihood: Logarithm of the marginal likelihood of all estimates.
    """

    deviation: Floats
    share: Floats
    likelihood: float


def fit_mixture(
    estimate: Floats, scale: Floats, prediction: Floats, width: float, *, normal: bool = False
) -> Mixture:
    """Probabilities of normals with t_j = z/2^(j - 1/2), j = 1..8, by expectation-maximisation.

    z is eight root mean squares of what the predictions miss, at most the width. 0.3 cells of
    each normal are added, so that none disappears.
    """
    apart = estimate - prediction
    missed = max(float((apart**2).mean()) ** 0.5, float(scale.min()) * 2.0**-20)
    widest = min(_WIDEST * missed, width)
    deviation = widest / 2.0 ** (np.arange(1, _NORMALS + 1) - 0.5)
    density = log_density(apart[:, None], scale[:, None], deviation, normal=normal)
    probability = np.full(_NORMALS, 1 / _NORMALS)
    for _ in range(_ROUNDS):
        share = special.softmax(np.log(probability) + density, axis=1)
        probability = (share.sum(axis=0) + _PSEUDO) / (len(estimate) + _NORMALS * _PSEUDO)
    joint = np.log(probability) + density
    likelihood = float(special.logsumexp(joint, axis=1).sum())
    return Mixture(deviation, special.softmax(joint, axis=1), likelihood)


def log_density(apart: Floats, scale: Floats, deviation: Floats, *, normal: bool = False) -> Floats:
    """Logarithm of the density of a normal variable of deviation t plus noise of scale b.

    With s = t/b: e^(s^2/2)/(2b) (e^(-d/b) Phi(d/t - s) + e^(d/b) Phi(-d/t - s)); with normal noise
    that of N(0, t^2 + b^2).
    """
    if normal:
        both = np.hypot(deviation, scale)
        return np.asarray(-((apart / both) ** 2) / 2 - np.log(both) - _ROOT)
    below, above = _sides(apart, scale, deviation)
    ratio = deviation / scale
    return np.asarray(ratio**2 / 2 - np.log(2 * scale) + np.logaddexp(below, above))


def posterior_quantile(
    estimate: Floats,
    scale: Floats,
    prediction: Floats,
    mixture: Mixture,
    level: float,
    *,
    normal: bool = False,
) -> Floats:
    """The value that theta stays below with the given posterior probability, by bisection."""
    apart = estimate - prediction
    reach = np.abs(apart) + 40 * np.minimum(scale, mixture.deviation.max())
    low, high = -reach, reach
    below_of = (_normal_posterior if normal else _posterior)(apart, scale, mixture)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = below_of(middle) < level
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(prediction + (low + high) / 2)


def _posterior(apart: Floats, scale: Floats, mixture: Mixture) -> Callable[[Floats], Floats]:
    """Posterior probability that each cell's residual stays below a value.

    Given a normal, the density is that of N(t^2/b, t^2) below y and of N(-t^2/b, t^2) above.
    """
    d, b, t = apart[:, None], scale[:, None], mixture.deviation
    below, above = _sides(d, b, t)
    total = np.logaddexp(below, above)
    # What does not depend on the residual is computed once for all steps of a bisection.
    rising = -d / b - total
    falling = d / b - total
    whole = np.exp(above - total)
    far = d / t
    shift = t / b

    def below_of(residual: Floats) -> Floats:
        x = residual[:, None] / t
        under = np.exp(rising + special.log_ndtr(np.minimum(x, far) - shift))
        beyond = np.exp(falling + special.log_ndtr(-np.maximum(x, far) - shift))
        found = under + np.where(x > far, np.maximum(whole - beyond, 0.0), 0.0)
        return np.asarray((mixture.share * found).sum(axis=1))

    return below_of


def _normal_posterior(apart: Floats, scale: Floats, mixture: Mixture) -> Callable[[Floats], Floats]:
    """The same with normal noise: given a normal, N(k d, k b^2) with k = t^2/(t^2 + b^2)."""
    t, b = mixture.deviation, scale[:, None]
    kept = (t / np.hypot(t, b)) ** 2
    place = kept * apart[:, None]
    deviation = b * np.sqrt(kept)
    return lambda x: np.asarray(
        (mixture.share * special.ndtr((x[:, None] - place) / deviation)).sum(axis=1)
    )


def _sides(apart: Floats, scale: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """Logarithms of the masses below and above y, without what they share."""
    d, ratio = apart / deviation, deviation / scale
    below = -apart / scale + special.log_ndtr(d - ratio)
    above = apart / scale + special.log_ndtr(-d - ratio)
    return np.asarray(below), np.asarray(above)
