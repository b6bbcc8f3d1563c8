"""Labels of outcomes among Python objects: each is read by itself, and none decides for others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

# Missing values of pandas and PyArrow, by the names of their types.
_ABSENT = ("NAType", "NaTType")
_MOST_LABEL = 10**18
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)


def texts(outcomes: Any, *, whole: bool) -> list[str | None]:  # noqa: ANN401
    """Objects as texts, one by one: what is none is no label, and None and NaN are missing.

    Args:
        outcomes: Python objects. Private.
        whole: Whether all labels are whole numbers, so that a whole number is its label.

    Raises:
        TypeError: They have no length.

    Guarantees: G-CELLWISE.

    Example:
        >>> texts(["2", 2, 2.0, True, None, b"2"], whole=True)
        ['2', '2', '2', '1', None, '']
    """
    if not hasattr(outcomes, "__len__"):
        # It may never end.
        raise TypeError
    return [_text(each, whole=whole) for each in outcomes]


def _text(outcome: object, *, whole: bool) -> str | None:
    """One outcome as a text, whatever it is: an error would tell of it."""
    if isinstance(outcome, str):
        # Broken text is no label, and could not be written down.
        return outcome if outcome.encode(errors="ignore").decode() == outcome else ""
    if isinstance(outcome, float | np.floating) and math.isnan(outcome):
        return None
    if outcome is None or type(outcome).__name__ in _ABSENT:
        return None
    if isinstance(outcome, bool | np.bool_) and not whole:
        return str(bool(outcome))
    if whole and isinstance(outcome, _NUMBERS) and -_MOST_LABEL <= outcome <= _MOST_LABEL:
        return str(int(outcome)) if outcome == int(outcome) else ""
    return ""
