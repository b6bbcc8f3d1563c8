"""A comparison in words and columns: what `print` and the command line show."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from shoal.files.text_table import aligned
from shoal.privacy.budget import round_up, show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shoal.cells.comparison import Comparison, P, Row

_MOST_REASONS, _DIGITS = 8, 4
# Titles of the columns of the table that are shown, where values were drawn and where none were.
_DRAWN = {
    "typical error": "typical_error",
    "+-": "standard_error",
    "plain": "plain_error",
    "worst case": "worst_case_error",
}
_CERTIFIED = {
    "worst-case error, worst cell": "worst",
    "worst-case error, median cell": "median",
    "cells better than guessing": "better_than_guessing",
    "only noise, worst cell": "noise_worst",
    "only noise, median cell": "noise_median",
}
# Nothing without a certificate has these.
_PROVED = {"worst", "median", "better_than_guessing", "worst_case_error"}
# Part of a loss below which a plan leaves much of it.
LEAST_SPENT = Fraction(99, 100)


def describe(found: Comparison[P]) -> str:
    """Returns a table a quantity with one column a loss, or a column a quantity at one loss."""
    table, blocks = found.table().to_pylist(), {}
    for title, column in (_CERTIFIED if found.assumed is None else _DRAWN).items():
        numbers = {
            (row["method"], row["epsilon"]): f"{row[column]:.{_DIGITS}g}"
            for row in table
            if row[column] is not None and (row["certified"] or column not in _PROVED)
        }
        most = f", of {max(row['cells'] or 0 for row in table)}" if "better" in column else ""
        if numbers:
            blocks[title + most] = numbers
    losses = {round_up(each): show(each, _DIGITS) for each in found.epsilons}
    if len(losses) == 1:
        [loss] = losses
        rows = [["method", *blocks]]
        for method in dict.fromkeys(name for numbers in blocks.values() for name, _ in numbers):
            rows.append([method, *(each.get((method, loss), "-") for each in blocks.values())])
    else:
        rows = [["epsilon", *losses.values()]]
        for title, numbers in blocks.items():
            rows.append([title])
            for method in dict.fromkeys(name for name, _ in numbers):
                rows.append([f"  {method}", *(numbers.get((method, at), "-") for at in losses)])
    return "\n".join([_head(found), "", *aligned(rows), "", *notes(found)])


def _head(found: Comparison[P]) -> str:
    head = f"epsilon {show(found.epsilons[0], _DIGITS)}: " if len(found.epsilons) == 1 else ""
    plan = next((each.plan for each in found.rows if each.plan is not None), None)
    if plan is not None:
        bounds = f"bounds [{plan.bounds.lo:g}, {plan.bounds.hi:g}]"
        head += f"{len(plan.released)} cells, {', '.join(found.statistics)}, {bounds}; "
    if found.assumed is not None:
        return f"{head}errors in the value's unit"
    return f"{head}errors over {over(found)}, guessing has an error of 0.5"


def over(found: Comparison[P]) -> str:
    """Returns what certified errors are divided by."""
    if len(found.statistics) > 1:
        return "the range of each statistic (its worst one counts for a cell)"
    [name] = found.statistics
    return "the width" if name == "mean" else f"the range of the {name}"


def notes(found: Comparison[P]) -> list[str]:
    """Returns what a reader has to know to read the figures."""
    if found.assumed is not None:
        # Of a function its name says more than where it lies in memory.
        assumed = getattr(found.assumed, "__name__", str(found.assumed))
        return [
            f"typical: mean absolute error of values under {assumed}; plain: of released numbers",
            "worst case: certified for every data set, the median cell; -: nothing but the width",
            "names with blanks are what anybody writes by hand, with the bounds as given: clipping "
            "tighter needs knowledge of the values",
            "other values have other errors (long tails, two kinds of users): give assumed= a "
            "function that draws",
        ]
    lines = ["uninformative cells are kept, so that all methods are compared on the same cells"]
    known = {each.epsilon for each in found.bounds}
    if known:
        lines.append(
            "lower bound: no plan has a smaller error; alone: as if a cell had all of the loss"
        )
    if len(known) < len(found.epsilons):
        lines.append("no lower bound is known where noise is Gaussian")
    for method in found.methods:
        lines += _notes_on(method, [each for each in found.rows if each.method == method])
    reasons: dict[tuple[str, str], list[str]] = {}
    for name, epsilon, reason in found.left_out:
        reasons.setdefault((name, reason), []).append(show(epsilon, _DIGITS))
    for (name, reason), losses in list(reasons.items())[:_MOST_REASONS]:
        lines.append(f"left out: {name} at epsilon {', '.join(losses)}: {reason}")
    if len(reasons) > _MOST_REASONS:
        lines.append(f"and {len(reasons) - _MOST_REASONS} more, in left_out")
    return lines


def _notes_on(method: str, rows: list[Row[P]]) -> Iterator[str]:
    plans = [(each.plan, each.epsilon) for each in rows if each.plan is not None]
    if not rows[0].certified:
        yield (
            f"{method}: selects a range in private and certifies nothing; its noise is shown over "
            "that range, which is narrower than the width; see shoal compare"
        )
    more = max((plan.request.epsilon or epsilon) / epsilon for plan, epsilon in plans)
    if more > 1:
        yield (
            f"{method}: counts losses higher than they are; asked for up to {float(more):.3g} "
            "times the epsilon shown, it spends at most that epsilon"
        )
    plan, epsilon = min(plans, key=lambda each: each[0].exact_epsilon / each[1])
    if plan.exact_epsilon < epsilon * LEAST_SPENT:
        spent = show(plan.exact_epsilon, 3)
        yield f"{method}: spends only {spent} of {show(epsilon, _DIGITS)}"
    gaps = np.array([plan.gap for plan, _ in plans if plan.gap is not None])
    if len(gaps) and plan.decision.targets is not None:
        yield (
            f"{method}: no plan that weighs users has all errors more than "
            f"{(gaps / (1 + gaps)).max():.2%} smaller: certified by linear programming"
        )
    elif len(gaps):
        yield f"{method}: certified gap to the best balance at most {gaps.max():.1e} per cell"
