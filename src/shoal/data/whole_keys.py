"""Public whole numbers that are kept in floating point, as pandas does beside a missing one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.data.source import engine_call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shoal.data.csv_file import Kind
    from shoal.data.source import Engine, EngineColumn, EngineTable

# Beyond, floating point leaves out whole numbers: two keys could have become one.
_MOST = 2.0**53


def with_whole_keys(table: EngineTable, kinds: Mapping[str, Kind], backend: Engine) -> EngineTable:
    """A table where public keys in floating point are integers, if all are whole; others stay.

    What is NaN or infinite is a missing key. Whether all are whole is asked of the whole column,
    so that it depends on no order of rows; a column with a fraction keeps its type, which is none
    of a key.

    Args:
        table: The records.
        kinds: What each needed column is for.
        backend: What runs the table.

    Guarantees: G-ROWS, G-RECORDS.

    Example:
        >>> import ibis, pyarrow as pa
        >>> table = ibis.memtable(pa.table({"zone": [1.0, 2.0, float("nan")]}))
        >>> found = with_whole_keys(table, {"zone": "key"}, ibis.duckdb.connect())
        >>> found.schema()["zone"]
        Int64(nullable=True)
    """
    schema = table.schema()
    names = [name for name, kind in kinds.items() if kind == "key" and schema[name].is_floating()]
    if not names:
        return table
    asked = {f"whole_{at}": _whole(table[name]).all() for at, name in enumerate(names)}
    (answers,) = backend.to_pyarrow(table.agg(**asked)).to_pylist()
    whole = [name for name, answer in zip(names, answers.values(), strict=True) if answer]
    return table.mutate([_there(table[name]).cast("int64").name(name) for name in whole])


def _whole(column: EngineColumn) -> EngineColumn:
    """Whether a cell is a whole number, or missing."""
    number = _there(column)
    # The engine's floor stays in floating point; that of Ibis goes through integers and back.
    same = engine_call("floor", number, kind="float64") == number
    return number.isnull() | (same & (number.abs() < _MOST))


def _there(column: EngineColumn) -> EngineColumn:
    """The number, or null for what is none: told by arithmetic, since statistics leave out NaN."""
    import ibis

    number = column.cast("float64")
    return ibis.ifelse(number - number == 0.0, number, ibis.null("float64"))
