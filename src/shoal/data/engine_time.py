"""Times as seconds since 1970, computed by the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.data.source import engine_call, engine_name

if TYPE_CHECKING:
    from shoal.data.source import EngineColumn, EngineTable

_NANO = 9
# Of a time's text up to its seconds.
_WHOLE = 19


def epoch_seconds(table: EngineTable, column: str) -> EngineColumn:
    """Whole seconds since 1970, UTC, as a floating-point number: the same in every engine.

    The engines' own casts between times depend on the session's time zone, so none is used.
    """
    time, engine = table[column], engine_name(table)
    if engine == "pyspark":
        return _spark_epoch(time).cast("float64")
    if time.type().is_date():
        time = time.cast("timestamp")
    if engine == "sqlite":
        # It rounds to milliseconds, and up to the next second, what has a fraction.
        time = engine_call("substr", time, 1, _WHOLE, kind=time.type())
    if engine != "duckdb":
        return time.epoch_seconds().cast("float64").floor()
    fine = time.type().scale == _NANO
    parts = engine_call("epoch_ns" if fine else "epoch_us", time)
    per_second = 10**9 if fine else 10**6
    # Integer remainders are exact where a quotient of large integers is not; half of one second
    # is far from the next whole one.
    whole = parts - (parts % per_second + per_second) % per_second
    return (whole / float(per_second) + 0.5).floor().cast("float64")


def _spark_epoch(time: EngineColumn) -> EngineColumn:
    import ibis

    day = engine_call("unix_date", time.cast("date"))
    if time.type().is_date():
        return day * 86400
    # Ibis does not tell Spark's two kinds of timestamps apart; Spark does, before it runs.
    clock = day * 86400 + time.hour() * 3600 + time.minute() * 60 + time.second()
    local = engine_call("typeof", time, kind="string") == "timestamp_ntz"
    return ibis.ifelse(local, clock, engine_call("unix_seconds", time))
