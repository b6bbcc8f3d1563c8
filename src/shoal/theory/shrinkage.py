"""Fits a normal prior of the cells' true values to their noisy estimates.

The true value theta_g of a cell is N(m, t^2), and its estimate y_g has noise of known variance
s_g^2. This is post-processing of released numbers, so it costs no privacy
(docs/theory/cells.md#cells-that-are-left-out).
"""

from dataclasses import dataclass

import numpy as np

from shoal.arrays import Floats

# The most rounds of the fixed-point iteration.
_ROUNDS = 200
# The iteration ends when the prior's variance changes by this part.
_CLOSE = 1e-10


@dataclass(frozen=True)
class Prior:
    """A normal distribution of the cells' true values.

    Attributes:
        mean: m, the mean.
        deviation: t, the standard deviation; 0 if estimates differ no more than their noise does.
        mean_error: Standard error of `mean`.
    """

    mean: float
    deviation: float
    mean_error: float


def fit_prior(estimate: Floats, variance: Floats) -> Prior:
    """Fits the prior to estimates with known error variances, by iterating to a fixed point.

    w_g = 1/(s_g^2 + t^2), m = sum w y / sum w, t^2 = max(0, sum w^2 ((y - m)^2 - s^2)/sum w^2).
    """
    # The square of t.
    spread = float(np.var(estimate))
    for _ in range(_ROUNDS):
        weight = 1 / (variance + spread)
        mean = float((weight * estimate).sum() / weight.sum())
        excess = weight**2 * ((estimate - mean) ** 2 - variance)
        new_spread = max(0.0, float(excess.sum() / (weight**2).sum()))
        if abs(new_spread - spread) <= _CLOSE * max(new_spread, float(variance.min())):
            break
        spread = new_spread
    weight = 1 / (variance + spread)
    mean = float((weight * estimate).sum() / weight.sum())
    return Prior(mean, spread**0.5, float(weight.sum()) ** -0.5)


def widened(prior: Prior, variance: Floats) -> float:
    """Returns the prior's deviation, widened because the prior itself is uncertain.

    It is the root of t^2 + sqrt(2/sum w^2) + 1/sum w with w = 1/(s^2 + t^2). The second term is the
    standard error of t^2, as for the variance of normal numbers; the third is the variance of m.
    """
    weight = 1 / (variance + prior.deviation**2)
    error = (2 / float((weight**2).sum())) ** 0.5
    return float((prior.deviation**2 + error + prior.mean_error**2) ** 0.5)
