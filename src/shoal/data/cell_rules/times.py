"""Cells of time: slots, hours of the day, days of the week, dates and months, in any time zone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from shoal import checks
from shoal.data.cell_rules.rule import CellRule, Needs
from shoal.data.cell_rules.zones import QUARTER, check_zone, local, starts_of_groups
from shoal.data.engine_time import epoch_seconds
from shoal.errors import InputError

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from shoal.data.source import EngineColumn, EngineTable

_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
_WIDTH = re.compile(r"([1-9][0-9]{0,8})(s|min|h|d)")
_HOUR, _DAY = 3600, 86400
_THURSDAY = 3  # days from Monday to 1970-01-01


@dataclass(frozen=True)
class TimeRule(CellRule):
    """A part of a time, in universal time or as the clocks of a zone show it.

    Attributes:
        column: Times with or without a zone (then UTC), or dates.
        tz: A name of the time zone database; universal time without it.
    """

    column: str
    tz: str | None = None
    needs: ClassVar[Needs] = "time"
    call: ClassVar[str] = ""

    def __str__(self) -> str:
        """As the function that makes it is called."""
        return f"{self.call}({','.join(self._given)})"

    @property
    def _given(self) -> list[str]:
        return [self.column, *([self.tz] if self.tz else [])]

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the rule reads: the times."""
        return (self.column,)

    @property
    def one_to_one(self) -> bool:
        """In universal time, where the engine computes the code itself."""
        return self.tz is None

    def engine(self, table: EngineTable) -> tuple[EngineColumn, ...]:
        """The code of each time; in a zone the start of its quarter of an hour, or minute."""
        seconds = epoch_seconds(table, self.column)
        if self.tz is None:
            return (self._in_engine(seconds).cast("int64"),)
        return (starts_of_groups(seconds, self.tz),)

    def combine(self, *parts: pa.Array[Any]) -> pa.Array[Any]:
        """The code of each row.

        Raises:
            DataError: A time for which the zone has no whole quarter of an hour.
        """
        absent = parts[0].is_null().to_numpy(zero_copy_only=False)
        # A time in the place of a missing one would be looked up in the zone, too.
        found = parts[0].drop_null().to_numpy(zero_copy_only=False).astype(np.int64)
        code = np.zeros(len(absent), dtype=np.int64)
        code[~absent] = self._coded(found) if self.tz is None else self._code(local(found, self.tz))
        return pa.array(code, mask=absent)

    def _in_engine(self, seconds: EngineColumn) -> EngineColumn:
        """Of universal time, what the engine computes of the seconds since 1970."""
        return (seconds / float(_DAY)).floor()

    def _coded(self, found: NDArray[np.int64]) -> NDArray[np.int64]:
        """The code that follows from what the engine computed."""
        return found

    def _code(self, seconds: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same from seconds since 1970 of local time."""
        return self._coded(seconds // _DAY)


@dataclass(frozen=True)
class Timeslot(TimeRule):
    """Slots of a fixed length; the key is the slot's start. Made by `timeslot`.

    Attributes:
        column: Times with or without a zone (then UTC), or dates.
        tz: A name of the time zone database; universal time without it.
        width: A whole number of `s`, `min`, `h` or `d`.
    """

    width: str = "1h"
    call: ClassVar[str] = "timeslot"

    @property
    def _given(self) -> list[str]:
        return [self.column, self.width, *([self.tz] if self.tz else [])]

    @property
    def name(self) -> str:
        """Name of the key column: column and width."""
        return f"{self.column}_{self.width}"

    @property
    def seconds(self) -> int:
        """Length of a slot, in seconds.

        Raises:
            InputError: The width is not of this form, or no whole quarters of an hour in a zone.
        """
        found = _WIDTH.fullmatch(self.width)
        if found is None:
            raise InputError(
                f"a timeslot of {checks.shown(self.width)}",
                "a whole number of s, min, h or d, such as 15min or 1h",
                "give for example timeslot(column, '1h')",
            )
        seconds = int(found[1]) * _UNITS[found[2]]
        if self.tz and seconds % QUARTER:
            raise InputError(
                f"a timeslot of {self.width} in a time zone",
                "a whole number of quarters of an hour, or universal time",
                "give for example timeslot(column, '15min', tz=...), or leave tz out",
            )
        return seconds

    def _in_engine(self, seconds: EngineColumn) -> EngineColumn:
        return (seconds / float(self.seconds)).floor()

    def _code(self, seconds: NDArray[np.int64]) -> NDArray[np.int64]:
        return seconds // self.seconds

    def finish(self, key: pa.Array[Any]) -> pa.Array[Any]:
        """The slot's start: universal time, or what the zone's clocks show."""
        starts = key.to_numpy(zero_copy_only=False).astype(np.int64) * self.seconds
        return pa.array(starts).cast(pa.timestamp("s", None if self.tz else "UTC"))


@dataclass(frozen=True)
class HourOfDay(TimeRule):
    """Hour of the day, 0 to 23. Made by `hour_of_day`."""

    call: ClassVar[str] = "hour_of_day"

    @property
    def name(self) -> str:
        """Name of the key column: the column's, with `_hour`."""
        return f"{self.column}_hour"

    def _in_engine(self, seconds: EngineColumn) -> EngineColumn:
        """Hours since 1970, modulo 24, never negative."""
        hours = (seconds / float(_HOUR)).floor()
        return hours - (hours / 24.0).floor() * 24.0

    def _code(self, seconds: NDArray[np.int64]) -> NDArray[np.int64]:
        return seconds // _HOUR % 24

    def finish(self, key: pa.Array[Any]) -> pa.Array[Any]:
        """The hour."""
        return key


@dataclass(frozen=True)
class Weekday(TimeRule):
    """Day of the week as ISO 8601 counts it, 1 (Monday) to 7. Made by `weekday`."""

    call: ClassVar[str] = "weekday"

    @property
    def name(self) -> str:
        """Name of the key column: the column's, with `_weekday`."""
        return f"{self.column}_weekday"

    def _in_engine(self, seconds: EngineColumn) -> EngineColumn:
        days = (seconds / float(_DAY)).floor() + float(_THURSDAY)
        return days - (days / 7.0).floor() * 7.0 - float(_THURSDAY)

    def _coded(self, found: NDArray[np.int64]) -> NDArray[np.int64]:
        return (found + _THURSDAY) % 7 + 1

    def finish(self, key: pa.Array[Any]) -> pa.Array[Any]:
        """The number of the day."""
        return key


@dataclass(frozen=True)
class Date(TimeRule):
    """The calendar day. Made by `date`."""

    call: ClassVar[str] = "date"

    @property
    def name(self) -> str:
        """Name of the key column: the column's, with `_date`."""
        return f"{self.column}_date"

    def finish(self, key: pa.Array[Any]) -> pa.Array[Any]:
        """The day."""
        return key.cast(pa.int32()).cast(pa.date32())


@dataclass(frozen=True)
class Month(TimeRule):
    """The calendar month, as a text such as 2013-05. Made by `month`."""

    call: ClassVar[str] = "month"

    @property
    def name(self) -> str:
        """Name of the key column: the column's, with `_month`."""
        return f"{self.column}_month"

    @property
    def one_to_one(self) -> bool:
        """The engine groups by the day: months have no one length."""
        return False

    def _coded(self, found: NDArray[np.int64]) -> NDArray[np.int64]:
        return found.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)

    def finish(self, key: pa.Array[Any]) -> pa.Array[Any]:
        """Year and month."""
        months = key.to_numpy(zero_copy_only=False).astype("datetime64[M]")
        return pa.array(np.datetime_as_string(months).astype(str).tolist(), type=pa.string())


def timeslot(column: str, width: str, tz: str | None = None) -> Timeslot:
    """A cell rule by time: slots of a fixed width, aligned to 1970-01-01.

    Args:
        column: Times with or without a zone (then UTC), or dates.
        width: A whole number of `s`, `min`, `h` or `d`.
        tz: A name of the time zone database, such as `Europe/Berlin`: slots are those of the
            clocks there, and an hour that they show twice is one. Universal time without it.

    Returns:
        A rule for `Records(cell=...)`.

    Raises:
        InputError: Another width, or an unknown zone.

    Example:
        >>> timeslot("time_hour", "15min").name
        'time_hour_15min'
    """
    rule = Timeslot(checks.text(column, "column"), check_zone(tz), checks.text(width, "width"))
    _ = rule.seconds
    return rule


def hour_of_day(column: str, tz: str | None = None) -> HourOfDay:
    """A cell rule by hour of the day, 0 to 23.

    Args:
        column: Times with or without a zone (then UTC), or dates.
        tz: A name of the time zone database; universal time without it.

    Returns:
        A rule for `Records(cell=...)`.

    Raises:
        InputError: An unknown zone.

    Example:
        >>> str(hour_of_day("time_hour", tz="America/New_York"))
        'hour_of_day(time_hour,America/New_York)'
    """
    return HourOfDay(checks.text(column, "column"), check_zone(tz))


def weekday(column: str, tz: str | None = None) -> Weekday:
    """A cell rule by day of the week, 1 (Monday) to 7.

    Args:
        column: Times with or without a zone (then UTC), or dates.
        tz: A name of the time zone database; universal time without it.

    Returns:
        A rule for `Records(cell=...)`.

    Raises:
        InputError: An unknown zone.

    Example:
        >>> weekday("time_hour").name
        'time_hour_weekday'
    """
    return Weekday(checks.text(column, "column"), check_zone(tz))


def date(column: str, tz: str | None = None) -> Date:
    """A cell rule by calendar day.

    Args:
        column: Times with or without a zone (then UTC), or dates.
        tz: A name of the time zone database; universal time without it.

    Returns:
        A rule for `Records(cell=...)`.

    Raises:
        InputError: An unknown zone.

    Example:
        >>> date("time_hour").name
        'time_hour_date'
    """
    return Date(checks.text(column, "column"), check_zone(tz))


def month(column: str, tz: str | None = None) -> Month:
    """A cell rule by calendar month, such as 2013-05.

    Args:
        column: Times with or without a zone (then UTC), or dates.
        tz: A name of the time zone database; universal time without it.

    Returns:
        A rule for `Records(cell=...)`.

    Raises:
        InputError: An unknown zone.

    Example:
        >>> month("time_hour").name
        'time_hour_month'
    """
    return Month(checks.text(column, "column"), check_zone(tz))
