"""Bounds the error of clipping values that have no bounds, only bounded central moments.

Throughout, X has mean mu and E|X - mu|^p <= psi^p for one or several public pairs (p, psi), which
are the `order` and `size` of a `Moment`; Y is |X - mu| and t >= 0 is a margin, in the value's unit.
All bounds are upper bounds, and the least of those from each pair is taken. They are the bounds of
paper 004, section 3, with the sharp constants in place of 1: as a function of y^p, (y - t)+ lies
below the line through the origin that touches it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shoal import checks
from shoal.errors import InputError

# Limits of the order and of the size of a moment, and of the number of moments.
_LEAST_ORDER = 2.0
_MOST_ORDER = 1000.0
_SMALLEST = 2.0**-300
_LARGEST = 2.0**300
_MOST_PAIRS = 20
_GOLDEN = (math.sqrt(5) - 1) / 2
# The exponential of a larger number overflows.
_LARGEST_LOG = 700.0


@dataclass(frozen=True)
class Moment:
    """A public bound on a central moment: E|X - mu|^order <= size^order.

    Source: docs/theory/means.md; paper 004, section 3.

    Attributes:
        order: The power, from 2 to 1000.
        size: In the value's unit; a standard deviation has order 2.

    Raises:
        InputError: An order below 2, or a size that is not a moderate number above 0.

    Example:
        >>> Moment(8, 1.8)
        Moment(order=8.0, size=1.8)
    """

    order: float
    size: float

    def __post_init__(self) -> None:
        limits = {"order": (_LEAST_ORDER, _MOST_ORDER), "size": (_SMALLEST, _LARGEST)}
        for name, (low, high) in limits.items():
            given = getattr(self, name)
            number = checks.number(given, f"a moment's {name}", least=low, most=high)
            object.__setattr__(self, name, number)


Moments = tuple[Moment, ...]


def moments_of(moment: Moment | Sequence[Moment]) -> Moments:
    """Returns one or several bounds as a tuple."""
    moments = (moment,) if isinstance(moment, Moment) else moment
    if not isinstance(moments, tuple | list) or not all(isinstance(m, Moment) for m in moments):
        raise InputError(
            f"moment is a {type(moment).__name__}", "give a Moment, for example Moment(2, 1.5)"
        )
    if not 0 < len(moments) <= _MOST_PAIRS:
        raise InputError(f"there are {len(moments)} moments", f"give 1 to {_MOST_PAIRS}")
    return tuple(moments)


def deviation(moments: Moments) -> float:
    """Returns the largest possible deviation: the least size, as E Y^2 <= (E Y^p)^(2/p)."""
    return min(moment.size for moment in moments)


def tail(moments: Moments, margin: float) -> float:
    """Bounds P[Y > t] by (psi/t)^p and by 1 (Markov's inequality)."""
    return min([1.0, *(_power(m.size, margin, m.order) for m in moments)])


def excess(moments: Moments, margin: float) -> float:
    """Bounds E(Y - t)+ by K psi^p t^(1-p) with K = (p-1)^(p-1)/p^p, or psi - t where t is small.

    (z^(1/p) - t)+ with z = y^p lies below its tangent from the origin. Both bounds are attained;
    the paper has 1 in place of K.
    """
    return min(_excess(m, margin) for m in moments)


def excess_square(moments: Moments, margin: float) -> float:
    """Bounds E(Y - t)+^2 by kappa psi^p t^(2-p) with kappa = (4/p^2)(1 - 2/p)^(p-2).

    The proof is as for `excess`, with a tangent that touches at y = p t/(p-2). Where psi is beyond
    that, the bound is (psi - t)^2; at p = 2 it is psi^2.
    """
    return min(_excess_square(m, margin) for m in moments)


def one_sided(moments: Moments, margin: float) -> float:
    """Bounds E(X - mu - t)+ by the smaller of `excess` and (sqrt(t^2 + psi^2) - t)/2.

    The second is Scarf's bound, which is sharp for a given mean and variance: for x = X - mu,
    (x - t)+ = (x - t + |x - t|)/2 and E|x - t| <= sqrt(psi^2 + t^2).
    """
    # This form of Scarf's bound has no cancellation.
    size = deviation(moments)
    scarf = size * (size / (2 * (margin + math.hypot(margin, size))))
    return min(excess(moments, margin), scarf)


def margin(moments: Moments, bias: float) -> float:
    """Returns the least margin whose `one_sided` bound is at most a bias budget.

    Clipping to [a - t, b + t] with mu in [a, b] loses at most E(X - b - t)+ at one end and
    E(a - t - X)+ at the other, and the bias is their difference, so at most the larger.
    """
    bias = checks.number(bias, "the bias budget", above=0, example=0.1)
    # Scarf's bound is at most sd^2/(4t), so this margin is enough; all bounds fall with t.
    short = 0.0
    enough = deviation(moments) * (deviation(moments) / (4 * bias))
    if one_sided(moments, short) <= bias:
        return short
    step = 2.0**-40
    while one_sided(moments, enough) > bias:
        # Rounding may take a step or two. Steps grow, so that the loop always ends.
        enough = enough * (1 + step)
        step = 2 * step
    while True:
        middle = (short + enough) / 2
        # Between these two there is no other floating-point number.
        if not short < middle < enough:
            return enough
        if one_sided(moments, middle) <= bias:
            enough = middle
        else:
            short = middle


def symmetric_bias(moments: Moments, off: float, half_width: float) -> float:
    """Bounds the bias of clipping a symmetric X to (mu + e) -+ `half_width`, with |e| <= `off`.

    `off` is below `half_width`, and t is their difference. By symmetry the bias is at most half of
    `excess` at t, and at most `off` times the `tail` at t.
    """
    inside = half_width - off
    return min(excess(moments, inside) / 2, off * tail(moments, inside))


def least(objective: Callable[[float], float], low: float, high: float) -> float:
    """Returns where a function is least between positive ends, by a grid and golden section."""
    steps = 64
    ratio = math.pow(high / low, 1 / steps)
    best = min(range(steps + 1), key=lambda i: objective(low * ratio**i))
    # The least value is between the neighbours of the best place of the grid.
    left = low * ratio ** max(best - 1, 0)
    right = low * ratio ** min(best + 1, steps)
    for _ in range(60):
        inner_left = right - _GOLDEN * (right - left)
        inner_right = left + _GOLDEN * (right - left)
        if objective(inner_left) <= objective(inner_right):
            right = inner_right
        else:
            left = inner_left
    return (left + right) / 2


def _excess(moment: Moment, margin: float) -> float:
    """See `excess`, for one moment."""
    p = moment.order
    size = moment.size
    if margin <= size * (1 - 1 / p):
        return size - margin
    return math.exp(_log_k(p)) * size * _power(size, margin, p - 1)


def _excess_square(moment: Moment, margin: float) -> float:
    """See `excess_square`, for one moment."""
    p = moment.order
    size = moment.size
    if margin <= size * (1 - 2 / p):
        return math.pow(size - margin, 2)
    # At p = 2 the logarithm below is of 0.
    if p == _LEAST_ORDER:
        return size * size
    log_kappa = 2 * math.log(2 / p) + (p - 2) * math.log1p(-2 / p)
    return math.exp(log_kappa) * size * size * _power(size, margin, p - 2)


def _log_k(p: float) -> float:
    """Returns the logarithm of K in `excess`."""
    return (p - 1) * math.log1p(-1 / p) - math.log(p)


def _power(size: float, margin: float, exponent: float) -> float:
    """Returns (size/margin)^exponent; infinite for a margin of 0 or where it would overflow."""
    if margin <= 0:
        return math.inf
    log = exponent * (math.log(size) - math.log(margin))
    return math.exp(log) if log < _LARGEST_LOG else math.inf
