"""Names the hours, days and other slots of time between the first and the last without a record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from shoal.data.cell_rules import Rule

# The slots that a sentence names.
_NAMED = 3
# The most slots without a record that are counted.
_MOST = 10_000
# The words for slots, by their width as NumPy writes it; others are slots.
_WORDS = {
    "3600 seconds": "hours",
    "86400 seconds": "days",
    "1 days": "days",
    "604800 seconds": "weeks",
    "1 months": "months",
}
_SECOND = np.timedelta64(1, "s")
_MINUTE = 60  # seconds
_DAY = 86_400  # seconds


def gaps(rules: Sequence[Rule], cells: pa.Table) -> Iterator[str]:
    """Yields a sentence for each rule of time some of whose slots have no record in any cell."""
    for rule in rules:
        if rule.step is None:
            continue
        unit, _ = np.datetime_data(rule.step.dtype)
        column = cells.column(rule.name).to_numpy()
        times = np.unique(column.astype(f"M8[{unit}]"))
        between = int((times[-1] - times[0]) // rule.step) + 1
        empty = [*islice(_empty(times, rule.step), _MOST + 1)]
        shown = [each for each in empty if _on_clocks(each, rule)]
        if not shown:
            continue
        # Slots that the clocks leave out could have no record, and are not counted.
        all_slots = f"{between - len(empty) + len(shown):,} {_WORDS.get(str(rule.step), 'slots')}"
        many = f"{len(shown):,}" if len(empty) <= _MOST else f"more than {_MOST:,}"
        have = "has" if len(shown) == 1 else "have"
        more = ", ..." if len(shown) > _NAMED else ""
        names = ", ".join(_names(shown[:_NAMED], rule.step))
        yield f"{many} of {all_slots} in {rule.name} {have} no record: {names}{more}"


def _empty(times: Any, step: np.timedelta64) -> Iterator[np.datetime64]:
    """Yields the slots between sorted times that are not among them."""
    for at in np.flatnonzero(np.diff(times) > step).tolist():
        slot = times[at] + step
        while slot < times[at + 1]:
            yield slot
            slot += step


def _on_clocks(slot: np.datetime64, rule: Rule) -> bool:
    """Whether the clocks of the rule's zone show the beginning or the end of a slot."""
    if rule.zone is None or rule.step is None:
        return True
    zone = ZoneInfo(rule.zone)
    first = slot.astype("M8[s]")
    for each in (first, first + rule.step - _SECOND):
        local = each.item()
        # Times of Python end with the year 9999: a later slot cannot be checked, and counts.
        if not isinstance(local, datetime):
            return True
        there = local.replace(tzinfo=zone).astimezone(UTC).astimezone(zone)
        if there.replace(tzinfo=None) == local:
            return True
    return False


def _names(slots: Sequence[np.datetime64], step: np.timedelta64) -> Iterator[str]:
    """Yields the names of slots; a slot on the day of the one before has only its time."""
    unit: Any = np.datetime_data(step.dtype)[0]
    if unit == "s":
        seconds = int(step / _SECOND)
        unit = "D" if seconds % _DAY == 0 else "s" if seconds % _MINUTE else "m"
    before = ""
    for slot in slots:
        day, _, time = str(np.datetime_as_string(slot, unit)).partition("T")
        yield time if time and day == before else f"{day} {time}".rstrip()
        before = day
