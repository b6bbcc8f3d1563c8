"""Quantiles of a normal variable plus Laplace noise: the error of an effect with such noise."""

import math

import numpy as np

from shoal.errors import InputError

# In standard deviations: frequencies up to the last, so fine that what is aliased is below 1e-30.
_STEP, _LAST = 0.1, 300.0
_HALVINGS = 32
_FURTHEST = 40.0


def quantile(confidence: float, normal: float, laplace: float, terms: float) -> float:
    """The x with P[|X| <= x] = confidence, where X is normal plus Laplace noise, all independent.

    X has the characteristic function exp(-V t^2/2) (1 + M t^2/(2 m))^-m: V is the normal variance,
    M the variance of all Laplace variables and m their number, if their scales are equal. With
    unequal scales take m = 3 M^2 / kappa_4, with the sum kappa_4 of their fourth cumulants (3 v^2
    for a Laplace variable of variance v): second and fourth moment are then right. The distribution
    function is P[|X| <= x] = (2/pi) integral of sin(x t)/t times the characteristic function
    (Gil-Pelaez 1951), by the midpoint rule; x is right to about 1e-4.

    Args:
        confidence: Between 0 and 1.
        normal: V >= 0.
        laplace: M >= 0.
        terms: m > 0.

    Returns:
        x in the unit of the variances' roots; 0 where both variances are 0.

    Raises:
        InputError: The confidence is not strictly between 0 and 1.

    Example:
        >>> round(quantile(0.95, 1.0, 0.0, 1), 3), round(quantile(0.95, 0.0, 2.0, 1), 2)
        (1.96, 3.0)
    """
    if not 0 < confidence < 1:
        raise InputError(
            f"a confidence of {confidence!r}",
            "a number strictly between 0 and 1",
            "give for example confidence=0.95",
        )
    total = normal + laplace
    if total <= 0:
        return 0.0
    t = np.arange(_STEP / 2, _LAST, _STEP)
    decay = -normal / total * t**2 / 2 - terms * np.log1p(laplace / total * t**2 / (2 * terms))
    weight = np.exp(decay) / t * (2 * _STEP / math.pi)
    low, high = 0.0, _FURTHEST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if float(np.sin(middle * t) @ weight) < confidence:
            low = middle
        else:
            high = middle
    return high * math.sqrt(total)
