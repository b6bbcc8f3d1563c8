"""Amounts of privacy loss as callers give them, made exact."""

from __future__ import annotations

import re
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real

import numpy as np

from shoal.checks import shown
from shoal.errors import InputError

# As many as the schemas of manifests and the second opinion allow.
MOST_DIGITS = 400
_PLAIN = (str, int, float, Decimal, Fraction)
# "1e999999999" is short to write and has a billion digits.
_LONG_EXPONENT = re.compile(r"[eE][+-]?[\d_]{4,}")


def amount(value: object, name: str) -> Fraction:
    """An exact amount of privacy loss, 0 or more; a float counts as its shortest decimal.

    Args:
        value: A fraction, number, or text such as "0.1" or "1/3".
        name: What it is called.

    Raises:
        InputError: Not a number, not finite, below zero, or of more than 400 digits.

    Example:
        >>> amount(0.1, "epsilon"), amount("1/3", "epsilon")
        (Fraction(1, 10), Fraction(1, 3))
    """
    found = None
    with suppress(TypeError, ValueError, ArithmeticError):
        found = _fraction(value)
    limit = 10**MOST_DIGITS
    if found is None or found < 0 or found.numerator >= limit or found.denominator >= limit:
        raise InputError(
            f"{name} is {shown(value)}",
            f"a finite number, 0 or more, of at most {MOST_DIGITS} digits",
            f"give for example {name}=0.1",
        )
    return found


def _fraction(value: object) -> Fraction:
    if isinstance(value, bool | np.bool_) or not isinstance(value, str | Real | Decimal):
        raise TypeError
    if isinstance(value, np.integer):
        value = int(value)
    if isinstance(value, np.str_):
        value = value.item()
    if isinstance(value, np.floating):
        # In as many digits as tell it from others, whatever NumPy is told to print.
        value = np.format_float_scientific(value)
    if type(value) not in _PLAIN:
        # What a class of its own says of itself need not be what it is worth.
        raise TypeError
    if isinstance(value, Rational):
        return Fraction(value)
    written = str(value)
    if len(written) > 2 * MOST_DIGITS or _LONG_EXPONENT.search(written) or "_" in written:
        raise ValueError
    if not written.isascii():
        raise ValueError
    return Fraction(written)
