"""Cell rules: how public columns of a record say which cell it belongs to.

A rule has one SQL expression, the same for every engine; its result is a code that sorts as the
keys do, and `Rule.keys` makes the key that people read of each different code.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from zoneinfo import available_timezones

import numpy as np
import pyarrow as pa

from shoal import checks
from shoal.data.engines import floored, rest
from shoal.errors import DataError, InputError, MissingPartError, ShoalWarning

if TYPE_CHECKING:
    from collections.abc import Callable

    from shoal.data.sources import Columns, Use

_HOUR, _DAY, _THURSDAY = 3600, 86400, 3  # days from Monday to 1970-01-01
_UNITS = {"s": 1, "min": 60, "h": _HOUR, "d": _DAY}
_WIDTH = re.compile(r"([1-9][0-9]{0,8})(s|min|h|d)")
# Numbers, widths and starts of bins are below it, so that floating point tells whole numbers apart.
_MOST = 2**52
# In place of a place that is none: no index of H3.
_FINEST, _POLE, _DATE_LINE, _NOWHERE = 15, 90, 180, 0
_CIRCLE = 66.6
# What names another zone on another machine, or none.
_OF_MACHINES = {"localtime", "posixrules", "Factory"}


@dataclass(frozen=True)
class Rule:
    """One part of a cell's key. Made by `bins`, `hexagon`, `timeslot` and the like.

    Attributes:
        call: The function that made it; empty for a column as it is.
        columns: Columns of the records that it reads, all of them public.
        settings: What else the function was given, such as a width.
        tz: A name of the time zone database; universal time without it.
    """

    call: str
    columns: tuple[str, ...]
    settings: tuple[str | int, ...] = ()
    tz: str | None = None

    def __str__(self) -> str:
        """As plans, manifests and the command line write it."""
        given = (*self.columns, *self.settings, *([self.tz] if self.tz else []))
        return f"{self.call}({','.join(map(str, given))})" if self.call else self.columns[0]

    @property
    def name(self) -> str:
        """Name of the key column."""
        endings = {"": "", "bins": "_from", "hour_of_day": "_hour"}
        if self.call == "hexagon":
            return f"hexagon_{self.settings[0]}"
        if self.call == "timeslot":
            return f"{self.columns[0]}_{self.settings[0]}"
        return self.columns[0] + endings.get(self.call, f"_{self.call}")

    @property
    def use(self) -> Use:
        """What its columns hold: keys, numbers or times."""
        return "key" if not self.call else _OF_NUMBERS.get(self.call, "time")

    def base(self, columns: Columns) -> str:
        """SQL of what the code follows from: a column, a whole number, or seconds since 1970."""
        engine, (first, *_) = columns.engine, self.columns
        sql = [columns.sql[name] for name in self.columns]
        if not self.call:
            return engine.key(sql[0], columns.kinds[first])
        if self.use == "time":
            seconds = engine.seconds(sql[0], columns.types[first])
            return engine.local(seconds, self.tz) if self.tz else seconds
        # What is not finite is missing. Arithmetic says it: statistics of files leave NaN out.
        numbers = [f"CASE WHEN {c} - {c} = 0 THEN CAST({c} AS DOUBLE) END" for c in sql]
        if self.call == "hexagon":
            engine.add(self.name, _indexes(int(self.settings[0])))
            return f"{self.name}({', '.join(numbers)})"
        small = f"CASE WHEN abs({numbers[0]}) < {_MOST} THEN {numbers[0]} END"
        return f"CAST(floor({small}) AS BIGINT)"

    def code(self, base: str) -> str:
        """SQL of the code, by the name of its base."""
        if self.call == "timeslot":
            return floored(base, self._seconds)
        if self.call == "hour_of_day":
            return floored(rest(base, _DAY), _HOUR)
        if self.call == "bins":
            width, start = self._bins
            return f"({base} - {rest(f'{base} - {start}', width)})"
        days = f"CAST({floored(base, _DAY)} / {_DAY} AS INT)"
        if self.call == "weekday":
            return rest(f"{days} + {_THURSDAY}", 7)
        if self.call == "month":
            day = f"(DATE '1970-01-01' + {days})"
            return f"(year({day}) * 12 + month({day}) - {1970 * 12 + 1})"
        return days if self.call == "date" else base

    def keys(self, code: pa.Array[Any]) -> pa.Array[Any]:
        """The keys that people read of codes, in their order."""
        if self.call in {"", "bins"}:
            return code
        number = code.to_numpy(zero_copy_only=False).astype(np.int64)
        if self.call == "hexagon":
            return pa.array([f"{index:x}" for index in number.tolist()], pa.string())
        if self.call == "timeslot":
            return pa.array(number, pa.timestamp("s", None if self.tz else "UTC"))
        if self.call == "date":
            return pa.array(number.astype(np.int32)).cast(pa.date32())
        if self.call == "month":
            texts = np.datetime_as_string(number.astype("datetime64[M]"))
            return pa.array(texts.astype(str).tolist(), pa.string())
        return pa.array(number // _HOUR if self.call == "hour_of_day" else number + 1)

    def check(self, code: pa.Array[Any]) -> None:
        """Refuse places outside the globe, and ask whether latitude and longitude are exchanged.

        Cells are public, in whatever order they come.
        """
        if self.call != "hexagon":
            return
        (lat, lon), (resolution,) = self.columns, self.settings
        meant = f"did you mean hexagon({lon},{lat},{resolution})?"
        cells = np.asarray(np.from_dlpack(code.unique()))
        if (cells == _NOWHERE).any():
            raise DataError(
                f"coordinates outside the globe in {lat} or {lon}",
                "latitudes of -90 to 90 degrees, then longitudes of -180 to 180",
                f"check the columns: {meant}",
            )
        from h3ronpy.vector import cells_to_coordinates

        places: Any = pa.record_batch(cells_to_coordinates(cells.astype(np.uint64)))
        y, x = (np.abs(places.column(name).to_numpy()) for name in ("lat", "lng"))
        if np.mean((y > _CIRCLE) & (x <= _CIRCLE)) > 1 / 2:
            text = f"most cells lie beyond a polar circle, and exchanged they do not: {meant}"
            warnings.warn(text, ShoalWarning, stacklevel=2)

    @property
    def _seconds(self) -> int:
        found = _WIDTH.fullmatch(str(self.settings[0]))
        return int(found[1]) * _UNITS[found[2]] if found else 0

    @property
    def _bins(self) -> tuple[int, int]:
        width, start, *_ = (*self.settings, 0)
        return int(width), int(start)


def bins(column: str, width: int, start: int = 0) -> Rule:
    """A cell rule by a public number: bins of one width, each with its lower end.

    x lies in the bin from start + k width to before start + (k + 1) width, with k =
    floor((x - start) / width), without rounding: -1e-17 is not in the bin from 0. What is not
    finite, or not between -2^52 and 2^52, has no bin and counts as missing.

    Args:
        column: Numbers, known to all.
        width: Of a bin, a whole number in the column's unit.
        start: The lower end of one of the bins.

    Returns:
        A rule for `Records(by=...)`.

    Raises:
        InputError: No whole width above 0, or no whole start.

    Example:
        >>> str(bins("distance", 100)), bins("distance", 100).name
        ('bins(distance,100)', 'distance_from')
    """
    size = checks.whole(width, "the width of a bin", least=1, most=_MOST - 1, example=10)
    first = checks.whole(start, "the start of a bin", least=1 - _MOST, most=_MOST - 1, example=0)
    return Rule("bins", _columns(column), (size, first) if first else (size,))


def hexagon(lat: str, lon: str, resolution: int) -> Rule:
    """A cell rule by place: H3 hexagons of one resolution; the key is the index in hexadecimal.

    Args:
        lat: Column of latitudes in degrees.
        lon: Column of longitudes in degrees.
        resolution: 0 (continents) to 15 (a square metre).

    Returns:
        A rule for `Records(by=...)`.

    Raises:
        InputError: Another resolution.

    Example:
        >>> hexagon("lat", "lon", 7).name
        'hexagon_7'
    """
    size = checks.whole(resolution, "a hexagon resolution", most=_FINEST, example=7)
    if lon.casefold().startswith("lat") or lat.casefold().startswith(("lon", "lng")):
        asked = f"hexagon({lat},{lon},{size}) takes a latitude first, then a longitude"
        warnings.warn(asked, ShoalWarning, stacklevel=2)
    return Rule("hexagon", _columns(lat, lon), (size,))


def timeslot(column: str, width: str, tz: str | None = None) -> Rule:
    """A cell rule by time: slots of a fixed width from 1970-01-01; the key is the slot's start.

    Args:
        column: Times with or without a zone (then UTC), or dates.
        width: A whole number of `s`, `min`, `h` or `d`.
        tz: A name of the time zone database, such as `Europe/Berlin`: slots are those of the
            clocks there, and an hour that they show twice is one. Universal time without it.

    Returns:
        A rule for `Records(by=...)`.

    Raises:
        InputError: Another width, or an unknown zone.

    Example:
        >>> timeslot("time_hour", "15min").name
        'time_hour_15min'
    """
    if not _WIDTH.fullmatch(checks.text(width, "width")):
        raise InputError(
            f"a timeslot of {checks.shown(width)}",
            "a whole number of s, min, h or d, such as 15min or 1h",
            "give for example timeslot(column, '1h')",
        )
    return Rule("timeslot", _columns(column), (width,), _zone(tz))


def hour_of_day(column: str, tz: str | None = None) -> Rule:
    """A cell rule by hour of the day, 0 to 23.

    Args, Returns, Raises: as `timeslot`, without a width.

    Example:
        >>> str(hour_of_day("time_hour", tz="America/New_York"))
        'hour_of_day(time_hour,America/New_York)'
    """
    return Rule("hour_of_day", _columns(column), (), _zone(tz))


def weekday(column: str, tz: str | None = None) -> Rule:
    """A cell rule by day of the week as ISO 8601 counts it, 1 (Monday) to 7.

    Args, Returns, Raises: as `timeslot`, without a width.

    Example:
        >>> weekday("time_hour").name
        'time_hour_weekday'
    """
    return Rule("weekday", _columns(column), (), _zone(tz))


def date(column: str, tz: str | None = None) -> Rule:
    """A cell rule by calendar day.

    Args, Returns, Raises: as `timeslot`, without a width.

    Example:
        >>> date("time_hour").name
        'time_hour_date'
    """
    return Rule("date", _columns(column), (), _zone(tz))


def month(column: str, tz: str | None = None) -> Rule:
    """A cell rule by calendar month; the key is a text such as 2013-05.

    Args, Returns, Raises: as `timeslot`, without a width.

    Example:
        >>> month("time_hour").name
        'time_hour_month'
    """
    return Rule("month", _columns(column), (), _zone(tz))


_OF_NUMBERS: dict[str, Use] = {"bins": "number", "hexagon": "number"}
_MAKERS: dict[str, Callable[..., Rule]] = {
    each.__name__: each for each in (bins, hexagon, hour_of_day, weekday, date, month, timeslot)
}
_CALL, _NUMBER = re.compile(r"\s*(\w+)\s*\((.*)\)\s*"), re.compile(r"-?[0-9]{1,16}")


def parse(text: str) -> Rule:
    """A rule from its text: a column's name, or a call as `str` of a rule writes it."""
    call = _CALL.fullmatch(text)
    if call is None:
        return Rule("", (text,))
    given = [part.strip() for part in call[2].split(",")]
    settings = [int(each) if _NUMBER.fullmatch(each) else each for each in given[1:]]
    try:
        return _MAKERS[call[1]](given[0], *settings)
    except (KeyError, TypeError):
        pass
    raise InputError(
        f"the cell rule {text!r}",
        "a column, timeslot(column,1h), hour_of_day(column), weekday(column), date(column), "
        "month(column), each with a time zone or without, bins(column,10) or hexagon(lat,lon,7)",
        "check the name and the arguments",
    )


def rules_of(given: object) -> tuple[Rule, ...]:
    """Rules from one rule or text, or from a list of them; none from None."""
    listed: list[Any] = list(given) if isinstance(given, list | tuple) else [given]
    listed = [] if given is None else listed
    for each in listed:
        if not isinstance(each, str | Rule) or not each:
            raise InputError(
                f"a cell rule of type {type(each).__name__}",
                f"a column, {', '.join(_MAKERS)}, or the text of one",
                'give for example by=["dest", shoal.hour_of_day("time_hour")]',
            )
        if isinstance(each, Rule) and parse(str(each)) != each:
            raise InputError(
                f"a cell rule that is written {str(each)!r}, which is another rule",
                "columns whose names are no call of a rule, and have no comma where a rule is "
                "given them",
                "rename the column",
            )
    return tuple(parse(each) if isinstance(each, str) else each for each in listed)


def _columns(*names: str) -> tuple[str, ...]:
    return tuple(checks.text(name, "a column") for name in names)


def _zone(zone: object) -> str | None:
    name = checks.optional(zone, checks.text, "tz")
    if name is None or name in _zones():
        return name
    raise InputError(
        f"the time zone {name!r}",
        "a name of the time zone database that is one zone on every machine, such as Europe/Berlin "
        "or America/New_York",
        "check the spelling; where the system has no such database, install the package tzdata",
    )


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones()) - _OF_MACHINES


def _indexes(resolution: int) -> Callable[..., pa.Array[Any]]:
    """A function from latitudes and longitudes to indexes of H3; also sent to workers of Spark."""
    if find_spec("h3ronpy") is None:
        raise MissingPartError(
            "h3ronpy is not installed", "it computes hexagons", 'run pip install "shoal[geo]"'
        )
    pole, date_line, nowhere = _POLE, _DATE_LINE, _NOWHERE

    def index(lat: Any, lon: Any) -> Any:
        from h3ronpy.vector import coordinates_to_cells

        # What is missing is NaN here, which is no place.
        y, x = (each.to_numpy(zero_copy_only=False) for each in (lat, lon))
        inside = (np.abs(y) <= pole) & (np.abs(x) <= date_line)
        found = coordinates_to_cells(np.where(inside, y, 0.0), np.where(inside, x, 0.0), resolution)
        code = np.where(inside, found.to_numpy().astype(np.int64), nowhere)
        return pa.array(code, mask=np.isnan(y) | np.isnan(x))

    index.__annotations__ = dict.fromkeys(("lat", "lon", "return"), pa.Array)  # Spark reads them
    return index
