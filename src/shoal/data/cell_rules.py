"""Cell rules: how public columns of a record say which cell it belongs to.

A rule has one SQL expression, the same for every engine; its result is a code that sorts as the
keys do, and `Rule.keys` makes the key that people read of each different code.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from typing import Any
from zoneinfo import available_timezones

import numpy as np
import pyarrow as pa

from shoal import checks
from shoal.data.engines import floored, rest
from shoal.data.sources import CELL_RULES, Columns
from shoal.data.types import Use
from shoal.errors import DataError, InputError, MissingPartError, ShoalWarning
from shoal.files.tables import key_name

_HOUR = 3600  # seconds
_DAY = 86400  # seconds
# The days from a Monday to 1970-01-01, which was a Thursday.
_THURSDAY = 3
_WEEK = 7 * _DAY
_UNITS = {"s": 1, "min": 60, "h": _HOUR, "d": _DAY, "w": _WEEK}
_WIDTH = re.compile(r"([1-9][0-9]{0,8})(s|min|h|d|w)")
# Numbers, widths and starts of bins are below this: floating point then tells whole numbers apart.
_MOST = 2**52
# The finest resolution of hexagons.
_FINEST = 15
# The largest latitude and longitude, in degrees.
_POLE = 90
_DATE_LINE = 180
# Codes for coordinates of no place, which are no indexes of H3: in general,
_NOWHERE = 0
# if they are a place once latitude and longitude are exchanged,
_EXCHANGED = 1
# and if they are one once 360 is subtracted from the longitude.
_AROUND = 2
# The latitude of the polar circles, in degrees.
_CIRCLE = 66.6
# Names of the time zone database that stand for another zone on another machine, or for none.
_OF_MACHINES = {"localtime", "posixrules", "Factory"}
_DAYS = f"CAST({floored('{0}', _DAY)} / {_DAY} AS INT)"
_DATE = f"(DATE '1970-01-01' + {_DAYS})"


def _same(key: Any) -> Any:
    return key


@dataclass(frozen=True)
class Rule:
    """One part of a cell's key. Made by `bins`, `hexagon`, `timeslot` and the like.

    Attributes:
        text: As plans, manifests and the command line write it.
        name: Name of the key column.
        columns: Columns of the records that it reads, all of them public.
        use: What these hold: keys, numbers or times.
        base: SQL of what the code follows from: a column, a whole number, or seconds since 1970.
        code: SQL of the code of a base, `{0}`.
        keys: Makes of codes the keys that people read, in their order.
        check: Refuses codes, or asks about them; they are public, in whatever order they come.
        step: The width of slots of time that follow one another; None of other rules.
        zone: Whose clocks tell the time of these slots; None for universal time.
        domain: All keys that there can be, if they are few and known beforehand.
        spaced: One of the keys that are whole numbers, and how far these are apart.
    """

    text: str
    name: str
    columns: tuple[str, ...]
    use: Use
    base: Callable[[Columns], str] = field(compare=False, repr=False)
    code: str = field(default="{0}", compare=False, repr=False)
    keys: Callable[[pa.Array[Any]], Any] = field(default=_same, compare=False, repr=False)
    check: Callable[[pa.Array[Any]], object] = field(default=_same, compare=False, repr=False)
    step: np.timedelta64 | None = field(default=None, compare=False, repr=False)
    zone: str | None = field(default=None, compare=False, repr=False)
    domain: tuple[int, ...] = field(default=(), compare=False, repr=False)
    spaced: tuple[int, int] = field(default=(0, 1), compare=False, repr=False)

    def __str__(self) -> str:
        """The rule as plans, manifests and the command line write it."""
        return self.text

    def __reduce__(self) -> tuple[Callable[[str], Rule], tuple[str]]:
        """Pickles the rule as its text, from which all of it follows."""
        return parse, (self.text,)


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
    text = _text("bins", checks.text(column, "a column"), size, first or None)

    def base(columns: Columns) -> str:
        number = _finite(columns.sql[column])
        return f"CAST(floor(CASE WHEN abs({number}) < {_MOST} THEN {number} END) AS BIGINT)"

    code = f"({{0}} - {rest(f'{{0}} - {first}', size)})"
    name = f"{column}_from"
    return Rule(text, name, (column,), "number", base, code, spaced=(first, size))


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
    columns = checks.text(lat, "a column"), checks.text(lon, "a column")
    name = f"hexagon_{size}"
    text = _text("hexagon", *columns, size)
    if lon.casefold().startswith("lat") or lat.casefold().startswith(("lon", "lng")):
        asked = f"{text} takes a latitude first, then a longitude"
        warnings.warn(asked, ShoalWarning, stacklevel=2)

    def base(read: Columns) -> str:
        read.engine.add(name, _indexes(size))
        return f"{name}({', '.join(_finite(read.sql[each]) for each in columns)})"

    def keys(code: pa.Array[Any]) -> Any:
        return pa.array([f"{index:x}" for index in _whole(code).tolist()], pa.string())

    def check(code: pa.Array[Any]) -> None:
        _check_places(_whole(code.unique()), lat, lon, size)

    return Rule(text, name, columns, "number", base, keys=keys, check=check)


def timeslot(column: str, width: str, tz: str | None = None) -> Rule:
    """A cell rule by time: slots of a fixed width from 1970-01-01; the key is the slot's start.

    Args:
        column: Times with or without a zone (then UTC), or dates. Times without a zone that are
            all midnights are dates. A date is a day: it has no hours, and no zone moves it.
        width: A whole number of `s`, `min`, `h`, `d` or `w`; weeks begin on Mondays.
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
    slot = _WIDTH.fullmatch(checks.text(width, "width"))
    if not slot:
        raise InputError(
            f"a timeslot has the width {checks.shown(width)}",
            "give a whole number of s, min, h, d or w, such as timeslot(column, '15min'); calendar "
            "months are month(column)",
        )
    seconds = int(slot[1]) * _UNITS[slot[2]]
    weeks = slot[2] == "w"
    if seconds % _WEEK == 0 and not weeks:
        asked = f"slots of {width} begin on Thursdays; those of 1w begin on Mondays"
        warnings.warn(asked, ShoalWarning, stacklevel=2)

    def keys(code: pa.Array[Any]) -> Any:
        if weeks:
            return _whole(code).astype("M8[s]").astype("M8[D]")
        return pa.array(_whole(code), pa.timestamp("s", None if tz else "UTC"))

    # 1970 began on a Thursday.
    late = _THURSDAY * _DAY if weeks else 0
    code = f"({floored(f'({{0}} + {late})', seconds)} - {late})"
    step = np.timedelta64(seconds, "s")
    hours = seconds % _DAY != 0
    return _time("timeslot", column, tz, width, code, keys, width, hours=hours, step=step)


def hour_of_day(column: str, tz: str | None = None) -> Rule:
    """A cell rule by hour of the day, 0 to 23.

    Args, Returns, Raises: as `timeslot`, without a width.

    Example:
        >>> str(hour_of_day("time_hour", tz="America/New_York"))
        'hour_of_day(time_hour,America/New_York)'
    """
    code = floored(rest("{0}", _DAY), _HOUR)
    found = _time(
        "hour_of_day", column, tz, "hour", code, lambda code: _whole(code) // _HOUR, hours=True
    )
    return replace(found, domain=tuple(range(24)))


def weekday(column: str, tz: str | None = None) -> Rule:
    """A cell rule by day of the week as ISO 8601 counts it, 1 (Monday) to 7.

    Args, Returns, Raises: as `timeslot`, without a width.

    Example:
        >>> weekday("time_hour").name
        'time_hour_weekday'
    """
    code = rest(f"{_DAYS} + {_THURSDAY}", 7)
    found = _time("weekday", column, tz, "weekday", code, lambda code: _whole(code) + 1)
    return replace(found, domain=tuple(range(1, 8)))


def date(column: str, tz: str | None = None) -> Rule:
    """A cell rule by calendar day.

    Args, Returns, Raises: as `timeslot`, without a width.

    Example:
        >>> date("time_hour").name
        'time_hour_date'
    """
    step = np.timedelta64(1, "D")
    return _time(
        "date", column, tz, "date", _DAYS, lambda code: _whole(code).astype("M8[D]"), step=step
    )


# The same rule by its name as a period.
day = date


def month(column: str, tz: str | None = None) -> Rule:
    """A cell rule by calendar month; the key is a text such as 2013-05.

    Args, Returns, Raises: as `timeslot`, without a width.

    Example:
        >>> month("time_hour").name
        'time_hour_month'
    """

    def keys(code: pa.Array[Any]) -> Any:
        return np.datetime_as_string(_whole(code).astype("datetime64[M]")).astype(str).tolist()

    code = f"(year({_DATE}) * 12 + month({_DATE}) - {1970 * 12 + 1})"
    return _time("month", column, tz, "month", code, keys, step=np.timedelta64(1, "M"))


def week(column: str, tz: str | None = None) -> Rule:
    """A cell rule by week as ISO 8601 counts it; the key is a text such as 2013-W22.

    Args, Returns, Raises: as `timeslot`, without a width.

    Example:
        >>> week("time_hour").name
        'time_hour_week'
    """

    def keys(code: pa.Array[Any]) -> Any:
        # A week belongs to the year of its Thursday, and 1970 began on a Thursday.
        thursday = (_whole(code) * 7).astype("M8[D]")
        year = thursday.astype("M8[Y]")
        number = (thursday - year.astype("M8[D]")).astype(np.int64) // 7 + 1
        return [f"{one}-W{week:02}" for one, week in zip(year.astype(str), number, strict=True)]

    code = f"({floored(f'({_DAYS} + {_THURSDAY})', 7)} / 7)"
    return _time("week", column, tz, "week", f"CAST({code} AS BIGINT)", keys)


def quarter(column: str, tz: str | None = None) -> Rule:
    """A cell rule by calendar quarter; the key is a text such as 2013-Q2.

    Args, Returns, Raises: as `timeslot`, without a width.

    Example:
        >>> quarter("time_hour").name
        'time_hour_quarter'
    """

    def keys(code: pa.Array[Any]) -> Any:
        return [f"{each // 4:04}-Q{each % 4 + 1}" for each in _whole(code).tolist()]

    code = f"(year({_DATE}) * 4 + quarter({_DATE}) - 1)"
    return _time("quarter", column, tz, "quarter", code, keys)


def year(column: str, tz: str | None = None) -> Rule:
    """A cell rule by calendar year; the key is a whole number such as 2013.

    Args, Returns, Raises: as `timeslot`, without a width.

    Example:
        >>> year("time_hour").name
        'time_hour_year'
    """
    return _time("year", column, tz, "year", f"year({_DATE})", _whole)


# docs/architecture.md#where-new-code-goes says what else a new rule needs.
_MAKERS: dict[str, Callable[..., Rule]] = {
    each.__name__: each
    for each in (
        *(bins, hexagon, hour_of_day, weekday, date, week, month, quarter, year),
        timeslot,
    )
} | {"day": day}
# Rules that divide time into periods which never come again.
_PERIODS = ("date", "week", "month", "quarter", "year")
_CALL = re.compile(r"\s*(\w+)\s*\((.*)\)\s*")
_NUMBER = re.compile(r"-?[0-9]{1,16}")


def parse(text: str) -> Rule:
    """Returns a rule from its text: a column's name, or a call as `str` of a rule writes it."""
    call = _CALL.fullmatch(text)
    if call is None or call[1] not in _MAKERS:
        return Rule(text, key_name(text), (text,), "key", lambda columns: columns.key(text))
    given = [part.strip() for part in call[2].split(",")]
    settings = [int(each) if _NUMBER.fullmatch(each) else each for each in given[1:]]
    try:
        return _MAKERS[call[1]](given[0], *settings)
    except TypeError:
        raise InputError(
            f"there is no cell rule {text!r}", f"give a column, {CELL_RULES}"
        ) from None


def rules_of(by: object) -> tuple[Rule, ...]:
    """Returns rules from one rule or text, or from a list of them; none from None."""
    listed: list[Any] = list(by) if isinstance(by, list | tuple) else [by]
    listed = [] if by is None else listed
    for each in listed:
        if not isinstance(each, str | Rule) or not each:
            raise InputError(
                f"a cell rule has the type {type(each).__name__}",
                f"give a column, {', '.join(_MAKERS)}, or the text of one, for example "
                'by=["dest", shoal.hour_of_day("time_hour")]',
            )
        if isinstance(each, Rule) and parse(str(each)) != each:
            raise InputError(
                f"the cell rule {str(each)!r} would be read back as another rule",
                "rename the column: it must not look like a rule, nor have a comma in a rule",
            )
    return tuple(parse(each) if isinstance(each, str) else each for each in listed)


def period_of(period: object) -> Rule | None:
    """Returns the rule by which records are divided into periods: a column, or a calendar rule."""
    given = rules_of(period)
    if not given:
        return None
    rule, *others = given
    call = _CALL.fullmatch(str(rule))
    is_column = rule.use == "key"
    if others or not (is_column or (call and call[1] in _PERIODS)):
        raise InputError(
            f"the period is {', '.join(map(str, given))}",
            f"give one of {', '.join(_PERIODS)} of a column of times, such as month(at), or a "
            "column with a few public values, such as the wave of a survey",
        )
    return rule


def _time(
    call: str,
    column: str,
    tz: str | None,
    ending: str,
    code: str,
    keys: Callable[[pa.Array[Any]], Any],
    *settings: str,
    hours: bool = False,
    step: np.timedelta64 | None = None,
) -> Rule:
    """Returns a rule by what the clocks of a zone show: seconds since 1970 there."""
    zone = checks.optional(tz, checks.text, "tz")
    if zone is not None and zone not in _zones():
        raise InputError(
            f"the time zone {zone!r} is unknown, or differs between machines",
            "give a name of the time zone database, such as Europe/Berlin; where the system has "
            "no such database, install the package tzdata",
        )

    text = _text(call, checks.text(column, "a column"), *settings, zone)

    def base(columns: Columns) -> str:
        seconds = columns.engine.seconds(columns.sql[column], columns.types[column])
        if columns.kinds[column] != "date":
            local = columns.engine.local(seconds, zone) if zone else seconds
            if column in columns.dates:
                # No zone moves a date.
                return f"CASE WHEN {columns.dates[column]} THEN {seconds} ELSE {local} END"
            return local
        if hours:
            raise DataError(
                f"the column {column!r} holds dates, which have no hours",
                f"leave out {text}, or give a column of times",
            )
        return seconds

    name = f"{column}_{ending}"
    return Rule(text, name, (column,), "time", base, code, keys, step=step, zone=zone)


def _text(call: str, *given: str | int | None) -> str:
    """Returns the text of a rule, without what was not given."""
    return f"{call}({','.join(str(each) for each in given if each is not None)})"


def _finite(column: str) -> str:
    """Returns SQL of a finite number, else null: by arithmetic, as statistics of files omit NaN."""
    return f"CASE WHEN {column} - {column} = 0 THEN CAST({column} AS DOUBLE) END"


def _whole(code: pa.Array[Any]) -> Any:
    """Returns codes as whole numbers of NumPy."""
    return code.to_numpy(zero_copy_only=False).astype(np.int64)


@cache
def _zones() -> frozenset[str]:
    """Returns the names of time zones that mean the same on every machine."""
    return frozenset(available_timezones()) - _OF_MACHINES


def _check_places(cells: Any, lat: str, lon: str, resolution: int) -> None:
    """Refuses places outside the globe, and asks whether latitude and longitude are exchanged."""
    from h3ronpy.vector import cells_to_coordinates

    odd = set(cells[cells <= _AROUND].tolist())
    places: Any = pa.record_batch(cells_to_coordinates(cells[cells > _AROUND].astype(np.uint64)))
    y, x = (np.abs(places.column(name).to_numpy()) for name in ("lat", "lng"))
    meant = f"did you mean hexagon({lon},{lat},{resolution})?"
    if odd:
        todo = "drop such rows"
        # A hint is given only if what it says would work for all rows.
        if odd == {_EXCHANGED} and (x <= _POLE).all():
            todo += f", or exchange the columns, as latitudes come first: {meant[:-1]}"
        elif odd == {_AROUND}:
            todo = f"longitudes of {lon} go beyond 180: subtract 360 from those above 180"
        raise DataError(
            f"{lat} or {lon} has latitudes beyond +-90 or longitudes beyond +-180", todo
        )
    if np.mean((y > _CIRCLE) & (x <= _CIRCLE)) > 1 / 2 and (x <= _POLE).all():
        text = f"most cells lie beyond a polar circle, but not if columns are exchanged: {meant}"
        warnings.warn(text, ShoalWarning, stacklevel=2)


def _indexes(resolution: int) -> Callable[..., pa.Array[Any]]:
    """Returns a function from coordinates to indexes of H3; also sent to workers of Spark."""
    if find_spec("h3ronpy") is None:
        raise MissingPartError(
            "h3ronpy, which computes hexagons, is not installed", 'run pip install "shoal[geo]"'
        )
    pole = _POLE
    date_line = _DATE_LINE
    around = _AROUND
    exchanged = _EXCHANGED
    nowhere = _NOWHERE

    def index(lat: Any, lon: Any) -> Any:
        from h3ronpy.vector import coordinates_to_cells

        # What is missing is NaN here, which is no place.
        y, x = (each.to_numpy(zero_copy_only=False) for each in (lat, lon))
        inside = (np.abs(y) <= pole) & (np.abs(x) <= date_line)
        found = coordinates_to_cells(np.where(inside, y, 0.0), np.where(inside, x, 0.0), resolution)
        outside = np.where((np.abs(y) <= date_line) & (np.abs(x) <= pole), exchanged, nowhere)
        is_around = (np.abs(y) <= pole) & (x > date_line) & (x <= 3 * date_line)
        outside = np.where(is_around, around, outside)
        code = np.where(inside, found.to_numpy().astype(np.int64), outside)
        return pa.array(code, mask=np.isnan(y) | np.isnan(x))

    index.__annotations__ = dict.fromkeys(("lat", "lon", "return"), pa.Array)  # Spark reads them
    return index
