"""Arguments of many packages, refused in one way.

Each function returns the argument in the one form that the library works with, or raises an
InputError of one short line. Nothing here trusts an argument: not its class, its length, its text
or how it compares. Arrays and tables, which may hold private values, are shown by their type.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from numbers import Integral
from typing import Any, TypeVar

import numpy as np

from shoal.checks.frozen import thaw
from shoal.errors import InputError, is_failure

Kind = TypeVar("Kind")
Name = TypeVar("Name", bound=str)

_CLIP = 40
_MOST_ITEMS = 100_000
# Nearer to 1, a quantile of noise is beyond floating-point numbers.
_LEAST_CONFIDENCE, _MOST_CONFIDENCE = 1e-12, 1 - 1e-12
_MOST_FACTS = 100_000
_FACTS, _LARGEST_FACT = (str, int, bool, type(None)), 2**63
_SHOWN = (str, bytes, bool, int, float, complex, Fraction, Decimal, type(None))


def shown(value: object, most: int = _CLIP) -> str:
    """A value as a message may show it: short, on one line, and of arrays and objects the type.

    Example:
        >>> shown(0.5), shown("a"), shown([1, 2]), shown(10**5000)
        ('0.5', "'a'", 'a list', 'a number of thousands of digits')
    """
    if isinstance(value, np.generic):
        with suppress(Exception):
            value = value.item()
    if type(value) not in _SHOWN:
        name = type(value).__name__
        return f"{'an' if name[:1].lower() in set('aeiou') else 'a'} {name[:_CLIP]}"
    if isinstance(value, str | bytes):
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

    Args:
        value: What was given.
        name: What it is called.
        least: Smallest that is allowed.
        most: Largest that is allowed.
        above: It must be larger than this.
        below: It must be smaller than this.
        infinite: Whether infinity is allowed where the range has no end.
        example: What could be given.

    Raises:
        InputError: Another thing, or outside the range.

    Example:
        >>> number(np.float32(0.5), "gamma", above=0, below=1)
        0.5
        >>> number(2, "gamma", above=0, below=1)
        Traceback (most recent call last):
        shoal.errors.InputError: gamma is 2; allowed: a finite number above 0 and below 1; ...
    """
    found = math.nan
    if is_number(value):
        with suppress(OverflowError, ValueError, TypeError):
            found = float(value)  # type: ignore[arg-type]
    ends = (found > above or above == -math.inf) and (found < below or below == math.inf)
    inside = least <= found <= most and ends
    if inside and (infinite or math.isfinite(found)):
        # Zero has one sign: two spellings of a question would be charged twice.
        return found + 0.0
    words = [
        *([f"of at least {least:g}"] if least > -math.inf else []),
        *([f"above {above:g}"] if above > -math.inf else []),
        *([f"of at most {most:g}"] if most < math.inf else []),
        *([f"below {below:g}"] if below < math.inf else []),
    ]
    kind = "a number" if infinite else "a finite number"
    raise InputError(
        f"{name} is {shown(value)}",
        " ".join([kind, " and ".join(words)]).strip(),
        f"give for example {example!r}",
    )


def whole(
    value: object, name: str, *, least: int = 0, most: int = 2**62, example: int | None = None
) -> int:
    """A whole number in a range, as Python's own.

    Raises:
        InputError: Another thing, or outside the range.

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


def text(value: object, name: str, *, most: int = 1000) -> str:
    """A text that is not empty, that can be written down as UTF-8, and is not too long.

    Raises:
        InputError: It is not.

    Example:
        >>> text("dest", "a column")
        'dest'
    """
    if isinstance(value, str) and 0 < len(value) <= most and _writable(value):
        return str(value)
    raise InputError(
        f"{name} is {shown(value)}", f"a text of 1 to {most} characters", "give the name of one"
    )


def choice(value: object, options: Iterable[Name], name: str) -> Name:
    """One of some names.

    Raises:
        InputError: Another one, or no text.

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


def truth(value: object, name: str) -> bool:
    """True or False, and nothing that only counts as one.

    Raises:
        InputError: Another thing.

    Example:
        >>> truth(np.True_, "reuse")
        True
    """
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise InputError(f"{name} is {shown(value)}", "True or False", f"say {name}=True or leave it")


def instance(value: object, kind: type[Kind], name: str, todo: str) -> Kind:
    """An object of a class.

    Raises:
        InputError: An object of another.

    Example:
        >>> instance(3, int, "a number", "give one")
        3
    """
    if isinstance(value, kind):
        return value
    raise InputError(f"{name} of type {type(value).__name__[:_CLIP]}", f"{kind.__name__}", todo)


def function(value: object, name: str, todo: str) -> None:
    """Refuse what cannot be called.

    Raises:
        InputError: It cannot be.

    Example:
        >>> function(len, "progress", "leave it out")
    """
    if not callable(value):
        raise InputError(f"{name} of type {type(value).__name__[:_CLIP]}", "a function", todo)


def optional(value: object, check: Callable[..., Kind], *args: object, **named: Any) -> Kind | None:
    """None, or what another check makes of it.

    Example:
        >>> optional(None, whole, "cap"), optional(3, whole, "cap")
        (None, 3)
    """
    return None if value is None else check(value, *args, **named)


def items(value: object, name: str, *, least: int = 1, most: int = _MOST_ITEMS) -> list[Any]:
    """The parts of a list, tuple or array of one dimension; no text, and no endless iterator.

    Raises:
        InputError: Another thing, or too few or too many parts.

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
    raise InputError(f"{name} is {got}", allowed, "put them in a list")


def mapping(value: object, name: str) -> dict[str, Any]:
    """A mapping by texts, as a dictionary.

    Raises:
        InputError: Another thing, or a key that is no text.

    Example:
        >>> mapping({"a": 1}, "weights")
        {'a': 1}
    """
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return dict(value)
    raise InputError(f"{name} is {shown(value)}", "a mapping by name", f"leave {name} out")


def public_facts(value: object, name: str) -> dict[str, Any]:
    """A mapping that can be written as JSON as it is: a public description in plans and manifests.

    Raises:
        InputError: Another thing, or one that JSON cannot hold.

    Example:
        >>> public_facts({"year": 2013}, "source")
        {'year': 2013}
    """
    found, written = thaw(mapping(value, name)), ""
    with suppress(Exception):
        written = json.dumps(found, allow_nan=False, ensure_ascii=False)
        written.encode()
        if len(written) <= _MOST_FACTS and json.loads(written) == found:
            return {**found}
    raise InputError(
        f"{name} that cannot be written as JSON",
        f"texts, numbers, lists and mappings of at most {_MOST_FACTS} characters",
        f"leave {name} out",
    )


def plain_facts(value: object, name: str) -> dict[str, Any]:
    """The same where a schema wants one fact a name: no lists, no mappings, no fractions.

    Raises:
        InputError: As `public_facts`, or a fact that is no text, whole number, truth or None.

    Example:
        >>> plain_facts({"year": 2013}, "source")
        {'year': 2013}
    """
    found = public_facts(value, name)
    for each in found.values():
        if type(each) not in _FACTS or (type(each) is int and abs(each) >= _LARGEST_FACT):
            raise InputError(
                f"{name} with {shown(each)}",
                "texts, whole numbers of less than 64 bits, truths and None",
                "give lists and fractions as texts",
            )
    return found


def path(value: object, name: str = "path") -> str:
    """A path as text: no zero byte, nothing that the file system cannot be asked for.

    Raises:
        InputError: It is none.

    Example:
        >>> from pathlib import Path
        >>> path(Path("a.csv"))
        'a.csv'
    """
    found: object = None
    if isinstance(value, str | os.PathLike):
        with suppress(Exception):
            found = os.fspath(value)
    if isinstance(found, str) and found and "\0" not in found:
        with suppress(UnicodeError):
            os.fsencode(found)
            return str(found)
    raise InputError(f"{name} is {shown(value)}", "a path", "give the name of a file")


def array(value: object) -> np.ndarray[Any, Any] | None:
    """A plain NumPy array, or None for what cannot be one; says nothing of what is in it.

    Masked values, ragged lists and objects that fail are None: NumPy would read what is behind a
    mask, and the text of its errors may hold a value.

    Example:
        >>> array([1, 2]).tolist(), array([[1], [2, 3]]) is None
        ([1, 2], True)
    """
    try:
        if np.ma.is_masked(value):
            return None
        found = np.asarray(value)
    except BaseException as error:
        if not is_failure(error):
            raise
        return None
    return found if found.dtype.kind in "biufUSMmO" else None


def numbers(value: object) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """Real numbers as a floating-point array of any shape, or None.

    Example:
        >>> numbers([1, 2]).tolist(), numbers(["a"]) is None
        ([1.0, 2.0], True)
    """
    found = array(value)
    if found is None or found.dtype.kind not in "biuf":
        return None
    with np.errstate(over="ignore"):
        return found.astype(np.float64)


def check_confidence(confidence: object) -> float:
    """A probability between 1e-12 and 1 - 1e-12, so that it and what is left are both told from 1.

    Raises:
        InputError: It is not.

    Example:
        >>> check_confidence(0.95)
        0.95
    """
    # Ends within 1e-12 of 0 and 1 would be printed as 0 and 1.
    number(confidence, "confidence", above=0, below=1, example=0.95)
    least, most = _LEAST_CONFIDENCE, _MOST_CONFIDENCE
    return number(confidence, "confidence", least=least, most=most, example=0.95)


def _writable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value
