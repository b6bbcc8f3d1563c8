"""Borrowing strength: noisy estimates of many cells shrunk towards their common mean.

Post-processing of released numbers with known noise, so it costs no privacy. The prior is normal,
theta_g ~ N(m, t^2); the noise of y_g is Laplace with scale b_g
(docs/theory/shrinkage.md#the-model).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROUNDS = 200
_CLOSE = 1e-10


@dataclass(frozen=True)
class Prior:
    """A normal distribution of the cells' true values.

    Attributes:
        mean: m.
        deviation: t, 0 where the estimates differ no more than their noise.
        mean_error: Standard error of m.
    """

    mean: float
    deviation: float
    mean_error: float


def fit_prior(estimate: NDArray[np.float64], variance: NDArray[np.float64]) -> Prior:
    """Moments of the prior from estimates with known error variances, to a fixed point.

    w_g = 1/(s_g^2 + t^2), m = sum w y / sum w, t^2 = max(0, sum w^2 ((y - m)^2 - s^2)/sum w^2).

    Args:
        estimate: y_g, shape (cells,), in the value's unit.
        variance: s_g^2, same shape, above 0: of the noise, and of what else is uncertain.

    Returns:
        The prior's mean and deviation, in the value's unit.

    Example:
        >>> found = fit_prior(np.array([1.0, 3.0]), np.array([1e-9, 1e-9]))
        >>> found.mean, round(found.deviation, 6)
        (2.0, 1.0)
    """
    spread = float(np.var(estimate))
    for _ in range(_ROUNDS):
        weight = 1 / (variance + spread)
        mean = float((weight * estimate).sum() / weight.sum())
        excess = weight**2 * ((estimate - mean) ** 2 - variance)
        found = max(0.0, float(excess.sum() / (weight**2).sum()))
        if abs(found - spread) <= _CLOSE * max(found, float(variance.min())):
            break
        spread = found
    weight = 1 / (variance + spread)
    mean = float((weight * estimate).sum() / weight.sum())
    return Prior(mean, spread**0.5, float(weight.sum()) ** -0.5)


def widened(prior: Prior, variance: NDArray[np.float64]) -> float:
    """The prior's deviation with what is uncertain about the prior added.

    t^2 + sqrt(2/sum w^2) + 1/sum w with w = 1/(s^2 + t^2): the standard error of t^2, as of a
    variance of normal numbers, and the variance of m.

    Args:
        prior: As fitted.
        variance: s_g^2 of the estimates it was fitted to, shape (cells,).

    Returns:
        A deviation, in the value's unit.

    Example:
        >>> widened(Prior(0.0, 0.0, 1.0), np.array([2.0, 2.0])) > 1
        True
    """
    weight = 1 / (variance + prior.deviation**2)
    error = (2 / float((weight**2).sum())) ** 0.5
    return float((prior.deviation**2 + error + prior.mean_error**2) ** 0.5)


def posterior_mean(
    estimate: NDArray[np.float64], scale: NDArray[np.float64], prior: Prior
) -> NDArray[np.float64]:
    """E[theta | y] with Laplace noise: m + (t^2/b) (A - B)/(A + B).

    Given y the density of theta is that of N(m + t^2/b, t^2) below y and of N(m - t^2/b, t^2)
    above, with masses A and B; where the two meet their densities agree, so that truncation cancels
    from the mean.

    Args:
        estimate: y_g, shape (cells,), in the value's unit.
        scale: b_g, same shape and unit.
        prior: N(m, t^2).

    Returns:
        Means of the same shape and unit.

    Example:
        >>> prior = Prior(mean=0.0, deviation=1.0, mean_error=0.0)
        >>> posterior_mean(np.array([0.0, 100.0]), np.array([1.0, 1.0]), prior).tolist()
        [0.0, 1.0]
    """
    if prior.deviation == 0:
        return np.full(len(estimate), prior.mean)
    below, above = _masses(estimate, scale, prior)
    return np.asarray(prior.mean + prior.deviation**2 / scale * np.tanh((below - above) / 2))


def posterior_quantile(
    estimate: NDArray[np.float64], scale: NDArray[np.float64], prior: Prior, level: float
) -> NDArray[np.float64]:
    """The value that theta stays below with the given posterior probability.

    Args:
        estimate: y_g, shape (cells,), in the value's unit.
        scale: b_g, same shape and unit.
        prior: N(m, t^2).
        level: The probability, above 0 and below 1.

    Returns:
        Quantiles of the same shape and unit.

    Example:
        >>> prior = Prior(mean=0.0, deviation=1.0, mean_error=0.0)
        >>> far = posterior_quantile(np.array([0.0]), np.array([1e9]), prior, 0.975)
        >>> float(far.round(3)[0])
        1.96
    """
    if prior.deviation == 0:
        return np.full(len(estimate), prior.mean)
    return np.array(
        [
            _one_quantile(float(y), float(b), prior, level)
            for y, b in zip(estimate, scale, strict=True)
        ]
    )


def _masses(
    estimate: NDArray[np.float64], scale: NDArray[np.float64], prior: Prior
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Logarithms of A and B without what they share."""
    apart, t = (estimate - prior.mean) / prior.deviation, prior.deviation / scale
    below = -apart * t + special.log_ndtr(apart - t)
    above = apart * t + special.log_ndtr(-apart - t)
    return below, above


def _one_quantile(y: float, b: float, prior: Prior, level: float) -> float:
    one = np.array([y]), np.array([b])
    below, above = (float(part[0]) for part in _masses(*one, prior))
    under = special.expit(below - above)
    t, m = prior.deviation, prior.mean
    # On each side the posterior is a truncated normal: invert it in the logarithm.
    if level <= under:
        centre = m + t * t / b
        wanted = np.log(level / under) + special.log_ndtr((y - centre) / t)
        return float(centre + t * special.ndtri_exp(wanted))
    centre = m - t * t / b
    wanted = np.log((1 - level) / (1 - under)) + special.log_ndtr((centre - y) / t)
    return float(centre - t * special.ndtri_exp(wanted))
