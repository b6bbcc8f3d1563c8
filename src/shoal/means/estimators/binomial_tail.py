"""A bound on how many users of a kind there are."""

import math


def binomial_tail(n: int, least: int, chance: float) -> float:
    """P[B >= least] <= exp(-n KL(least/n || chance)) for B binomial (Chernoff), at most 1.

    Example:
        >>> binomial_tail(100, 50, 0.1) < 1e-20
        True
    """
    if least <= n * chance or least <= 0:
        return 1.0
    if least > n or chance <= 0:
        return 0.0
    x = least / n
    log = x * math.log(x / chance)
    if x < 1:
        log += (1 - x) * math.log((1 - x) / (1 - chance))
    return math.exp(-n * log * (1 - 2.0**-40))
