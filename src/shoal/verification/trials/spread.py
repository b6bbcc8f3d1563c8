"""Variances and quantiles, again: how clusters differ, Student's t, normal plus Laplace.

Nothing is imported from other packages, as in `verify`.
"""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# A weight that is less than all others together by this part of them is taken for as much.
_HALF = 1e-9
_POINTS = 4001
# Of a quantile that is looked for: none of a probability below 1 - 1e-15 is further.
_DOUBLINGS = 64
# From here on Student's t is normal to 1e-9.
_NORMAL = 1e9


def summed(parts: Floats, degrees: Floats, known: float = 0.0) -> tuple[float, float]:
    """Sum of estimated variances and a known one, and Welch's degrees less what squares overdo.

    V = known + sum a, nu = 1/sum (a/V)^2/(f + 2) - 2; infinite if nothing is estimated.

    Example:
        >>> summed(np.array([2.0, 2.0]), np.array([9.0, 9.0]))
        (4.0, 20.0)
    """
    total = known + math.fsum(parts)
    if not parts.any():
        return total, math.inf
    return total, 1 / math.fsum((parts / total) ** 2 / (degrees + 2)) - 2


def between(weight: Floats, value: Floats, scale: Floats) -> tuple[float, float]:
    """Variance of sum w D from how D differ, and its degrees of freedom (at least 1).

    sum b_c (D_c - sum p D)^2 with p = w/sum w <= 1/2, b = k w^2/(1 - 2p), 1/k = 1 + sum p^2/(1 -
    2p): the matrix A of that form has A_cc = w_c^2, so that uncorrelated D have at most this
    variance on average (Pashley and Miratrix 2021). If p is above 1/2 for one, the others' weights
    are raised to sum to its weight. Degrees are tr(AV)^2/tr(AVAV), the less for V of this scale and
    for V = I.

    Example:
        >>> found = between(np.full(3, 1 / 3), np.array([1.0, 2.0, 3.0]), np.ones(3))
        >>> [round(each, 6) for each in found]
        [0.333333, 2.0]
    """
    top = int(np.argmax(weight))
    rest = math.fsum(np.delete(weight, top))
    if weight[top] >= rest * (1 - _HALF):
        # Half of all: the formula has its limit, where the others tell their mean alone.
        p = weight / (2 * rest)
        p[top] = 0.5
        b = np.where(np.arange(len(weight)) == top, (2 * max(weight[top], rest)) ** 2, 0.0)
    else:
        p = weight / math.fsum(weight)
        capacity = 1 - 2 * p
        b = weight**2 / capacity / (1 + math.fsum(p**2 / capacity))
    variance = math.fsum(b * (value - math.fsum(p * value)) ** 2)
    return variance, max(1.0, min(_degrees(b, p, scale), _degrees(b, p, np.ones(len(p)))))


def _degrees(b: Floats, p: Floats, v: Floats) -> float:
    """tr(AV)^2/tr(AVAV) for A = diag b + (p b) core (p b)', a matrix of rank two added."""
    core = np.array([[b.sum(), -1.0], [-1.0, 0.0]])
    sides = np.stack([p, b])
    diagonal = np.einsum("ic,ij,jc->c", sides, core, sides)
    gram = core @ (sides * v) @ sides.T
    square = float(((b * v) ** 2).sum() + 2 * (b * v**2 * diagonal).sum() + np.trace(gram @ gram))
    return float(((b + diagonal) * v).sum()) ** 2 / square


def student(degrees: float, confidence: float) -> float:
    """Half the width of a t interval: t^2/(t^2 + f) has a beta distribution.

    Example:
        >>> round(student(10.0, 0.95), 4), round(student(math.inf, 0.95), 4)
        (2.2281, 1.96)
    """
    from scipy.special import betaincinv, erfinv

    if degrees > _NORMAL:
        return math.sqrt(2) * float(erfinv(confidence))
    part = float(betaincinv(0.5, degrees / 2, confidence))
    return math.sqrt(degrees * part / (1 - part))


def normal_laplace(confidence: float, normal: float, laplace: float, terms: float) -> float:
    """The x with P[|X| <= x] = confidence, X normal plus `terms` equal Laplace variables.

    Laplace variables are normal ones with random variances, whose sum has a gamma distribution:
    P[|X| <= x] is the mean of erf(x/sqrt(2 (V + M g/m))), g gamma of shape m. The mean is taken by
    the trapezoidal rule over log(g/m), which converges geometrically.

    Args:
        confidence: Between 0 and 1.
        normal: V, the variance of the normal part.
        laplace: M, the variance of the Laplace variables together.
        terms: m, at least 1.

    Example:
        >>> round(normal_laplace(0.95, 0.0, 2.0, 1), 6) == round(math.log(20), 6)
        True
    """
    from scipy.optimize import brentq
    from scipy.special import erf

    if laplace <= 0:
        return math.sqrt(normal) * student(math.inf, confidence)
    far = 10 / math.sqrt(terms)
    logs = np.linspace(-far - 45 / terms, far + math.log1p(45 / terms), _POINTS)
    chance = np.exp(terms * (logs - np.expm1(logs)))
    chance /= chance.sum()
    deviation = np.sqrt(2 * (normal + laplace * np.exp(logs)))
    unit = math.sqrt(normal + laplace)

    def excess(x: float) -> float:
        return float(chance @ erf(x * unit / deviation)) - confidence

    high = 1.0
    for _ in range(_DOUBLINGS):
        if excess(high) >= 0:
            break
        high *= 2
    else:
        # Nearer to 1 than sums of floating-point numbers come.
        raise ArithmeticError
    return unit * float(brentq(excess, 0.0, high, xtol=1e-13, rtol=1e-13))
