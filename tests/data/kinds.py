"""One table in every kind of source, and what plain Python finds in it."""

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import floor, inf, nextafter
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

import shoal

BOUNDS = (-4, 4)
KATHMANDU, NEWFOUNDLAND = ZoneInfo("Asia/Kathmandu"), ZoneInfo("America/St_Johns")
EDGES = [-7e15 / 2, -10.0, -1e-17, -0.0, 5e-324, 0.1, 3.0, 9.0, 1e15 + 0.5]
NUMBERS = [*EDGES, *(nextafter(x, -inf) for x in EDGES), *(nextafter(x, inf) for x in EDGES)]
# Both switches of 2010 in Newfoundland at 0:01, the new year, the end of a month, a leap day.
TIMES = [
    first + timedelta(minutes=4 * step, seconds=step)
    for first in (
        datetime(2010, 3, 14, 2, 50, tzinfo=UTC),
        datetime(2010, 11, 7, 1, 50, tzinfo=UTC),
        datetime(2010, 12, 31, 22, tzinfo=UTC),
        datetime(2012, 2, 29, 22, tzinfo=UTC),
        datetime(1969, 12, 31, 22, 59, tzinfo=UTC),
    )
    for step in range(30)
]
PLACES = {"Åby": (59.3, 18.1), "zoo": (40.6, -73.8), "Zoo": (51.5, 0.1), "a b": (-33.9, 151.2)}


def _bin(width: int, start: int = 0) -> Callable[[dict[str, Any]], object]:
    return lambda row: floor((Fraction(row["far"]) - start) / width) * width + start


def _local(zone: ZoneInfo) -> Callable[[dict[str, Any]], datetime]:
    return lambda row: row["at"].astimezone(zone)


# Each rule with the key that plain Python gives a record.
RULES: dict[str, Callable[[dict[str, Any]], object]] = {
    "place": lambda row: row["place"],
    "month(at)": lambda row: f"{row['at']:%Y-%m}",
    "week(at)": lambda row: f"{row['at']:%G-W%V}",
    "quarter(at,Asia/Kathmandu)": lambda row: (
        f"{_local(KATHMANDU)(row).year}-Q{(_local(KATHMANDU)(row).month + 2) // 3}"
    ),
    "year(at,America/St_Johns)": lambda row: _local(NEWFOUNDLAND)(row).year,
    "weekday(at)": lambda row: row["at"].isoweekday(),
    "date(at)": lambda row: row["at"].date(),
    "hour_of_day(at)": lambda row: row["at"].hour,
    "timeslot(at,90min)": lambda row: datetime.fromtimestamp(
        row["at"].timestamp() // 5400 * 5400, UTC
    ),
    "month(at,Asia/Kathmandu)": lambda row: f"{_local(KATHMANDU)(row):%Y-%m}",
    "date(at,Asia/Kathmandu)": lambda row: _local(KATHMANDU)(row).date(),
    "hour_of_day(at,America/St_Johns)": lambda row: _local(NEWFOUNDLAND)(row).hour,
    "weekday(at,America/St_Johns)": lambda row: _local(NEWFOUNDLAND)(row).isoweekday(),
    "timeslot(at,1h,America/St_Johns)": lambda row: _local(NEWFOUNDLAND)(row).replace(
        minute=0, second=0, tzinfo=None
    ),
    "bins(far,1,1)": _bin(1, 1),
    "bins(far,3,-2)": _bin(3, -2),
    "bins(far,49)": _bin(49),
    # One hexagon a place, whose index is the place's.
    "hexagon(lat,lon,3)": lambda row: {
        "Åby": "830886fffffffff",
        "zoo": "832a10fffffffff",
        "Zoo": "83194efffffffff",
        "a b": "83be0efffffffff",
    }[row["place"]],
}
# Some whose keys have names of their own.
TOGETHER = [
    "place", "month(at)", "weekday(at)", "hour_of_day(at,America/St_Johns)",
    "date(at,Asia/Kathmandu)", "timeslot(at,90min)", "bins(far,3,-2)", "hexagon(lat,lon,3)",
]  # fmt: skip


def table(size: int = 1200) -> pa.Table:
    """Few users with many records, at all edges of bins and clocks; values are whole numbers."""
    rng = np.random.default_rng(5)
    places = [list(PLACES)[n] for n in rng.integers(0, 4, size)]
    return pa.table(
        {
            "who": [f"u{n:02}" for n in rng.integers(0, 9, size)],
            "place": places,
            "at": pa.array(
                [TIMES[each] for each in rng.permutation(size) % len(TIMES)],
                pa.timestamp("us", "UTC"),
            ),
            "far": [NUMBERS[each] for each in rng.permutation(size) % len(NUMBERS)],
            "lat": [PLACES[each][0] for each in places],
            "lon": [PLACES[each][1] for each in places],
            "value": rng.integers(-5, 6, size).astype(float).tolist(),
        }
    )


def with_gaps(whole: pa.Table) -> pa.Table:
    """Some users, places and values missing, as null, NaN and infinity: rows 5, 9, 12, 77, 301."""
    columns = whole.to_pydict()
    columns["value"][5], columns["value"][77], columns["value"][301] = None, float("nan"), inf
    columns["who"][9] = columns["place"][12] = None
    return pa.table(columns, schema=whole.schema)


def expected(whole: pa.Table, rule: str) -> list[tuple[Any, ...]]:
    """Cell, count, sum and sum of squares of each user and cell by plain Python, at 3 tick bits."""
    sums: dict[Any, tuple[int, int, int]] = {}
    for row in whole.to_pylist():
        cell, tick = (RULES[rule](row), row["who"]), min(max(int(row["value"]), -4), 4)
        count, total, squares = sums.get(cell, (0, 0, 0))
        sums[cell] = count + 1, total + tick + 4, squares + tick**2
    return sorted((cell, *more) for (cell, _), more in sums.items())


def found(source: object, rule: str) -> list[tuple[Any, ...]]:
    """The same by a pass."""
    counts, made = shoal.Records(
        source, user="who", value="value", bounds=BOUNDS, by=rule, tick_bits=3, counts="public"
    ).aggregate()
    cells = counts.cells.column(0).to_pylist()
    columns = counts.cell, counts.count, made.sums, made.squares
    rows = zip(*(each.tolist() for each in columns), strict=True)
    return sorted((cells[cell], *more) for cell, *more in rows)


def facts(source: object, **options: Any) -> tuple[Any, ...]:
    """All that a pass gives: row by row, so that users with equal counts have a place each."""
    given = {"user": "who", "value": "value", "bounds": BOUNDS, "by": TOGETHER, **options}
    records = shoal.Records(source, **given, counts="public")
    counts, made = records.aggregate()
    assert records.counts().fingerprint == counts.fingerprint
    columns = counts.user, counts.cell, counts.count
    return (
        counts.labels,
        counts.fingerprint,
        *(each.tolist() for each in (*columns, made.sums, made.squares)),
    )


def parquet(whole: pa.Table, folder: Path) -> object:
    """A Parquet file of many row groups."""
    pq.write_table(whole, folder / "r.parquet", row_group_size=97)
    return folder / "r.parquet"


def parts(whole: pa.Table, folder: Path) -> object:
    """A folder of Parquet files, one below another."""
    (folder / "parts/more").mkdir(parents=True)
    pq.write_table(whole[:100], folder / "parts/a.parquet")
    pq.write_table(whole[100:], folder / "parts/more/b.pq")
    return folder / "parts"


def by_place(whole: pa.Table, folder: Path) -> object:
    """A folder in which places are the names of folders."""
    pq.write_to_dataset(whole, folder / "hive", partition_cols=["place"])
    return str(folder / "hive")


def csv(whole: pa.Table, folder: Path, ending: str = ".csv") -> object:
    """A CSV file."""
    with pa.output_stream(str(folder / "r") + ending) as stream:
        pa_csv.write_csv(whole, stream)
    return folder / ("r" + ending)


def zst(whole: pa.Table, folder: Path) -> object:
    """A pattern of two compressed CSV files."""
    for name, part in (("a", whole[:300]), ("b", whole[300:])):
        with pa.output_stream(str(folder / f"{name}.csv.zst")) as stream:
            pa_csv.write_csv(part, stream)
    return f"{folder}/?.csv.zst"


def pandas(whole: pa.Table, _folder: Path) -> object:
    """A pandas frame whose users are a category, in an order of its own."""
    frame = whole.to_pandas()
    frame["who"] = frame["who"].astype("category")
    kinds = frame["who"].cat.categories
    frame["who"] = frame["who"].cat.reorder_categories(kinds[::-1], ordered=True)
    return frame


def polars(whole: pa.Table, _folder: Path) -> object:
    """A Polars frame whose users are a category, in the order of their first rows."""
    import polars as pl

    return pl.DataFrame(whole).with_columns(pl.col("who").cast(pl.Categorical))


def lazy(whole: pa.Table, _folder: Path) -> object:
    """A lazy Polars frame."""
    import polars as pl

    return pl.LazyFrame(pl.DataFrame(whole))


def dictionaries(whole: pa.Table, _folder: Path) -> object:
    """Chunks with dictionaries of their own, and views of texts."""
    who = [chunk.dictionary_encode() for chunk in whole.column("who").chunks]
    place = whole.column("place").cast(pa.string_view())
    return whole.set_column(0, "who", pa.chunked_array(who)).set_column(1, "place", place)


def ibis_duckdb(whole: pa.Table, _folder: Path) -> object:
    """A table of the user's own DuckDB, in another time zone, where case makes no difference."""
    import ibis

    backend = ibis.duckdb.connect()
    backend.con.register("given", whole)
    backend.con.execute("create table t as from given; set timezone = 'America/New_York'")
    backend.con.execute("alter table t alter who type varchar collate nocase")
    return backend.table("t").mutate(more=1)


def ibis_sqlite(whole: pa.Table, folder: Path) -> object:
    """A table of SQLite."""
    import ibis

    kinds = "who text, place text, at timestamp, far real, lat real, lon real, value real"
    with sqlite3.connect(folder / "s.db") as made:
        made.execute(f"create table t ({kinds})")
        rows = [
            tuple(f"{x:%Y-%m-%d %H:%M:%S}" if isinstance(x, datetime) else x for x in row.values())
            for row in whole.to_pylist()
        ]
        made.executemany("insert into t values (?, ?, ?, ?, ?, ?, ?)", rows)
    made.close()
    return ibis.sqlite.connect(folder / "s.db").table("t")


KINDS: dict[str, Callable[[pa.Table, Path], object]] = {
    each.__name__: each
    for each in (
        *(parquet, parts, by_place, csv, zst, pandas, polars, lazy, dictionaries),
        *(ibis_duckdb, ibis_sqlite),
    )
}


def spark_frame(session: Any, whole: pa.Table, folder: Path) -> Any:
    """A frame of Spark, of a file with many row groups."""
    return session.read.parquet(str(parquet(whole, folder)))
