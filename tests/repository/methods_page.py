"""The tables of docs/reference/methods.md, from the code: `python -m` this module renews them."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cells.allocation.base import BalancedLosses
from shoal.cells.contributions.averaged_arrays import AveragedArrays
from shoal.cells.contributions.capped_counts import CappedCounts
from shoal.cells.contributions.clipped_arrays import ClippedArrays
from shoal.cells.contributions.every_record import EveryRecord
from shoal.cells.contributions.nearly_full_counts import NearlyFullCounts
from shoal.cells.contributions.truncated_users import TruncatedUsers
from shoal.cells.contributions.user_sums import UserSums
from shoal.cells.noise_rule import NoiseRule
from shoal.cells.plan_parts import PlanParts
from shoal.cells.presets import METHODS, parts_of, settings_of
from shoal.cells.ranges.centre_and_radius import CentreAndRadius
from shoal.cells.ranges.centres_of_cells import CentresOfCells
from shoal.cells.ranges.levy_interval import LevyInterval
from shoal.cells.ranges.one_interval import OneInterval
from shoal.cells.ranges.public import PublicRange
from shoal.cells.ranges.quantile_pair import QuantilePair
from shoal.cells.ranges.sum_threshold import SumThreshold
from shoal.cells.shrinkage_rule import ShrinkageRule
from shoal.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shoal.cells.contributions.base import ContributionRule
    from shoal.cells.ranges.base import RangeRule

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "methods.md"
_DELTA = Fraction(1, 10**6)
_NAMES = ("contributions", "range", "allocation", "noise", "shrinkage")
# Settings that put other parts in place of the default ones.
_OTHERS: dict[str, tuple[dict[str, str | int], ...]] = {
    "clip_user": ({"noise": "balanced"},),
    "optimal": ({"targets": "balanced"}, {"range": "selected"}),
    "user_clipped": ({"rounds": 2},),
}
_CELL_BY_CELL: tuple[ContributionRule, ...] = (
    EveryRecord(),
    AveragedArrays(),
    ClippedArrays(),
    CappedCounts(),
    CappedCounts(widens=False),
    NearlyFullCounts(),
    TruncatedUsers(),
    UserSums(),
)
_RANGES: tuple[RangeRule, ...] = (
    PublicRange(),
    LevyInterval(),
    QuantilePair(),
    SumThreshold(),
    OneInterval(),
    CentreAndRadius(),
    CentresOfCells(),
)


def methods_table() -> list[str]:
    """A row a method, and one a setting that puts other parts in place of the default ones."""
    rows = [_row(method, {}) for method in METHODS]
    for method, settings in _OTHERS.items():
        at = next(at for at, row in enumerate(rows) if row.startswith(f"| `{method}` "))
        rows[at + 1 : at + 1] = [_row(method, own) for own in settings]
    head = ["method", "settings", *_NAMES]
    return [_line(head), _line(["---"] * len(head)), *rows]


def pairs_table() -> list[str]:
    """Which contributions go within which ranges where losses are balanced cell by cell."""
    head = ["contributions", *(each.title for each in _RANGES)]
    rows = [
        _line([_shown(who, defaults=False), *(_pair(who, where) for where in _RANGES)])
        for who in _CELL_BY_CELL
    ]
    return [_line(head), _line(["---"] * len(head)), *rows]


def page(text: str) -> str:
    """The page with both tables as the code says."""
    for name, table in (("methods", methods_table()), ("pairs", pairs_table())):
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, _, rest = text.partition(start)
        _, _, after = rest.partition(end)
        text = "\n".join([before + start, *table, "", end + after])
    return text


def _row(method: str, settings: dict[str, str | int]) -> str:
    given = settings or settings_of(method)
    said = ", ".join(f"`{name}={value}`" for name, value in given.items())
    parts = parts_of(method, settings)
    noise = parts.noise.title + (
        f"; with a delta {NoiseRule(_DELTA).title}" if parts.takes_delta else ""
    )
    shown = [_shown(getattr(parts, name)) for name in ("contributions", "range", "allocation")]
    return _line([f"`{method}`", said, *shown, noise, parts.shrinkage.title])


def _shown(part: Any, *, defaults: bool = True) -> str:  # noqa: ANN401
    """The title of a part with its settings."""
    own = [
        f"{each.name}={getattr(part, each.name)}"
        for each in fields(part)
        if defaults or getattr(part, each.name) != each.default
    ]
    return f"{part.title} ({', '.join(own)})" if own else str(part.title)


def _pair(who: ContributionRule, where: RangeRule) -> str:
    shrinkage = ShrinkageRule(weighed=not isinstance(who, UserSums))
    try:
        made = PlanParts("", who, where, BalancedLosses(), shrinkage=shrinkage)
    except InputError:
        return "no"
    return ", ".join(_named(made)) or "yes"


def _named(made: PlanParts) -> Iterator[str]:
    every = [(method, own) for method in METHODS for own in ({}, *_OTHERS.get(method, ()))]
    for method, settings in every:
        parts = parts_of(method, settings)
        if (type(parts.contributions), parts.range, parts.allocation) == (
            type(made.contributions),
            made.range,
            made.allocation,
        ) and _widens(parts) == _widens(made):
            said = "".join(f" {name}={value}" for name, value in settings.items())
            yield f"`{method}{said}`"


def _widens(parts: PlanParts) -> bool:
    return isinstance(parts.contributions, CappedCounts) and parts.contributions.widens


def _line(columns: list[str]) -> str:
    return f"| {' | '.join(columns)} |"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
