"""Cells of time against Python's own calendar, in universal time and in zones."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.data.cell_rules.parse import parse
from shoal.data.cell_rules.zones import local, starts_of_groups
from shoal.data.source import duckdb
from shoal.errors import DataError, InputError
from tests.support.loop import loop_over

if TYPE_CHECKING:
    from collections.abc import Callable

    from shoal.data.cell_rules.rule import CellRule

pytestmark = pytest.mark.oracle

DAY = 86400
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


@loop_over(
    "zone",
    [None, *ZONES],
)
@loop_over(
    "name",
    FROM_PYTHON,
)
def test_parts_of_times_are_those_of_the_calendar(name: str, zone: str | None) -> None:
    """In every zone, at every change of its clocks."""
    rule = getattr(shoal, name)("at", tz=zone)
    clock = [at.astimezone(ZoneInfo(zone or "UTC")) for at in MOMENTS]
    assert keys(rule, MOMENTS) == [FROM_PYTHON[name](at) for at in clock]
    assert parse(str(rule)) == rule


@loop_over(
    "zone",
    ZONES,
)
@loop_over(
    "width",
    ["15min", "1h", "1d"],
)
def test_slots_are_those_of_the_clocks(width: str, zone: str) -> None:
    """A slot starts when the clocks there show it, and an hour that they show twice is one."""
    rule = shoal.timeslot("at", width, tz=zone)
    size = rule.seconds
    expected = []
    for at in MOMENTS:
        shown = at.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        since = int((shown - datetime(1970, 1, 1)).total_seconds() // size) * size
        expected.append(datetime(1970, 1, 1) + timedelta(seconds=since))
    assert keys(rule, MOMENTS) == expected
    assert parse(str(rule)) == rule


def clocks(moments: list[int], zone: str) -> list[int]:
    """Seconds since 1970 that Python's clocks of a zone show, to the quarter of an hour."""
    first = datetime(1970, 1, 1, tzinfo=UTC)
    shown = [(first + timedelta(seconds=at)).astimezone(ZoneInfo(zone)) for at in moments]
    return [int(at.replace(tzinfo=UTC).timestamp()) // 900 * 900 for at in shown]


@cache
def engine() -> Any:
    """One connection for all zones."""
    return duckdb()


def of_groups(moments: list[int], zone: str) -> list[int]:
    """The same from the engine's groups."""
    import ibis

    table: Any = ibis.memtable(pa.table({"at": pa.array(moments, pa.float64())}))
    starts = engine().to_pyarrow(table.select(start=starts_of_groups(table["at"], zone)))
    found = local(starts["start"].to_numpy(), zone) // 900 * 900
    return found.tolist()  # type: ignore[no-any-return]


@given(
    moments=st.lists(st.integers(10 * 366 * DAY, 79 * 365 * DAY), min_size=1, max_size=30),
    zone=st.sampled_from(ZONES[:4]),
)
def test_local_time_is_pythons(moments: list[int], zone: str) -> None:
    """Moment by moment, whatever other moments there are."""
    assert of_groups(moments, zone) == clocks(moments, zone)


@cache
def switches() -> dict[str, list[int]]:
    """Seconds since 1970 at which each zone of the database changed its clocks; aliases once."""
    found: dict[tuple[object, ...], tuple[str, list[int]]] = {}
    for name in sorted(available_timezones() - {"localtime", "Factory"}):
        zone = import_module("zoneinfo._zoneinfo").ZoneInfo(name)
        listed, offsets = zone._trans_utc, [each.utcoff for each in zone._ttinfos]
        found[(*listed, *offsets)] = name, [at for at in listed if at >= 0]
    return dict(found.values())


@pytest.mark.full
@pytest.mark.parametrize(
    "area", ["A[^ms]", "Am.*/[A-L]", "Am.*/[M-Z]", "As", "[B-E]", "[F-OQ-Z]", "P"]
)
def test_every_switch_of_every_zone_is_pythons(area: str) -> None:
    """Within half an hour around it, also where clocks changed at 0:01."""
    zones = {name: at for name, at in switches().items() if re.match(area, name)}
    assert zones
    for zone, changes in zones.items():
        around = {at + 60 * more for at in changes for more in (-15, -14, -2, 0, 1, 2, 14)}
        later = {at * 30 * DAY for at in range(830, 970)}
        moments = sorted(later | around | {at - 1 for at in around})
        # Monrovia and Kiritimati were off by no whole quarter of an hour.
        since = {"Africa/Monrovia": 1973, "Pacific/Kiritimati": 1980}.get(zone, 1970)
        moments = [at for at in moments if at >= (since - 1970) * 366 * DAY]
        assert of_groups(moments, zone) == clocks(moments, zone), zone


def test_a_switch_within_a_quarter_that_was_not_looked_for_is_told() -> None:
    """Guam changed at 0:01 in 1969, too: a quarter with both offsets has no one hour."""
    at = datetime(1969, 1, 25, 13, 5, tzinfo=UTC)
    with pytest.raises(DataError, match="changed within one"):
        local(np.array([int(at.timestamp()) // 900 * 900]), "Pacific/Guam")


@loop_over(
    "zone",
    [
        *("", "Mars/Olympus", "../etc/passwd", "Europe", 7, "\0", "europe/berlin", "tzdata.zi"),
        *("localtime", "posixrules", "Factory", "right/Europe/Berlin", "posix/Europe/Berlin"),
    ],
)
def test_zones_that_there_are_not_are_refused(zone: object) -> None:
    """Nor is a name one that is another zone on another machine."""
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


@pytest.mark.parametrize("tz", [None, "Africa/Monrovia", "America/St_Johns"])
def test_a_missing_time_is_told_as_such(tz: str | None) -> None:
    """Nothing is looked up in its place: Monrovia was 44:30 off in 1970."""
    at = pa.array([datetime(2020, 1, 1, 12, tzinfo=UTC), None], pa.timestamp("us", "UTC"))
    given: dict[str, Any] = {"user": "who", "value": "v", "bounds": (0, 1)}
    source = pa.table({"who": [1, 2], "at": at, "v": [0.0, 1.0]})
    for rule in (shoal.hour_of_day("at", tz), shoal.month("at", tz), shoal.date("at", tz)):
        with pytest.raises(DataError, match="null in the column"):
            shoal.Records(source, cell=rule, **given).occupancy()
        found = shoal.Records(source, cell=rule, missing="public", **given).occupancy()
        assert found.totals.tolist() == [1]
