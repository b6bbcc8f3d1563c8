"""Intervals of an estimate with Laplace noise whose sampling variance is known with noise only.

The estimate is normal(V) + Laplace(b1), the released variance V + Laplace(b2), or V and a sum of
several Laplace variables.
Source: docs/theory/questions.md#an-honest-interval.
"""

import math

import numpy as np
from numpy.typing import NDArray

from shoal import checks
from shoal.errors import InputError

Floats = NDArray[np.float64]

# Of b2/b1^2; between them the factor is linear in the logarithm.
_RATIOS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
# Least factors by quadrature over all V for one Laplace variable, for sums of several and for their
# normal limit, which asks for most; also for what lies between the ratios. Rounded upwards.
_FACTORS = {
    0.80: (0.03, 0.08, 0.18, 0.31, 0.40, 0.45, 0.47, 0.48),
    0.90: (0.03, 0.07, 0.17, 0.38, 0.53, 0.61, 0.63, 0.65),
    0.95: (0.03, 0.07, 0.18, 0.43, 0.65, 0.75, 0.78, 0.80),
    0.98: (0.03, 0.07, 0.18, 0.46, 0.79, 0.94, 0.96, 0.98),
    0.99: (0.03, 0.07, 0.18, 0.48, 0.89, 1.07, 1.10, 1.12),
    0.995: (0.03, 0.07, 0.18, 0.49, 0.97, 1.19, 1.22, 1.24),
}
_HALVINGS, _FURTHEST = 60, 60.0


def added_noise(confidence: float, ratio: float) -> float:
    """The factor a: with V+ = max(V^, 0) + a b2 intervals cover for every V.

    Least factors were found by quadrature on a fine grid of b2/b1^2, and rounded upwards; between
    confidences the larger neighbour counts. No proof: docs say what was computed.
    """
    known = sorted(_FACTORS)
    confidence = checks.number(confidence, "confidence", least=known[0], most=known[-1])
    ratio = checks.number(ratio, "ratio", least=0, infinite=True)
    above = min(each for each in known if each >= confidence)
    below = max(each for each in known if each <= confidence)
    place = math.log(max(ratio, _RATIOS[0]))
    grid = np.log(_RATIOS)
    return max(float(np.interp(place, grid, _FACTORS[each])) for each in (below, above))


def half_width(
    confidence: float,
    variance: Floats,
    scale: float,
    variance_scale: float,
    *,
    inflation: float = 1.0,
) -> Floats:
    """Half widths of intervals: the quantile of normal(f V+) + Laplace(b1), V+ = max(V^, 0) + a b2.

    Where the noise of V^ is a sum of several Laplace variables, b2 is the root of the sum of their
    squared scales: the factors hold for one of them, for several, and for their normal limit. The
    noise of the estimate is one Laplace variable.
    """
    variance = np.asarray(variance, np.float64)
    scale = checks.number(scale, "scale", least=0)
    variance_scale = checks.number(variance_scale, "variance_scale", least=0)
    inflation = checks.number(inflation, "inflation", least=1)
    ratio = 0.0
    if variance_scale > 0:
        ratio = math.inf if scale**2 == 0 else variance_scale / scale**2
    raised = np.maximum(variance, 0) + added_noise(confidence, ratio) * variance_scale
    return quantile(confidence, inflation * raised, scale)


def quantile(confidence: float, variance: Floats, scale: float) -> Floats:
    """The x with P[|X| <= x] = confidence for X = normal(V) + Laplace(b), by bisection."""
    confidence = checks.check_confidence(confidence)
    variance = np.asarray(variance, np.float64)
    scale = checks.number(scale, "scale", least=0)
    if not bool((variance >= 0).all()):
        raise InputError("a variance below 0", "take max(V, 0)")
    low = np.zeros(len(variance))
    high = _FURTHEST * (np.sqrt(variance) + scale)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        outside = tail(middle, variance, scale) > 1 - confidence
        low, high = np.where(outside, middle, low), np.where(outside, high, middle)
    return np.asarray(high)


def tail(distance: Floats, variance: Floats, scale: float) -> Floats:
    """P[|X| > x] for X = normal(V) + Laplace(b).

    With s^2 = V, z = x/s and k = s/b it is 2 Phi(-z) + e^(k^2/2 - zk) Phi(z - k)
    - e^(k^2/2 + zk) Phi(-z - k), with scaled complementary error functions where exponents are
    large.
    """
    from scipy.special import erfcx, ndtr

    deviation = np.sqrt(variance)
    if scale == 0:
        apart = np.where(deviation > 0, distance / np.where(deviation > 0, deviation, 1), np.inf)
        return np.asarray(np.where((deviation > 0) | (distance > 0), 2 * ndtr(-apart), 1.0))
    # Below this part of the scale a normal variable is lost in rounding.
    deviation = np.maximum(deviation, scale * 2.0**-40)
    z, k = distance / deviation, deviation / scale
    # Far out a probability is 0, whatever the caller has NumPy do about it.
    with np.errstate(under="ignore"):
        density = np.exp(-z * z / 2) / 2
        far = np.exp(np.minimum(k * (k / 2 - z), 0)) * ndtr(z - k)
        near = density * erfcx(np.maximum(k - z, 0) / math.sqrt(2))
        upper = np.where(z > k, far, near)
        lower = density * erfcx((z + k) / math.sqrt(2))
        return np.asarray(2 * ndtr(-z) + upper - lower)
