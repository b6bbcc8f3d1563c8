"""Times, places and files mean the same whatever the engine's session or the file's name."""

from __future__ import annotations

import datetime as dt
import logging
import warnings
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.data.query_logs import QUERY_LOGS, silent_query_logs
from shoal.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.audit, pytest.mark.full]

ZONE = "America/New_York"
AT = [
    dt.datetime(1969, 12, 31, 22, 30, tzinfo=dt.UTC),
    dt.datetime(2013, 7, 1, 4, 15, tzinfo=dt.UTC),
]
NAIVE = [at.replace(tzinfo=None) for at in AT]
TIMES = pa.table(
    {
        "who": ["a", "b"],
        "value": [1.0, 2.0],
        "zoned": pa.array(AT, pa.timestamp("us", "UTC")),
        "naive": pa.array(NAIVE, pa.timestamp("us")),
        "day": [at.date() for at in AT],
    }
)
EXPECTED = {"zoned": {22, 4}, "naive": {22, 4}, "day": {0}}


def keys(source: object, cell: str, **options: Any) -> list[Any]:
    """The cell keys that the pass gives."""
    records = shoal.Records(
        source, user="who", value="value", bounds=(0, 9), cell=cell, **options
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark warns about its own use of pandas
        found: list[Any] = records.aggregate().occupancy.cells.column(0).to_pylist()
    return found


@pytest.mark.parametrize("column", list(EXPECTED))
def test_duckdb_sessions_in_other_zones(tmp_path: Path, column: str) -> None:
    """Hours are UTC though the user's own DuckDB lives in New York."""
    import ibis

    pq.write_table(TIMES, tmp_path / "r.parquet")
    engine = ibis.duckdb.connect()
    table = engine.read_parquet(tmp_path / "r.parquet")
    engine.raw_sql(f"set timezone = '{ZONE}'")
    assert set(keys(table, f"hour_of_day({column})")) == EXPECTED[column]


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.parametrize("column", list(EXPECTED))
def test_spark_sessions_in_other_zones(tmp_path: Path, spark: Any, column: str) -> None:
    """As above; `ibis.pyspark.connect` sets UTC, so the zone is set again after it."""
    import ibis

    pq.write_table(TIMES, tmp_path / "r.parquet")
    spark.read.parquet(str(tmp_path / "r.parquet")).createOrReplaceTempView("times")
    table = ibis.pyspark.connect(spark).table("times")
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    try:
        assert set(keys(table, f"hour_of_day({column})")) == EXPECTED[column]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_nanoseconds_before_1970_round_downwards(zone: str | None) -> None:
    """One nanosecond before 1970 is 23 h, with and without a zone."""
    at = pa.array([-1, -3_600_000_000_001], pa.timestamp("ns", zone))
    table = pa.table({"who": ["a", "b"], "value": [1.0, 2.0], "at": at})
    assert set(keys(table, "hour_of_day(at)")) == {22, 23}


def test_nan_coordinates_are_missing() -> None:
    """NaN, as some frames write null, is dropped where null is."""
    table = pa.table(
        {"who": ["a", "b"], "value": [1.0, 2.0], "lat": [1.0, float("nan")], "lon": [1.0, 2.0]}
    )
    assert len(keys(table, "hexagon(lat,lon,3)", missing="public")) == 1
    with pytest.raises(DataError, match="null in the column"):
        keys(table, "hexagon(lat,lon,3)")


def test_a_path_is_one_file(tmp_path: Path) -> None:
    """Brackets are no pattern, and a folder called `place=hive` is no column."""
    folder = tmp_path / "place=hive"
    folder.mkdir()
    for name, place in (("r1.parquet", "other"), ("r[1].parquet", "mine")):
        table = pa.table({"who": ["a"], "value": [1.0], "place": [place]})
        pq.write_table(table, folder / name)
    assert keys(folder / "r[1].parquet", "place") == ["mine"]


def test_threads_keep_the_logs_silent_until_the_last_has_read() -> None:
    """Whichever comes first or last; afterwards they are as before."""
    logs = [logging.getLogger(name) for name in QUERY_LOGS]
    first, second = silent_query_logs(), silent_query_logs()
    for begun in (first, second):
        begun.__enter__()
    first.__exit__(None, None, None)
    disabled = [log.disabled for log in logs]
    second.__exit__(None, None, None)
    assert not any(log.disabled for log in logs)
    pytest.importorskip("pyspark")
    assert all(disabled)


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.parametrize("written", ["as text", "by methods"])
def test_spark_logs_no_value(
    spark: Any,
    capfd: pytest.CaptureFixture[str],
    written: str,
) -> None:
    """PySpark's own log of a failed query would quote the value."""
    from pyspark.sql import functions

    rows = spark.createDataFrame([("a", "987654.321x", 1)], "who string, text string, place int")
    frame = rows.selectExpr("who", "cast(text as double) as value", "place")
    if written == "by methods":
        number = functions.col("text").cast("double").alias("value")
        frame = rows.select("who", number, "place")
    with pytest.raises(DataError, match="could not read"):
        keys(frame, "place")
    shown = capfd.readouterr()
    assert "QueryContextLogger" not in shown.err + shown.out
    # Afterwards PySpark writes to them as before.
    for name in QUERY_LOGS:
        assert not logging.getLogger(name).disabled
        assert type(logging.getLogger(name)).__name__ == "PySparkLogger"
