"""Certificates of unbiased means as paper 004 prints them, for standard deviation 1."""

from __future__ import annotations

import math
from dataclasses import dataclass

_SCALE = 10.0


@dataclass(frozen=True)
class Facts:
    """What the printed certificates depend on."""

    n: int
    epsilon: float
    delta: float
    order: float
    size: float = 1.0
    width: float = 1.0


def clipped(facts: Facts, bias: float) -> float:
    """Root of 1/n + bias^2 + 2 (width + 2 bias^(-1/(order-1)))^2/(n epsilon)^2: Proposition 3.0.1.

    For size 1.

    Example:
        >>> round(clipped(Facts(1000, 1.0, 0.0, 2.0), 0.05), 4)
        0.0828
    """
    margin = bias ** (-1 / (facts.order - 1))
    noise = 2 * ((facts.width + 2 * margin) / (facts.n * facts.epsilon)) ** 2
    return math.sqrt(1 / facts.n + bias**2 + noise)


def combined(facts: Facts) -> float:
    """Root of the bound of Proposition 3.0.3 with its own margin c.

    2/n + (4 width^2 + 16 c^2)/(n epsilon)^2 + 2 kappa size^order c^(2-order)/(n delta),
    c = size (n epsilon^2 kappa (order-2)/(16 delta))^(1/order), and 0 at order 2.

    Example:
        >>> round(combined(Facts(10**5, 1.0, 1e-6, 8.0, 105**0.125)) * 10**2.5, 3)
        1.448
    """
    n, order, size = facts.n, facts.order, facts.size
    kappa = 4 / order**2 * float((1 - 2 / order) ** (order - 2))
    unit = (n * facts.epsilon**2 * kappa * (order - 2) / (16 * facts.delta)) ** (1 / order)
    margin = size * float(unit)
    tail = kappa * size**2 * float(unit ** (2 - order)) if unit > 0 else kappa * size**2
    noise = (4 * facts.width**2 + 16 * margin**2) / (n * facts.epsilon) ** 2
    return math.sqrt(2 / n + noise + 2 * tail / (n * facts.delta))


def coarse_users(facts: Facts) -> int:
    """Least n_1 of Proposition 4.1.3 with gamma = delta^2, a 1 in 10,000 too large at most.

    5n/16 >= 2 + 2 ln(1/delta)/epsilon, e^(-n/128) and (n/2) e^(-n epsilon/16) at most gamma/2.

    Example:
        >>> coarse_users(Facts(10**5, 1.0, 1e-6, 8.0))
        3626
    """
    gamma = 2 * math.log(1 / facts.delta)
    first = 16 / 5 * (2 + gamma / facts.epsilon)
    found = max(first, 128 * (math.log(2) + gamma))
    # (n/2) e^(-n epsilon/16) falls where n is above 16/epsilon.
    found = max(found, 16 / facts.epsilon)
    while found * facts.epsilon / 16 - math.log(found) < gamma:
        found *= 1 + 1e-4
    return math.ceil(found)


def symmetric(facts: Facts) -> float:
    """Leading terms of Theorem 4.2.1's proof: clipping, noise and bias of the second step.

    Root of 1/n_2 + 8 c^2/(n_2 epsilon)^2 + (size^order t^(1-order))^2 with n_2 = n - n_1,
    t = size (n_2 epsilon)^(1/order) and c = 10 + t; infinite with too few users. Terms with a
    power of delta are left out.

    Example:
        >>> round(symmetric(Facts(10**5, 1.0, 1e-6, 8.0, 105**0.125)) * 10**2.5, 3)
        1.032
        >>> symmetric(Facts(1000, 1.0, 1e-6, 8.0))
        inf
    """
    left = facts.n - coarse_users(facts)
    if left <= 0:
        return math.inf
    unit = (left * facts.epsilon) ** (1 / facts.order)
    noise = 8 * ((_SCALE + facts.size * unit) / (left * facts.epsilon)) ** 2
    bias = facts.size * unit ** (1 - facts.order)
    return math.sqrt(1 / left + noise + bias**2)
