"""Values of a manifest, read strictly: a second opinion takes nothing for what it is not.

Errors are Python's own: `shoal.verification.verdict.checked` turns them into one word for a
damaged manifest.
"""

import math
import re
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal import documents

_PACKED = {"type", "length", "data"}
_EACH_ROW = "each row"
_TWELVE_DIGITS = 1 + Fraction(1, 10**11)
_LONGEST_NAME = 200
# Python turns whole numbers of up to 4300 digits into text and back.
_WHOLE = "[1-9][0-9]{0,4299}"
_RATIONAL = re.compile(f"(0|{_WHOLE})(/{_WHOLE})?", re.ASCII)


def whole(value: object, least: int | None = None, most: int | None = None) -> int:
    """A whole number in a range, or ValueError; true and false are none.

    Example:
        >>> whole(3, 0, 5)
        3
    """
    if type(value) is not int:
        raise ValueError
    if (least is not None and value < least) or (most is not None and value > most):
        raise ValueError
    return value


def real(value: object) -> float:
    """A finite number, or ValueError; true and false are none.

    Example:
        >>> real(1)
        1.0
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError
    return float(value)


def text(value: object) -> str:
    """A text, or TypeError.

    Example:
        >>> text("a")
        'a'
    """
    if not isinstance(value, str):
        raise TypeError
    return value


def rational(value: object) -> Fraction:
    """A fraction from 0 in lowest terms, as shoal writes it, or ValueError.

    Example:
        >>> rational("1/3")
        Fraction(1, 3)
    """
    if not isinstance(value, str) or not _RATIONAL.fullmatch(value):
        raise ValueError
    found = Fraction(value)
    if str(found) != value:
        raise ValueError
    return found


def rounded_up(stated: Fraction, exact: Fraction) -> bool:
    """Whether a stated loss is the exact one, or that rounded up to twelve significant digits.

    Example:
        >>> third = Fraction(1, 3)
        >>> rounded_up(third, third), rounded_up(Fraction("0.333333333334"), third)
        (True, True)
        >>> rounded_up(Fraction("0.333333333333"), third), rounded_up(Fraction("0.33334"), third)
        (False, False)
    """
    return exact <= stated <= exact * _TWELVE_DIGITS


def unit(value: object) -> str:
    """The words of a privacy unit as manifests hold it, or no words if it is none.

    Example:
        >>> unit({"name": "person", "relation": "values", "records": "all"}), unit("person")
        ('all values of one person', '')
    """
    if not isinstance(value, dict) or value.keys() != {"name", "relation", "records"}:
        return ""
    name = value["name"]
    rows = name == _EACH_ROW
    right = value["relation"] == "values" and value["records"] == ("one" if rows else "all")
    if not right or not name or not release_name(name):
        return ""
    return "the values of one row" if rows else f"all values of one {name}"


def release_name(value: object) -> bool:
    """Whether a value is what a release may be named: short printable text, or nothing.

    Example:
        >>> release_name("2013-05"), release_name(""), release_name(5)
        (True, True, False)
    """
    return printable_name(value) and value == " ".join(str(value).split())


def printable_name(value: object) -> bool:
    """Whether a value is short printable text, or nothing: what a column may be named.

    Example:
        >>> printable_name(" value"), printable_name("x" * 201), printable_name(5)
        (True, False, False)
    """
    return isinstance(value, str) and value.isprintable() and len(value) <= _LONGEST_NAME


def integers(packed: documents.Document, what: str, length: int | None = None) -> NDArray[np.int64]:
    """Packed whole numbers from 0, as many as said, or ValueError.

    Example:
        >>> import numpy as np
        >>> integers(documents.pack_integers(np.array([3, 1])), "sizes", 2).tolist()
        [3, 1]
    """
    if packed.keys() != _PACKED:
        raise ValueError
    found = documents.unpack_integers(packed, what)
    if length is not None and len(found) != length:
        raise ValueError
    return found
