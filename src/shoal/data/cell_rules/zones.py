"""Local time of a zone: what its clocks show, from short spans of universal time."""

from __future__ import annotations

from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, available_timezones

import numpy as np

from shoal import checks
from shoal.errors import DataError, InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.data.source import EngineColumn

# Offsets of zones are whole quarters of an hour since 1980: records are grouped by these first, and
# by the minute on days when a zone changed its clocks within a quarter, such as at 0:01.
QUARTER, _MINUTE = 900, 60
_DAY = 86400
_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
# Years that a date can have, in days since 1970, and a day less for the zone.
_LEAST, _MOST = -719_161, 2_932_895
# 1970 to 2049: what changes within a quarter before or later is refused.
_WEEK, _WEEKS = 7 * _DAY, 4_175
# What names another zone on another machine, or none.
_OF_MACHINES = frozenset({"localtime", "posixrules", "Factory"})


def check_zone(zone: object) -> str | None:
    """The name of a time zone, or None for universal time.

    Raises:
        InputError: No zone of the time zone database.

    Example:
        >>> check_zone("Europe/Berlin"), check_zone(None)
        ('Europe/Berlin', None)
    """
    if zone is None:
        return None
    name = checks.text(zone, "tz")
    if name in _names():
        return name
    raise InputError(
        f"the time zone {name!r}",
        "a name of the time zone database that is one zone on every machine, such as Europe/Berlin "
        "or America/New_York",
        "check the spelling; where the system has no such database, install the package tzdata",
    )


@cache
def _names() -> frozenset[str]:
    return frozenset(available_timezones()) - _OF_MACHINES


def starts_of_groups(seconds: EngineColumn, zone: str) -> EngineColumn:
    """Whole quarters of an hour, or minutes, within which a zone does not change its clocks.

    Args:
        seconds: Universal time of the engine, in seconds after 1970 began.
        zone: Of the time zone database.

    Returns:
        Seconds since 1970 at the start of each, whole numbers.

    Example:
        >>> import ibis
        >>> starts_of_groups(ibis.literal(1000.0), "Europe/Berlin").type()
        Int64(nullable=True)
    """
    import ibis

    starts = (seconds / float(QUARTER)).floor() * float(QUARTER)
    days = _days_by_minute(zone)
    if days:
        by_minute = (seconds / float(_DAY)).floor().cast("int64").isin(days)
        minutes = (seconds / float(_MINUTE)).floor() * float(_MINUTE)
        starts = ibis.ifelse(by_minute, minutes, starts)
    return starts.cast("int64")


def local(starts: NDArray[np.int64], zone: str) -> NDArray[np.int64]:
    """Seconds since 1970 that the clocks of a zone show at the start of groups.

    Args:
        starts: Seconds since 1970, universal time, from `starts_of_groups`, one dimension.
        zone: Of the time zone database.

    Returns:
        Whole seconds of the same shape.

    Raises:
        DataError: Times outside the years 2 to 9999, with an offset that is no whole quarter of an
            hour (no whole minute on days grouped by it), or in a group within which clocks changed.

    Example:
        >>> local(np.array([0, 86400 * 190]), "Europe/Berlin") // 3600 % 24
        array([1, 1])
    """
    days, where = np.unique(starts // _DAY, return_inverse=True)
    if len(days) and (days[0] < _LEAST or days[-1] > _MOST):
        raise DataError(
            "times outside the years 2 to 9999",
            "times that a calendar has",
            "clean the records, or leave tz out",
        )
    rules = ZoneInfo(zone)
    size = np.where(np.isin(days, _days_by_minute(zone)), _MINUTE, QUARTER)[where]
    # A day whose ends have one offset has it throughout.
    offset, tomorrow = (_offsets((days + more) * _DAY, rules)[where] for more in (0, 1))
    changing = np.flatnonzero(offset != tomorrow)
    ends = np.stack([starts[changing], starts[changing] + size[changing] - 1])
    moments, which = np.unique(ends, return_inverse=True)
    first, last = _offsets(moments, rules)[which.reshape(ends.shape)]
    offset[changing] = first
    if (offset % size).any() or (first != last).any():
        raise DataError(
            f"times at which clocks of {zone} were off by no whole quarter of an hour, or changed "
            "within one",
            "times since its standard time began, or since 1970",
            "leave these records out, or leave tz out",
        )
    return np.asarray(starts + offset, dtype=np.int64)


@cache
def _days_by_minute(zone: str) -> tuple[int, ...]:
    """Days since 1970 on which a zone changed its clocks within a quarter of an hour."""
    rules = ZoneInfo(zone)
    # No zone has gone forth and back within one week; what were missed would be refused.
    offsets = _offsets(np.arange(_WEEKS + 1) * _WEEK, rules)
    changes = [_change(week * _WEEK, rules) for week in np.flatnonzero(np.diff(offsets)).tolist()]
    return tuple(change // _DAY for change in changes if change % QUARTER)


def _change(start: int, rules: ZoneInfo) -> int:
    """The second of the week after then at which the clocks change."""
    before = _offset(start, rules)
    week = range(start + 1, start + _WEEK + 1)
    return week[bisect_left(week, x=True, key=lambda at: _offset(at, rules) != before)]


def _offsets(moments: NDArray[np.int64], rules: ZoneInfo) -> NDArray[np.int64]:
    return np.array([_offset(moment, rules) for moment in moments.tolist()], dtype=np.int64)


def _offset(moment: int, rules: ZoneInfo) -> int:
    found = (_FIRST + timedelta(seconds=moment)).astimezone(rules).utcoffset() or timedelta()
    return round(found.total_seconds())
