"""Whole numbers in floating point are the keys that they would be as integers."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.data.whole_columns import read_columns
from shoal.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Ibis asks pandas about frames in a way that pandas warns of.
pytestmark = [
    pytest.mark.audit,
    pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning"),
    pytest.mark.full,
]

NONE = float("nan")
WHO = [1.0, 2.0, NONE, 1.0, 3.0, 2.0**53 - 1, -4.0]
ZONE = [10.0, NONE, 10.0, -0.0, 10.0, 20.0, 0.0]
VALUES = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]


def frame(**columns: Any) -> pd.DataFrame:
    """A frame of pandas, in which a missing key has made all keys floating."""
    return pd.DataFrame({"who": WHO, "zone": ZONE, "v": VALUES, **columns})


def whole() -> pa.Table:
    """The same keys as integers."""
    keys = {
        name: pa.array([None if each != each else int(each) for each in column], pa.int64())
        for name, column in (("who", WHO), ("zone", ZONE))
    }
    return pa.table({**keys, "v": VALUES})


def arrow(given: pd.DataFrame) -> pa.Table:
    """A table with NaN, which is a number for Arrow."""
    return pa.table({str(name): given[name].to_list() for name in given})


def parquet(given: pd.DataFrame, folder: Path) -> object:
    """A file that pandas writes."""
    given.to_parquet(folder / "a.parquet")
    return folder / "a.parquet"


def with_nan(given: pd.DataFrame, folder: Path) -> object:
    """A file with NaN, which statistics of the file leave out."""
    pq.write_table(arrow(given), folder / "n.parquet")
    return folder / "n.parquet"


def sqlite(given: pd.DataFrame, folder: Path) -> object:
    """A table of SQLite, which has no NaN."""
    rows = [[None if each != each else each for each in row] for row in given.to_numpy().tolist()]
    connection = sqlite3.connect(folder / "a.sqlite")
    connection.execute("create table trips (who real, zone real, v real)")
    connection.executemany("insert into trips values (?, ?, ?)", rows)
    connection.commit()
    connection.close()
    return ibis.sqlite.connect(folder / "a.sqlite").table("trips")


def of_duckdb(given: pd.DataFrame, folder: Path) -> object:
    """A table of a DuckDB of one's own."""
    return ibis.duckdb.connect().read_parquet(with_nan(given, folder))


SOURCES: list[Callable[[pd.DataFrame, Path], object]] = [
    lambda given, _: given,
    lambda given, _: given.astype({"who": "Float64", "zone": "Float64"}),
    lambda given, _: pl.from_pandas(given),
    lambda given, _: arrow(given),
    lambda given, _: ibis.memtable(given),
    lambda given, _: ibis.memtable(given).filter(ibis._.v < 99),
    parquet, with_nan, sqlite, of_duckdb,
]  # fmt: skip


def records(source: object, missing: str = "public") -> shoal.Records:
    """Values by zone."""
    return shoal.Records(source, user="who", value="v", bounds=(0, 8), cell="zone", missing=missing)


@pytest.mark.parametrize("make", SOURCES)
def test_a_missing_key_makes_no_other_keys(
    make: Callable[[pd.DataFrame, Path], object], tmp_path: Path
) -> None:
    """As integers beside a missing one, on every engine; what is missing is missing."""
    expected = records(whole()).aggregate()
    source = make(frame(), tmp_path)
    found = records(source).aggregate()
    assert found.occupancy.fingerprint == expected.occupancy.fingerprint
    assert found.occupancy.cells.equals(expected.occupancy.cells)
    assert found.cell_sums() == expected.cell_sums()
    with pytest.raises(DataError, match="null in the column 'who'"):
        records(source, missing="refuse").occupancy()


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_spark_reads_the_same(spark: Any) -> None:
    """NaN and null in floating point are both a missing key."""
    rows = [tuple(map(float, row)) for row in frame().to_numpy()]
    found = records(spark.createDataFrame(rows, "who double, zone double, v double"))
    expected = records(whole()).occupancy()
    assert found.occupancy().fingerprint == expected.fingerprint


@pytest.mark.parametrize("make", SOURCES)
@pytest.mark.parametrize("odd", [1.5, 2.0**53, 1e300, -(2.0**53)])
def test_what_is_not_surely_whole_is_no_key(
    make: Callable[[pd.DataFrame, Path], object], odd: float, tmp_path: Path
) -> None:
    """A fraction, or numbers between which others are lost, wherever they stand."""
    for rows in (1, -1):
        source = make(frame(zone=[odd, *ZONE[1:]])[::rows].reset_index(drop=True), tmp_path / "")
        with pytest.raises(DataError, match="the column 'zone' holds float64"):
            records(source).occupancy()
        for each in tmp_path.iterdir():
            each.unlink()


def test_an_infinite_key_is_a_missing_one() -> None:
    """As an infinite value is."""
    found = records(frame(zone=[np.inf, *ZONE[1:]])).occupancy()
    assert found.cells.column("zone").to_pylist() == [0, 10, 20]
    assert int(found.count.sum()) == 4


def test_units_of_trials_are_whole_too() -> None:
    """Whole columns for trials and means; private numbers stay as they are."""
    found = read_columns(frame(), private={"value": "v"}, public={"user": "who"})
    assert found.schema.field("who").type == pa.int64()
    assert found.column("who").null_count == 1
    assert found.schema.field("v").type == pa.float64()
