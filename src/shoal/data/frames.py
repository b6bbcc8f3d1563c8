"""Frames in memory: their needed columns as they are, in Arrow, where no engine renames them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from shoal.checks import different, is_object_column
from shoal.data.keys import of_one_kind
from shoal.data.own_names import check_present
from shoal.data.source import engine_errors, in_memory, library, no_records
from shoal.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from shoal.data.source import EngineTable


def chosen(
    frame: Any,
    private: Mapping[str, str | None],
    public: Mapping[str, str | Sequence[str] | None],
    needed: Sequence[str],
) -> pa.Table:
    """Some columns of a frame by the names that the frame has for them, as a table of Arrow.

    They are found by their place, and no others are handed on: engines would rename columns whose
    names are alike, are empty or are no texts. Whole numbers stay whole, beside missing ones, too.

    Args:
        frame: A table of PyArrow, or a frame of pandas or Polars.
        private: Role and column of what is protected; None for a role that nothing has.
        public: Role and column or columns of what is known to all.
        needed: Names of the columns, each once.

    Raises:
        InputError: A private column is a public one, too, or another kind of object.
        DataError: No such columns, a private one of Python objects, objects of several kinds, or
            the frame cannot be read.

    Guarantees: G-RECORDS, G-ROWS, G-REFUSE.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"id": pd.Categorical([2**53 + 1, None]), "ID": 1, 3: 2})
        >>> chosen(frame[["id", 3]], {}, {"user": "id"}, ["id"])["id"].to_pylist()
        [9007199254740993, None]
    """
    with engine_errors(frame):
        kind = library(frame)
        names, column = _parts(frame, kind)
        check_present(frame, names, needed)
        columns = {name: column(names.index(name)) for name in needed}
        for role, name in private.items():
            if name is not None and kind != "pyarrow" and is_object_column(columns[name]):
                raise _untyped(role, name)
            for other, given in public.items():
                for each in [given] if isinstance(given, str) else given or ():
                    shown = None if name is None else columns[name]
                    different({role: shown}, {other: columns[each]})
        arrays = [_arrow(columns[name], name, kind) for name in needed]
        return pa.Table.from_arrays(arrays, names=list(needed))


def check_guessed(table: EngineTable) -> None:
    """Refuse an expression of Ibis over frames for which Ibis has guessed types of numbers.

    Which of their columns becomes the private one is not known, so none may be guessed; and none
    may be a category of what is no text, which Ibis takes through floating point. The columns of a
    frame alone have their names: see `chosen`.

    Raises:
        DataError: A column of objects that is read as numbers, or of categories of other kinds.

    Guarantees: G-RECORDS, G-ROWS.
    """
    if in_memory(table):
        return
    with engine_errors(table):
        guessed = [
            name
            for frame, schema in _frames(table)
            for name, kind in schema.items()
            if _is_guessed(frame[name], kind)
        ]
    if guessed:
        raise _untyped("numeric", guessed[0])


def check_same_types(given: EngineTable, found: EngineTable) -> None:
    """Refuse a frame in Ibis that was given types there that its own columns do not have.

    Raises:
        DataError: Another type.

    Guarantees: G-ROWS.
    """
    with engine_errors(given):
        types = dict(given.schema().items())
        kinds = found.schema().items()
        changed = [name for name, kind in kinds if _plain(types[name]) != _plain(kind)]
    if changed:
        raise DataError(
            f"the column {changed[0]!r} of a frame that Ibis was told another type of",
            "columns whose own type is the one that they are read with",
            "convert the frame itself, and give it without Ibis",
        )


def _plain(kind: Any) -> Any:
    """A type of Ibis without what Ibis leaves out of a frame's: the unit of times."""
    if kind.is_timestamp():
        return kind.copy(scale=None, nullable=True)
    return kind.copy(nullable=True)


def _parts(frame: Any, kind: str) -> tuple[list[str | None], Any]:
    """Own names of a frame's columns, None for what is no text, and the column at each place."""
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    if isinstance(frame, pa.Table):
        return list(frame.column_names), frame.column
    if (kind, type(frame).__name__) == ("polars", "DataFrame"):
        return list(frame.columns), frame.to_series
    if kind == "pandas" and hasattr(frame, "iloc") and hasattr(frame, "columns"):
        names = [str(name) if isinstance(name, str) else None for name in frame.columns]
        return names, lambda at: frame.iloc[:, at]
    raise no_records(frame)


def _arrow(column: Any, name: str, kind: str) -> pa.ChunkedArray[Any]:
    """A column in Arrow, cell by cell what it is: no whole number becomes a floating one."""
    if kind != "pyarrow" and is_object_column(column) and not _of_one_kind(column, kind):
        raise _mixed(name)
    if kind == "pandas":
        found = pa.array(column, from_pandas=True)
        if isinstance(found.type, pa.BaseExtensionType):
            raise _mixed(name)
    else:
        found = column.to_arrow() if kind == "polars" else column
    chunks: list[Any] = found.chunks if isinstance(found, pa.ChunkedArray) else [found]
    if pa.types.is_dictionary(found.type):
        values = found.type.value_type
        return pa.chunked_array([each.dictionary_decode() for each in chunks], values)
    return pa.chunked_array(chunks, found.type)


def _of_one_kind(column: Any, kind: str) -> bool:
    """Whether what is there in a column of objects, or its categories, is of one kind."""
    if kind != "pandas":
        return False
    return of_one_kind(getattr(getattr(column, "cat", None), "categories", column[column.notna()]))


def _is_guessed(column: Any, kind: Any) -> bool:
    if is_object_column(column):
        return bool(kind.is_numeric())
    return hasattr(column, "cat") and not kind.is_string()


def _frames(table: EngineTable) -> Iterator[tuple[Any, Any]]:
    """Frames that an expression of Ibis reads, with the types that Ibis gives their columns."""
    import ibis.expr.operations as ops

    for node in table.op().find(ops.InMemoryTable):
        frame = getattr(node.data, "obj", None)
        if library(frame) == "pandas":
            yield frame, node.schema


def _untyped(role: str, name: str) -> DataError:
    return DataError(
        f"the {role} column {name!r} holds Python objects",
        "a column of one type for all its cells, such as float64",
        "convert it first, for example with astype(float)",
    )


def _mixed(name: str) -> DataError:
    return DataError(
        f"the column {name!r} holds objects of several kinds, or of none that is a key",
        "text, whole numbers, booleans, dates or times, one of these in all cells",
        "convert it, or name another column",
    )
