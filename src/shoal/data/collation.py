"""Text keys as bytes: no collation of an engine makes one group of two spellings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.data.source import engine_call, engine_name, in_memory
from shoal.errors import DataError

if TYPE_CHECKING:
    from shoal.data.source import EngineColumn, EngineTable

# Engines whose own cast gives the bytes of a collated text as they are.
_CASTS = ("pyspark", "sqlite")


def as_bytes(table: EngineTable, key: EngineColumn) -> EngineColumn:
    """A text key of an engine of the user's own as bytes in UTF-8; any other key as it is.

    An engine gives texts that its collation calls equal the spelling of one of them, which one by
    the order of the rows: the private values of one user could name another's group.

    Args:
        table: The records.
        key: A key of them.

    Raises:
        DataError: A text on an engine whose collations shoal does not know to leave out.

    Guarantees: G-ROWS.

    Example:
        >>> import ibis
        >>> table = ibis.table({"user": "string", "group": "int64"}, name="trips")
        >>> as_bytes(table, table.group).equals(table.group)
        True
    """
    if not key.type().is_string() or in_memory(table):
        return key
    engine = engine_name(table)
    if engine == "duckdb":
        return engine_call("encode", key, kind="binary")
    if engine in _CASTS:
        return key.cast("binary")
    raise DataError(
        f"a text as key in a table of {engine}",
        "integers, booleans or dates there; texts in DuckDB, Spark, SQLite, files and frames",
        "export the records to Parquet, or make integer keys",
    )
