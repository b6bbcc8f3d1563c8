"""Cells of time against Python's own calendar, in universal time and in zones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.data.cell_rules.parse import parse
from shoal.data.cell_rules.zones import local
from shoal.errors import DataError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from shoal.data.cell_rules.rule import CellRule

pytestmark = pytest.mark.oracle

ZONES = ["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "UTC"]
START = datetime(2013, 3, 9, 20, 7, 11, tzinfo=UTC)
# Across both changes of the clocks, leap days and years, and before 1970.
MOMENTS = [
    *(START + timedelta(minutes=37 * step) for step in range(200)),
    *(datetime(2013, 11, 2, 23, 59, 59, tzinfo=UTC) + timedelta(hours=step) for step in range(40)),
    datetime(2012, 2, 29, 12, tzinfo=UTC),
    datetime(1999, 12, 31, 23, 45, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, tzinfo=UTC),
]
FROM_PYTHON: dict[str, Callable[[datetime], object]] = {
    "hour_of_day": lambda at: at.hour,
    "weekday": lambda at: at.isoweekday(),
    "date": lambda at: at.date(),
    "month": lambda at: f"{at:%Y-%m}",
}


def keys(rule: str | CellRule, moments: list[datetime]) -> list[object]:
    """The key of each moment, from counts in cells of one user a moment."""
    # As many records as tell a user: an occupancy does not say who it is.
    times = np.arange(1, len(moments) + 1)
    rows = np.repeat(np.arange(len(moments)), times)
    columns: dict[str, Any] = {
        "who": np.repeat(np.arange(len(moments)), times),
        "at": pa.array(moments, pa.timestamp("us", "UTC")).take(rows),
        "v": np.zeros(len(rows)),
    }
    made = shoal.Records(
        pa.table(columns), user="who", value="v", bounds=(0, 1), cell=rule
    ).occupancy()
    own = made.cells.column(0).to_pylist()
    return [own[cell] for cell in made.cell[np.argsort(made.count)].tolist()]


@pytest.mark.parametrize("zone", [None, *ZONES])
@pytest.mark.parametrize("name", FROM_PYTHON)
def test_parts_of_times_are_those_of_the_calendar(name: str, zone: str | None) -> None:
    """In every zone, at every change of its clocks."""
    rule = getattr(shoal, name)("at", tz=zone)
    clock = [at.astimezone(ZoneInfo(zone or "UTC")) for at in MOMENTS]
    assert keys(rule, MOMENTS) == [FROM_PYTHON[name](at) for at in clock]
    assert parse(str(rule)) == rule


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("width", ["15min", "1h", "1d"])
def test_slots_are_those_of_the_clocks(width: str, zone: str) -> None:
    """A slot starts when the clocks there show it, and an hour that they show twice is one."""
    rule = shoal.timeslot("at", width, tz=zone)
    size = rule.seconds
    expected = []
    for at in MOMENTS:
        shown = at.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        since = int((shown - datetime(1970, 1, 1)).total_seconds() // size) * size  # noqa: DTZ001
        expected.append(datetime(1970, 1, 1) + timedelta(seconds=since))  # noqa: DTZ001
    assert keys(rule, MOMENTS) == expected
    assert parse(str(rule)) == rule


@given(
    quarters=st.lists(st.integers(-(10**5), 3 * 10**6), min_size=1, max_size=30),
    zone=st.sampled_from(ZONES[:4]),
)
def test_local_time_is_pythons(quarters: list[int], zone: str) -> None:
    """Quarter by quarter, whatever other quarters there are."""
    given_quarters = [each for each in quarters if each > 4 * 24 * 366 * 20 or zone == "UTC"]
    found = local(np.array(given_quarters, dtype=np.int64), zone).tolist()
    for quarter, seconds in zip(given_quarters, found, strict=True):
        at = datetime.fromtimestamp(quarter * 900, UTC).astimezone(ZoneInfo(zone))
        shown = at.replace(tzinfo=UTC)
        assert seconds == int(shown.timestamp())


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "../etc/passwd", "Europe", 7, "\0"])
def test_zones_that_there_are_not_are_refused(zone: object) -> None:
    """One of our errors, before any record is read."""
    with pytest.raises(InputError):
        shoal.hour_of_day("at", tz=zone)  # type: ignore[arg-type]


def test_clocks_that_were_off_by_no_quarter_are_told() -> None:
    """Berlin's mean time was 53 minutes and 28 seconds off."""
    old = [datetime(1850, 1, 1, tzinfo=UTC)]
    with pytest.raises(DataError, match="no whole quarter"):
        keys(shoal.hour_of_day("at", tz="Europe/Berlin"), old)
    assert keys(shoal.hour_of_day("at"), old) == [0]


def test_slots_of_a_zone_are_whole_quarters() -> None:
    """Shorter ones would need every second on its own."""
    with pytest.raises(InputError, match="whole number of quarters"):
        shoal.timeslot("at", "10min", tz="Europe/Berlin")
