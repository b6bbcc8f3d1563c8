"""Keys of cells for the second opinion: of their types, different, in order, and their labels.

Nothing is imported from statistics, planning, mechanisms, bounding, records or theory, as in
`verify`.
"""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from shoal.documents.key_texts import key_of

if TYPE_CHECKING:
    from shoal import documents


def keys_hold(cells: documents.Document, size: int) -> tuple[bool, str]:
    """Whether there is one key for each cell: of its column's type, different, and in order.

    Args:
        cells: Columns of keys.
        size: Cells that somebody is in.
    """
    columns = cells["columns"]
    names = [column["name"] for column in columns]
    if len(set(names)) < len(names):
        return False, "two columns of one name"
    if any(len(column["values"]) != size for column in columns):
        return False, "cells without members, or members without a cell"
    read = [[key_of(column["type"], value) for value in column["values"]] for column in columns]
    if any(key is None for column in read for key in column):
        return False, "a key of another type than its column"
    rows = list(zip(*read, strict=True))
    holds = all(low < high for low, high in pairwise(rows))
    return holds, f"{size} different cells of {', '.join(map(repr, names))}"


def labels(cells: documents.Document) -> list[str]:
    """What a user calls each cell: its keys, joined by a middle dot."""
    columns = cells["columns"]
    texts = [[_label(column["type"], value) for value in column["values"]] for column in columns]
    return [" \u00b7 ".join(parts) for parts in zip(*texts, strict=True)]


def _label(kind: str, value: object) -> str:
    if kind.startswith("timestamp"):
        found = datetime.fromisoformat(str(value))
        return found.isoformat(sep=" ", timespec="minutes" if found.second == 0 else "auto")
    return str(value)
