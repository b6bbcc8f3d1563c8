"""Cell rules: how the public columns of a record say which cell it belongs to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from shoal import checks
from shoal.data.engine_time import epoch_seconds
from shoal.data.source import engine_name
from shoal.errors import DataError, InputError, MissingPartError

if TYPE_CHECKING:
    from typing import Any

    from shoal.data.source import EngineColumn, EngineTable

_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
_WIDTH = re.compile(r"([1-9][0-9]{0,8})(s|min|h|d)")
_CALL = re.compile(r"\s*(\w+)\s*\((.*)\)\s*")
_FINEST = 15
_POLE, _DATE_LINE = 90, 180


class CellRule(Protocol):
    """One part of a cell's key: engine columns in, one discrete key column out."""

    @property
    def name(self) -> str:
        """Name of the key column."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the records that it reads."""
        ...

    def engine(self, table: EngineTable) -> tuple[EngineColumn, ...]:
        """What the engine computes for each record, one expression or several.

        Args:
            table: The records, in the engine.

        Returns:
            Expressions over the table's columns.
        """
        ...

    def combine(self, *parts: pa.Array[Any]) -> pa.Array[Any]:
        """The key of each row, from the engine's columns; may be coded.

        Args:
            *parts: Values of the expressions, one array each.

        Returns:
            One key a row.

        Raises:
            DataError: A value makes no key.
            MissingPartError: What computes the key is not installed.
        """
        ...

    def finish(self, key: pa.Array[Any]) -> pa.Array[Any]:
        """The key as people read it, from its code; keeps the order.

        Args:
            key: Codes from `combine`.

        Returns:
            One readable key for each code.
        """
        ...


@dataclass(frozen=True)
class Column:
    """A column as it is: text, integers, booleans or dates.

    Example:
        >>> str(Column("dest"))
        'dest'
    """

    name: str

    def __str__(self) -> str:
        """The column's name."""
        return self.name

    @property
    def columns(self) -> tuple[str, ...]:
        """Itself."""
        return (self.name,)

    def engine(self, table: EngineTable) -> tuple[EngineColumn, ...]:
        """The column."""
        return (table[self.name],)

    def combine(self, *parts: pa.Array[Any]) -> pa.Array[Any]:
        """The column."""
        return parts[0]

    def finish(self, key: pa.Array[Any]) -> pa.Array[Any]:
        """The column."""
        return key


@dataclass(frozen=True)
class Timeslot(CellRule):
    """Slots of a fixed length; the key is the slot's start, UTC. Made by `timeslot`.

    Attributes:
        column: Times with or without a zone (then UTC), or dates.
        width: A whole number of `s`, `min`, `h` or `d`.
    """

    column: str
    width: str

    def __str__(self) -> str:
        """As `timeslot` is called."""
        return f"timeslot({self.column},{self.width})"

    @property
    def name(self) -> str:
        """Name of the key column: column and width."""
        return f"{self.column}_{self.width}"

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the rule reads: the times."""
        return (self.column,)

    @property
    def seconds(self) -> int:
        """Length of a slot, in seconds.

        Raises:
            InputError: The width is not of this form.
        """
        found = _WIDTH.fullmatch(self.width)
        if found is None:
            raise InputError(
                f"a timeslot of {checks.shown(self.width)}",
                "a whole number of s, min, h or d, such as 15min or 1h",
                "give for example timeslot(column, '1h')",
            )
        return int(found[1]) * _UNITS[found[2]]

    def engine(self, table: EngineTable) -> tuple[EngineColumn, ...]:
        """Number of the slot since 1970, rounded downwards also before."""
        return ((epoch_seconds(table, self.column) / float(self.seconds)).floor().cast("int64"),)

    def combine(self, *parts: pa.Array[Any]) -> pa.Array[Any]:
        """The slot's number."""
        return parts[0]

    def finish(self, key: pa.Array[Any]) -> pa.Array[Any]:
        """The slot's start."""
        starts = key.to_numpy(zero_copy_only=False).astype(np.int64) * self.seconds
        return pa.array(starts).cast(pa.timestamp("s", "UTC"))


@dataclass(frozen=True)
class HourOfDay(CellRule):
    """Hour of the day, 0 to 23, UTC. Made by `hour_of_day`.

    Attributes:
        column: Times with or without a zone (then UTC), or dates.
    """

    column: str

    def __str__(self) -> str:
        """As `hour_of_day` is called."""
        return f"hour_of_day({self.column})"

    @property
    def name(self) -> str:
        """Name of the key column: the column's, with `_hour`."""
        return f"{self.column}_hour"

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the rule reads: the times."""
        return (self.column,)

    def engine(self, table: EngineTable) -> tuple[EngineColumn, ...]:
        """Hours since 1970, modulo 24, never negative."""
        hours = (epoch_seconds(table, self.column) / 3600.0).floor()
        return ((hours - (hours / 24.0).floor() * 24.0).cast("int64"),)

    def combine(self, *parts: pa.Array[Any]) -> pa.Array[Any]:
        """The hour."""
        return parts[0]

    def finish(self, key: pa.Array[Any]) -> pa.Array[Any]:
        """The hour."""
        return key


@dataclass(frozen=True)
class Hexagon(CellRule):
    """The H3 hexagon of a place; the key is the index in hexadecimal. Made by `hexagon`.

    Attributes:
        lat: Column of latitudes in degrees.
        lon: Column of longitudes in degrees.
        resolution: 0 (continents) to 15 (a square metre).
    """

    lat: str
    lon: str
    resolution: int

    def __str__(self) -> str:
        """As `hexagon` is called."""
        return f"hexagon({self.lat},{self.lon},{self.resolution})"

    @property
    def name(self) -> str:
        """Name of the key column: `hexagon_` and the resolution."""
        return f"hexagon_{self.resolution}"

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the rule reads: latitude and longitude, in degrees."""
        return self.lat, self.lon

    def engine(self, table: EngineTable) -> tuple[EngineColumn, ...]:
        """The coordinates; H3 runs on batches of them as they stream by."""
        lat, lon = (table[name].cast("float64") for name in self.columns)
        if engine_name(table) == "sqlite":
            # It has no NaN.
            return lat, lon
        # Some frames say NaN for null: both are a missing place.
        return lat.isnan().ifelse(None, lat), lon.isnan().ifelse(None, lon)

    def combine(self, *parts: pa.Array[Any]) -> pa.Array[Any]:
        """The H3 index of each pair as an integer.

        Raises:
            DataError: Coordinates outside the globe.
            MissingPartError: h3ronpy is not installed.
        """
        if find_spec("h3ronpy") is None:
            raise MissingPartError(
                "h3ronpy is not installed",
                "it computes hexagons",
                'run pip install "shoal[geo]"',
            )
        from h3ronpy.vector import coordinates_to_cells

        lat, lon = (part.to_numpy(zero_copy_only=False).astype(np.float64) for part in parts)
        inside = (np.abs(lat) <= _POLE) & (np.abs(lon) <= _DATE_LINE)
        if not inside.all():
            raise DataError(
                f"coordinates outside the globe in {self.lat} or {self.lon}",
                "degrees, -90 to 90 and -180 to 180",
                "check the columns and their order",
            )
        found = coordinates_to_cells(lat, lon, self.resolution).to_numpy()
        return pa.array(found.astype(np.int64))

    def finish(self, key: pa.Array[Any]) -> pa.Array[Any]:
        """The index in hexadecimal, as H3 writes it."""
        return pa.array([f"{index:x}" for index in key.to_pylist()], type=pa.string())


def timeslot(column: str, width: str) -> Timeslot:
    """A cell rule by time: slots of a fixed width, aligned to 1970-01-01 UTC.

    Args:
        column: Times with or without a zone (then UTC), or dates.
        width: A whole number of `s`, `min`, `h` or `d`.

    Returns:
        A rule for `Records(cell=...)`.

    Raises:
        InputError: Another width.

    Example:
        >>> timeslot("time_hour", "15min").name
        'time_hour_15min'
    """
    rule = Timeslot(checks.text(column, "column"), checks.text(width, "width"))
    _ = rule.seconds
    return rule


def hour_of_day(column: str) -> HourOfDay:
    """A cell rule by hour of the day, 0 to 23, UTC.

    Args:
        column: Times with or without a zone (then UTC), or dates.

    Returns:
        A rule for `Records(cell=...)`.

    Example:
        >>> hour_of_day("time_hour").name
        'time_hour_hour'
    """
    return HourOfDay(checks.text(column, "column"))


def hexagon(lat: str, lon: str, resolution: int) -> Hexagon:
    """A cell rule by place: H3 hexagons of one resolution.

    Args:
        lat: Column of latitudes in degrees.
        lon: Column of longitudes in degrees.
        resolution: 0 (continents) to 15 (a square metre).

    Returns:
        A rule for `Records(cell=...)`.

    Raises:
        InputError: Another resolution.

    Example:
        >>> hexagon("lat", "lon", 7).name
        'hexagon_7'
    """
    fineness = checks.whole(resolution, "a hexagon resolution", most=_FINEST, example=7)
    return Hexagon(checks.text(lat, "lat"), checks.text(lon, "lon"), fineness)


def parse(text: str) -> CellRule:
    """A rule from its text: a column's name, or a call as `str` of a rule writes it.

    Raises:
        InputError: Another function, or wrong arguments.

    Example:
        >>> parse("timeslot(time_hour, 1h)"), parse("dest")
        (Timeslot(column='time_hour', width='1h'), Column(name='dest'))
    """
    call = _CALL.fullmatch(text)
    if call is None:
        return Column(text)
    name, given = call[1], [part.strip() for part in call[2].split(",")]
    match name, given:
        case "timeslot", [column, width]:
            return timeslot(column, width)
        case "hour_of_day", [column]:
            return hour_of_day(column)
        case "hexagon", [lat, lon, resolution] if resolution.isdecimal() and len(resolution) <= len(
            str(_FINEST)
        ):
            return hexagon(lat, lon, int(resolution))
    raise InputError(
        f"the cell rule {text!r}",
        "a column, timeslot(column,1h), hour_of_day(column) or hexagon(lat,lon,7)",
        "check the name and the arguments",
    )


def rules_of(cell: object) -> tuple[CellRule, ...]:
    """Rules from one rule or text, or from a list of them.

    Raises:
        InputError: Something else.
    """
    given = list(cell) if isinstance(cell, list | tuple) else [cell]
    rules: list[CellRule] = []
    for each in given:
        if not isinstance(each, str | Column | Timeslot | HourOfDay | Hexagon) or not each:
            raise InputError(
                f"a cell rule of type {type(each).__name__}",
                "a column, timeslot, hour_of_day, hexagon, or the text of one",
                'give for example cell=["dest", shoal.hour_of_day("time_hour")]',
            )
        rules.append(parse(each) if isinstance(each, str) else each)
    return tuple(rules)
