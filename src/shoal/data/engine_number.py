"""Numbers in floating point, computed by the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.data.source import engine_call, engine_name

if TYPE_CHECKING:
    from shoal.data.source import EngineColumn, EngineTable


def as_floats(column: EngineColumn) -> EngineColumn:
    """Numbers in floating point; decimals by their text, whose digits no other cell decides."""
    text = column.cast("string") if column.type().is_decimal() else column
    return text.cast("float64")


def nan_as_null(table: EngineTable, number: EngineColumn) -> EngineColumn:
    """Numbers in floating point without NaN, which some frames say for null; infinities stay.

    Args:
        table: The records, in the engine.
        number: Numbers of it in floating point.
    """
    import ibis

    engine = engine_name(table)
    if engine == "sqlite":
        # It has none.
        return number
    asked = number
    if engine == "duckdb":
        # It answers isnan() and comparisons of sums, differences and quotients from the least and
        # the largest number of a Parquet file, which leave NaN out. What a call gives that may
        # differ from row to row is not known beforehand; times 0 it changes no number.
        asked = number + engine_call("random", kind="float64") * 0.0
    return ibis.ifelse(asked.isnan(), ibis.null("float64"), number)
