"""The loss of one outcome, again: outward-rounded decimals and whole numbers.

Nothing is imported from other packages, as in `verify`.
"""

from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal
from fractions import Fraction

from shoal.verification.strict import rounded_up

BITS = 32
ONE: int = 1 << BITS
# Stated losses of responses may be above the truth by rounding, never below it.
_DIGITS = 60
_SMALL = Fraction(1, 10**20)


def log1p_up(value: Fraction) -> Fraction:
    """Not below ln(1 + value), by less than a part of 1e-19.

    Below 1e-20 it is value itself; else `Decimal.ln`, which is right to the last of 60 digits.

    Example:
        >>> round(float(log1p_up(Fraction(1))), 15)
        0.693147180559945
    """
    if value <= _SMALL:
        return max(value, Fraction(0))
    context = Context(prec=_DIGITS, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN)
    above = value + 1
    number = context.divide(Decimal(above.numerator), Decimal(above.denominator))
    return Fraction(context.next_plus(context.ln(number)))


def response_loss(replaced: int, floor: int, delta: Fraction) -> Fraction:
    """Not below the loss of one response: ln(1 + (1 - lambda - delta)/(lambda gamma)).

    Another outcome's response has every level with at least lambda gamma, and the own level has
    1 - lambda more: a set of responses is likelier by at most e^epsilon and delta.

    Example:
        >>> round(float(response_loss(ONE // 2, ONE // 2, Fraction(0))), 12) == 1.098612288668
        True
    """
    extra = Fraction(ONE - replaced, ONE) - delta
    return log1p_up(extra / Fraction(replaced * floor, ONE * ONE))


def units_hold(
    stated: Fraction, delta: Fraction, *, replaced: int, floor: int, weight: int, bits: int
) -> tuple[bool, str]:
    """Whether a stated loss covers a histogram, of which an outcome moves two bins, and a response.

    Args:
        stated: Loss without that of the clusters.
        delta: The delta of (epsilon, delta)-DP.
        replaced: lambda in parts of 2^-32.
        floor: gamma in parts of 2^-32.
        weight: Steps a count.
        bits: Noise has the scale of 2^bits steps.
    """
    histogram = Fraction(2 * weight, 2**bits)
    true = histogram + response_loss(replaced, floor, delta)
    found = f"{float(true):.6g}, of which the histogram has {float(histogram):.6g}"
    return rounded_up(stated, true), found
