"""Keys as documents hold them: of their type, in the one spelling that each of them has."""

import re
from datetime import date, datetime
from typing import Any

_WHOLE = re.compile(r"(u?)int(8|16|32|64)")


def key_of(kind: str, value: object) -> Any:
    """What a key of a document is ordered by; None for a value that its type does not have.

    Args:
        kind: The type as Arrow names it.
        value: A text, whole number or truth; of a moment, the one text that it has.

    Example:
        >>> key_of("int8", 3), key_of("int8", 300), key_of("date32[day]", "20130102")
        (3, None, None)
    """
    if kind == "string":
        # Texts are ordered by their bytes.
        return value.encode() if isinstance(value, str) else None
    if kind == "bool":
        return value if isinstance(value, bool) else None
    whole = _WHOLE.fullmatch(kind)
    if whole is not None:
        bits = int(whole[2])
        least, most = (0, 2**bits) if whole[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1))
        return value if type(value) is int and least <= value < most else None
    return _moment(kind, value)


def _moment(kind: str, value: object) -> Any:
    if not isinstance(value, str):
        return None
    try:
        found = (date if kind.startswith("date32") else datetime).fromisoformat(value)
    except ValueError:
        return None
    # One text for each moment.
    if found.isoformat() != value:
        return None
    if isinstance(found, datetime) and (found.tzinfo is None) == (", tz=" in kind):
        return None
    return found
