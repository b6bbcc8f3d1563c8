"""SQLite keeps texts in columns of numbers: they are missing numbers."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.data.whole_columns import read_columns
from shoal.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

# Ibis reads SQLite by way of pandas, which warns of what its next version does.
pytestmark = [pytest.mark.audit, pytest.mark.filterwarnings("ignore"), pytest.mark.full]
NUMBERS = {
    "v": "real", "vi": "integer", "vn": "numeric", "vd": "decimal(10,2)", "vf": "float"
}  # fmt: skip
NONE = ["", "n/a", "NaN", "7 mph", "1,5", b"5", float("inf"), float("-inf"), None]


def table(folder: Path, columns: dict[str, str], rows: list[tuple[Any, ...]]) -> Any:
    """A table of SQLite."""
    import ibis

    with sqlite3.connect(folder / "s.db") as connection:
        connection.execute("drop table if exists t")
        connection.execute(f"create table t ({', '.join(map(' '.join, columns.items()))})")
        connection.executemany("insert into t values (?, ?, ?)", rows)
    connection.close()
    return ibis.sqlite.connect(folder / "s.db").table("t")


def records(source: object, value: str, **wanted: Any) -> shoal.Records:
    """Values between -8 and 8."""
    given = {"user": "who", "cell": "place", "bounds": (-8, 8), **wanted}
    return shoal.Records(source, value=value, **given)


@pytest.mark.parametrize("column", NUMBERS)
@pytest.mark.parametrize("cell", NONE, ids=repr)
def test_what_is_no_number_is_missing(tmp_path: Path, column: str, cell: object) -> None:
    """Texts, bytes and infinities, as on every other engine; the others stay."""
    rows = [(f"u{at}", "x", 4) for at in range(5)] + [("u1", "x", 1.5), ("bad", "x", cell)]
    source = table(tmp_path, {"who": "text", "place": "text", column: NUMBERS[column]}, rows)
    with pytest.raises(DataError, match=f"missing|infinite in the column '{column}'") as caught:
        records(source, column).aggregate()
    assert "mph" not in str(caught.value)
    found = records(source, column, missing="public").aggregate()
    assert found.occupancy.count.sum() == 6
    assert sum(found.cell_sums()) == (5 * 12 + 9.5) * 2**16
    whole = read_columns(source, private={"outcome": column}, public={}).column(column).to_pylist()
    assert whole[:6] == [4.0] * 5 + [1.5]
    assert whole[6] is None or abs(whole[6]) == float("inf")


@pytest.mark.parametrize("cell", ["7", "7x", "", b"7", 7.5], ids=repr)
@pytest.mark.parametrize("name", ["who", "place"])
def test_a_text_is_no_whole_number_as_key(tmp_path: Path, name: str, cell: object) -> None:
    """It joins no other user's records, and no other cell."""
    # SQLite itself makes whole numbers of texts like 7: there is none then.
    at = ("who", "place").index(name)
    rows: list[list[Any]] = [[7, 7, 1.0], [8, 7, 1.0], [9, 7, 1.0]]
    rows[2][at] = cell
    source = table(
        tmp_path, {"who": "integer", "place": "integer", "v": "real"}, list(map(tuple, rows))
    )
    if cell == "7":
        assert records(source, "v").occupancy().count.sum() == 3
        return
    with pytest.raises(DataError, match=f"null in the column '{name}'"):
        records(source, "v").occupancy()
    found = records(source, "v", missing="public").occupancy()
    assert (found.n_users, found.n_cells) == (2, 1)


def test_bytes_are_no_text_as_key(tmp_path: Path) -> None:
    """Nor as a label."""
    rows = [("a", "x", 1.0), (b"a", "x", 2.0)]
    source = table(tmp_path, {"who": "text", "place": "text", "v": "real"}, rows)
    with pytest.raises(DataError, match="null in the column 'who'"):
        records(source, "v").occupancy()
    labels = read_columns(source, private={"outcome": "who"}, public={}, texts=True)
    assert labels.column("who").to_pylist() == ["a", None]


@pytest.mark.parametrize("first", [3, 4.5, "n/a", None])
@pytest.mark.parametrize(
    "made",
    [
        "create table t as select coalesce(tail, rowid) as who, place, v from trips order by v",
        "create view t as select coalesce(tail, rowid) as who, place, v from trips order by v",
        "create table t(who, place, v)",
        "create view t as select tail as who, place, v + 0 as v from trips order by v",
    ],
)
def test_no_first_row_decides_how_others_are_read(tmp_path: Path, made: str, first: object) -> None:
    """Ibis takes the type of an undeclared column from the first row, so none is taken."""
    import ibis

    with sqlite3.connect(tmp_path / "s.db") as connection:
        connection.execute("create table trips (tail text, place text, v real)")
        rows = (
            [(None, "x", 1.0)] * 3 + [(f"u{i}", "x", 9.0) for i in range(3)] + [("a", "x", first)]
        )
        connection.executemany("insert into trips values (?, ?, ?)", rows)
        connection.execute(made)
        if "t(" in made:
            connection.execute("insert into t select coalesce(tail, rowid), place, v from trips")
    connection.close()
    source = ibis.sqlite.connect(tmp_path / "s.db").table("t")
    if _declared(tmp_path):
        # SQLite itself says of some expressions what they are, whatever the rows hold.
        records(source, "v", missing="public").occupancy()
        return
    with pytest.raises(DataError, match="no declared type"):
        records(source, "v", missing="public").occupancy()


def _declared(folder: Path) -> bool:
    with sqlite3.connect(folder / "s.db") as connection:
        return all(row[0] for row in connection.execute("select type from pragma_table_info('t')"))


def test_a_query_in_sql_is_refused(tmp_path: Path) -> None:
    """Its columns have no declared types."""
    source = table(tmp_path, {"who": "text", "place": "text", "v": "real"}, [("a", "x", 1.0)])
    query = source.get_backend().sql("select coalesce(who, v) as who, place, v from t order by v")
    with pytest.raises(DataError, match="a query in SQL in a database of SQLite"):
        records(query, "v").occupancy()
    assert records(source.filter(source.v > 0), "v").occupancy().n_users == 1


@pytest.mark.parametrize("kind", ["tinyint", "smallint", "int2", "int8", "int", "bigint"])
def test_whole_number_keys_have_64_bits(tmp_path: Path, kind: str) -> None:
    """Whatever width is declared, SQLite keeps 64 bits: no two keys become one."""
    given = [1, 257, 65537, 2**40 + 1, -(2**62)]
    rows = [(each, each, 1.0) for each in given]
    source = table(tmp_path, {"who": kind, "place": kind, "v": "real"}, rows)
    found = records(source, "v").occupancy()
    assert found.n_users == len(given)
    assert set(found.cells.column(0).to_pylist()) == set(given)
    units = read_columns(source, private={"outcome": "v"}, public={"unit": "who"})
    assert set(units.column("who").to_pylist()) == set(given)


@pytest.mark.parametrize("cell", [2, -1, "yes"], ids=repr)
def test_answers_are_0_or_1(tmp_path: Path, cell: object) -> None:
    """Another number is missing, not another answer."""
    rows = [("a", 1, 1.0), ("b", cell, 1.0)]
    source = table(tmp_path, {"who": "text", "place": "boolean", "v": "real"}, rows)
    with pytest.raises(DataError, match="null in the column 'place"):
        records(source, "v").occupancy()
    assert records(source, "v", missing="public").occupancy().n_users == 1


WRITTEN = [
    f"{day}{between}{clock}{zone}"
    for day in ("2024-02-29", "1969-12-31", "0001-01-01", "9999-12-31")
    for between in " T"
    for clock in ("23:59", "23:59:58", "00:00:00.5", "10:00:00.123456789")
    for zone in ("", "Z", "+00:00")
] + ["2024-02-29", "0001-01-01", "9999-12-31"]


@pytest.mark.parametrize("cell", ["timeslot(place,1s)", "timeslot(place,1d)", "hour_of_day(place)"])
def test_times_are_read_as_those_of_a_csv_file(tmp_path: Path, cell: str) -> None:
    """With or without T, seconds, a fraction and UTC, or a day alone; null is null."""
    rows: list[tuple[Any, ...]] = [(f"u{at}", each, 1.0) for at, each in enumerate(WRITTEN)]
    (tmp_path / "t.csv").write_text(
        "who,place,v\n" + "".join(f"{who},{at},1.0\n" for who, at, _ in rows), encoding="utf-8"
    )
    rows.append(("none", None, 1.0))
    kinds = {"who": "text", "place": "timestamp", "v": "real"}
    found = records(table(tmp_path, kinds, rows), "v", cell=cell, missing="public").occupancy()
    same = records(tmp_path / "t.csv", "v", cell=cell).occupancy()
    assert found.fingerprint == same.fingerprint
    with pytest.raises(DataError, match="null in the column 'place"):
        records(table(tmp_path, kinds, rows), "v", cell=cell).occupancy()


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_times_are_read_as_libraries_write_them(tmp_path: Path, zone: str | None) -> None:
    """Pandas writes `+00:00` behind them, and Ibis T between: no row is dropped."""
    import ibis
    import pandas as pd

    at = pd.to_datetime(["2024-01-01 10:00", "2024-01-01 11:30:00.25"], format="mixed")
    frame = pd.DataFrame({"who": ["a", "b"], "v": [1.0, 2.0], "at": at.tz_localize(zone)})
    with sqlite3.connect(tmp_path / "s.db") as connection:
        frame.to_sql("t", connection, index=False)
    connection.close()
    stored = ibis.sqlite.connect(tmp_path / "s.db").table("t")
    joined = stored.drop("at").join(ibis.memtable(frame[["who", "at"]]), "who")
    expected = ("2024-01-01 10:00+00:00", "2024-01-01 11:00+00:00")
    for source in (stored, joined):
        found = records(source, "v", cell="timeslot(at,1h)", missing="public").occupancy()
        assert found.labels == expected


@pytest.mark.parametrize("missing", ["refuse", "public"])
@pytest.mark.parametrize(
    ("kind", "cell"),
    [
        ("date", 20200101), ("date", "20200101"), ("date", 2458849.5), ("date", b"2020-01-01"),
        ("date", "2020-01-01 23:00"), ("date", "2020-01-01T23:00:00-05:00"), ("date", "2020-1-1"),
        ("date", "2024-02-30"), ("date", "2023-02-29"), ("date", "2020-13-01"), ("date", ""),
        ("date", "0000-01-01"), ("date", "2020-01-01Z"), ("date", "now"), ("date", "2020-01-01\0"),
        ("timestamp", 1577836800), ("timestamp", 2458849.5), ("timestamp", ""),
        ("timestamp", "2024-02-30 10:00:00"), ("timestamp", "2024-02-30"),
        ("timestamp", "2020-01-01 24:00:00"), ("timestamp", "2020-01-01 10:00:60"),
        ("timestamp", "2020-01-01 10:60"), ("timestamp", "2020-01-01 10"),
        ("timestamp", "2020-01-01  10:00"), ("timestamp", "2020-01-01 10:00:00 Z"),
        ("timestamp", "2020-01-01Z"), ("timestamp", "2020-01-01+00:00"),
        ("timestamp", "2020-01-01Z10:00"), ("timestamp", "Z2020-01-01 10:00"),
        ("timestamp", "2020-01-01 10:00+00:00Z"), ("timestamp", "2020-01-01 10:00ZZ"),
        ("timestamp", "2020-01-01 10:00+00:00:00"), ("timestamp", "2020-01-01 10:00:00+01:00"),
        ("timestamp", "2020-01-01 10:00:00-05:00"), ("timestamp", "2020-01-01t10:00:00z"),
        ("timestamp", "01/02/2020"), ("timestamp", "2020-01-01 10:00:00\0+05:00"),
        ("timestamp", "0000-01-01 10:00:00"), ("timestamp", "10:00:00"), ("timestamp", "now"),
        ("timestamp", "\u0662020-01-01 10:00"), ("timestamp", " 2020-01-01 10:00"),
    ],
)  # fmt: skip
def test_days_and_times_in_another_form_are_refused(
    tmp_path: Path, kind: str, cell: object, missing: str
) -> None:
    """No row is dropped for how its time is written, and none is read as another."""
    sound = {"date": "2020-01-01", "timestamp": "2020-01-01 10:00:00"}[kind]
    rows = [("a", sound, 1.0), ("b", cell, 1.0), ("c", None, 1.0)]
    source = table(tmp_path, {"who": "text", "place": kind, "v": "real"}, rows)
    rules = ["timeslot(place,1h)"] + ["place"] * (kind == "date")
    for rule in rules:
        with pytest.raises(
            DataError, match=r"the column 'place' of .* are written other"
        ) as caught:
            records(source, "v", cell=rule, missing=missing).occupancy()
        assert "2024-01-31" in str(caught.value)
        assert not str(cell) or str(cell) == "10:00:00" or str(cell) not in str(caught.value)
    kept = source.filter(source.who == "a")
    assert records(kept, "v", cell=rules[0], missing=missing).occupancy().n_users == 1


@pytest.mark.parametrize("kind", ["date", "timestamp"])
def test_how_private_times_are_written_refuses_nothing(tmp_path: Path, kind: str) -> None:
    """One user's cell would decide, so that it is missing."""
    rows = [("a", "2020-01-01", 1.0), ("b", "yesterday", 1.0)]
    source = table(tmp_path, {"who": "text", "at": kind, "v": "real"}, rows)
    found = read_columns(source, private={"outcome": "at"}, public={}, texts=True).column("at")
    assert [each is None for each in found.to_pylist()] == [False, True]
    with pytest.raises(DataError, match="the column 'at' of a database"):
        read_columns(source, private={"outcome": "v"}, public={"cluster": "at"})


def test_whole_labels_stay_whole(tmp_path: Path) -> None:
    """Labels of SQLite are read as those of a Parquet file; others are missing."""
    labels = [0, 1, 1, 2**53 + 1, -(2**62) - 1]
    rows: list[tuple[Any, ...]] = [(each, "x", 1.0) for each in labels]
    kinds = {"label": "integer", "place": "text", "v": "real"}
    wanted: dict[str, Any] = {"private": {"outcome": "label"}, "public": {}, "texts": True}
    pq.write_table(pa.table({"label": labels}), tmp_path / "l.parquet")
    found = read_columns(table(tmp_path, kinds, rows), **wanted).column("label")
    assert found.type == pa.int64()
    assert found.equals(read_columns(tmp_path / "l.parquet", **wanted).column("label"))
    rows = [(0, "x", 1.0), (1.5, "x", 1.0), ("one", "x", 1.0), (None, "x", 1.0)]
    found = read_columns(table(tmp_path, kinds, rows), **wanted).column("label")
    assert found.type == pa.int64()
    assert found.to_pylist() == [0, None, None, None]


@pytest.mark.parametrize("at", range(3))
def test_a_column_may_have_the_name_of_a_parameter(tmp_path: Path, at: int) -> None:
    """Such as `self`: names are no arguments of a function of Ibis."""
    names = ["who", "place", "v"]
    names[at] = "self"
    kinds = dict(zip(names, ["text", "text", "real"], strict=True))
    source = table(tmp_path, kinds, [("a", "x", 1.0), ("b", "y", 2.0)])
    found = records(source, names[2], user=names[0], cell=names[1]).aggregate()
    assert found.cell_sums() == [9 * 2**16, 10 * 2**16]


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
def test_texts_in_another_encoding_are_refused(tmp_path: Path, encoding: str) -> None:
    """Their bytes would be other keys."""
    import ibis

    with sqlite3.connect(tmp_path / "s.db") as connection:
        connection.execute(f"pragma encoding = '{encoding}'")
        connection.execute("create table t (who text, place text, v real)")
        connection.execute("insert into t values ('a', 'north', 1.0)")
    connection.close()
    with pytest.raises(DataError, match=f"texts are in {encoding}"):
        records(ibis.sqlite.connect(tmp_path / "s.db").table("t"), "v").occupancy()


MOMENTS = [
    f"{day} {clock}"
    for day in ("2024-01-01", "1969-12-31", "1960-02-29", "0001-01-01", "9999-12-31")
    for clock in (
        "00:00:00", "23:59:59", "23:59:59.9994", "23:59:59.9995", "23:59:59.9997",
        "23:59:59.999999", "11:59:59.9999999999", "00:00:00.0004", "12:59:59.5",
    )
]  # fmt: skip


@pytest.mark.parametrize("cell", ["timeslot(place,1s)", "timeslot(place,1d)", "hour_of_day(place)"])
def test_fractions_of_a_second_stay_in_their_second(tmp_path: Path, cell: str) -> None:
    """SQLite rounds to milliseconds, and up; slots are those of other engines."""
    rows = [(at, moment, 1.0) for at, moment in enumerate(MOMENTS)]
    kinds = {"who": "integer", "place": "timestamp", "v": "real"}
    found = records(table(tmp_path, kinds, rows), "v", cell=cell).occupancy()
    times = [datetime.fromisoformat(moment[:26]) for moment in MOMENTS]
    other = pa.table({"who": range(len(rows)), "place": times, "v": [1.0] * len(rows)})
    assert found.fingerprint == records(other, "v", cell=cell).occupancy().fingerprint


@pytest.mark.parametrize(
    "tail", [".5+05:00", ".5Z5", ".5 ", ".5x", ".", ".Z", ".5.5", ". 5", ".+5", ".5-01"]
)
def test_nothing_follows_a_fraction_of_a_second(tmp_path: Path, tail: str) -> None:
    """Another zone behind it would be left out, and the time be another one."""
    moment = "2020-01-01 10:00:00"
    rows = [("a", f"{moment}.25", 1.0), ("b", moment + tail, 1.0)]
    source = table(tmp_path, {"who": "text", "place": "timestamp", "v": "real"}, rows)
    with pytest.raises(DataError, match="the column 'place' of a database"):
        records(source, "v", cell="hour_of_day(place)", missing="public").occupancy()


def test_hexagons_are_those_of_other_engines(tmp_path: Path) -> None:
    """A place that is missing in SQLite is null, for it has no NaN."""
    rows: list[tuple[Any, ...]] = [(52.5, 13.4, 1.0), (0.0, 180.0, 2.0), (52.5, 13.4, 3.0)]
    source = table(tmp_path, {"lat": "real", "lon": "real", "v": "real"}, rows)
    source = source.mutate(who=ibis_number(source))
    other = pa.table(
        {
            "lat": [each[0] for each in rows],
            "lon": [each[1] for each in rows],
            "v": [each[2] for each in rows],
            "who": [1, 2, 3],
        }
    )
    found = records(source, "v", cell="hexagon(lat,lon,7)").occupancy()
    same = records(other, "v", cell="hexagon(lat,lon,7)").occupancy()
    assert found.fingerprint == same.fingerprint
    rows[1] = (None, 180.0, 2.0)
    source = table(tmp_path, {"lat": "real", "lon": "real", "v": "real"}, rows)
    source = source.mutate(who=ibis_number(source))
    with pytest.raises(DataError, match="null in the column 'lat or lon'"):
        records(source, "v", cell="hexagon(lat,lon,7)").occupancy()


def ibis_number(source: Any) -> Any:
    """Whole numbers that differ, as users."""
    return source.v.cast("int64")
