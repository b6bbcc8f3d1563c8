"""Methods side by side on the same counts, before any value is read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from shoal import checks
from shoal.arrays import Floats
from shoal.cells.comparisons.assumptions import Distribution
from shoal.cells.facts.facts import Facts
from shoal.cells.mechanisms.cell_statistics import MIDPOINT_ERROR
from shoal.cells.mechanisms.methods import METHODS, MOST_PAIRS, checked_settings
from shoal.cells.shown.plan_text import proof
from shoal.errors import InputError
from shoal.files.text_table import Shown, TextTable
from shoal.privacy.budget import Amount, check_epsilon, round_up, show

Settings: TypeAlias = Mapping[str, str | int | float]
Choice: TypeAlias = tuple[str, Settings]
P = TypeVar("P", bound=Facts)
LOWER_BOUND = "lower bound, each cell alone"
JOINT_BOUND = "lower bound, all cells at once"
# The part of a lower bound that is given away for rounding: far more than floating point loses.
_FLOATS = 1e-6
_MOST_REASONS = 8
_DIGITS = 4
# Titles of the columns of the table that are shown, where values were drawn and where none were.
_DRAWN = {
    "typical error": "typical_error",
    "+-": "standard_error",
    "worst case": "worst_case_error",
}
_CERTIFIED = {
    "worst-case error, worst cell": "worst",
    "worst-case error, median cell": "median",
    "cells better than guessing": "better_than_guessing",
    "only noise, worst cell": "noise_worst",
    "only noise, median cell": "noise_median",
}
# Columns that are shown only for methods with a certificate.
_PROVED = {"worst", "median", "better_than_guessing", "worst_case_error"}
# A plan that spends a smaller part of the epsilon it may spend is said to leave much of it.
LEAST_SPENT = Fraction(99, 100)
_KINDS: dict[pa.DataType, str] = {
    pa.string(): "method",
    pa.int64(): "cells below_quarter better_than_guessing",
    pa.bool_(): "certified",
    pa.float64(): "epsilon asked spent worst median geometric_mean noise_worst noise_median gap "
    "typical_error standard_error noisy_error worst_case_error",
}
_FIELDS = [pa.field(name, kind) for kind, names in _KINDS.items() for name in names.split()]


@dataclass(frozen=True, eq=False)
class Row(Generic[P]):
    """One method at one loss; without a plan if it is a simple estimator that anybody can write.

    `noisy` and `typical` are the mean absolute errors of each cell's noisy number and of its value,
    in the value's unit; `turns` has the mean error over cells of each data set.
    """

    method: str
    epsilon: Fraction
    plan: P | None = None
    noisy: Floats | None = None
    typical: Floats | None = None
    turns: Floats | None = None

    @cached_property
    def error(self) -> Floats | None:
        """Worst-case error of each cell as a part of the range, (cells,); 1 if not certified."""
        return None if self.plan is None else _of_cells(self.plan, self.plan.worst_case_error)

    @property
    def certified(self) -> bool:
        """Whether its errors hold in every data set."""
        return self.plan is not None and self.plan.certified

    @property
    def standard_error(self) -> float:
        """Standard error of the mean over cells of `typical`; NaN after a single data set."""
        if self.turns is None or len(self.turns) < 2:
            return math.nan
        return float(np.std(self.turns, ddof=1) / np.sqrt(len(self.turns)))


class Bound(NamedTuple):
    """Errors, as parts of the range, that no plan beats: of each cell, or of the worst cell."""

    method: str
    epsilon: Fraction
    spent: Fraction
    error: Floats


class LeftOut(NamedTuple):
    """A method that has no plan at a loss, and why."""

    method: str
    epsilon: Fraction
    reason: str


@dataclass(frozen=True, eq=False)
class Comparison(Shown, Generic[P]):
    """Errors of several methods on the same cells: look at it with `print` and `table()`.

    Attributes:
        rows: One row for each method and loss.
        left_out: Methods without a plan at a loss, with the reason.
        assumed: What draws the values that typical errors are for; None if none were drawn.
        unnamed: Methods that were not tried, as they take minutes here and nobody named them.
    """

    rows: tuple[Row[P], ...]
    left_out: tuple[LeftOut, ...] = ()
    assumed: Distribution | None = None
    unnamed: tuple[str, ...] = ()

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods, with their settings, in the order asked for."""
        return tuple(dict.fromkeys(each.method for each in self.rows))

    @property
    def epsilons(self) -> tuple[Fraction, ...]:
        """Losses at which methods are compared, rising."""
        return tuple(sorted({each.epsilon for each in self.rows}))

    @property
    def statistics(self) -> tuple[str, ...]:
        """Names of the statistics that are compared."""
        return next((each.plan.request.statistics for each in self.rows if each.plan), ("mean",))

    def plan(self, method: str, epsilon: Amount) -> P:
        """The plan of a method at one of the losses, to be looked at, saved or released.

        Args:
            method: Its name, with its settings, as in `methods`.
            epsilon: One of the losses in `epsilons`.

        Returns:
            The plan, which spends at most this loss.

        Raises:
            InputError: There is no such plan.
        """
        exact = check_epsilon(epsilon)
        for each in self.rows:
            if (each.method, each.epsilon) == (method, exact) and each.plan is not None:
                return each.plan
        raise InputError(
            f"there is no plan by {checks.shown(method)} at epsilon {checks.shown(epsilon)}",
            f"take {' or '.join(self.methods)} at {' or '.join(map(show, self.epsilons))}",
        )

    @cached_property
    def bounds(self) -> tuple[Bound, ...]:
        """Lower bounds at each loss, except where the noise of a plan is Gaussian.

        One bounds each cell as if it were the only one. The other bounds the worst of all cells,
        where an optimal plan proves it
        (docs/theory/cells.md#limits-of-means; docs/theory/cells.md#the-dual-bound).
        """
        alone = []
        joint = []
        for epsilon in self.epsilons:
            plans = [each.plan for each in self.rows if each.epsilon == epsilon and each.plan]
            plans = [each for each in plans if each.exact_epsilon > 0]
            # A plan with Gaussian noise has no bound, and may do better than another plan's bound.
            if not plans or any(np.isnan(each.lower_bound).any() for each in plans):
                continue
            # A bound is lower at a larger loss: so that of the costliest plan holds for all plans.
            costliest = max(plans, key=lambda each: each.exact_epsilon)
            error = _of_cells(costliest, costliest.lower_bound)
            alone.append(Bound(LOWER_BOUND, epsilon, costliest.exact_epsilon, error))
            worst = max(_proved(each, epsilon) for each in plans)
            if worst > 0:
                joint.append(Bound(JOINT_BOUND, epsilon, epsilon, np.array([worst])))
        return (*alone, *joint)

    def table(self) -> pa.Table:
        """One row for each method and loss, then the lower bounds; nulls where nothing is known.

        Errors are divided by the range, and a cell counts with the worst of its statistics.
        `worst`, `median` and `geometric_mean` summarise the certified errors over cells;
        `below_quarter` and `better_than_guessing` count the cells with errors below 1/4 and 1/2.
        Methods that select a range have `noise_worst` and `noise_median`, divided by that range.
        `epsilon` is the loss at which methods are compared, `asked` the loss that the plan was
        asked for, and `spent` the loss that it has. `gap` is the plan's own proof of how close it
        is to the best plan.

        Where values were drawn, rows are sorted by typical error and there are no lower bounds.
        Errors are then in the value's unit: `typical_error`, the mean over cells for values, with
        its `standard_error`; `noisy_error`, the same for noisy numbers; and `worst_case_error`, the
        median over cells of certified errors, which is the width where a range is selected.

        Returns:
            One row for each method and loss, then one for each bound.
        """
        rows = [_row(each) for each in self.rows]
        if self.assumed is not None:
            rows.sort(key=lambda row: (row["epsilon"], row["typical_error"]))
        else:
            rows += [_bound_row(each) for each in self.bounds]
        return pa.Table.from_pylist(rows, pa.schema(_FIELDS))

    def to_document(self) -> dict[str, object]:
        """The table, what was left out and the notes, as a JSON object.

        Returns:
            Names of the statistics, rows, methods that were left out, and notes.
        """
        left_out = [each._asdict() | {"epsilon": round_up(each.epsilon)} for each in self.left_out]
        return {
            "statistics": [*self.statistics],
            "rows": self.table().to_pylist(),
            "left_out": left_out,
            "notes": _notes(self),
        }

    def _text(self) -> TextTable:
        return _describe(self)

    def __repr__(self) -> str:
        """One line."""
        return f"<Comparison of {len(self.methods)} methods at {len(self.epsilons)} losses>"


def label(choice: Choice) -> str:
    """Returns a method with its settings, as it is named in tables and pictures."""
    name, settings = choice
    texts = ", ".join(f"{each}={settings[each]}" for each in sorted(settings))
    return f"{name} ({texts})" if texts else name


def checked_choice(method: object, names: Sequence[str]) -> Choice:
    """Returns a name, or a pair of a name and its settings, with settings that the method has."""
    pair = [method, {}]
    if not isinstance(method, str):
        pair = checks.items(method, "a method", least=2, most=2)
    given_name, given_settings = pair
    name = checks.choice(given_name, names, "method")
    settings = checks.mapping(given_settings, "settings")
    if name in METHODS:
        return name, checked_settings(name, settings)
    if settings:
        raise InputError(f"the method {name} has no settings", "leave its settings out")
    return name, {}


def _of_cells(plan: Facts, number: Floats) -> Floats:
    """Divides `number` by each statistic's range and returns the largest result of each cell."""
    return np.asarray(plan.numbers.per_statistic(number / plan.statistic_range).max(axis=0))


def _proved(plan: Facts, epsilon: Fraction) -> float:
    """Returns a lower bound on the largest error of plans with loss epsilon; 0 if none is proved.

    Only an optimal plan of equal targets proves one.
    """
    targets = plan.decision.targets
    if targets is None or plan.gap is None or plan.request.statistics != ("mean",):
        return 0.0
    if targets.min() < targets.max():
        return 0.0
    # The proof is about errors without rounding.
    largest = float((plan.relative_error - 2 * plan.rounding).max())
    # No plan with our loss e has a largest error below this.
    least = largest / (1 + plan.gap)
    # A plan with loss epsilon has our loss e once its noise is multiplied by epsilon/e. That
    # multiplies its error by epsilon/e at most, so the error was at least `least` times e/epsilon.
    ratio = float(plan.exact_epsilon / epsilon)
    return max(0.0, least * ratio * (1 - _FLOATS))


def _figures(error: Floats) -> dict[str, Any]:
    """Returns numbers that summarise the errors of all cells, which are parts of the range."""
    return {
        "worst": float(error.max()),
        "median": float(np.median(error)),
        "geometric_mean": float(np.exp(np.log(error).mean())),
        "below_quarter": int((error < 1 / 4).sum()),
        "better_than_guessing": int((error < MIDPOINT_ERROR).sum()),
    }


def _row(row: Row[P]) -> dict[str, Any]:
    """Returns the entries of the table for one method at one loss."""
    plan = row.plan
    entries = {"method": row.method, "epsilon": round_up(row.epsilon)}
    entries["certified"] = row.certified
    if plan is not None and row.error is not None:
        asked = round_up(plan.request.epsilon or row.epsilon)
        entries |= {"asked": asked, "spent": plan.epsilon, "cells": len(plan.planned)}
        entries |= {"gap": plan.gap} | _figures(row.error)
    if plan is not None and not plan.certified:
        noise = plan.relative_error
        entries |= {"noise_worst": float(noise.max()), "noise_median": float(np.median(noise))}
    if row.noisy is not None and row.typical is not None:
        entries["typical_error"] = float(row.typical.mean())
        entries["standard_error"] = row.standard_error
        entries["noisy_error"] = float(row.noisy.mean())
        if plan is not None:
            entries["worst_case_error"] = float(np.median(plan.worst_case_error))
    return entries


def _bound_row(bound: Bound) -> dict[str, Any]:
    """Returns the entries of the table for a lower bound."""
    entries: dict[str, Any] = {"method": bound.method, "epsilon": round_up(bound.epsilon)}
    entries |= {"certified": True, "spent": float(bound.spent)}
    if bound.method == JOINT_BOUND:
        return entries | {"worst": float(bound.error[0])}
    return entries | {"cells": len(bound.error)} | _figures(bound.error)


def _describe(found: Comparison[P]) -> TextTable:
    """Returns the table as text: a column for each loss, or for each quantity at a single loss."""
    blocks = _blocks(found)
    losses = {round_up(each): show(each, _DIGITS) for each in found.epsilons}
    rows = []
    if len(losses) == 1:
        [loss] = losses
        columns = ["method", *blocks]
        for method in dict.fromkeys(name for numbers in blocks.values() for name, _ in numbers):
            rows.append([method, *(each.get((method, loss), "-") for each in blocks.values())])
    else:
        columns = ["epsilon", *losses.values()]
        for title, numbers in blocks.items():
            rows.append([title])
            for method in dict.fromkeys(name for name, _ in numbers):
                rows.append([f"  {method}", *(numbers.get((method, loss), "-") for loss in losses)])
    return TextTable(_head(found), columns, rows, _notes(found))


def _blocks(found: Comparison[P]) -> dict[str, dict[tuple[str, float], str]]:
    """Returns for each title the texts of its numbers, by method and loss."""
    table = found.table().to_pylist()
    blocks = {}
    for title, column in (_CERTIFIED if found.assumed is None else _DRAWN).items():
        numbers = {
            (row["method"], row["epsilon"]): f"{row[column]:.{_DIGITS}g}"
            for row in table
            if row[column] is not None and (row["certified"] or column not in _PROVED)
        }
        if column == "better_than_guessing":
            title += f", of {max(row['cells'] or 0 for row in table)}"
        if numbers:
            blocks[title] = numbers
    return blocks


def _head(found: Comparison[P]) -> str:
    """Returns the line above the table: loss, cells, statistics, bounds, and the errors' unit."""
    head = f"epsilon {show(found.epsilons[0], _DIGITS)}: " if len(found.epsilons) == 1 else ""
    plan = next((each.plan for each in found.rows if each.plan is not None), None)
    if plan is not None:
        bounds = f"bounds [{plan.bounds.lo:.12g}, {plan.bounds.hi:.12g}]"
        head += f"{len(plan.planned)} cells, {', '.join(found.statistics)}, {bounds}; "
    if found.assumed is not None:
        return f"{head}errors in the value's unit"
    return f"{head}errors over {over(found)}; guessing has an error of 0.5"


def over(found: Comparison[P]) -> str:
    """Returns in words what certified errors are divided by."""
    if len(found.statistics) > 1:
        return "the range of each statistic (its worst one counts for a cell)"
    [name] = found.statistics
    return "the width" if name == "mean" else f"the range of the {name}"


def _notes(found: Comparison[P]) -> list[str]:
    """Returns the sentences that a reader needs to understand the figures."""
    if found.assumed is not None:
        # A function is shown by its name: its text would be its place in memory.
        assumed = getattr(found.assumed, "__name__", str(found.assumed))
        return [
            f"typical: mean absolute error of values under {assumed}",
            "worst case: certified error of the median cell in every data set; -: not certified",
            "names with blanks are simple estimators that anybody can write; they use the bounds "
            "as given, since closer clipping needs knowledge of the values",
            "errors differ for other values (long tails, two kinds of users): give assumed= a "
            "function that draws them",
        ]
    lines = ["cells no better than guessing are kept, so that all methods have the same cells"]
    bounded = {each.epsilon for each in found.bounds}
    if bounded:
        lines.append("lower bound: no plan certifies less; alone: if one cell had all of epsilon")
    if len(bounded) < len(found.epsilons):
        lines.append("no lower bound is known where noise is Gaussian")
    for method in found.methods:
        lines += _notes_on(method, [each for each in found.rows if each.method == method])
    if found.unnamed:
        lines.append(
            f"not tried, as they take minutes with more than {MOST_PAIRS:,} pairs of a user and a "
            f"cell: {', '.join(found.unnamed)}; name them with methods= (--method) to have them"
        )
    return [*lines, *_reasons(found.left_out)]


def _reasons(left_out: tuple[LeftOut, ...]) -> Iterator[str]:
    """Yields why methods have no plan, with all losses of a method and a reason on one line."""
    losses_of: dict[tuple[str, str], list[str]] = {}
    for name, epsilon, reason in left_out:
        losses_of.setdefault((name, reason), []).append(show(epsilon, _DIGITS))
    for (name, reason), losses in list(losses_of.items())[:_MOST_REASONS]:
        yield f"left out: {name} at epsilon {', '.join(losses)}: {reason}"
    if len(losses_of) > _MOST_REASONS:
        yield f"and {len(losses_of) - _MOST_REASONS} more, in left_out"


def _notes_on(method: str, rows: list[Row[P]]) -> Iterator[str]:
    """Yields the sentences that a reader needs on one method; `rows` are its rows."""
    plans = [(each.plan, each.epsilon) for each in rows if each.plan is not None]
    if not rows[0].certified:
        yield (
            f"{method}: selects a range privately and certifies no error; its noise is divided by "
            "that range, which is narrower than the bounds; see shoal compare"
        )
    times = max((plan.request.epsilon or epsilon) / epsilon for plan, epsilon in plans)
    if times > 1:
        yield (
            f"{method}: its own accounting overstates losses, so it plans with up to "
            f"{float(times):.3g} times the epsilon shown, and loses at most the epsilon shown"
        )
    # The plan that spends the smallest part of its epsilon.
    parts_spent = [plan.exact_epsilon / epsilon for plan, epsilon in plans]
    plan, epsilon = plans[parts_spent.index(min(parts_spent))]
    if plan.exact_epsilon < epsilon * LEAST_SPENT:
        spent = show(plan.exact_epsilon, 3)
        yield f"{method}: spends only {spent} of epsilon {show(epsilon, _DIGITS)}"
    gaps = [plan.gap for plan, _ in plans if plan.gap is not None]
    if gaps:
        yield f"{method}: {proof(plan, max(gaps))}"
