"""Where records are: names of columns, several files, frames, types, and what fails."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.data import engines
from shoal.data.engines import engine_errors
from shoal.data.sources import read_columns
from shoal.errors import DataError, InputError
from tests.data import kinds

CANARY = "431987"
TABLE = pa.table(
    {"tailnum": ["a", "b"], "Origin": ["x", "y"], "speed": [1.0, 2.0], "air_time": [2, 3]}
)


def records(source: object, **wanted: Any) -> shoal.Records:
    """Speeds by origin."""
    given = {"user": "tailnum", "value": "speed", "by": "Origin", "bounds": (0, 2), **wanted}
    return shoal.Records(source, **given, counts="public")


def said(source: object, **wanted: Any) -> str:
    """The one line that is said of them."""
    with pytest.raises((DataError, InputError)) as caught:
        records(source, **wanted).counts()
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "ibis", "parquet", "csv"])
def test_every_source_asks_for_the_nearest_name(tmp_path: Path, kind: str) -> None:
    """Whatever the role, and whatever holds the records."""
    made = {
        "arrow": lambda: TABLE,
        "pandas": lambda: pd.DataFrame(TABLE.to_pydict()),
        "polars": lambda: pl.from_arrow(TABLE),
        "ibis": lambda: ibis.memtable(TABLE),
        "parquet": lambda: kinds.parquet(TABLE, tmp_path),
        "csv": lambda: kinds.csv(TABLE, tmp_path),
    }[kind]()
    wanted: list[tuple[dict[str, Any], str]] = [
        ({"user": "tail num"}, "tailnum"),
        ({"value": "sped"}, "speed"),
        ({"by": "origin"}, "Origin"),
        ({"by": ["Origin", "bins(airtime,10)"]}, "air_time"),
    ]
    for options, meant in wanted:
        assert f"(did you mean '{meant}'?); give " in said(made, **options)
    assert "did you mean" not in said(made, user="zzz")


def test_names_that_differ_in_case_alone_are_refused(tmp_path: Path) -> None:
    """An engine would read either; a private one may not be a public one by another case."""
    for names in (["who", "v", "V", "c"], ["who", "v", "v", "c"]):
        columns = [pa.array(["a"]), pa.array([1.0]), pa.array([2.0]), pa.array(["x"])]
        table = pa.Table.from_arrays(columns, names=names)
        pq.write_table(table, tmp_path / "a.parquet")
        kinds.csv(table, tmp_path)
        for source in (table, tmp_path / "a.parquet", tmp_path / "r.csv"):
            given: dict[str, Any] = {"user": "who", "value": "v", "by": "c"}
            assert "called 'v' if case is ignored" in said(source, **given)
    assert "share a name, if case" in said(tmp_path / "a.parquet", user="who", value="c", by=None)
    for option, role in (("user", "user"), ("by", "cell")):
        with pytest.raises(InputError, match=f"the value column 'speed' is also given as {role}"):
            records(TABLE, **{option: "SPEED"})
    with pytest.raises(InputError, match="'speed' is also given as cell"):
        records(TABLE, by=["Origin", "bins(Speed,10)"])


def test_names_are_texts_of_sql_and_nothing_else(tmp_path: Path) -> None:
    """Quotes, dots and words of SQL, in names of columns and of files."""
    odd = ['who" or 1=1 --', "select.from", "it's", "`a`"]
    table = TABLE.rename_columns(odd)
    given: dict[str, Any] = {"user": odd[0], "by": odd[1], "value": odd[2]}
    expected = records(table, **given).aggregate()[1].cell_sums()
    for name in ("it's.parquet", "a[1].parquet", "*.parquet", "month=5/a.parquet"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        pq.write_table(table, path)
        assert records(path, **given).aggregate()[1].cell_sums() == expected


def test_several_files_are_one_table(tmp_path: Path) -> None:
    """Of a pattern, of a folder with folders; they must be alike."""
    for name, part in (("a", TABLE[:1]), ("b", TABLE[1:])):
        pq.write_table(part, tmp_path / f"{name}.parquet")
    _, whole = records(TABLE).aggregate()
    for source in (tmp_path, f"{tmp_path}/*.parquet", f"{tmp_path}/**/?.parquet"):
        assert records(source).aggregate()[1].cell_sums() == whole.cell_sums()
    changed = TABLE.set_column(2, "speed", pa.array([1, 2]))
    pq.write_table(changed, tmp_path / "c.parquet")
    assert "the column 'speed' is bigint in" in said(tmp_path)
    (tmp_path / "c.parquet").unlink()
    kinds.csv(TABLE, tmp_path)
    assert "several kinds of files" in said(tmp_path)
    (tmp_path / "s.csv").write_text("tailnum,Origin,speed\n")
    assert "the first lines of" in said(f"{tmp_path}/?.csv")


def test_names_of_folders_are_public_columns(tmp_path: Path) -> None:
    """Whole numbers if all are; a private column is none of them."""
    table = TABLE.append_column("month", pa.array([5, 11])).append_column("pay", pa.array([1, 2]))
    pq.write_to_dataset(table, tmp_path / "a", partition_cols=["month", "pay"])
    found = records(tmp_path / "a", by="month").counts()
    assert found.cells.column("month").to_pylist() == [5, 11]
    for name in ("pay", "PAY"):
        assert "but hold a private" in said(tmp_path / "a", value=name) or name == "PAY"
    pq.write_to_dataset(table, tmp_path / "speed=1", partition_cols=["month"])
    assert "share a name, if case" in said(tmp_path / "speed=1", by="month")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        *(("gone.parquet", "no file of records"), ("folder.csv", "no file of records")),
        *(("notes.txt", "names end in"), ("corrupt.parquet", "is no Parquet file")),
        *(("none*.csv", "in quotes"), ("text.csv", "holds text; give a number")),
    ],
)
def test_bad_files(tmp_path: Path, name: str, message: str) -> None:
    """Missing, a folder, another ending, corrupt, text in numbers: never the engine's message."""
    (tmp_path / "corrupt.parquet").write_bytes(b"PAR1" + CANARY.encode() * 9 + b"PAR1")
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "text.csv").write_text(f"tailnum,Origin,speed\na,x,1.5\nb,y,fast {CANARY}\n")
    with pytest.raises(DataError, match=message) as caught:
        records(tmp_path / name).counts()
    assert CANARY not in str(caught.value)


def test_a_file_that_changes_meanwhile_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that is read is of one reading."""
    path, run = tmp_path / "r.parquet", engines.DuckDB.run
    pq.write_table(TABLE, path)

    def late(engine: engines.DuckDB, query: str) -> pa.Table:
        pq.write_table(TABLE[:1], path)
        return run(engine, query)

    monkeypatch.setattr(engines.DuckDB, "run", late)
    assert "changed while it was read" in said(path)


def test_whole_floats_are_whole_keys(tmp_path: Path) -> None:
    """As pandas has them beside a missing one, in any order; with a fraction they are no keys."""
    frame = pd.DataFrame({"tailnum": [1.0, 2.0, np.nan], "Origin": [7, 8, 9], "speed": [0.5] * 3})
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    found = {
        records(each, missing="public").counts().fingerprint
        for each in (frame, frame[::-1], arrow, kinds.parquet(arrow, tmp_path), pl.DataFrame(arrow))
    }
    whole = pa.table({"tailnum": [1, 2], "Origin": [7, 8], "speed": [0.5] * 2})
    assert found == {records(whole).counts().fingerprint}
    for odd in (1.5, 2.0**53):
        frame.loc[0, "tailnum"] = odd
        for source in (frame, frame[::-1], kinds.parquet(pa.table(frame), tmp_path)):
            assert "'tailnum' holds double; convert it to text, integers" in said(source)
    named = read_columns(frame, private={"value": "speed"}, public={"unit": "Origin"})
    assert named.schema.types == [pa.float64(), pa.int64()]


def test_private_columns_have_a_numeric_type(tmp_path: Path) -> None:
    """One cell would decide how the others are read; refused by the type; booleans are 0 and 1."""
    objects = pd.DataFrame({**TABLE.to_pydict(), "speed": pd.Series([1, 2], dtype=object)})
    assert "holds Python objects" in said(objects)
    long = pa.array([Decimal(1), Decimal(2)], pa.decimal256(60, 3))
    for column, message in (
        (pa.array(["1", CANARY]), "'speed' holds varchar; convert it to numbers"),
        (pa.array([[1], [2]]), "'speed' holds "),
        (long, "holds decimal256(60, 3); convert it to numbers"),
    ):
        source = TABLE.set_column(2, "speed", column)
        assert message in said(source)
    for kind in (pa.float16(), pa.float32(), pa.int8(), pa.uint64(), pa.decimal128(30, 2)):
        column = pc_cast(pa.array([1, 2], pa.int64()), kind)
        _, found = records(TABLE.set_column(2, "speed", column)).aggregate()
        assert found.cell_sums() == [2**19, 2**20]
    pa.csv.write_csv(
        yes := TABLE.set_column(2, "speed", pa.array([False, True])), tmp_path / "y.csv"
    )
    for source in (yes, tmp_path / "y.csv"):
        assert records(source).aggregate()[1].cell_sums() == [0, 2**19]


def pc_cast(whole: pa.Array[Any], kind: pa.DataType) -> pa.Array[Any]:
    """Small whole numbers of another type."""
    if pa.types.is_decimal(kind):
        return pa.array([Decimal(each) for each in whole.to_pylist()], kind)
    return whole.cast(kind)


@pytest.mark.parametrize("cell", ["fast " + CANARY, b"5", ""], ids=repr)
def test_sqlite_cells_that_are_no_numbers_are_not_told(tmp_path: Path, cell: object) -> None:
    """Its engine quotes them in its errors."""
    import sqlite3

    with sqlite3.connect(tmp_path / "s.db") as made:
        made.execute("create table t (tailnum text, Origin text, speed real)")
        made.executemany("insert into t values (?, ?, ?)", [("a", "x", 1.0), ("b", "x", cell)])
    made.close()
    table = ibis.sqlite.connect(tmp_path / "s.db").table("t")
    try:
        records(table).aggregate()
    except DataError as error:
        assert CANARY not in str(error)  # noqa: PT017
        assert error.__suppress_context__ or error.__context__ is None  # noqa: PT017


def test_threads_share_a_connection_of_the_user() -> None:
    """One at a time reads through it: all get the right counts."""
    backend = ibis.duckdb.connect()
    backend.con.execute("create table t as select i % 9 as tailnum, i % 2 as \"Origin\", i / 9e5 "
                        "as speed from range(200000) r(i)")  # fmt: skip
    made = records(backend.table("t"))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: made.aggregate()[1].cell_sums(), range(8)))
    assert len(set(map(tuple, found))) == 1


def test_what_does_not_fit_into_memory_is_private_and_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder of the system's that only this user can open; nothing comes from a network."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(duckdb, "connect", duckdb.connect.__wrapped__)
    with engines.duckdb() as engine:
        asked = "select current_setting('temp_directory'), current_setting('TimeZone'), "
        asked += "current_setting('autoload_known_extensions'), "
        asked += "current_setting('enable_progress_bar')"
        folder, zone, *off = engine.connection.execute(asked).fetchone()
        assert stat.S_IMODE(os.stat(folder).st_mode) == stat.S_IRWXU
        engine.connection.execute("set memory_limit = '60MB'; set threads = 1")
        engine.connection.execute(
            "create temp table s as select hash(i) x from range(4000000) t(i) order by x"
        )
        assert list(Path(folder).iterdir())
        assert (Path(folder).parent, zone, off) == (tmp_path, "UTC", [False, False])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("source", [None, 3, [1, 2], {"who": []}, pa.array([1])])
def test_other_sources_are_refused_by_their_type(source: object) -> None:
    """In our own words."""
    assert "the records have the type" in said(source)


@pytest.mark.parametrize("kind", ["duckdb's", "python's", "behind", "plain"])
def test_whatever_an_engine_makes_of_ctrl_c(kind: str) -> None:
    """Errors of two kinds, or one that was raised while Ctrl-C was handled."""
    stop = {"duckdb's": duckdb.InterruptException("INTERRUPT Error"), "plain": KeyboardInterrupt()}
    error = stop.get(kind, RuntimeError("Query interrupted" if kind == "python's" else CANARY))
    if kind == "behind":
        error.__context__ = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt) as caught, engine_errors("a.csv"):
        raise error
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    with pytest.raises(SystemExit), engine_errors("a.csv"):
        raise SystemExit
    failed = r"could not read a.csv \(RuntimeError\)"
    with pytest.raises(DataError, match=failed), engine_errors("a.csv"):
        raise RuntimeError(CANARY)


def test_numbers_with_fractions_are_no_keys(tmp_path: Path) -> None:
    """As in other sources: a coordinate, or the value by another name. Postcodes are texts."""
    path = tmp_path / "a.csv"
    path.write_text("who,at,code,v\na,48.1,01234,1\nb,48,98765,2\n")
    options: dict[str, Any] = {"user": "who", "value": "v", "bounds": (0, 2)}
    with pytest.raises(DataError, match="'at' holds numbers with fractions"):
        shoal.Records(path, by="at", **options, counts="public").counts()
    assert shoal.Records(path, by="code", **options, counts="public").counts().labels == (
        "01234",
        "98765",
    )
    with pytest.raises(InputError, match="the user column 'who' is also given as cell"):
        shoal.Records(path, by=["at", "Who"], **options, counts="public")
