"""A plan in words and columns: what `print(plan)`, notebooks and `shoal plan` show."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.cells.estimates.intervals import decides
from shoal.cells.estimates.typical_error import SD, forecast
from shoal.cells.facts.facts import Facts
from shoal.cells.mechanisms.cell_statistics import MIDPOINT_ERROR, Mean
from shoal.cells.shown.arrow_tables import plan_table
from shoal.cells.shown.left_out import counted_out
from shoal.errors import printable
from shoal.files.text_table import SHOWN, TextTable, counted, text_of
from shoal.privacy.budget import show

_TITLES = {
    "typical_error": "typical error",
    "typical_half_width": "95% interval",
    "certified_error": "certified error",
}


def summary(plan: Facts) -> str:
    """Returns cells with noise, loss and method in one line."""
    cells = counted(len(plan.planned), "cell")
    delta = f", delta {plan.delta:g}" if plan.gaussian else ""
    spent = f"epsilon {show(plan.exact_epsilon)}{delta}"
    return f"{cells}, {spent} per user in all, by {plan.method}"


def describe(plan: Facts, protected: str, warnings: list[str]) -> TextTable:
    """Returns the plan on one screen: verdict, warnings, the best and the worst cells, notes."""
    why = f": {plan.decision.reason}" if plan.decision.reason else ""
    noise = f"Noise will be added to {summary(plan)}{why}."
    lines = verdict(plan), noise, f"Protected: {protected}."
    head = "\n".join(each for each in lines if each)
    table = plan_table(plan)
    columns, rows = _rows(plan, table)
    return TextTable(head, columns, rows, [*_notes(plan, table)], warnings)


def verdict(plan: Facts) -> str:
    """Returns how many cells will be reliable, in a sentence; nothing if that is known."""
    if not decides(plan):
        return ""
    cells = len(plan.shown)
    least, *_, most = sorted(forecast(plan).values())
    of = f"{most:,} of {counted(cells, 'cell')} will be reliable"
    advice = " plan.advise() (--advice) shows what would make more so." if 2 * most < cells else ""
    if least == most:
        return f"About {of}.{advice}"
    return f"Between {least:,} and {of}, depending on how much cells differ.{advice}"


def _rows(plan: Facts, table: pa.Table) -> tuple[list[str], list[list[str]]]:
    """Returns columns and rows, from the smallest error to the largest, then cells left out."""
    errors = ["typical_error", "certified_error" if plan.certified else "typical_half_width"]
    errors = [each for each in errors if table[each].null_count < len(table)]
    by = "certified_error" if "certified_error" in errors else "typical_error"
    order = np.argsort(table[by].to_numpy(), kind="stable")
    gap = len(order) - SHOWN
    if gap > 0:
        order = np.delete(order, np.s_[SHOWN // 2 : SHOWN // 2 + gap])
    names = labels(plan, table, order.tolist())
    columns = [cell_title(plan), "users", "records", *map(_TITLES.__getitem__, errors), "status"]
    rows = [
        [
            name,
            f"{row['users']:,}",
            f"{row['records']:,}",
            *(_short(row[each], "±" * (each == "typical_half_width")) for each in errors),
            row["status"],
        ]
        for name, row in zip(names, table.take(order).to_pylist(), strict=True)
    ]
    if gap > 0:
        rows.insert(SHOWN // 2, [f"... {gap:,} more"])
    return columns, rows


def cell_title(plan: Facts) -> str:
    """Returns the names of the key columns."""
    return printable(", ".join(plan.counts.cells.column_names))


def labels(plan: Facts, table: pa.Table, rows: Iterable[int]) -> list[str]:
    """Returns the cell of some rows, with its statistic where there are several."""
    names = table["statistic"]
    cells = plan.shown_labels
    found = []
    for at in rows:
        cell = printable(cells[at % len(cells)])
        found.append(f"{cell} {names[at]}" if len(names) > len(cells) else cell)
    return found


def _short(number: float | None, sign: str) -> str:
    return "-" if number is None else sign + text_of(float(f"{number:.3g}"))


def _notes(plan: Facts, table: pa.Table) -> Iterator[str]:
    yield from legend(plan, table)
    if plan.statistics == (Mean(),):
        yield (
            "Errors are from simulated releases with these counts, for values with a standard "
            f"deviation of {plan.width * SD:.3g} and users with similar values; no value was "
            "read. For other values see plan.typical_error(sd=...)."
        )
    if plan.rounds > 1:
        yield "Two rounds: users are clipped around the noisy values of a first round."
    if plan.decision.method.range.of_vectors:
        users = plan.weights.n_users
        if len(plan.decision.selection_scale):
            yield (
                f"About {int(plan.parameters['clipped'][0]):,} of {users:,} users are clipped, "
                "and intervals allow for it. With outliers, long tails, or frequent users unlike "
                "the others, errors are larger and fewer cells are reliable; "
                'objective="worst_case" certifies errors for any values.'
            )
        else:
            yield (
                f"Epsilon times the number of users is {plan.epsilon * users:.3g}, too little for "
                'a private range; objective="worst_case" may have smaller errors.'
            )
    yield from _certificate(plan)


def legend(plan: Facts, table: pa.Table) -> Iterator[str]:
    """Returns why cells are not planned or reliable, how many, and how many are left out."""
    # The rows of the first statistic: each has the same.
    cells = table.slice(0, len(plan.shown))
    for status in map(str, cells["status"].unique().to_pylist()):
        found = cells.filter(pc.equal(cells["status"], pa.scalar(status)))["reason"]
        reasons = found.unique().to_pylist()
        if reasons[0]:
            one = "" if len(reasons) == 1 else "for example one "
            yield f"{status} ({counted(len(found), 'cell')}): {one}{reasons[0]}"
    yield from counted_out(plan)


def _certificate(plan: Facts) -> Iterator[str]:
    """What is proved of the errors, and of how far they are from the best."""
    if uninformative := int((plan.cell_error >= MIDPOINT_ERROR).sum()):
        better = "guessing is as good" if plan.certified else "noise is as wide as the range"
        yield f"{counted(uninformative, 'planned cell')} without information: {better}."
    if plan.gap is not None:
        yield proof(plan, plan.gap)
    if plan.method == "balanced" and plan.gaussian and plan.decision.reason:
        yield (
            'method="optimal" without the delta may be better if a few users have far more '
            "records than the others: compare its certified errors."
        )


def proof(plan: Facts, gap: float) -> str:
    """Returns what a gap of a plan like this one proves."""
    if plan.decision.targets is None:
        return f"certified gap to the best balance: {gap:.1e} per cell"
    return (
        f"no plan that weights users can have all errors more than {gap / (1 + gap):.2%} smaller "
        "at this loss: certified by linear programming"
    )
