"""Writes a plan in words and columns, as `print(plan)`, notebooks and `shoal plan` show it."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.cells.estimates.intervals import REFUSED, UNSEEN, judges_reliability, seen_users
from shoal.cells.estimates.typical_error import SD, forecast, typical_harm
from shoal.cells.facts.facts import Facts
from shoal.cells.mechanisms.cell_statistics import MIDPOINT_ERROR, Mean
from shoal.cells.mechanisms.user_vectors import excess_of
from shoal.cells.shown.arrow_tables import plan_table
from shoal.cells.shown.left_out import counted_out
from shoal.data import keys
from shoal.data.value_lattice import Bounds
from shoal.errors import printable
from shoal.files.text_table import SHOWN, TextTable, counted, text_of
from shoal.privacy.budget import show

_TITLES = {
    "typical_error": "typical error",
    "typical_half_width": "95% interval",
    "certified_error": "certified error",
}


def summary(plan: Facts) -> str:
    """Returns the number of cells with noise, the loss and the method in one line."""
    cells = counted(len(plan.planned), "cell")
    delta = f", delta {plan.delta:g}" if plan.delta else ""
    spent = f"epsilon {show(plan.exact_epsilon)}{delta}"
    return f"{cells}, {spent} per {plan.counts.of_whom} in all, by {plan.method}"


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
    """Returns a sentence on how many cells will be reliable; empty if counts alone decide it."""
    if not judges_reliability(plan):
        return ""
    return will_be_reliable(forecast(plan), len(plan.shown))


def will_be_reliable(expected: dict[float, int], cells: int) -> str:
    """Returns a forecast as a sentence."""
    fewest, *_, most = sorted(expected.values())
    of_cells = f"{most:,} of {counted(cells, 'cell')} will be reliable"
    advice = ""
    if 2 * most < cells:
        advice = " plan.advise() (--advice) shows what would make more so."
    if fewest == most:
        return f"About {of_cells}.{advice}"
    return f"Between {fewest:,} and {of_cells}, depending on how much cells differ.{advice}"


def _rows(plan: Facts, table: pa.Table) -> tuple[list[str], list[list[str]]]:
    """Returns columns and rows, from the smallest error to the largest, then cells left out."""
    errors = ["typical_error", "certified_error" if plan.certified else "typical_half_width"]
    # Of statistics other than means no typical error is known.
    errors = [each for each in errors if table[each].null_count < len(table)]
    by = "certified_error" if "certified_error" in errors else "typical_error"
    # Cells left out have no error, and NumPy sorts these NaN last.
    order = np.argsort(table[by].to_numpy(), kind="stable")
    hidden = len(order) - SHOWN
    if hidden > 0:
        # Rows in the middle are hidden.
        order = np.delete(order, np.s_[SHOWN // 2 : SHOWN // 2 + hidden])
    names = labels(plan.shown_cells, table, order.tolist())
    titles = [_TITLES[each] for each in errors]
    columns = [cell_title(plan.shown_cells), "users", "records", *titles, "status"]
    rows = []
    for name, row in zip(names, table.take(order).to_pylist(), strict=True):
        counts = [f"{row['users']:,}", f"{row['records']:,}"]
        texts = [_error_text(row[each], each) for each in errors]
        rows.append([name, *counts, *texts, row["status"]])
    if hidden > 0:
        rows.insert(SHOWN // 2, [f"... {hidden:,} more"])
    return columns, rows


def cell_title(cells: pa.Table) -> str:
    """Returns the names of the key columns."""
    return printable(", ".join(cells.column_names))


def labels(cells: pa.Table, table: pa.Table, rows: Iterable[int]) -> list[str]:
    """Returns the names of the cells of some rows, with their statistics if there are several."""
    statistic = table["statistic"]
    cell_labels = keys.labels(cells)
    several = len(statistic) > len(cell_labels)
    names = []
    for at in rows:
        # The table has all cells of the first statistic, then all of the next.
        name = printable(cell_labels[at % len(cell_labels)])
        if several:
            name += f" {statistic[at]}"
        names.append(name)
    return names


def _error_text(error: float | None, column: str) -> str:
    """Returns an error in three digits; half an interval has the sign ± before it."""
    if error is None:
        return "-"
    text = text_of(error, 3)
    return f"±{text}" if column == "typical_half_width" else text


def _notes(plan: Facts, table: pa.Table) -> Iterator[str]:
    """Yields the sentences below a plan's table."""
    yield from legend(len(plan.shown), counted_out(plan.request, plan.left_out), table)
    yield from limited(plan.counts.of_whom, plan.counts.records_per_user)
    if plan.statistics == (Mean(),):
        yield (
            "Errors are from simulated releases with these counts, for values with a standard "
            f"deviation of {text_of(plan.width * SD, 3)} and users with similar values; no value "
            "was read. For other values see plan.typical_error(sd=...)."
        )
    if plan.rounds > 1:
        yield "Two rounds: users are clipped around the noisy values of a first round."
    yield from clipped(plan, 'objective="worst_case"')
    yield from _certificate(plan)


def clipped(plan: Facts, certified: str) -> Iterator[str]:
    """Yields how many users are clipped, and what intervals rest on before the ball is known.

    `certified` is what to ask for in place of a private range; empty if nothing certifies errors.
    """
    if not plan.decision.method.range.of_vectors:
        return
    users = plan.weights.n_users
    if not len(plan.decision.selection_scale):
        instead = f"; {certified} may have smaller errors" if certified else ""
        yield (
            f"Epsilon times the number of users is {plan.epsilon * users:.3g}, too little for "
            f"a private range{instead}."
        )
        return
    excess = excess_of(plan.parameters)
    yield f"About {int(plan.parameters['clipped'][0]):,} of {users:,} users are clipped."
    certifies = f"{certified} certifies errors for any values" if certified else ""
    if not any(excess):
        more = f"; {certifies}" if certifies else ""
        yield f"With outliers or long tails errors are larger{more}."
        return
    harm = typical_harm(plan) if judges_reliability(plan) else 0.0
    if harm:
        # The radius grows with the deviation, so that the harm falls with it.
        least = plan.width * SD * harm / REFUSED
        yield (
            f"If values have a standard deviation below {text_of(least, 2)}, these bounds are too "
            "wide for any cell to be reliable."
        )
    yield (
        f"Intervals allow for {UNSEEN} users as far as the bounds reach, if they are not in the "
        "same few cells. More than "
        f"{seen_users(excess):,.0f} of {users:,} users far from the others make no cell reliable. "
        "Between, intervals may miss: bounds that are no wider than needed help most"
        f"{', and ' if certifies else ''}{certifies}."
    )


def clamped(bounds: Bounds) -> str:
    """Says what happens to values beyond the bounds."""
    low = text_of(bounds.lo, 12)
    high = text_of(bounds.hi, 12)
    return f"Values below {low} count as {low}, and values above {high} as {high}."


def limited(user: str, records_per_user: int | None) -> Iterator[str]:
    """Yields for how many of its records a user counts, if that is limited."""
    if records_per_user is not None:
        yield f"Each {user} counts for at most {records_per_user:,} of its records."


def legend(size: int, left_out: Iterable[str], table: pa.Table) -> Iterator[str]:
    """Yields how many cells are not planned or reliable and why, and how many are left out."""
    # Every statistic has the same rows: those of the first say it all.
    cells = table.slice(0, size)
    for status in map(str, cells["status"].unique().to_pylist()):
        of_status = cells.filter(pc.equal(cells["status"], pa.scalar(status)))
        reason, *other_reasons = of_status["reason"].unique().to_pylist()
        # Planned and reliable cells have no reason.
        if reason:
            one = "for example one " if other_reasons else ""
            yield f"{status} ({counted(len(of_status), 'cell')}): {one}{reason}"
    yield from left_out


def _certificate(plan: Facts) -> Iterator[str]:
    """Yields what is proved about the errors, and about how far they are from the best ones."""
    uninformative = int((plan.cell_error >= MIDPOINT_ERROR).sum())
    if uninformative:
        why = "guessing is as good" if plan.certified else "noise is as wide as the range"
        yield f"{counted(uninformative, 'planned cell')} without information: {why}."
    if plan.gap is not None:
        yield proof(plan, plan.gap)
    if plan.method == "balanced" and plan.delta and plan.decision.reason:
        yield (
            'method="optimal" without the delta may be better if a few users have far more '
            "records than the others: compare its certified errors."
        )


def proof(plan: Facts, gap: float) -> str:
    """Returns in words what a gap proves about a plan of this kind."""
    if plan.decision.targets is None:
        return f"certified gap to the best balance: {gap:.1e} per cell"
    return (
        f"no plan that weights users can have all errors more than {gap / (1 + gap):.2%} smaller "
        "at this loss: certified by linear programming"
    )
