"""Checks arguments that many packages take, and refuses them in one way.

Each function returns the argument in the one form that the library works with, or raises an error
of one short line. Arrays and tables, which may hold private values, are shown by their type alone.
"""

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from numbers import Integral
from typing import Any, TypeVar

import numpy as np

from shoal.errors import InputError

Kind = TypeVar("Kind")
Name = TypeVar("Name", bound=str)

_CLIP = 40
_MOST_ITEMS = 100_000
# Nearer to 0 or 1, a quantile of noise is beyond floating-point numbers.
_LEAST_CONFIDENCE = 1e-12
_MOST_CONFIDENCE = 1 - 1e-12
_SHOWN = (str, bytes, bool, int, float, complex, Fraction, Decimal, type(None))
# The most digits of an amount, as many as manifests allow: "1e999999999", which is short to write,
# has many more.
MOST_DIGITS = 400
_LONG_EXPONENT = re.compile(r"[eE][+-]?[\d_]{4,}")


def shown(value: object, most: int = _CLIP) -> str:
    """A value as a message may show it: short, on one line, and of arrays and objects the type.

    Example:
        >>> shown(0.5), shown("a"), shown([1, 2]), shown(10**5000)
        ('0.5', "'a'", 'a list', 'a number of thousands of digits')
    """
    # A number of NumPy is shown as Python's own.
    if isinstance(value, np.generic):
        with suppress(Exception):
            value = value.item()
    if type(value) not in _SHOWN:
        name = type(value).__name__
        article = "an" if name[:1].lower() in set("aeiou") else "a"
        return f"{article} {name[:_CLIP]}"
    if isinstance(value, str | bytes):
        # A long text is cut before it is written: escapes only make it longer.
        value = value[: 2 * most]
    try:
        written = str(value) if isinstance(value, Decimal | Fraction) else repr(value)
    except ValueError:
        # Python does not print so many digits.
        return "a number of thousands of digits"
    return written if len(written) <= most else f"{written[:most]} ..."


def is_number(value: object) -> bool:
    """Whether it is a real number, of Python or NumPy; true and false are none.

    Example:
        >>> is_number(2), is_number(np.float32(2)), is_number(True), is_number("2")
        (True, True, False, False)
    """
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def number(
    value: object,
    name: str,
    *,
    least: float = -math.inf,
    most: float = math.inf,
    above: float = -math.inf,
    below: float = math.inf,
    infinite: bool = False,
    example: float = 1,
) -> float:
    """A number in a range, as a float.

    Example:
        >>> number(np.float32(0.5), "gamma", above=0, below=1)
        0.5
        >>> number(2, "gamma", above=0, below=1)
        Traceback (most recent call last):
        shoal.errors.InputError: gamma is 2; allowed: a finite number above 0 and below 1; ...
    """
    # What is no number stays NaN, which is in no range.
    found = math.nan
    if is_number(value):
        with suppress(OverflowError, ValueError, TypeError):
            found = float(value)  # type: ignore[arg-type]
    # Infinite limits are none, also for infinite numbers.
    is_above = found > above or above == -math.inf
    is_below = found < below or below == math.inf
    inside = least <= found <= most and is_above and is_below
    if inside and (infinite or math.isfinite(found)):
        # Zero has one sign: two spellings of a question would be charged twice.
        return found + 0.0
    limits = []
    if least > -math.inf:
        limits.append(f"of at least {least:g}")
    if above > -math.inf:
        limits.append(f"above {above:g}")
    if most < math.inf:
        limits.append(f"of at most {most:g}")
    if below < math.inf:
        limits.append(f"below {below:g}")
    kind = "a number" if infinite else "a finite number"
    raise InputError(
        f"{name} is {shown(value)}",
        f"{kind} {' and '.join(limits)}".strip(),
        f"give for example {example!r}",
    )


def whole(
    value: object, name: str, *, least: int = 0, most: int = 2**62, example: int | None = None
) -> int:
    """A whole number in a range, as Python's own.

    Example:
        >>> whole(np.int16(3), "cap", least=1)
        3
    """
    if isinstance(value, Integral) and not isinstance(value, bool | np.bool_):
        found = int(value)
        if least <= found <= most:
            return found
    raise InputError(
        f"{name} is {shown(value)}",
        f"a whole number from {least} to {most}",
        f"give for example {least if example is None else example}",
    )


def choice(value: object, options: Iterable[Name], name: str) -> Name:
    """One of some names.

    Example:
        >>> choice("mean", ("mean", "variance"), "statistic")
        'mean'
    """
    known = tuple(options)
    if isinstance(value, str):
        for option in known:
            if option == value:
                return option
    raise InputError(
        f"{name} is {shown(value)}", f"one of {', '.join(known)}", f"give another {name}"
    )


def instance(value: object, kind: type[Kind], name: str, todo: str) -> Kind:
    """An object of a class.

    Example:
        >>> instance(3, int, "a number", "give one")
        3
    """
    if isinstance(value, kind):
        return value
    raise InputError(f"{name} has the type {type(value).__name__[:_CLIP]}", kind.__name__, todo)


def optional(value: object, check: Callable[..., Kind], *args: object, **named: Any) -> Kind | None:
    """None, or what another check makes of it.

    Example:
        >>> optional(None, whole, "cap"), optional(3, whole, "cap")
        (None, 3)
    """
    return None if value is None else check(value, *args, **named)


def items(value: object, name: str, *, least: int = 1, most: int = _MOST_ITEMS) -> list[Any]:
    """The parts of a list, tuple or array of one dimension; no text, and no endless iterator.

    Example:
        >>> items((1, 2), "epsilons"), items(np.array([0.5]), "epsilons")
        ([1, 2], [0.5])
    """
    found: list[Any] | None = None
    if isinstance(value, np.ndarray):
        found = value.tolist() if value.ndim == 1 and not np.ma.is_masked(value) else None
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        found = list(value) if len(value) <= most else None
    if found is not None and least <= len(found) <= most:
        return found
    got = shown(value) if found is None else f"a list of {len(found)}"
    allowed = f"a list of {least}" if least == most else f"a list of {least} to {most}"
    raise InputError(f"{name} is {got}", f"give {allowed}")


def mapping(value: object, name: str) -> dict[str, Any]:
    """A mapping by texts, as a dictionary.

    Example:
        >>> mapping({"a": 1}, "weights")
        {'a': 1}
    """
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return dict(value)
    raise InputError(
        f"{name} is {shown(value)}", "a dictionary with texts as keys", f"leave {name} out"
    )


def check_confidence(confidence: object) -> float:
    """A probability between 1e-12 and 1 - 1e-12, so that it and what is left are both told from 1.

    Example:
        >>> check_confidence(0.95)
        0.95
    """
    # Ends within 1e-12 of 0 and 1 would be printed as 0 and 1.
    number(confidence, "confidence", above=0, below=1, example=0.95)
    least = _LEAST_CONFIDENCE
    most = _MOST_CONFIDENCE
    return number(confidence, "confidence", least=least, most=most, example=0.95)


def text(value: object, name: str, *, most: int = 1000) -> str:
    """A text that is not empty, that can be written down as UTF-8, and is not too long.

    Example:
        >>> text("dest", "a column")
        'dest'
    """
    with suppress(UnicodeEncodeError):
        if isinstance(value, str) and 0 < len(value) <= most and b"\0" not in value.encode():
            return str(value)
    raise InputError(
        f"{name} is {shown(value)}", f"a text of 1 to {most} characters", "give for example 'dest'"
    )


def path(value: object, name: str = "path") -> str:
    """A path as text: not empty, no zero byte.

    Example:
        >>> from pathlib import Path
        >>> path(Path("a.csv"))
        'a.csv'
    """
    found = os.fspath(value) if isinstance(value, str | os.PathLike) else ""
    if isinstance(found, str) and found and "\0" not in found:
        return found
    raise InputError(f"{name} is {shown(value)}", "a path", "give the name of a file")


def keywords(given: Iterable[str], known: Iterable[str], where: str, todo: str = "") -> None:
    """Refuse options that a function which passes them on does not have.

    Example:
        >>> keywords(["seed"], ["noise"], "mean.auto")
        Traceback (most recent call last):
        shoal.errors.InputError: mean.auto has no option 'seed'; allowed: noise; check the spelling.
    """
    names = list(known)
    unknown = [name for name in given if name not in names]
    if unknown:
        worst = min(unknown)
        got = f"{where} has no option {shown(worst)}{suggestions(worst, names)}"
        raise InputError(got, ", ".join(names), todo or "check the spelling")


def suggestions(name: str, known: Iterable[str]) -> str:
    """Returns ' (did you mean ...?)' with up to three known names close to this one, or nothing.

    Example:
        >>> suggestions("min_user", ["min_users", "delta"]), suggestions("seed", ["noise"])
        (" (did you mean 'min_users'?)", '')
    """
    by_letters = {re.sub(r"[\W_]", "", each.casefold()): each for each in known}
    near = get_close_matches(re.sub(r"[\W_]", "", name.casefold()), by_letters, n=3, cutoff=0.7)
    if not near:
        return ""
    return f" (did you mean {' or '.join(repr(by_letters[each]) for each in near)}?)"


def amount(value: object, name: str) -> Fraction:
    """An exact amount of privacy loss, 0 or more; a float counts as its shortest decimal.

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
    """Returns an amount exactly; ValueError or TypeError if it is none."""
    if isinstance(value, bool | np.bool_):
        raise TypeError
    if isinstance(value, Integral):
        return Fraction(int(value))
    if isinstance(value, Fraction):
        return value
    if isinstance(value, np.floating):
        # In as many digits as tell it from others, whatever NumPy is told to print.
        written = np.format_float_scientific(value)
    elif isinstance(value, str | float | Decimal):
        written = str(value)
    else:
        raise TypeError
    too_long = len(written) > 2 * MOST_DIGITS or _LONG_EXPONENT.search(written)
    # Python would also take underscores and digits of other scripts.
    if too_long or "_" in written or not written.isascii():
        raise ValueError
    return Fraction(written)
