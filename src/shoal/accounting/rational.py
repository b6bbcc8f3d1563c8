"""Privacy parameters as exact rationals, read and written without loss."""

from __future__ import annotations

import math
from fractions import Fraction

from shoal.errors import InputError

PrivacyNumber = Fraction | float | int | str


def exact(value: PrivacyNumber, name: str) -> Fraction:
    """A finite number above zero as a fraction; a float counts as its shortest decimal.

    So 0.1 is 1/10 exactly, and ten charges of 0.1 make 1.

    Args:
        value: A fraction, number, or text such as "0.1" or "1/3".
        name: The argument's name, for the message.

    Raises:
        InputError: Not a number, not finite, or not above zero.

    Example:
        >>> exact(0.1, "epsilon")
        Fraction(1, 10)
    """
    number = _read(value)
    if number is None or number <= 0:
        raise InputError(
            f"{name} is {value!r}", "a finite number above 0", f"give for example {name}=1.0"
        )
    return number


def exact_or_zero(value: PrivacyNumber, name: str) -> Fraction:
    """As `exact`, but 0 is allowed: a delta below 1.

    Raises:
        InputError: Not a number from 0 to below 1.
    """
    number = _read(value)
    if number is None or not 0 <= number < 1:
        raise InputError(f"{name} is {value!r}", "a number from 0 to below 1", f"give {name}=0")
    return number


def round_up(value: Fraction) -> float:
    """The least float that is not below an exact value: a privacy loss is never understated.

    Example:
        >>> round_up(Fraction(1, 3)) >= Fraction(1, 3)
        True
    """
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def show(value: Fraction, digits: int = 6) -> str:
    """A privacy loss with significant digits, rounded upwards: small values never become 0.

    Example:
        >>> show(Fraction(1, 3)), show(Fraction(1, 10**9)), show(Fraction(1))
        ('0.333334', '1e-09', '1')
    """
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(value)) - digits + 1
    scale = Fraction(10) ** exponent
    return f"{float(math.ceil(value / scale) * scale):.{digits}g}"


def _read(value: object) -> Fraction | None:
    if isinstance(value, bool):
        return None
    try:
        return Fraction(value if isinstance(value, Fraction) else str(value))
    except (ValueError, ZeroDivisionError):
        return None
