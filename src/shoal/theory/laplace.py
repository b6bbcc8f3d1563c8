"""Computes with the discrete Laplace distribution, P[Z = z] proportional to exp(-|z|/t).

Its scale is t steps. Source: docs/theory/privacy.md#lattice-noise.
"""

import math

import numpy as np

from shoal.arrays import Floats
from shoal.errors import InputError

# Scales whose ratio is this close to 1 are taken to be equal, as a formula divides by their
# difference.
_EQUAL = 1e-5


def mean_absolute(scale: float) -> float:
    """Returns E|Z| = 1/sinh(1/scale), in steps; for the continuous distribution it is `scale`."""
    return 1 / math.sinh(1 / scale)


def tail_quantile(scale: float, beta: float) -> int:
    """Returns the least whole z with P[|Z| > z] <= beta, in steps, rounded upwards.

    P[|Z| > z] = 2 q^(z+1) / (1 + q) with q = exp(-1/scale).
    """
    if not 0 < beta < 1:
        raise InputError(f"the error probability is {beta!r}", "give for example confidence=0.95")
    exact = scale * (math.log(2 / beta) - math.log1p(math.exp(-1 / scale))) - 1
    # The margin covers the rounding of the logarithms, so the tail is never above beta.
    return max(0, math.ceil(exact + 1e-12 * scale))


def clamped_error(
    centre: Floats, scale: Floats, truth: Floats, low: Floats, high: Floats
) -> Floats:
    """Returns E|clip(centre + Z, low, high) - truth| for a continuous Laplace Z of that scale.

    With t = clip(truth, low, high) and G(z) = max(z, 0) + (scale/2) exp(-|z|/scale) it is
    |truth - t| + G(t - centre) - G(low - centre) + G(centre - t) - G(centre - high).
    """
    inside = np.clip(truth, low, high)

    def integral(z: Floats) -> Floats:
        """Returns G(z), the integral of the distribution function of Z."""
        return np.maximum(z, 0) + scale / 2 * np.exp(-np.abs(z) / scale)

    within = (
        integral(inside - centre)
        - integral(low - centre)
        + integral(centre - inside)
        - integral(centre - high)
    )
    return np.abs(truth - inside) + within


def mean_error(bias: Floats) -> Floats:
    """Returns E|Z + bias| = bias + e^-bias for a continuous Z of scale 1 and a bias from 0 on."""
    return np.asarray(bias + np.exp(-bias))


def one_sided(room: Floats, _miss: float) -> Floats:
    """Returns by how much a quantile is less where a bias within a room is on one side alone.

    It is ln(2/(1 + e^-room)) at a scale of 1, whatever the chance of a miss
    (docs/theory/cells.md#intervals).
    """
    return np.asarray(np.log(2 / (1 + np.exp(-room))))


def tail_of_difference(scale: Floats, q: float) -> float:
    """Returns P[first - second > q] for continuous noises of two scales a > b, and q from 0 on.

    It is (a^2 e^(-q/a) - b^2 e^(-q/b))/(2 (a^2 - b^2)); for a = b, its limit (1/2 + q/(4 a))
    e^(-q/a) (docs/theory/cells.md#differences).
    """
    a = float(scale.max())
    b = float(scale.min())
    if a - b <= _EQUAL * a:
        return (1 / 2 + q / (4 * a)) * math.exp(-q / a)
    return (a**2 * math.exp(-q / a) - b**2 * math.exp(-q / b)) / (2 * (a**2 - b**2))
