"""Advises which changes would make more cells reliable: other losses, objectives, coarser labels.

Each change is planned, and released a few times on made-up values, as in the plan's forecast.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.arrays import Ints
from shoal.cells.estimates.intervals import ERROR
from shoal.cells.estimates.typical_error import (
    CELLS,
    expected_reliable,
    typical_errors,
)
from shoal.cells.facts.facts import Facts
from shoal.cells.facts.request import Request
from shoal.cells.mechanisms.methods import MOST_PAIRS
from shoal.cells.planners.planner import make_plan
from shoal.data.counts import Counts
from shoal.errors import InputError, ShoalWarning
from shoal.files.text_table import Shown, TextTable, counted
from shoal.privacy.budget import show
from shoal.progress import Progress, tracked

# A change, as one types it, with the counts and the changed parts of the request.
Choice = tuple[str, Counts, dict[str, Any]]
# Multiples of the plan's epsilon that are tried.
_TIMES = (2, 4)
# Most records of a user that are tried.
_RECORDS_PER_USER = (3, 5, 10, 20)
# Calls between a warning and the caller of `Plan.release`.
_CALLER = 7
# The number of sizes of larger hexagons that are tried.
_PARENTS = 3


@dataclass(frozen=True)
class Alternative:
    """One other plan and its number of reliable cells, if 30% of the variance is between cells.

    Attributes:
        change: The change, as one types it.
        epsilon: Privacy loss.
        cells: The number of cells that noise is added to.
        reliable: The number of these cells whose own number is likely to be closer to the truth
            than one common number.
    """

    change: str
    epsilon: str
    cells: int
    reliable: int


@dataclass(frozen=True)
class Advice(Shown):
    """The numbers of reliable cells of the plan and of changed plans: see `Plan.advise`.

    Attributes:
        now: The plan itself.
        choices: The changed plans, those with most reliable cells first.
    """

    now: Alternative
    choices: tuple[Alternative, ...]

    @property
    def best(self) -> tuple[Alternative, ...]:
        """At most two choices with more reliable cells, one at the same epsilon and one at more."""
        better = [each for each in self.choices if each.reliable > self.now.reliable]
        same_epsilon = [each for each in better if each.epsilon == self.now.epsilon]
        more_epsilon = [each for each in better if each.epsilon != self.now.epsilon]
        return (*same_epsilon[:1], *more_epsilon[:1])

    def table(self) -> pa.Table:
        """One row for each choice: `change`, `epsilon`, `cells`, `reliable`; the plan is first."""
        rows = [vars(each) for each in (self.now, *self.choices)]
        return pa.Table.from_pylist(rows)

    def _text(self) -> TextTable:
        rows = [
            [each.change, each.epsilon, f"{each.cells:,}", f"{each.reliable:,}"]
            for each in (self.now, *self.choices)
        ]
        notes = [
            f"{each.change}: about {each.reliable:,} of {each.cells:,} cells will be reliable, "
            f"in place of {self.now.reliable:,} of {self.now.cells:,}"
            for each in self.best
        ]
        if not notes and self.now.reliable < self.now.cells:
            notes = ["none of these makes more cells reliable; more users or fewer cells would"]
        elif not notes:
            notes = ["all cells will be reliable"]
        head = f"cells that will be reliable if {CELLS:.0%} of the variance is between cells"
        columns = ("change", "epsilon", "cells", "reliable")
        return TextTable(head, columns, rows, notes)


def advise(plan: Facts, progress: Progress | None) -> Advice:
    """Returns how many cells are reliable at other losses, by other methods, by coarser labels."""
    request = plan.request.model_copy(update={"uninformative": "drop"})
    now = _alternative("this plan", Facts(plan.counts, request, plan.decision))
    asked = request.model_dump(exclude={"error"}) | {"weights": {}}
    asked["epsilon"] = asked["epsilon"] or plan.exact_epsilon

    def tried(change: str, counts: Counts, changed: dict[str, Any]) -> Alternative:
        """Returns what a change makes of the plan."""
        return _alternative(change, make_plan(counts, Request.of(**asked | changed)))

    return best_of(now, _choices(plan), tried, progress)


def best_of(
    now: Alternative,
    choices: Iterable[Choice],
    tried: Callable[[str, Counts, dict[str, Any]], Alternative],
    progress: Progress | None,
) -> Advice:
    """Returns what all changes make of a plan, those with most reliable cells first."""
    alternatives = []
    for choice in tracked([*choices], "simulating other plans", progress):
        try:
            alternatives.append(tried(*choice))
        except InputError:
            # No cell is left, or the mechanism does not take the change.
            continue
    return Advice(now, tuple(sorted(alternatives, key=lambda each: -each.reliable)))


class Judged(Protocol):
    """A plan of which it is known beforehand what will likely not be reliable."""

    @property
    def shown(self) -> Ints:
        """The cells that readers see."""

    @property
    def request(self) -> Any:
        """What was asked."""

    @property
    def unreliable(self) -> list[str]:
        """The statistics of which likely no cell will be reliable, as far as that can be said."""

    def advise(self, progress: Progress | None = None) -> Advice:
        """Changes that would make more cells reliable."""


def check_worth(plan: Judged, progress: Progress | None = None) -> None:
    """Refuses a plan that likely makes no cell reliable, and says which changes would help."""
    unreliable = plan.unreliable
    if not unreliable:
        return
    found = [
        f"{each.change} (about {each.reliable:,} of {counted(each.cells, 'cell')})"
        for each in plan.advise(progress).best
    ]
    better = f"try {', or '.join(found)}" if found else "use more users or fewer cells"
    raise InputError(
        _none_reliable(plan, unreliable),
        f"{better}; or release it all the same with --anyway (anyway=True)",
    )


def warn_of_worth(plan: Judged) -> None:
    """Warns, in Python, of a plan that likely makes no cell reliable, before it is charged."""
    unreliable = plan.unreliable
    if unreliable:
        text = f"{_none_reliable(plan, unreliable)}; plan.advise() shows which changes would help"
        warnings.warn(text, ShoalWarning, stacklevel=_CALLER)


def _none_reliable(plan: Judged, unreliable: list[str]) -> str:
    """Returns in words that likely no cell will be reliable, and of what if not of all."""
    of_what = ""
    if len(unreliable) < len(plan.request.statistics):
        of_what = f" for {', '.join(unreliable)}"
    return f"likely none of {counted(len(plan.shown), 'cell')} will be reliable{of_what}"


def _alternative(change: str, plan: Facts) -> Alternative:
    """Returns the numbers of cells of a changed plan."""
    loss = show(plan.request.epsilon or plan.exact_epsilon)
    return Alternative(change, loss, len(plan.planned), _reliable(plan))


def _reliable(plan: Facts) -> int:
    """Returns how many cells will be reliable if 30% of the variance is between cells."""
    if plan.certified:
        return int((typical_errors(plan) <= ERROR * np.sqrt(CELLS)).sum())
    return expected_reliable(plan)


def _choices(plan: Facts) -> Iterator[Choice]:
    """Yields each change of a plan of means."""
    counts = plan.counts
    yield from choices_of(counts, plan.request.epsilon or plan.exact_epsilon)
    nothing: dict[str, Any] = {"objective": None, "range": None, "method": None, "settings": {}}
    if not plan.certified and len(counts.user) <= MOST_PAIRS:
        yield 'objective="worst_case"', counts, nothing | {"objective": "worst_case"}
    if plan.decision.method.range.of_vectors and plan.rounds == 1:
        two_rounds = {"method": "user_clipped", "settings": {"rounds": 2}}
        yield 'method="user_clipped", settings={"rounds": 2}', counts, nothing | two_rounds


def choices_of(counts: Counts, loss: Fraction) -> Iterator[Choice]:
    """Yields each change that a plan of any statistics may have."""
    for times in _TIMES:
        yield f"epsilon={show(loss * times)}", counts, {"epsilon": loss * times}
    if counts.records_per_user is None:
        for most in _RECORDS_PER_USER:
            limited = counts.at_most(most)
            if limited is not counts:
                yield f"records_per_user={most}", limited, {}
    yield from ((change, coarse, {}) for change, coarse in _coarser(counts))


def _coarser(counts: Counts) -> Iterator[tuple[str, Counts]]:
    """Yields counts by coarser labels: without columns, by parent hexagons, by days."""
    # The choices for each key column: it stays, is left out, or is replaced by a coarser one. Each
    # is a change in words and the columns that it leads to.
    choices_of_columns: list[list[tuple[str, dict[str, Any]]]] = []
    for name, column in zip(counts.cells.column_names, counts.cells.columns, strict=True):
        stays = ("", {name: column})
        left_out: tuple[str, dict[str, Any]] = (f"without {name}", {})
        choices_of_columns.append([stays, left_out, *_replaced(name, column)])
    # Labels that divide the memberships as other labels did before bring nothing new.
    known = {counts.cell.tobytes()}
    for choice in product(*choices_of_columns):
        labels = {name: column for _, columns in choice for name, column in columns.items()}
        merged = _merged(counts, pa.table(labels)) if labels else counts
        if merged.n_cells > 1 and merged.cell.tobytes() not in known:
            known.add(merged.cell.tobytes())
            yield ", ".join(change for change, _ in choice if change), merged


def _replaced(name: str, column: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields coarser columns that may replace one column, each as a table of one column."""
    if re.fullmatch("hexagon_[0-9]+", name) and pa.types.is_string(column.type):
        from h3ronpy import cells_parse, cells_to_string, change_resolution

        parsed: Any = cells_parse(column.combine_chunks(), set_failing_to_invalid=True)
        size = int(name.removeprefix("hexagon_"))
        cells = pa.array(parsed)
        # A label is no hexagon.
        if cells.null_count:
            return
        for parent in range(size - 1, max(size - 1 - _PARENTS, -1), -1):
            hexagons: Any = cells_to_string(change_resolution(cells, parent))
            yield f"hexagon_{parent} for {name}", {f"hexagon_{parent}": pa.array(hexagons)}
    elif pa.types.is_timestamp(column.type):
        yield f"days for {name}", {f"{name}_day": pc.floor_temporal(column, unit="day")}


def _merged(counts: Counts, cells: pa.Table) -> Counts:
    """Returns counts in fewer cells: a user's counts with the same new label are added up."""
    # One row for each membership: its new labels, user and count.
    rows = cells.take(counts.cell).append_column("user", pa.array(counts.user))
    rows = rows.append_column("count", pa.array(counts.count))
    names = cells.column_names
    sums = rows.group_by(["user", *names]).aggregate([("count", "sum")])
    merged = Counts.from_counts(
        sums["user"].combine_chunks(), sums.select(names), sums["count_sum"].to_numpy()
    )
    return replace(merged, records_per_user=counts.records_per_user)
