"""A name that is not there is asked about, and no record is told for a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.data import parquet_file
from shoal.data.own_names import near
from shoal.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.audit

TABLE = pa.table({"tailnum": ["a"], "Origin": ["x"], "speed": [1.0], "air_time": [2]})


def said(source: object, **wanted: Any) -> str:
    """The one line that is said of a name."""
    given = {"user": "tailnum", "value": "speed", "cell": "Origin", "bounds": (0, 2), **wanted}
    with pytest.raises(DataError) as caught:
        shoal.Records(source, **given).occupancy()
    return str(caught.value)


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "ibis", "parquet", "csv", "csv.gz"])
@pytest.mark.parametrize(
    ("role", "name", "meant"),
    [("user", "tail num", "tailnum"), ("value", "sped", "speed"), ("cell", "origin", "Origin"),
     ("cell", ["Origin", "bins(airtime,10)"], "air_time")],
)  # fmt: skip
def test_every_source_asks_for_the_nearest_name(
    tmp_path: Path,
    kind: str,
    role: str,
    name: Any,
    meant: str,
) -> None:
    """Whatever the role, and whatever holds the records."""
    path = tmp_path / f"trips.{kind}"
    source: object = path
    if kind == "parquet":
        pq.write_table(TABLE, path)
    elif kind.startswith("csv"):
        with pa.output_stream(path) as stream:
            stream.write(b"tailnum,Origin,speed,air_time\na,x,1.0,2\n")
    else:
        source = {
            "arrow": TABLE, "pandas": pd.DataFrame(TABLE.to_pydict()),
            "polars": pl.from_arrow(TABLE), "ibis": ibis.memtable(TABLE),
        }[kind]  # fmt: skip
    assert f"(did you mean '{meant}'?); allowed: " in said(source, **{role: name})


def test_no_engine_starts_for_a_wrong_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The schema of a Parquet file says it, and of several that of each."""
    monkeypatch.setattr(parquet_file, "duckdb", lambda: pytest.fail("an engine started"))
    for name in ("a", "b"):
        pq.write_table(TABLE, tmp_path / f"{name}.parquet")
    for source in (tmp_path / "a.parquet", f"{tmp_path}/*.parquet"):
        assert "no column 'sped' in" in said(source, value="sped")


@pytest.mark.parametrize("line", ["ann,placed,431.5", "placed", "who?,Origins,speedy,places"])
def test_a_first_line_that_may_be_a_record_is_not_told(tmp_path: Path, line: str) -> None:
    """A CSV file without names, whose records are like the names that are asked for."""
    path = tmp_path / "a.csv"
    path.write_text(f"{line}\n{line}\n")
    for wanted in ({"cell": "place"}, {"value": "speeds", "cell": "place", "user": "whom"}):
        text = said(path, **wanted)
        assert "did you mean" not in text
        assert not any(each in text for each in line.split(","))


def test_names_far_away_are_not_meant() -> None:
    """Nothing is asked then; of many the nearest three, in one order."""
    assert near("user", ["tailnum", "dest", ""]) == []
    names = [f"speed_{at}" for at in range(9)]
    assert near("speed_", names) == near("speed_", names[::-1])
    assert len(near("speed_", names)) == 3
    assert near("***", ["a", "b"]) == []
