"""Public lists of the keys that a cell rule may have, without typing each of them."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from shoal import checks
from shoal.data import keys
from shoal.data.cell_rules import Rule
from shoal.errors import InputError, MissingPartError

# Between the first and the last of keys that follow one another.
_TO = ".."
# Codes of calendar rules whose keys are texts, of about the years 1900 to 2200.
_CODES = {
    "month": range(-70 * 12, 230 * 12),
    "week": range(-70 * 52, 230 * 52),
    "quarter": range(1900 * 4, 2200 * 4),
}
_UNITS = {"s": " seconds", "D": " days", "": ""}
_WEEK = 7
_MONDAY = 4
# Keys of one rule.
_MOST = 1 << 16
# A polygon in the format WKB: little endian, its kind, one ring.
_WKB = "<BIII"


def key_list(given: Any, rule: Rule) -> Any:
    """Returns keys of a rule, as its cells have them, from a list or a text `first..last`.

    Raises:
        InputError: What is no key of the rule, or a rule whose keys do not follow one another.
    """
    if isinstance(given, str) and _TO in given:
        return _from_to(given, rule)
    texts = [given] if isinstance(given, str) else given
    items = checks.items(texts, f"keys of {rule}", most=_MOST)
    stripped = [each.strip() if isinstance(each, str) else each for each in items]
    listed = keys.as_array(stripped, rule.name)
    return _as_keys(listed, rule)


def hexagons(area: Sequence[Any], resolution: int) -> list[str]:
    """Returns the H3 hexagons that touch an area: keys of cells by `hexagon`.

    Args:
        area: A box (south, west, north, east) in degrees, or the corners (latitude, longitude) of a
            polygon.
        resolution: 0 (continents) to 15 (a square metre).

    Returns:
        Their indexes in hexadecimal, sorted.

    Raises:
        InputError: No such area, or one with more than 65,536 hexagons.
        MissingPartError: h3ronpy is not installed.

    Example:
        >>> len(hexagons((48.06, 11.36, 48.25, 11.72), 7)) > 100
        True
    """
    size = checks.whole(resolution, "a hexagon resolution", most=15, example=7)
    corners = _corners(area)
    try:
        from h3ronpy import vector
    except ImportError:
        raise MissingPartError(
            "h3ronpy, which computes hexagons, is not installed", 'run pip install "shoal[geo]"'
        ) from None
    ring = [*corners, corners[0]]
    points = b"".join(struct.pack("<dd", lon, lat) for lat, lon in ring)
    polygon = struct.pack(_WKB, 1, 3, 1, len(ring)) + points
    # This mode takes every hexagon that has a part of the area.
    mode: Any = vars(vector)["ContainmentMode"].Covers
    found = vector.wkb_to_cells(pa.array([polygon]), size, containment_mode=mode, flatten=True)
    indexes = np.unique(np.asarray(found))
    if not 0 < len(indexes) <= _MOST:
        raise InputError(
            f"the area has {len(indexes):,} hexagons of resolution {size}",
            f"give one with 1 to {_MOST:,}, or a coarser resolution",
        )
    return [f"{each:x}" for each in indexes.tolist()]


def _corners(area: Sequence[Any]) -> list[tuple[float, float]]:
    """Returns the corners of a box or a polygon as latitudes and longitudes."""
    listed = checks.items(area, "area", least=3)
    try:
        if len(listed) == 4 and not isinstance(listed[0], Sequence):
            south, west, north, east = map(float, listed)
            found = [(south, west), (south, east), (north, east), (north, west)]
        else:
            found = [(float(lat), float(lon)) for lat, lon in listed]
    except (TypeError, ValueError):
        found = []
    inside = all(abs(lat) <= 90 and abs(lon) <= 180 for lat, lon in found)
    if len(found) < 3 or not inside:
        raise InputError(
            "the area is no box and no polygon",
            "give (south, west, north, east) in degrees, or corners as (latitude, longitude)",
        )
    return found


def _as_keys(listed: pa.Array[Any], rule: Rule) -> Any:
    """Returns keys of the type that the rule makes, so that 2026-03-01 is found however written."""
    kind = _kind(rule)
    if kind is None:
        return listed
    try:
        found: Any = listed
        if pa.types.is_timestamp(kind):
            found = pa.array([_seconds(each) for each in listed.to_pylist()], pa.int64())
        found = found.cast(kind)
    except (pa.ArrowException, ValueError, TypeError):
        raise InputError(
            f"a key is none of {str(rule)!r}", f"give keys such as {_example(rule, kind)}"
        ) from None
    if pa.types.is_string(kind):
        if _call(rule) in _CODES and not set(found.to_pylist()) <= {*_names(rule)}:
            raise InputError(
                f"a key is none of {str(rule)!r}", f"give keys such as {_example(rule, kind)}"
            )
        return found
    if rule.domain and not set(found.to_pylist()) <= set(rule.domain):
        raise InputError(
            f"a key is none of {str(rule)!r}",
            f"give whole numbers from {rule.domain[0]} to {rule.domain[-1]}, or leave its keys out",
        )
    start, width = _spaced(rule, kind)
    between = np.flatnonzero((_numbers(found) - start) % width)
    if len(between):
        raise InputError(
            f"the key {found[int(between[0])]} is none of {str(rule)!r}: keys of it are "
            f"{width}{_UNITS[_unit(kind)]} apart",
            f"give the beginnings of cells, or first{_TO}last",
        )
    return found


def _kind(rule: Rule) -> Any:
    """Returns the type of a rule's keys; None of a column, which may have any."""
    if rule.use == "key":
        return None
    return keys.as_array(rule.keys(pa.array([0], pa.int64())), rule.name).type


def _unit(kind: Any) -> str:
    if pa.types.is_timestamp(kind):
        return "s"
    return "D" if pa.types.is_date(kind) else ""


def _spaced(rule: Rule, kind: Any) -> tuple[int, int]:
    """Returns a key of a rule as a number, and how far keys are apart."""
    unit = _unit(kind)
    if not unit or rule.step is None:
        return rule.spaced
    one: Any = np.timedelta64(1, "D" if unit == "D" else "s")
    width = int(rule.step / one)
    # Weeks begin on Mondays, and 1970 began on a Thursday.
    return (_MONDAY if unit == "D" and width == _WEEK else 0), width


def _numbers(found: pa.Array[Any]) -> Any:
    """Returns keys as whole numbers: days or seconds since 1970 of dates and times."""
    if pa.types.is_date(found.type):
        found = found.cast(pa.int32())
    return keys.numbers(found.cast(pa.int64()))


def _example(rule: Rule, kind: Any) -> str:
    """Returns a key of a rule in words."""
    if pa.types.is_timestamp(kind):
        return "2026-03-01 08:00"
    if pa.types.is_date(kind):
        return "2026-03-02"
    return str([*rule.domain, 0][0]) if pa.types.is_integer(kind) else _names(rule)[-1]


def _seconds(time: Any) -> int:
    """Returns seconds since 1970 of a time or its text; without a zone it is as clocks show it."""
    found = datetime.fromisoformat(time) if isinstance(time, str) else time
    plain = found if found.tzinfo else found.replace(tzinfo=UTC)
    return int(plain.timestamp())


def _from_to(text: str, rule: Rule) -> Any:
    """Returns the keys from a first to a last one."""
    first, _, last = (each.strip() for each in text.partition(_TO))
    kind = _kind(rule)
    if str(rule).startswith("hexagon("):
        box = [_degrees(each) for each in f"{first},{last}".split(",")]
        return pa.array(hexagons(box, int(rule.name.rpartition("_")[2])))
    found: Any = [] if kind is None else _between(first, last, rule, kind)
    if not 0 < len(found) <= _MOST:
        raise InputError(
            f"{text!r} is not the first and the last of up to {_MOST:,} keys of {str(rule)!r}",
            f"give them as first{_TO}last, such as 2026-03-01{_TO}2026-03-31 of days, or a list",
        )
    return found


def _degrees(text: str) -> float:
    """Returns a number; NaN, which is no place, for another text."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _between(first: str, last: str, rule: Rule, kind: Any) -> Any:
    """Returns the keys from one to another; none if there are none or too many."""
    if pa.types.is_string(kind):
        names = _names(rule)
        if first not in names or last not in names:
            return pa.array([], kind)
        return pa.array(names[names.index(first) : names.index(last) + 1], kind)
    low, high = _numbers(_as_keys(pa.array([first, last]), rule)).tolist()
    width = _spaced(rule, kind)[1]
    if (high - low) // width >= _MOST:
        return pa.array([], kind)
    found = keys.in_arrow(np.arange(low, high + 1, width))
    return found.cast(pa.int32()).cast(kind) if pa.types.is_date(kind) else found.cast(kind)


def _names(rule: Rule) -> list[str]:
    """Returns keys of a calendar rule that are texts, of years from about 1900 to 2200."""
    return [*rule.keys(keys.in_arrow(np.array(_CODES[_call(rule)])))]


def _call(rule: Rule) -> str:
    return str(rule).partition("(")[0]
