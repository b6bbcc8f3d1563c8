"""Cells of SQLite, whose columns hold values of any type whatever they are declared as."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.data.source import engine_call, engine_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shoal.data.csv_file import Kind
    from shoal.data.source import EngineColumn, EngineTable


def of_their_type(table: EngineTable, kinds: Mapping[str, Kind]) -> EngineTable:
    """A table of SQLite where a cell that is not of its column's type is missing.

    SQLite keeps a text in a column of numbers, takes it as 0 or by its first digits where it adds,
    and as larger than any number where it compares. Other engines' tables are as they are.

    Args:
        table: The records.
        kinds: What each needed column is for; numbers become floating point.

    Guarantees: G-MISSING, G-ENGINES.

    Example:
        >>> import ibis, pyarrow as pa
        >>> table = ibis.memtable(pa.table({"speed": [1.0]}))
        >>> of_their_type(table, {"speed": "number"}) is table
        True
    """
    if engine_name(table) != "sqlite":
        return table
    return table.mutate(**{name: _typed(table[name], kind) for name, kind in kinds.items()})


def _typed(column: EngineColumn, kind: Kind) -> EngineColumn:
    import ibis

    declared = column.type()
    stored = engine_call("typeof", column, kind="string")
    if declared.is_boolean() or (kind == "key" and declared.is_integer()):
        return ibis.ifelse(stored == "integer", column, ibis.null(declared))
    if declared.is_numeric():
        # A decimal's text would lose what is infinite.
        number = ibis.ifelse(stored.isin(["integer", "real"]), column, ibis.null(declared))
        return number.cast("float64")
    if declared.is_string():
        return ibis.ifelse(stored == "text", column, ibis.null(declared))
    return column
