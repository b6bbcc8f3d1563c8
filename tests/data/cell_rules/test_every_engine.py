"""Every rule on every engine: the cells, counts and sums that plain Python finds."""

from __future__ import annotations

import sqlite3
import warnings
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import floor, inf, nan, nextafter
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import DataError
from tests.data.test_engines import ENGINES, to_ibis, to_parquet

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.audit, pytest.mark.filterwarnings("ignore")]

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


def _bin(width: int, start: int = 0) -> Callable[[float, datetime], object]:
    return lambda x, _: floor((Fraction(x) - start) / width) * width + start


# Each with the key that plain Python gives a number and a time.
RULES: dict[str, Callable[[float, datetime], object]] = {
    "month(at)": lambda _, at: f"{at:%Y-%m}",
    "weekday(at)": lambda _, at: at.isoweekday(),
    "date(at)": lambda _, at: at.date(),
    "month(at,Asia/Kathmandu)": lambda _, at: f"{at.astimezone(KATHMANDU):%Y-%m}",
    "hour_of_day(at,America/St_Johns)": lambda _, at: at.astimezone(NEWFOUNDLAND).hour,
    "weekday(at,America/St_Johns)": lambda _, at: at.astimezone(NEWFOUNDLAND).isoweekday(),
    "date(at,Asia/Kathmandu)": lambda _, at: at.astimezone(KATHMANDU).date(),
    "timeslot(at,1h,America/St_Johns)": lambda _, at: at.astimezone(NEWFOUNDLAND).replace(
        minute=0, second=0, tzinfo=None
    ),
    "bins(far,1)": _bin(1),
    "bins(far,1,1)": _bin(1, 1),
    "bins(far,3,-2)": _bin(3, -2),
    "bins(far,49)": _bin(49),
}


def records(size: int = 600) -> pa.Table:
    """Few users, with many records each in one month, one local hour and one bin."""
    rng = np.random.default_rng(5)
    who, value = rng.integers(0, 4, size), rng.integers(-4, 5, size)
    far, at = rng.permutation(size) % len(NUMBERS), rng.permutation(size) % len(TIMES)
    return pa.table(
        {
            "who": pa.array(who),
            "at": pa.array([TIMES[each] for each in at], pa.timestamp("us", "UTC")),
            "far": pa.array([NUMBERS[each] for each in far]),
            "value": pa.array(value.astype(float)),
        }
    )


def to_sqlite(whole: pa.Table, folder: Path, _spark: Callable[[], Any]) -> object:
    """A table of SQLite."""
    import ibis

    with sqlite3.connect(folder / "s.db") as made:
        made.execute("create table t (who integer, at timestamp, far real, value real)")
        rows = zip(*(column.to_pylist() for column in whole.columns), strict=True)
        given = [(who, at and f"{at:%Y-%m-%d %H:%M:%S}", *more) for who, at, *more in rows]
        made.executemany("insert into t values (?, ?, ?, ?)", given)
    made.close()
    return ibis.sqlite.connect(folder / "s.db").table("t")


ALL = [*ENGINES, to_sqlite, lambda whole, _folder, _spark: whole]
NAMES = [getattr(getattr(each, "values", [each])[0], "__name__", str(each)) for each in ALL]


@pytest.fixture
def session(request: pytest.FixtureRequest) -> Callable[[], Any]:
    """The Spark session, started only by the engine that needs it."""
    return lambda: request.getfixturevalue("spark")


def found(source: object, cell: object, **options: Any) -> list[tuple[object, ...]]:
    """Cell, count, sum and sum of squares of each user in each cell, in any order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark warns about its own use of pandas
        given = {"user": "who", "value": "value", "bounds": BOUNDS, "tick_bits": 3, **options}
        made = shoal.Records(source, cell=cell, **given)  # type: ignore[arg-type]
        private, counted = made.aggregate(), made.occupancy()
    public = private.occupancy
    assert counted.fingerprint == public.fingerprint
    cells = public.cells.column(0).to_pylist()
    numbers = public.cell, public.count, private.sums, private.squares
    rows = zip(*(each.tolist() for each in numbers), strict=True)
    return sorted((cells[cell], *more) for cell, *more in rows)


def expected(whole: pa.Table, key: Callable[[float, datetime], object]) -> list[tuple[Any, ...]]:
    """The same in plain Python."""
    sums: dict[Any, tuple[int, int, int]] = {}
    for who, at, far, value in zip(*(column.to_pylist() for column in whole.columns), strict=True):
        cell, tick = (key(far, at), who), int(value) + 4
        count, total, squares = sums.get(cell, (0, 0, 0))
        sums[cell] = count + 1, total + tick, squares + (tick - 4) ** 2
    return sorted((cell, *more) for (cell, _), more in sums.items())


@pytest.mark.parametrize("engine", ALL, ids=NAMES)
def test_groups_of_one_cell_are_added_up(
    engine: Any,
    tmp_path: Path,
    session: Callable[[], Any],
) -> None:
    """Days of one month, quarters of one local hour; bins whose ends hold the number."""
    whole = records()
    source = engine(whole, tmp_path, session)
    for rule, key in RULES.items():
        assert found(source, rule) == expected(whole, key), rule


@pytest.mark.parametrize("rule", ["month(at)", "hour_of_day(at,America/St_Johns)", "bins(far,3)"])
@pytest.mark.parametrize("engine", [to_parquet, to_sqlite], ids=["parquet", "sqlite"])
def test_nothing_left_is_no_records(
    engine: Any,
    rule: str,
    tmp_path: Path,
) -> None:
    """Where every cell is missing there is no group to add up."""
    nothing: dict[str, Any] = {"at": pa.nulls(600, pa.timestamp("us", "UTC"))}
    nothing["far"] = pa.nulls(600, pa.float64())
    whole = records()
    for name, column in nothing.items():
        whole = whole.set_column(whole.column_names.index(name), name, column)
    source = engine(whole, tmp_path, None)
    with pytest.raises(DataError, match="no records"):
        found(source, rule, missing="public")
    with pytest.raises(DataError, match="null in the column"):
        found(source, rule)


@pytest.mark.parametrize("rest", [[-0.0], [5.0], [1.0], [1.0, 0.0, -3.0]], ids=str)
@pytest.mark.parametrize("engine", [to_parquet, to_ibis])
def test_nan_is_missing_whatever_a_file_says_of_its_numbers(
    engine: Any,
    rest: list[float],
    tmp_path: Path,
) -> None:
    """Least and largest number of a Parquet file leave NaN out; public and private."""
    numbers = [1.0, nan, *rest]
    columns = {"who": range(len(numbers)), "far": numbers, "east": [2.0] * len(numbers)}
    whole = pa.table({**columns, "value": [1.0] * len(numbers)})
    source = engine(whole, tmp_path, None)
    for rule in ("bins(far,10)", "hexagon(far,east,2)", "hexagon(east,far,2)"):
        kept = whole.take([at for at in range(len(numbers)) if at != 1])
        assert found(source, rule, missing="public") == found(kept, rule), rule
        with pytest.raises(DataError, match="null"):
            found(source, rule)
    given: dict[str, Any] = {"value": "far", "missing": "public"}
    assert found(source, "who", **given) == found(kept, "who", **given)


@pytest.mark.parametrize("far", [inf, -inf])
@pytest.mark.parametrize("rest", [[], [1.0], [nan], [1.0, nan]], ids=str)
def test_infinities_are_refused_beside_nan(far: float, rest: list[float], tmp_path: Path) -> None:
    """They are no missing numbers, and have no bin."""
    numbers = [far, *rest]
    columns = {"who": range(len(numbers)), "far": numbers, "east": [2.0] * len(numbers)}
    pq.write_table(pa.table({**columns, "value": [1.0] * len(numbers)}), tmp_path / "r.parquet")
    for rule in ("bins(far,10)", "hexagon(far,east,2)"):
        with pytest.raises(DataError, match=r"infinite or huge|outside the globe"):
            found(tmp_path / "r.parquet", rule, missing="public")
