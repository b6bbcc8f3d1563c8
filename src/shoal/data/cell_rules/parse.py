"""Cell rules from texts, as the command line and saved descriptions have them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from shoal.data.cell_rules.bins import Bins, bins
from shoal.data.cell_rules.column import Column
from shoal.data.cell_rules.hexagon import FINEST, Hexagon, hexagon
from shoal.data.cell_rules.times import TimeRule, date, hour_of_day, month, timeslot, weekday
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.data.cell_rules.rule import CellRule

_CALL = re.compile(r"\s*(\w+)\s*\((.*)\)\s*")
_WHOLE = re.compile(r"-?[0-9]{1,16}")
_OF_TIMES = {"hour_of_day": hour_of_day, "weekday": weekday, "date": date, "month": month}


def parse(text: str) -> CellRule:
    """A rule from its text: a column's name, or a call as `str` of a rule writes it.

    Raises:
        InputError: Another function, or wrong arguments.

    Example:
        >>> parse("timeslot(time_hour, 1h)"), parse("dest")
        (Timeslot(column='time_hour', tz=None, width='1h'), Column(name='dest'))
    """
    call = _CALL.fullmatch(text)
    if call is None:
        return Column(text)
    name, given = call[1], [part.strip() for part in call[2].split(",")]
    match name, given:
        case "timeslot", [column, width]:
            return timeslot(column, width)
        case "timeslot", [column, width, zone]:
            return timeslot(column, width, zone)
        case "hexagon", [lat, lon, resolution] if resolution.isdecimal() and len(resolution) <= len(
            str(FINEST)
        ):
            return hexagon(lat, lon, int(resolution))
        case "bins", [column, *numbers] if 1 <= len(numbers) <= 2 and all(
            map(_WHOLE.fullmatch, numbers)
        ):
            return bins(column, *map(int, numbers))
    if name in _OF_TIMES and 1 <= len(given) <= 2:
        return _OF_TIMES[name](*given)
    raise InputError(
        f"the cell rule {text!r}",
        "a column, timeslot(column,1h), hour_of_day(column), weekday(column), date(column), "
        "month(column), each with a time zone or without, bins(column,10) or hexagon(lat,lon,7)",
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
        if not isinstance(each, str | Column | TimeRule | Bins | Hexagon) or not each:
            raise InputError(
                f"a cell rule of type {type(each).__name__}",
                "a column, timeslot, hour_of_day, weekday, date, month, bins, hexagon, or the text "
                "of one",
                'give for example cell=["dest", shoal.hour_of_day("time_hour")]',
            )
        rules.append(parse(each) if isinstance(each, str) else _stated(each))
    return tuple(rules)


def _stated(rule: CellRule) -> CellRule:
    """A rule whose text says what it is, as plans and manifests have no more of it.

    Raises:
        InputError: Its text is that of another rule, or of none.
    """
    if parse(str(rule)) == rule:
        return rule
    raise InputError(
        f"a cell rule that is written {str(rule)!r}, which is another rule",
        "columns whose names are no call of a rule, and have no comma where a rule is given them",
        "rename the column",
    )
