"""Keys of users and cells: discrete columns, encoded as small integers, without nulls."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.checks import is_object_column
from shoal.documents.strict_json import canonical_bytes
from shoal.errors import DataError, DocumentError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.documents import Document


# Two columns with this many codes in product still fit 64 bits.
_MOST_CODES = 2**62
# What documents hold of a column's name, and of columns that make a cell.
LONGEST_NAME, MOST_COLUMNS = 200, 64
_FIRST_DAY, _LAST_DAY = (
    day.toordinal() - date(1970, 1, 1).toordinal() for day in (date.min, date.max)
)
_PER_DAY = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
# In a microsecond, the least that texts of times tell apart.
_NANOSECONDS = 1000
# Classes before those that they are special cases of.
_FAMILIES = (str, bool, int, datetime, date)


def as_array(values: object, name: str) -> pa.Array[Any]:
    """A column of keys as one Arrow array.

    Raises:
        DataError: Not a flat column of text, integers, booleans, dates or times, or a null in it.
    """
    array = values if isinstance(values, pa.Array | pa.ChunkedArray) else _to_arrow(values)
    if array is None:
        raise _bad_type(name, "mixed or nested values")
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    if pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type):
        array = array.cast(pa.string())
    if array.null_count:
        raise DataError(
            f"a null in the {name} column",
            "a key in every row",
            'leave such rows out, or declare missing="public" to drop them',
        )
    if not _is_key(array.type):
        raise _bad_type(name, str(array.type))
    if not _is_utf8(array):
        raise _bad_type(name, "text that is not UTF-8")
    if not _has_a_text(array):
        raise DataError(
            f"dates or times in the column {name} that have no text of their own",
            "days of the years 1 to 9999 and times in whole microseconds",
            "leave such rows out, or round the times",
        )
    return array


def _is_utf8(array: pa.Array[Any]) -> bool:
    """Whether every text can be written down; Arrow takes bytes of any kind for one."""
    if not pa.types.is_string(array.type):
        return True
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def is_name(name: object) -> bool:
    r"""Whether a column may be called so: what is not read in a line has no place in a manifest.

    Example:
        >>> is_name("dest"), is_name("a\nb"), is_name("")
        (True, False, False)
    """
    return isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable()


def _has_a_text(array: pa.Array[Any]) -> bool:
    """Whether every date or time is one that documents can write and read back."""
    kind: Any = array.type
    if not len(array) or not (pa.types.is_date32(kind) or pa.types.is_timestamp(kind)):
        return True
    times, unit = pa.types.is_timestamp(kind), str(getattr(kind, "unit", ""))
    whole = array.cast(pa.int64() if times else pa.int32()).to_numpy(zero_copy_only=False)
    # Where clocks differ from UTC by up to a day, the first and the last day may have no text.
    away = 1 if getattr(kind, "tz", None) not in {None, "UTC"} else 0
    days = whole // _PER_DAY[unit] if times else whole
    inside = int(days.min()) >= _FIRST_DAY + away and int(days.max()) <= _LAST_DAY - away
    return inside and not (unit == "ns" and bool((whole % _NANOSECONDS).any()))


def as_table(cells: object) -> pa.Table:
    """Key columns of cells as an Arrow table; a single column is called `cell`."""
    if isinstance(cells, pa.Table):
        if len(set(cells.column_names)) < len(cells.column_names):
            raise DataError(
                "cells with two columns of one name", "a name for each", "rename one of them"
            )
        columns: dict[str, Any] = {name: cells.column(name) for name in cells.column_names}
    elif isinstance(cells, Mapping):
        columns = dict(cells)
    else:
        columns = {"cell": cells}
    if not columns:
        raise DataError("no cell column", "at least one", "name the columns that make a cell")
    if len(columns) > MOST_COLUMNS or not all(is_name(str(name)) for name in columns):
        raise DataError(
            "cell columns that a manifest cannot hold",
            f"up to {MOST_COLUMNS} printable names of up to {LONGEST_NAME} characters",
            "rename or join the columns",
        )
    arrays = {str(name): as_array(column, str(name)) for name, column in columns.items()}
    if len({len(array) for array in arrays.values()}) != 1:
        raise DataError("cell columns of different length", "one length", "give one row a count")
    return pa.table(arrays)


def own_table(table: pa.Table) -> pa.Table:
    """The same table in bytes of its own, which nobody can write into.

    Arrow shares the memory of the NumPy arrays that a table was made of.

    Example:
        >>> given = np.array([1, 2])
        >>> kept = own_table(pa.table({"cell": given}))
        >>> given[0] = 7
        >>> kept["cell"].to_pylist()
        [1, 2]
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(pa.py_buffer(sink.getvalue().to_pybytes())).read_all()


def ranked(
    array: pa.Array[Any] | pa.ChunkedArray[Any], name: str
) -> tuple[pa.Array[Any], NDArray[np.int64]]:
    """The distinct keys, sorted, and each row's position among them.

    Numbers are sorted by size, false before true, dates and times by age, texts by their bytes in
    UTF-8: whatever the width of the type, the order of rows, chunks, dictionaries and the engine.

    Example:
        >>> ranked(pa.array(["b", "a", "b"]), "user")[1].tolist()
        [1, 0, 1]
    """
    encoded = as_array(array, name).dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    return encoded.dictionary.take(order), place[codes]


def encode(array: pa.Array[Any] | pa.ChunkedArray[Any], name: str) -> NDArray[np.int64]:
    """Each key's position among the distinct keys, 0.., sorted as by `ranked`.

    Keys are public, the order of rows is not: it may follow the values, so that a position by first
    appearance would change with the values of other users.
    """
    return ranked(array, name)[1]


def encode_cells(cells: pa.Table) -> tuple[pa.Table, NDArray[np.int64]]:
    """The distinct cells sorted by key, and each row's position among them."""
    columns = {name: as_array(cells.column(name), name) for name in cells.column_names}
    combined, size = np.zeros(cells.num_rows, dtype=np.int64), 1
    for column in columns.values():
        encoded = column.dictionary_encode()
        if size * len(encoded.dictionary) > _MOST_CODES:
            combined, size = _dense(combined)
        size *= len(encoded.dictionary)
        combined = combined * len(encoded.dictionary)
        combined += encoded.indices.to_numpy(zero_copy_only=False)
    combined, size = _dense(combined)
    first = np.empty(size, dtype=np.int64)
    # The last write stays: going backwards leaves the first row of each cell.
    first[combined[::-1]] = np.arange(len(combined))[::-1]
    distinct = pa.table(columns).take(first)
    keys: list[tuple[str, Literal["ascending", "descending"]]]
    keys = [(name, "ascending") for name in cells.column_names]
    order = pc.sort_indices(distinct, sort_keys=keys).to_numpy()
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return (
        distinct.take(order).combine_chunks(),
        place[combined],
    )


def _dense(codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    encoded = pa.array(codes).dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False), len(encoded.dictionary)


def _to_arrow(values: Any) -> pa.Array[Any] | pa.ChunkedArray[Any] | None:
    """An Arrow array, or None for what cannot be one; says nothing of what is in it."""
    try:
        # Arrow would read what is behind a mask.
        if isinstance(values, (Mapping, str, bytes, set, frozenset)) or np.ma.is_masked(values):
            return None
        if isinstance(values, tuple | range):
            values = list(values)
        if (isinstance(values, list) or is_object_column(values)) and not of_one_kind(values):
            return None
        found: pa.Array[Any] = pa.array(values)
        # Not every text that Arrow takes can be written down.
        found.validate(full=True)
    except Exception:
        return None
    return found


def of_one_kind(values: Any) -> bool:
    """Whether Python objects are of one kind; Arrow crashes over times of NumPy among numbers."""
    families = {_family(kind) for kind in set(map(type, values))} - {type(None)}
    # A missing text of a frame is NaN.
    return len(families) <= 1 or families == {str, float}


def _family(kind: type) -> type:
    """The kind of key that a class of Python or NumPy is; another class is one by itself."""
    if issubclass(kind, np.integer) and not issubclass(kind, np.timedelta64):
        return int
    if issubclass(kind, np.bool_):
        return bool
    return next((each for each in _FAMILIES if issubclass(kind, each)), kind)


def labels(cells: pa.Table) -> list[str]:
    """One readable name a row: the key columns joined by a middle dot."""
    columns = [[_text(value) for value in column.to_pylist()] for column in cells.columns]
    return [" · ".join(parts) for parts in zip(*columns, strict=True)]


def to_document(cells: pa.Table) -> Document:
    """Cell keys as JSON: the type of every column and its values."""
    return {
        "columns": [
            {
                "name": name,
                "type": str(cells.column(name).type),
                "values": [_plain(value) for value in cells.column(name).to_pylist()],
            }
            for name in cells.column_names
        ]
    }


def from_document(document: Document) -> pa.Table:
    """The inverse of `to_document`.

    Raises:
        DocumentError: A type or value that shoal does not write.
    """
    try:
        found = as_table(
            {
                column["name"]: _revive(column["values"], column["type"])
                for column in document["columns"]
            }
        )
        # The document itself is published: every key has one name and one text.
        same = canonical_bytes(to_document(found)) == canonical_bytes(document)
    except (KeyError, TypeError, ValueError, OverflowError, pa.ArrowException, DocumentError):
        same = False
    if not same:
        raise DocumentError(
            "the cells are damaged", "a document written by shoal", "write the file again"
        ) from None
    return found


def _revive(values: list[Any], kind: str) -> pa.Array[Any]:
    target = _type_named(kind)
    if str(target) != kind:
        raise ValueError
    if pa.types.is_timestamp(target):
        values = [datetime.fromisoformat(value) for value in values]
    elif pa.types.is_date(target):
        values = [date.fromisoformat(value) for value in values]
    found: pa.Array[Any] = pa.array(values, type=target)
    return found


def _type_named(kind: str) -> pa.DataType:
    named: Any = pa
    if kind.startswith("timestamp["):
        unit, _, zone = kind.removeprefix("timestamp[").removesuffix("]").partition(", tz=")
        found: pa.DataType = named.timestamp(unit, tz=zone or None)
    else:
        found = named.type_for_alias(kind.removesuffix("[day]"))
    return found


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, date) else value


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="minutes" if value.second == 0 else "auto")
    return str(value)


def _is_key(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_timestamp(kind)
    )


def _bad_type(name: str, got: str) -> DataError:
    return DataError(
        f"the column {name} holds {got}",
        "text, integers, booleans, dates or times",
        "turn it into one of these, for example by rounding",
    )
