"""Borrowing strength: noisy estimates of many cells shrunk towards their common mean.

Post-processing of released numbers with known noise, so it costs no privacy. The prior is normal,
theta_g ~ N(m, t^2); the noise of y_g is Laplace with scale b_g
(docs/theory/cells.md#cells-that-are-left-out).
"""

from dataclasses import dataclass

import numpy as np

from shoal.arrays import Floats

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


def fit_prior(estimate: Floats, variance: Floats) -> Prior:
    """Moments of the prior from estimates with known error variances, to a fixed point.

    w_g = 1/(s_g^2 + t^2), m = sum w y / sum w, t^2 = max(0, sum w^2 ((y - m)^2 - s^2)/sum w^2).
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


def widened(prior: Prior, variance: Floats) -> float:
    """The prior's deviation with what is uncertain about the prior added.

    t^2 + sqrt(2/sum w^2) + 1/sum w with w = 1/(s^2 + t^2): the standard error of t^2, as of a
    variance of normal numbers, and the variance of m.
    """
    weight = 1 / (variance + prior.deviation**2)
    error = (2 / float((weight**2).sum())) ** 0.5
    return float((prior.deviation**2 + error + prior.mean_error**2) ** 0.5)
