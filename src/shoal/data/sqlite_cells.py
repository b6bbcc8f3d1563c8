"""Cells of SQLite, whose columns hold values of any type whatever they are declared as."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shoal.data.source import engine_call, engine_name
from shoal.data.sqlite_times import check_forms, in_one_form, is_time
from shoal.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shoal.data.csv_file import Kind
    from shoal.data.source import Engine, EngineColumn, EngineTable

_PUBLIC = ("key", "time")


def of_their_type(table: EngineTable, kinds: Mapping[str, Kind]) -> EngineTable:
    """A table of SQLite where a cell that is not of its column's type is missing.

    SQLite keeps a text in a column of numbers, takes it as 0 or by its first digits where it adds,
    and as larger than any number where it compares. Public days and times are refused where they
    are written in a form that is not read. Other engines' tables are as they are.

    Args:
        table: The records.
        kinds: What each needed column is for; numbers become floating point.

    Raises:
        DataError: Columns without a declared type or of one that is not read, days and times
            in another form, or texts in UTF-16.

    Guarantees: G-RECORDS, G-ROWS.

    Example:
        >>> import ibis, pyarrow as pa
        >>> table = ibis.memtable(pa.table({"speed": [1.0]}))
        >>> of_their_type(table, {"speed": "number"}) is table
        True
    """
    if engine_name(table) != "sqlite":
        return table
    _check_declared(table)
    check_forms(table, [name for name, kind in kinds.items() if kind in _PUBLIC])
    return table.mutate([_typed(table[name], kind).name(name) for name, kind in kinds.items()])


def _check_declared(table: EngineTable) -> None:
    """Refuse columns whose type Ibis would take from the first row, and texts in UTF-16.

    The first row may be first for its value: the private value of one user would decide how the
    records of others are read.

    Raises:
        DataError: A column without a declared type, a query in SQL, or another encoding.
    """
    from ibis.expr import operations as ops

    for leaf in table.op().find(ops.Relation):
        if isinstance(leaf, ops.DatabaseTable):
            _check_table(table.get_backend(), leaf)
        elif not isinstance(leaf, ops.InMemoryTable) and (
            isinstance(leaf, ops.SQLStringView)
            or not any(isinstance(each, ops.Relation) for each in leaf.__children__)
        ):
            raise _undeclared("a query in SQL")


def _check_table(backend: Engine, leaf: Any) -> None:
    database = leaf.namespace.database or "main"
    [(encoding,)] = backend.con.execute("PRAGMA encoding").fetchall()
    if encoding != "UTF-8":
        raise DataError(
            f"a database of SQLite whose texts are in {encoding}",
            "texts in UTF-8",
            "export the records to Parquet, or into a new database",
        )
    found = backend.con.execute(
        "SELECT name FROM pragma_table_xinfo(?, ?) WHERE type = ''", (leaf.name, database)
    ).fetchall()
    if found:
        raise _undeclared(f"the column {found[0][0]!r}, which has no declared type,")


def _undeclared(what: str) -> DataError:
    return DataError(
        f"{what} in a database of SQLite",
        "tables whose columns all have declared types: SQLite tells others by their first row",
        "write the records into a table made with types, such as `create table t (user text, "
        "speed real)`, or export them to Parquet",
    )


def _typed(column: EngineColumn, kind: Kind) -> EngineColumn:
    import ibis

    declared = column.type()
    stored = engine_call("typeof", column, kind="string")
    if declared.is_boolean():
        number = column.cast("int64")
        sound = (stored == "integer") & number.isin([0, 1])
        return ibis.ifelse(sound, column, ibis.null(declared))
    if kind in {"key", "text"} and declared.is_integer():
        # SQLite keeps 64 bits whatever the declared width; Ibis would cut them down to that.
        return ibis.ifelse(stored == "integer", column.cast("int64"), ibis.null("int64"))
    if declared.is_numeric():
        # A decimal's text would lose what is infinite.
        number = ibis.ifelse(stored.isin(["integer", "real"]), column, ibis.null(declared))
        return number.cast("float64")
    if declared.is_string():
        return ibis.ifelse(stored == "text", column, ibis.null(declared))
    if is_time(column):
        return in_one_form(column)
    raise DataError(
        f"a column of the type {declared} in a database of SQLite",
        "whole numbers, numbers, texts, true and false, days and times",
        "export the records to Parquet",
    )
