"""Which columns a release of cells is about, for the second opinion: cell rules and roles.

Nothing is imported from statistics, planning, mechanisms, bounding, records or theory, as in
`verify`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal import documents

# What a column of cells is called, by the rule that it is made with.
_RULES = (
    (re.compile(r"timeslot\((?P<from>[^,]+),(?P<width>[0-9]+(?:s|min|h|d))\)"), "{from}_{width}"),
    (re.compile(r"hour_of_day\((?P<from>[^,]+)\)"), "{from}_hour"),
    (re.compile(r"hexagon\((?P<from>[^,]+),(?P<lon>[^,]+),(?P<size>[0-9]+)\)"), "hexagon_{size}"),
)


def columns_hold(manifest: documents.Document) -> tuple[bool, str]:
    """Whether cells are made by the stated rules, and the private column has no public role."""
    about = manifest["records"]
    named = [column["name"] for column in manifest["plan"]["occupancy"]["cells"]["columns"]]
    read = [_read(rule) for rule in about["cell"]]
    if [name for name, _ in read] != named:
        return False, "other columns of cells than the rules make"
    public = {about["user"], *(column for _, columns in read for column in columns)}
    if about["value"] in public:
        return False, "the value is a public column, too"
    return True, f"{about['value']} of {about['user']} by {', '.join(map(repr, about['cell']))}"


def _read(rule: str) -> tuple[str, tuple[str, ...]]:
    """The name of a rule's column, and the columns it is made of."""
    for pattern, name in _RULES:
        found = pattern.fullmatch(rule)
        if found is not None:
            parts = found.groupdict()
            columns = tuple(parts[each] for each in ("from", "lon") if each in parts)
            return name.format(**parts), columns
    return rule, (rule,)
