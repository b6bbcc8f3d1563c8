"""Gaussian noise for the second opinion: (epsilon, delta) in many digits, rates, quantiles.

Nothing is imported from theory, planning or mechanisms, as in `verify`.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction

# E|X| and E|X^2 - 1| of a normal variable with scale 1.
MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
MEAN_QUADRATIC = 4 * math.exp(-0.5) / math.sqrt(2 * math.pi)
# Coarser lattices are never planned; below, the sum over whole numbers is not the integral.
LEAST_BITS = 20
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
_DIGITS, _SERIES_UP_TO, _TERMS = 60, 5, 3000
# In lattice steps: scales have up to 2^60 of them.
_FURTHEST = 2**80
_LARGEST_EPSILON, _LARGEST_RHO = 10**9, 10**12
_NEAR, _PLACES = Fraction(1, 2**70), 2**80
# From this ratio of squared scales on, the second moment costs nothing: (5 sqrt 5 - 11)/2 < 1/11.
_FREE = Fraction(1, 11)


def delta_at(epsilon: Fraction, rho: Fraction, numbers: int, bits: int) -> Fraction:
    """Delta of discrete Gaussian noise at an epsilon (docs/theory/gaussian.md), in 40 digits.

    Phi(m/2 - e/m) - exp(e) Phi(-m/2 - e/m) with m = sqrt(2 rho), and what whole numbers add:
    k c + (1 - 2c)^(-k/2) exp(2 rho c/(1 - 2c)) - 1 with c = 4^-bits/24.

    Args:
        epsilon: At least 0.
        rho: Largest zero-concentrated loss of a user, above 0.
        numbers: Most that one user is in.
        bits: At least `LEAST_BITS`.

    Returns:
        A probability; 1 where epsilon or rho are larger than any that is planned.
    """
    if epsilon > _LARGEST_EPSILON or rho > _LARGEST_RHO or bits < LEAST_BITS:
        return Fraction(1)
    wide = decimal.Context(prec=_DIGITS, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
    with decimal.localcontext(wide):
        loss, far = _decimal(rho), _decimal(epsilon)
        move = (2 * loss).sqrt()
        exact = _tail((far - loss) / move) - far.exp() * _tail((far + loss) / move)
        small = 1 / (24 * Decimal(4) ** bits)
        exponent = 2 * loss * small / (1 - 2 * small) - (1 - 2 * small).ln() * numbers / 2
        # e^x - 1 is below x + x^2 up to x = 1, where delta is 1.
        return min(Fraction(1), Fraction(exact + (numbers * small + exponent + exponent**2)))


def _tail(x: Decimal) -> Decimal:
    """P[X > x] of a normal variable: by its series near 0, by a continued fraction beyond."""
    if x < 0:
        return 1 - _tail(-x)
    density = (-x * x / 2).exp() / (2 * _PI).sqrt()
    if x < _SERIES_UP_TO:
        term = total = x
        place = 1
        while term > total.scaleb(-_DIGITS):
            place += 2
            term = term * x * x / place
            total += term
        return Decimal("0.5") - density * total
    below = Decimal(0)
    for place in range(20 + int(_TERMS / (x * x)), 0, -1):
        below = place / (x + below)
    return density / (x + below)


def _decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def moments_rate(first: Fraction, second: Fraction) -> Fraction:
    """R: a user with all records moves both moments by at most sqrt(R) noise scales.

    R = max over D of D^2/s1^2 + D^2 (1 - D)^2/s2^2, at D = 1 or where 2 D^2 - 3 D + 1 + k falls
    through 0, k = s2^2/s1^2: a root is guessed, enclosed, and both terms bounded there.

    Args:
        first: s1 of the mean over the width.
        second: s2 of the mean square over the squared width.
    """
    free, ratio = 1 / first**2, (second / first) ** 2
    if ratio >= _FREE:
        return free
    guess = Fraction((3 - math.sqrt(1 - 8 * float(ratio))) / 4)
    better = guess - _slope(guess, ratio) / (4 * guess - 3)
    root = Fraction(round(better * _PLACES), _PLACES)
    low, high = root - _NEAR, root + _NEAR
    if not _slope(low, ratio) >= 0 >= _slope(high, ratio):
        raise ArithmeticError
    # Beyond 1/2 the product D (1 - D) falls.
    return max(free, high**2 * free + (low * (1 - low) / second) ** 2)


def _slope(apart: Fraction, ratio: Fraction) -> Fraction:
    return 2 * apart**2 - 3 * apart + 1 + ratio


def ceil_root(square: Fraction) -> int:
    """The least whole number whose square is no less."""
    whole = math.ceil(square)
    root = math.isqrt(whole)
    return root if root * root == whole else root + 1


def doubled(high: int) -> int:
    """Twice as far, or ArithmeticError: no noise that shoal writes is looked for beyond.

    Example:
        >>> doubled(4)
        8
    """
    if high >= _FURTHEST:
        raise ArithmeticError
    return 2 * high


def quantile(scale: float, beta: float) -> int:
    """Least z with P[|X| > z + 1/2] <= beta (1 - 1/(24 t^2)), by bisection on the tail itself."""
    allowed = beta * (1 - 1 / (24 * scale * scale))

    def tail(z: int) -> float:
        return math.erfc((z + 0.5) / (scale * math.sqrt(2)))

    low, high = -1, 1
    while tail(high) > allowed:
        high = doubled(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if tail(middle) > allowed else (low, middle)
    return high
