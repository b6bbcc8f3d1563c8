"""The discrete Laplace distribution with scale t steps: P[Z = z] proportional to exp(-|z|/t)."""

from __future__ import annotations

import math

from shoal.errors import InputError


def mean_absolute(scale: float) -> float:
    """E|Z| = 1/sinh(1/t), in steps; just below t, the value of the continuous distribution.

    Args:
        scale: t > 0, in steps.

    Example:
        >>> round(mean_absolute(1024.0), 4)
        1023.9998
    """
    return 1 / math.sinh(1 / scale)


def tail_quantile(scale: float, beta: float) -> int:
    """The least whole z with P[|Z| > z] <= beta, in steps, rounded upwards.

    P[|Z| > z] = 2 q^(z+1) / (1 + q) with q = exp(-1/t).

    Args:
        scale: t > 0, in steps.
        beta: Probability of a larger noise, in (0, 1).

    Raises:
        InputError: beta is not a probability strictly between 0 and 1.

    Example:
        >>> tail_quantile(1024.0, 0.05)
        3068
    """
    if not 0 < beta < 1:
        raise InputError(
            f"an error probability of {beta!r}",
            "a number strictly between 0 and 1",
            "give for example confidence=0.95",
        )
    exact = scale * (math.log(2 / beta) - math.log1p(math.exp(-1 / scale))) - 1
    # The margin covers the rounding of the logarithms, so the tail is never above beta.
    return max(0, math.ceil(exact + 1e-12 * scale))
