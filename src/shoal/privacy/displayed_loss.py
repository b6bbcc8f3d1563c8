"""Privacy losses as people see them: rounded upwards, with significant digits."""

from __future__ import annotations

import math
from decimal import Context, Decimal, Inexact, localcontext
from fractions import Fraction

# Of a number that is shown exactly.
_LONGEST = 20


def round_up(value: Fraction) -> float:
    """The least float that is not below an exact value: a privacy loss is never understated.

    Example:
        >>> round_up(Fraction(1, 3)) >= Fraction(1, 3)
        True
    """
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def show(value: Fraction | float, digits: int = 6) -> str:
    """A privacy loss with significant digits, rounded upwards: small values never become 0.

    A float counts as its shortest decimal, as in budgets.

    Example:
        >>> show(Fraction(1, 3)), show(Fraction(1, 10**9)), show(Fraction(1)), show(0.1)
        ('0.333334', '1e-09', '1', '0.1')
    """
    if isinstance(value, float):
        value = Fraction(repr(value))
    if value == 0:
        return "0"
    # The logarithms of whole numbers do not end where floating-point numbers do.
    power = math.log10(value.numerator) - math.log10(value.denominator)
    exponent = math.floor(power) - digits + 1
    scale = Fraction(10) ** exponent
    return f"{float(math.ceil(value / scale) * scale):.{digits}g}"


def plain(value: Fraction) -> str:
    """An amount as people write it: exactly, or with `about` before it where that is too long.

    Example:
        >>> plain(Fraction(1, 2)), plain(Fraction(1, 3)), plain(Fraction(1, 10**9))
        ('0.5', '1/3', '1e-9')
        >>> plain(Fraction(10**40 + 1, 3 * 10**40))
        'about 0.333333'
    """
    # Not the caller's context, which may trap what is rounded.
    with localcontext(Context(_LONGEST, traps=[])) as context:
        decimal = Decimal(value.numerator) / Decimal(value.denominator)
        exact = not context.flags[Inexact]
        decimal = decimal.normalize()
    if exact:
        return f"{decimal:f}" if 0 <= decimal.adjusted() < _LONGEST else str(decimal).lower()
    if max(abs(value.numerator), value.denominator) < 10 ** (_LONGEST // 2):
        return f"{value.numerator}/{value.denominator}"
    return f"about {decimal:.6g}"
