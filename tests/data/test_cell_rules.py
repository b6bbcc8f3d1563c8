"""Cells of times, numbers and places: what has no key, and what may be meant."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.data.cell_rules import Rule, parse
from shoal.errors import DataError, InputError, ShoalWarning

MOST = math.nextafter(2.0**52, 0)


def keys(rule: str | Rule, column: pa.Array[Any], missing: str = "refuse") -> list[object]:
    """The key of each row, from counts of one user a row."""
    # As many records as tell a user: counts do not say who it is.
    times = np.arange(1, len(column) + 1)
    rows = np.repeat(np.arange(len(column)), times)
    table = pa.table({"who": rows, "at": column.take(pa.array(rows)), "v": np.zeros(len(rows))})
    given = {"user": "who", "value": "v", "bounds": (0, 1), "missing": missing}
    made = shoal.Records(table, by=rule, **given, counts="public").counts()
    own = made.cells.column(0).to_pylist()
    return [own[cell] for cell in made.cell[np.argsort(made.count)].tolist()]


@given(
    numbers=st.lists(
        st.floats(-1e6, 1e6) | st.floats(-1e-300, 1e-300) | st.floats(-MOST, MOST),
        min_size=1,
        max_size=20,
    ),
    width=st.integers(1, 1000) | st.integers(1, int(MOST)),
    start=st.integers(-50, 50) | st.integers(-int(MOST), int(MOST)),
)
def test_a_number_lies_in_its_bin(numbers: list[float], width: int, start: int) -> None:
    """Its lower end is whole widths from the start, and less than a width below it."""
    rule = shoal.bins("at", width, start)
    lows = keys(rule, pa.array(numbers, pa.float64()))
    for number, low in zip(numbers, lows, strict=True):
        assert low == math.floor((Fraction(number) - start) / width) * width + start
    assert parse(str(rule)) == rule


@pytest.mark.parametrize("far", [None, math.nan, math.inf, -math.inf, 2.0**52, -1e300])
def test_numbers_without_a_bin_are_missing(far: float, tmp_path: Path) -> None:
    """Also where a Parquet file's least and largest number leave NaN out."""
    column = pa.array([5.0, far, 15.0])
    assert keys("bins(at,10)", column, missing="public") == [0, 10]
    with pytest.raises(DataError, match="column 'at' has null"):
        keys("bins(at,10)", column)
    path, table = tmp_path / "r.parquet", {"who": [1, 2, 3], "at": column, "east": [2.0] * 3}
    pq.write_table(pa.table(table), path)
    options: dict[str, Any] = {"user": "who", "bounds": (0, 9), "missing": "public"}
    for value, cell in (("east", "bins(at,10)"), ("at", None)):
        found = shoal.Records(path, value=value, by=cell, **options, counts="public").counts()
        there = far is not None and math.isfinite(far) and value == "at"
        assert found.n_users == 2 + there


def test_whole_numbers_and_decimals_have_bins() -> None:
    """By their own digits; half precision, too."""
    for kind in (pa.int8(), pa.uint64(), pa.decimal128(21, 2), pa.float16(), pa.float32()):
        assert keys("bins(at,10)", pa.array([7, 12], pa.int64()).cast(kind)) == [0, 10]


@pytest.mark.parametrize(
    "text",
    [
        *("bins(far)", "bins(far,0)", "bins(far,1.5)", "bins(far,1,2,3)", f"bins(far,{2**52})"),
        *("hexagon(a,b,16)", "timeslot(at,1y)", "timeslot(at)", "date(at,Mars/Olympus)"),
        *("hour_of_day(at,localtime)", "weekday(at,europe/berlin)", "month(at,../etc/passwd)"),
        "date()",
    ],
)
def test_other_rules_are_refused(text: str) -> None:
    """In our own words."""
    with pytest.raises(InputError):
        parse(text)


def test_a_rule_whose_text_is_another_rule_is_refused() -> None:
    """Plans and manifests have no more of it than its text."""
    for rule in (shoal.date("a,UTC"), shoal.bins("x,1", 2)):
        with pytest.raises(InputError, match="read back as another rule"):
            shoal.Records(None, user="who", value="v", bounds=(0, 1), by=rule, counts="public")


def clocks(moments: list[int], zone: str) -> list[datetime]:
    """The minutes that Python's clocks of a zone show."""
    first = datetime(1970, 1, 1, tzinfo=UTC)
    shown = [(first + timedelta(seconds=at)).astimezone(ZoneInfo(zone)) for at in moments]
    return [at.replace(second=0, tzinfo=None) for at in shown]


def minutes(moments: list[int], zone: str) -> list[object]:
    """The same of the engine."""
    return keys(f"timeslot(at,1min,{zone})", pa.array(moments, pa.timestamp("s", "UTC")))


@given(
    moments=st.lists(st.integers(-10 * 366 * 86400, 67 * 365 * 86400), min_size=1, max_size=20),
    zone=st.sampled_from(["Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe"]),
)
def test_local_time_is_pythons(moments: list[int], zone: str) -> None:
    """Moment by moment, whatever other moments there are."""
    assert minutes(moments, zone) == clocks(moments, zone)


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_all_units_are_universal(unit: str, zone: str | None) -> None:
    """Without a zone too; one unit before 1970 is 23 h, and a day starts at 0 h."""
    at = pa.array([-1, 0, None], pa.timestamp(unit, zone))
    assert keys("hour_of_day(at)", at, missing="public") == [23, 0]
    assert keys("hour_of_day(at,Asia/Kathmandu)", at[:2]) == [5, 5]
    with pytest.raises(DataError, match="column 'at' has null"):
        keys("month(at,Asia/Kathmandu)", at)


def places(lat: list[float], lon: list[float]) -> shoal.Records:
    """One record a place."""
    size = len(lat)
    table = pa.table({"who": range(size), "v": [1.0] * size, "lat": lat, "lon": lon})
    return shoal.Records(
        table, user="who", value="v", bounds=(0, 2), by="hexagon(lat,lon,5)", counts="public"
    )


def test_places_outside_the_globe_are_refused_with_a_question() -> None:
    """The order of latitude and longitude is the usual mistake; a hint works for every row."""
    for lat, lon, hint in (
        ([-118.2, -117.0], [34.1, 34.0], "did you mean hexagon(lon,lat,5)"),
        ([40.0, 95.0], [1.0, 2.0], "did you mean hexagon(lon,lat,5)"),
        ([-118.2, 34.0], [34.1, -118.0], "drop such rows."),
        ([48.1, 40.7], [371.6, 286.1], "subtract 360 from those above 180"),
        ([48.1, 40.7], [-371.6, 286.1], "drop such rows."),
        ([400.0], [400.0], "drop such rows."),
    ):
        with pytest.raises(DataError, match="lat or lon has latitudes beyond") as found:
            places(lat, lon).counts()
        assert hint in str(found.value)


def test_places_near_a_pole_are_asked_about_where_exchanged_they_are_none() -> None:
    """New York with latitude for longitude; Tromso and the south pole as they are."""
    with pytest.warns(ShoalWarning, match=r"did you mean hexagon\(lon,lat,5\)"):
        places([-73.9, -74.0, 40.7], [40.7, 40.8, -73.9]).counts()
    places([69.6, -89.0, 40.7], [18.9, 120.0, -73.9]).counts()
    with pytest.warns(ShoalWarning, match="takes a latitude first"):
        shoal.hexagon("lon", "lat", 5)


def test_a_place_that_is_missing_has_no_hexagon() -> None:
    """NaN, as some frames write null, and infinity."""
    for lat in (math.nan, math.inf):
        with pytest.raises(DataError, match="column 'lat or lon' has null"):
            places([1.0, lat], [1.0, 2.0]).counts()
