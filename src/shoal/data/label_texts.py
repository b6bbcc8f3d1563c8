"""Labels of outcomes among Python objects: each is read by itself, and none decides for others."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from shoal.checks import is_object_column

if TYPE_CHECKING:
    from collections.abc import Iterable

# Missing values of pandas and PyArrow, by the names of their types.
_ABSENT = ("NAType", "NaTType")
_MOST_LABEL = 10**18
_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_WHOLE = (bool, int, np.bool_, np.integer)
_NUMBERS = (*_WHOLE, float, np.floating)
_MOMENTS = (np.datetime64, np.timedelta64)


def texts(outcomes: Any, *, whole: bool) -> list[str | None] | None:
    """Objects as texts, one by one: what is none is no label, and None and NaN are missing.

    Texts of NumPy, and those that pandas keeps as Python's, are read so, too: they may be broken.

    Args:
        outcomes: One column. Private.
        whole: Whether all labels are whole numbers, so that a whole number is its label.

    Returns:
        A text or None for each; None for a column that has another type.

    Raises:
        TypeError: Not one column: another shape, or no order.

    Guarantees: G-RECORDS.

    Example:
        >>> texts(["2", 2, 2.0, True, None, b"2"], whole=True)
        ['2', '2', '2', '1', None, '']
    """
    if isinstance(outcomes, str | bytes):
        raise TypeError
    if not (
        _has_own_texts(outcomes) or isinstance(outcomes, list | tuple) or is_object_column(outcomes)
    ):
        return None
    # Without a length it may never end; without places, as in a set, nobody knows whose is whose.
    placed = hasattr(outcomes, "__len__") and hasattr(outcomes, "__getitem__")
    if not placed or getattr(outcomes, "ndim", 1) != 1:
        raise TypeError
    cells: Iterable[object] = outcomes
    if isinstance(outcomes, np.ma.MaskedArray):
        cells = given = outcomes.data.astype(object)
        given[np.ma.getmaskarray(outcomes)] = None
    cells = list(cells)
    # Rows of one column each are another shape, and not the fault of one outcome.
    if cells and all(map(_holds_others, cells)):
        raise TypeError
    return [_text(each, whole=whole) for each in cells]


def is_text(kind: pa.DataType) -> bool:
    """Whether a type of Arrow is one of its three of texts."""
    return any(test(kind) for test in _TEXTS)


def _holds_others(cell: object) -> bool:
    return hasattr(cell, "__len__") and not isinstance(cell, str | bytes)


def _has_own_texts(outcomes: object) -> bool:
    """Whether it is a column of texts that Arrow does not hold."""
    kind = getattr(outcomes, "dtype", None)
    if hasattr(kind, "pyarrow_dtype"):
        return False
    return getattr(kind, "kind", "") in ("U", "T") or getattr(kind, "storage", "") == "python"


def _text(outcome: object, *, whole: bool) -> str | None:
    """One outcome as a text, whatever it is: an error would tell of it."""
    if isinstance(outcome, pa.Scalar):
        outcome = _of_arrow(outcome)
    if isinstance(outcome, str):
        # Broken text is no label, and could not be written down.
        return outcome if outcome.encode(errors="ignore").decode() == outcome else ""
    if _is_missing(outcome):
        return None
    if isinstance(outcome, bool | np.bool_) and not whole:
        return str(bool(outcome))
    if whole and isinstance(outcome, _NUMBERS) and not isinstance(outcome, _MOMENTS):
        value = int(outcome) if isinstance(outcome, _WHOLE) else float(outcome)
        if -_MOST_LABEL <= value <= _MOST_LABEL and value == int(value):
            return str(int(value))
    return ""


def _is_missing(outcome: object) -> bool:
    if isinstance(outcome, float | np.floating):
        return bool(np.isnan(outcome))
    if isinstance(outcome, Decimal):
        return outcome.is_nan()
    if isinstance(outcome, _MOMENTS):
        return bool(np.isnat(outcome))
    return outcome is None or outcome is np.ma.masked or type(outcome).__name__ in _ABSENT


def _of_arrow(outcome: Any) -> object:
    """What a scalar of Arrow is in Python, where it may be a label."""
    if not outcome.is_valid:
        return None
    if isinstance(outcome, pa.DictionaryScalar):
        return _of_arrow(outcome.value)
    kind = outcome.type
    if is_text(kind):
        # Arrow takes bytes for a text that are none.
        return outcome.as_buffer().to_pybytes().decode(errors="replace")
    numbers = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating)
    return outcome.as_py() if any(test(kind) for test in numbers) else b""
