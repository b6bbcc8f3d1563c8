"""Which columns a release of cells is about, for the second opinion: cell rules and roles.

Nothing is imported from statistics, planning, mechanisms, bounding, records or theory, as in
`verify`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from shoal import documents

_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
_QUARTER, _FARTHEST = 900, 2**52
_CALL = re.compile(r"\s*(\w+)\s*\(.*\)\s*", re.DOTALL)
_COLUMN = r"(?P<of>(?!\s)[^,]+(?<!\s))"
# No name that is another zone on another machine.
_ZONE = (
    r"(?:,(?P<zone>(?!(?:right|posix)/|(?:localtime|posixrules|Factory)\))"
    r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*))?"
)
_WIDTH = r"(?P<width>(?P<many>[1-9][0-9]{0,8})(?P<unit>s|min|h|d))"
_LON = _COLUMN.replace("<of>", "<lon>")
_WHOLE = r"[1-9][0-9]{0,15}"
# Arguments of each rule, and what the column of cells is called that it makes.
_RULES = {
    "timeslot": (f"{_COLUMN},{_WIDTH}{_ZONE}", "{of}_{width}"),
    "hour_of_day": (f"{_COLUMN}{_ZONE}", "{of}_hour"),
    "weekday": (f"{_COLUMN}{_ZONE}", "{of}_weekday"),
    "date": (f"{_COLUMN}{_ZONE}", "{of}_date"),
    "month": (f"{_COLUMN}{_ZONE}", "{of}_month"),
    "bins": (f"{_COLUMN},(?P<size>{_WHOLE})(?:,(?P<start>-?{_WHOLE}))?", "{of}_from"),
    "hexagon": (f"{_COLUMN},{_LON},(?P<resolution>[0-9]|1[0-5])", "hexagon_{resolution}"),
}


class Rule(NamedTuple):
    """The name of the column that a cell rule makes, and the columns that it is made of."""

    name: str
    columns: tuple[str, ...]


def columns_hold(manifest: documents.Document) -> tuple[bool, str]:
    """Whether cells are made by the stated rules, and the private column has no public role."""
    about = manifest["records"]
    named = [column["name"] for column in manifest["plan"]["occupancy"]["cells"]["columns"]]
    read = [read_rule(text) for text in about["cell"]]
    known = [rule for rule in read if rule is not None]
    if len(known) < len(read):
        return False, "a cell rule that there is not"
    if ([rule.name for rule in known] or ["cell"]) != named:
        return False, "other columns of cells than the rules make"
    public = {about["user"], *(column for rule in known for column in rule.columns)}
    # Engines fold the case of names.
    if about["value"].casefold() in {name.casefold() for name in public}:
        return False, "the value is a public column, too"
    return True, f"{about['value']} of {about['user']} by {', '.join(about['cell']) or 'nothing'}"


def read_rule(text: str) -> Rule | None:
    """A cell rule from its text, as records state it; None for a call of no rule.

    Example:
        >>> read_rule("weekday(at,Europe/Berlin)"), read_rule("dest")
        (Rule(name='at_weekday', columns=('at',)), Rule(name='dest', columns=('dest',)))
        >>> read_rule("bins(distance)") is None
        True
    """
    call = _CALL.fullmatch(text)
    if call is None:
        return Rule(text, (text,))
    if call[1] not in _RULES:
        return None
    arguments, name = _RULES[call[1]]
    found = re.fullmatch(rf"{call[1]}\({arguments}\)", text)
    if found is None or not _possible(found.groupdict()):
        return None
    parts = found.groupdict()
    return Rule(name.format(**parts), tuple(parts[at] for at in ("of", "lon") if at in parts))


def _possible(parts: dict[str, str | None]) -> bool:
    """Whether bins are within what is told apart, and slots of a zone whole quarters of an hour."""
    if parts.get("zone") and parts.get("many"):
        return int(parts["many"] or 0) * _UNITS[parts["unit"] or "s"] % _QUARTER == 0
    numbers = [int(parts[name] or 0) for name in ("size", "start") if name in parts]
    return all(abs(number) < _FARTHEST for number in numbers)
