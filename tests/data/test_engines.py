"""One body, every engine: the same integers."""

from __future__ import annotations

import datetime as dt
import warnings
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import shoal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.audit

BOUNDS = (-3.0, 61.7)
RULES = [
    "place",
    "hour_of_day(at)",
    "timeslot(at,6h)",
    "weekday(at)",
    "month(at,Asia/Kathmandu)",
    "bins(lat,20)",
    "hexagon(lat,lon,3)",
]
FLIGHTS = files("shoal") / "datasets" / "flights_2013.parquet"


def table(seed: int = 3, size: int = 3000) -> pa.Table:
    """Users, places, times before and after 1970, coordinates, values in and outside bounds."""
    rng = np.random.default_rng(seed)
    start = dt.datetime(1969, 12, 30, tzinfo=dt.UTC)
    seconds = rng.integers(0, 4 * 86400, size).tolist()
    places = ["Åby", "zoo", "Zoo", "a b"]
    at = [start + dt.timedelta(seconds=s) for s in seconds]
    return pa.table(
        {
            "who": [f"u{n:02}" for n in rng.integers(0, 25, size)],
            "place": [places[n] for n in rng.integers(0, 4, size)],
            "at": pa.array(at, pa.timestamp("us", "UTC")),
            "lat": rng.choice([40.6, 40.64, 51.5, -33.9], size).tolist(),
            "lon": rng.choice([-73.8, -73.78, 0.1, 151.2], size).tolist(),
            "value": rng.normal(30, 25, size).tolist(),
        }
    )


def with_gaps(whole: pa.Table) -> pa.Table:
    """Some users, places and values missing, as null, NaN and infinity."""
    value: list[float | None] = whole.column("value").to_pylist()
    value[5], value[77], value[301], value[302] = None, float("nan"), float("inf"), float("-inf")
    who, place = whole.column("who").to_pylist(), whole.column("place").to_pylist()
    who[9], place[12] = None, None
    columns = {"who": pa.array(who), "place": pa.array(place), "value": pa.array(value)}
    for name, column in columns.items():
        whole = whole.set_column(whole.column_names.index(name), name, column)
    return whole


def to_parquet(whole: pa.Table, folder: Path, _spark: Callable[[], Any]) -> object:
    """A Parquet file."""
    pq.write_table(whole, folder / "r.parquet")
    return folder / "r.parquet"


def to_csv(whole: pa.Table, folder: Path, _spark: Callable[[], Any]) -> object:
    """A CSV file."""
    pa_csv.write_csv(whole, folder / "r.csv")
    return str(folder / "r.csv")


def to_ibis(whole: pa.Table, folder: Path, _spark: Callable[[], Any]) -> object:
    """A table of the user's own DuckDB."""
    import ibis

    pq.write_table(whole, folder / "i.parquet")
    return ibis.duckdb.connect().read_parquet(folder / "i.parquet")


def to_pandas(whole: pa.Table, _folder: Path, _spark: Callable[[], Any]) -> object:
    """A pandas frame."""
    return whole.to_pandas()


def to_polars(whole: pa.Table, _folder: Path, _spark: Callable[[], Any]) -> object:
    """A Polars frame."""
    import polars as pl

    return pl.DataFrame(whole)


def to_lazy(whole: pa.Table, _folder: Path, _spark: Callable[[], Any]) -> object:
    """A lazy Polars frame."""
    import polars as pl

    return pl.LazyFrame(pl.DataFrame(whole))


def to_spark(whole: pa.Table, folder: Path, spark: Callable[[], Any]) -> object:
    """A frame of a local Spark session whose time zone is New York's."""
    pq.write_table(whole, folder / "s.parquet")
    return spark().read.parquet(str(folder / "s.parquet"))


ENGINES = [
    to_parquet,
    to_csv,
    to_ibis,
    to_pandas,
    to_polars,
    to_lazy,
    pytest.param(to_spark, marks=[pytest.mark.spark, pytest.mark.full]),
]


@pytest.fixture
def session(request: pytest.FixtureRequest) -> Callable[[], Any]:
    """The Spark session, started only by the engine that needs it."""
    return lambda: request.getfixturevalue("spark")


def facts(source: object, **options: Any) -> tuple[Any, ...]:
    """Everything the pass gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark warns about its own use of pandas
        options = {"user": "who", "value": "value", "bounds": BOUNDS, "cell": RULES, **options}
        records = shoal.Records(source, **options)
        aggregate = records.aggregate()
        counted = records.occupancy()
    occupancy = aggregate.occupancy
    assert counted.fingerprint == occupancy.fingerprint
    return (
        occupancy.labels,
        occupancy.fingerprint,
        # Row by row: users with equal counts come in the order of their keys.
        list(zip(occupancy.cell, occupancy.count, aggregate.sums, aggregate.squares, strict=True)),
        aggregate.cell_sums(),
    )


def by_hand(whole: pa.Table) -> dict[Any, tuple[int, int, int]]:
    """Count, sum and sum of squares of (user, place), without an engine."""
    lattice = shoal.Records(whole, user="who", value="value", bounds=BOUNDS, cell="place").lattice
    ticks = lattice.ticks(whole.column("value").to_numpy())
    found: dict[Any, tuple[int, int, int]] = {}
    pairs = zip(whole.column("who").to_pylist(), whole.column("place").to_pylist(), strict=True)
    for pair, tick in zip(pairs, ticks.tolist(), strict=True):
        n, s, q = found.get(pair, (0, 0, 0))
        found[pair] = n + 1, s + tick, q + (tick - 2**19) ** 2
    return found


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_same_integers(
    engine: Any,
    tmp_path: Path,
    session: Callable[[], Any],
) -> None:
    """All cell rules; equal to PyArrow in memory, integer for integer."""
    whole = table()
    assert facts(engine(whole, tmp_path, session)) == facts(whole)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_drops_the_same_rows(
    engine: Any,
    tmp_path: Path,
    session: Callable[[], Any],
) -> None:
    """Null, NaN and infinite values, null users and cells: the six rows go."""
    whole = with_gaps(table())
    found = facts(engine(whole, tmp_path, session), missing="public", cell="place")
    kept = [n for n in range(3000) if n not in {5, 77, 301, 302, 9, 12}]
    assert found == facts(table().take(kept), cell="place")
    with pytest.raises(shoal.ShoalError, match="null"):
        facts(engine(whole, tmp_path, session), cell="place")


def test_the_integers_are_those_of_the_lattice() -> None:
    """Against plain Python over the records."""
    whole = table()
    records = shoal.Records(whole, user="who", value="value", bounds=BOUNDS, cell="place")
    aggregate = records.aggregate()
    found = sorted(
        zip(
            aggregate.occupancy.count.tolist(),
            aggregate.sums.tolist(),
            aggregate.squares.tolist(),
            strict=True,
        )
    )
    assert found == sorted(by_hand(whole).values())


def _joined(whole: pa.Table, folder: Path) -> Any:
    """A table of the user's own DuckDB, joined with one in memory."""
    import ibis

    numbered = whole.append_column("row", pa.array(range(len(whole))))
    stored: Any = to_ibis(numbered.drop_columns(["place"]), folder, str)
    return stored.join(ibis.memtable(numbered.select(["row", "place"])), "row")


def _expressions() -> dict[str, Callable[[pa.Table, Path], Any]]:
    """The same records as an expression over tables in memory."""
    import ibis
    import polars as pl

    def filtered(source: object, _: object) -> Any:
        held = ibis.memtable(source)
        return held.filter(held.lat > -1000.0)

    return {
        "filter": filtered,
        "filter of pandas": lambda whole, _: filtered(whole.to_pandas(), _),
        "filter of Polars": lambda whole, _: filtered(pl.DataFrame(whole), _),
        "select": lambda whole, _: ibis.memtable(whole).select(*whole.column_names[::-1]),
        "mutate": lambda whole, _: ibis.memtable(whole).mutate(more=1),
        "union": lambda whole, _: ibis.memtable(whole[:99]).union(ibis.memtable(whole[99:])),
        "join": _joined,
    }


@pytest.mark.parametrize("rule", ["place", RULES[-1], RULES], ids=str)
@pytest.mark.parametrize("how", _expressions())
def test_expressions_over_tables_in_memory_are_read(tmp_path: Path, how: str, rule: object) -> None:
    """By every rule, also those whose groups stream by, as the table itself is."""
    whole = with_gaps(table(size=500))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ibis makes its tables of pandas with what will be gone
        source = _expressions()[how](whole, tmp_path)
    found = facts(source, cell=rule, missing="public")
    assert found == facts(whole, cell=rule, missing="public")


@pytest.mark.parametrize(
    "engine", [to_parquet, pytest.param(to_spark, marks=[pytest.mark.spark, pytest.mark.full])]
)
def test_large_memberships_are_added_as_integers(
    engine: Any,
    tmp_path: Path,
    session: Callable[[], Any],
) -> None:
    """Beyond 2^15 records of a user in a cell floating point is left; the sums stay exact."""
    size = 2**15 + 7
    values = np.random.default_rng(1).uniform(-3, 61.7, size)
    whole = pa.table({"who": ["x"] * size, "place": ["y"] * size, "value": values.tolist()})
    source = engine(whole, tmp_path, session)
    (found,) = facts(source, cell="place")[2]
    (expected,) = by_hand(whole).values()
    assert found[1:] == expected


def test_sums_beyond_floating_point_stay_exact() -> None:
    """An odd number of odd squares near 2^38: floating point would round their sum."""
    size, (lo, hi) = 3 * 2**15 + 1, BOUNDS
    value = lo + (hi - lo) * (1 - 2.0**-20)
    whole = pa.table({"who": ["x"] * size, "place": ["y"] * size, "value": [value] * size})
    (found,) = facts(whole, cell="place")[2]
    ((count, total, squares),) = by_hand(whole).values()
    assert squares == size * (2**19 - 1) ** 2 > 2**53
    assert squares % 2
    assert found[1:] == (count, total, squares)


@pytest.mark.spark
def test_the_flights_are_the_same_on_spark(session: Callable[[], Any]) -> None:
    """The demo's releases have identical integers before noise; the start of Spark takes long."""
    options = {"user": "tailnum", "value": "speed", "bounds": (0, 700), "missing": "public"}
    frame = session().read.parquet(str(FLIGHTS))
    for cell in (["dest"], ["origin", "hour_of_day(time_hour)"]):
        assert facts(frame, cell=cell, **options) == facts(str(FLIGHTS), cell=cell, **options)


def test_the_flights_have_the_published_shape() -> None:
    """104 destinations, 4,037 aircraft, 44,173 memberships."""
    summary = shoal.Records(
        str(FLIGHTS),
        user="tailnum",
        value="speed",
        bounds=(0, 700),
        cell="dest",
        missing="public",
    ).occupancy().summary()  # fmt: skip
    assert (summary.cells, summary.users, summary.memberships) == (104, 4037, 44173)
    assert summary.cells_per_user == 47
