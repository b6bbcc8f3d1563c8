"""Keys of users and cells: discrete columns without nulls, and their order."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.arrays import Ints
from shoal.checks import shown
from shoal.data.types import MOST_WHOLE, in_words, kind_in_arrow
from shoal.documents.strict_json import Document, canonical_bytes
from shoal.errors import DataError, DocumentError, InputError, ShoalWarning
from shoal.privacy.unit import plain_spelling

Whole = Ints

# What documents hold of a column's name, and of columns that make a cell.
LONGEST_NAME = 200
MOST_COLUMNS = 64
# Codes of several columns together fit 64 bits.
_MOST_CODES = 2**62
_FIRST_DAY, _LAST_DAY = (
    day.toordinal() - date(1970, 1, 1).toordinal() for day in (date.min, date.max)
)
_PER_DAY = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
# What R, databases and Python write for nothing.
_WORDS_FOR_NOTHING = (
    *("NA", "N/A", "#N/A", "<NA>", "NULL", "null", "None", "none", "nan", "NaN", "NaT", "\\N"),
)
# Between the keys of a cell in its name.
_SEPARATOR = " · "
# In a microsecond, the least that texts of times tell apart.
_NANOSECONDS = 1000


def as_array(values: Any, name: str) -> pa.Array[Any]:
    """Returns keys as one Arrow array, without nulls and of a type that keys may have."""
    given = _in_arrow(values)
    array = None if given is None else _as_named(given)
    if any(each is not None and each.null_count for each in (given, array)):
        raise DataError(
            f"the {name} column has a null",
            'leave such rows out, or declare missing="public" to drop them',
        )
    if array is None:
        odd = "mixed or nested values, or text that is not UTF-8"
        raise DataError(
            f"the column {name} holds {odd if given is None else in_words(given.type)}, which "
            "cannot name users or cells",
            "give text, integers (such as rounded numbers), booleans, dates or times",
        )
    if not _has_a_text(array):
        raise DataError(
            f"the column {name} has dates or times that are too early, late or fine",
            "give days of the years 1 to 9999 and times in whole microseconds",
        )
    column: pa.Array[Any] = array
    return column


def is_name(name: object) -> bool:
    """Whether a column may be called so: what is not read in a line has no place in a manifest."""
    return isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable()


def as_table(cells: Any, called: Callable[[str], str] = str) -> pa.Table:
    """Returns key columns of cells as an Arrow table, by what they are called; one alone `cell`."""
    if isinstance(cells, pa.Table):
        columns = list(zip(cells.column_names, cells.columns, strict=True))
    else:
        columns = list((cells if isinstance(cells, Mapping) else {"cell": cells}).items())
    names = [called(str(name)) for name, _ in columns]
    if not 0 < len(set(names)) == len(names) <= MOST_COLUMNS or not all(map(is_name, names)):
        raise DataError(
            f"there are {len(names)} cell columns, or names that a manifest cannot hold",
            f"give 1 to {MOST_COLUMNS} columns of different printable names of up to "
            f"{LONGEST_NAME} characters",
        )
    arrays = [as_array(column, name) for name, (_, column) in zip(names, columns, strict=True)]
    if len(set(map(len, arrays))) != 1:
        raise DataError("cell columns differ in length", "give one row for each count")
    return pa.Table.from_arrays(arrays, names=names)


def warn_of_words(name: str, column: Any) -> None:
    """Warns of texts that other programs write where there is nothing: here they are names."""
    if column.type not in {pa.string(), pa.large_string()}:
        return
    found = pc.filter(column, pc.is_in(column, value_set=pa.array(_WORDS_FOR_NOTHING)))
    for word in sorted(pc.unique(found).to_pylist()):
        warnings.warn(
            f"the column {name!r} holds the text {word} in some rows, which is taken as a name; if "
            "these rows lack one, leave the field empty",
            ShoalWarning,
            stacklevel=2,
        )


def numbers(column: Any) -> NDArray[Any]:
    """Returns numbers of Arrow without nulls in NumPy. Arrow's own way would load pandas."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return np.asarray(np.from_dlpack(whole))


def in_arrow(whole: Whole) -> pa.Array[Any]:
    """Inverts `numbers` for integers of 64 bits."""
    memory: Any = np.ascontiguousarray(whole, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(whole), [None, pa.py_buffer(memory)])


def ranked(array: Any, name: str) -> tuple[pa.Array[Any], Whole]:
    """Returns the distinct keys, sorted, and each row's position among them.

    Numbers are sorted by size, false before true, dates and times by age, texts by their bytes in
    UTF-8: whatever the type's width and the order of rows, which may follow the values.
    """
    encoded = as_array(array, name).dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    place = np.empty(len(order), dtype=np.int64)
    place[numbers(order)] = np.arange(len(order))
    return encoded.dictionary.take(order), place[numbers(encoded.indices)]


def encode(array: Any, name: str) -> Whole:
    """Returns each user's position among the distinct users as `ranked` sorts them."""
    users, place = ranked(array, name)
    check_spelling(users, name)
    return place


def check_spelling(distinct: Any, name: str) -> None:
    """Refuses names that differ only in blanks around them or in zeros of numbers, as 007 and 7.

    A person who is spelled in two ways would be two users, each of them protected by itself.
    """
    if not pa.types.is_string(distinct.type):
        return
    twice = len(distinct) - len(plain_spelling(distinct).unique())
    if twice:
        raise DataError(
            f"{twice} names of the {name} column are equal to others but for blanks around them, "
            "or as numbers, such as 007 and 7",
            "spell each of them in one way in all rows, or put a letter before those that differ",
        )


def encode_cells(cells: pa.Table) -> tuple[pa.Table, Whole]:
    """Returns the distinct cells sorted by key, and each row's position among them."""
    code = np.zeros(cells.num_rows, dtype=np.int64)
    size = 1
    for name in cells.column_names:
        keys, own = ranked(cells.column(name), name)
        if size * len(keys) > _MOST_CODES:
            code, size = _dense(code, size)
        code = code * len(keys) + own
        size = size * len(keys)
    code, size = _dense(code, size)
    row = np.empty(size, dtype=np.int64)
    row[code] = np.arange(len(code))
    found = cells.take(in_arrow(row))
    return pa.table({name: as_array(found.column(name), name) for name in found.column_names}), code


def _dense(code: Whole, size: int) -> tuple[Whole, int]:
    """Returns codes without gaps, in the same order."""
    if size > 4 * len(code):
        found, dense = np.unique(code, return_inverse=True)
        return dense, len(found)
    used = np.bincount(code, minlength=size) > 0
    return (np.cumsum(used) - 1)[code], int(used.sum())


def labels(cells: pa.Table) -> list[str]:
    """Returns one readable name a row: the key columns joined by a middle dot."""
    columns = [[_text(value) for value in column.to_pylist()] for column in cells.columns]
    return [_SEPARATOR.join(parts) for parts in zip(*columns, strict=True)]


def position(cells: pa.Table, given: object) -> int:
    """Returns the row of the cell that a person names: by its key, or by all of its keys.

    Several keys are a sequence, or a text with commas between them, as on the command line.
    """
    parts: Sequence[object] = given if isinstance(given, (list, tuple)) else [given]
    if cells.num_columns > 1 and isinstance(given, str):
        # A key with a comma has quotation marks around it, as in a line of a CSV file.
        try:
            parts = next(csv.reader([given], skipinitialspace=True), [])
        except csv.Error:
            parts = []
    columns = [[*map(_text, column.to_pylist())] for column in cells.columns]
    rows = [*zip(*columns, strict=True)]
    wanted = tuple(map(_text, parts))
    if wanted not in rows:
        example = ", ".join(_text(column[0].as_py()) for column in cells.columns)
        raise InputError(
            f"no cell is {shown(given)}",
            f"give the keys of a cell of the table, for example {example!r}",
        )
    return rows.index(wanted)


def to_document(cells: pa.Table) -> Document:
    """Returns cell keys as JSON: the type of every column and its values."""

    def values(name: str) -> list[object]:
        keys = cells.column(name).to_pylist()
        return [each.isoformat() if isinstance(each, date) else each for each in keys]

    columns = [
        {"name": name, "type": str(cells.column(name).type), "values": values(name)}
        for name in cells.column_names
    ]
    return {"columns": columns}


def from_document(document: Document) -> pa.Table:
    """Inverts `to_document`; raises a `DocumentError` for what shoal does not write."""
    try:
        columns = document["columns"]
        found = as_table({each["name"]: _revive(each["values"], each["type"]) for each in columns})
        # The document itself is published: every key has one name and one text.
        same = canonical_bytes(to_document(found)) == canonical_bytes(document)
    except (
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
        OverflowError,
        pa.ArrowException,
        DocumentError,
    ):
        same = False
    if not same:
        raise DocumentError("the cells are damaged", "write the file again") from None
    return found


def _revive(values: list[Any], kind: str) -> Any:
    named: Any = pa
    if kind.startswith("timestamp["):
        unit, _, zone = kind.removeprefix("timestamp[").removesuffix("]").partition(", tz=")
        times = [datetime.fromisoformat(each) for each in values]
        return pa.array(times, named.timestamp(unit, tz=zone or None))
    if kind == "date32[day]":
        return pa.array([date.fromisoformat(each) for each in values], pa.date32())
    return pa.array(values, named.type_for_alias(kind))


def _as_named(array: Any) -> Any:
    """Returns an array in the one type that keys of its kind have; None if it has none.

    Numbers with fractions are whole numbers if all are, as pandas has them beside a missing one.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    kind = kind_in_arrow(array.type)
    if kind in MOST_WHOLE:
        array = array.cast(pa.float64()) if kind == "float" else array
        compute: Any = pc
        is_whole = compute.equal(compute.floor(array), array)
        is_exact = compute.less(compute.abs(array), MOST_WHOLE[kind])
        if not compute.all(compute.and_(is_whole, is_exact)).as_py():
            return None
        return array.cast(pa.int64())
    if kind == "text":
        return array.cast(pa.string())
    if kind == "whole" and (pc.max(array).as_py() or 0) < 2**63:
        return array.cast(pa.int64())  # the same keys whatever the width of their type
    return array if kind in {"whole", "truth", "date", "time"} else None


def _in_arrow(values: Any) -> Any:
    """Returns an Arrow array, or None for what cannot be one; says nothing of what is in it."""
    try:
        if isinstance(values, Mapping | str | bytes | set | frozenset):
            return None
        found = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
        # Arrow takes bytes of any kind for a text.
        found.validate(full=True)
    except Exception:
        return None
    return found


def _has_a_text(array: pa.Array[Any]) -> bool:
    """Whether every date or time is one that documents can write and read back."""
    kind: Any = array.type
    if not len(array) or not (pa.types.is_date32(kind) or pa.types.is_timestamp(kind)):
        return True
    times = pa.types.is_timestamp(kind)
    unit = str(getattr(kind, "unit", ""))
    whole = numbers(array.view(pa.int64() if times else pa.int32()))
    # Where clocks differ from UTC by up to a day, the first and the last day may have no text.
    away = 1 if getattr(kind, "tz", None) not in {None, "UTC"} else 0
    days = whole // _PER_DAY[unit] if times else whole
    inside = int(days.min()) >= _FIRST_DAY + away and int(days.max()) <= _LAST_DAY - away
    return inside and not (unit == "ns" and bool((whole % _NANOSECONDS).any()))


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="minutes" if value.second == 0 else "auto")
    return str(value)
