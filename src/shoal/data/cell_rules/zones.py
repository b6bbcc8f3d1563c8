"""Local time of a zone: what its clocks show, from quarters of an hour of universal time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from shoal import checks
from shoal.errors import DataError, InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Offsets of zones are whole quarters of an hour since 1972: records are grouped by these first.
QUARTER = 900
_DAY = 86400
_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
# Years that a date can have, in days since 1970, and a day less for the zone.
_LEAST, _MOST = -719_161, 2_932_895


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
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    else:
        return name
    raise InputError(
        f"the time zone {name!r}",
        "a name of the time zone database, such as Europe/Berlin or America/New_York",
        "check the spelling; where the system has no such database, install the package tzdata",
    )


def local(quarters: NDArray[np.int64], zone: str) -> NDArray[np.int64]:
    """Seconds since 1970 that the clocks of a zone show at the start of quarters of an hour.

    Args:
        quarters: Quarters of an hour since 1970, universal time, any shape.
        zone: Of the time zone database.

    Returns:
        Whole seconds of the same shape.

    Raises:
        DataError: Times outside the years 2 to 9999, or with an offset that is no whole quarter.

    Example:
        >>> local(np.array([0, 4 * 24 * 190]), "Europe/Berlin") // 3600 % 24
        array([1, 1])
    """
    days, where = np.unique(quarters * QUARTER // _DAY, return_inverse=True)
    if len(days) and (days[0] < _LEAST or days[-1] > _MOST):
        raise DataError(
            "times outside the years 2 to 9999",
            "times that a calendar has",
            "clean the records, or leave tz out",
        )
    rules = ZoneInfo(zone)
    # A day whose ends have one offset has it throughout.
    ends = np.array([[_offset(day, 0, rules), _offset(day, _DAY, rules)] for day in days.tolist()])
    ends = ends.reshape(-1, 2)
    offset = ends[where, 0]
    changing = np.flatnonzero(ends[where, 0] != ends[where, 1])
    moments, which = np.unique(quarters[changing], return_inverse=True)
    each = [_offset(0, moment * QUARTER, rules) for moment in moments.tolist()]
    offset[changing] = np.array(each, dtype=np.int64)[which]
    if (offset % QUARTER).any():
        raise DataError(
            f"times at which clocks of {zone} were off by no whole quarter of an hour",
            "times since its standard time began",
            "leave these records out, or leave tz out",
        )
    return np.asarray(quarters * QUARTER + offset, dtype=np.int64)


def _offset(day: int, second: int, rules: ZoneInfo) -> int:
    moment = _FIRST + timedelta(days=day, seconds=second)
    found = moment.astimezone(rules).utcoffset() or timedelta()
    return round(found.total_seconds())
