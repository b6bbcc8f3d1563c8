"""Plans and releases of statistics of public counts in words and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from shoal.arrays import Floats
from shoal.cells.estimates.intervals import WHY, dominated
from shoal.cells.estimates.typical_error import SD, typical_errors
from shoal.cells.facts.facts import Facts
from shoal.cells.shown.left_out import counted_out
from shoal.cells.shown.plan_text import cell_title, clamped, limited, verdict
from shoal.cells.shown.plan_warnings import plan_warnings
from shoal.cells.shown.published import Published as PublishedPart
from shoal.data import keys
from shoal.distributions.documents import Published
from shoal.distributions.request import Request
from shoal.errors import printable
from shoal.files.text_table import SHOWN, TextTable, counted, text_of
from shoal.privacy.budget import Budget, show
from shoal.release.rows import Row, reasons, rows_table, side_by_side, verdicts

# The standard deviation of squared deviations of normal values is the root of 2 times their mean.
_OF_SQUARES = 2**0.5


def typical(plans: Mapping[str, Facts], kind: str) -> Floats:
    """Returns the typical error of a statistic in each cell, for values with a deviation of `SD`.

    An error of the mean square e is one of e/(2 s) of the standard deviation s.
    """
    facts = plans["mean"]
    if kind in ("mean", "sum"):
        error = typical_errors(facts) * SD * facts.width
        records = facts.counts.totals[facts.planned] / facts.counts.units
        return error * records if kind == "sum" else error
    squares = plans["squares"]
    deviation = SD * facts.width
    relative = _OF_SQUARES * SD**2
    error = typical_errors(squares, relative) * relative * squares.width
    return error if kind == "variance" else error / (2 * deviation)


def summary(request: Request, facts: Facts, loss: Budget) -> str:
    """Returns statistics, cells and loss in one line."""
    delta = f", delta {float(loss.delta):g}" if loss.delta else ""
    what = f"{', '.join(request.statistics)} of {counted(len(facts.planned), 'cell')}"
    return f"{what}, epsilon {show(loss.epsilon)}{delta} per {facts.counts.of_whom} in all"


def _of_shown(facts: Facts, values: Floats) -> Floats:
    """Returns numbers of planned cells for all cells that readers see, NaN for the others."""
    every = np.full(facts.counts.n_cells, np.nan)
    every[facts.planned] = values
    return every[facts.shown]


def plan_table(request: Request, plans: Mapping[str, Facts]) -> pa.Table:
    """Returns a row for each cell and statistic, with the error that it will typically have."""
    facts = next(iter(plans.values()))
    status = np.array(facts.shown_status, dtype=object)
    planned = status == "planned"
    status[planned] = np.where(dominated(facts), "few users dominate", "planned")
    counts = facts.counts
    blocks = []
    for kind in request.kinds:
        table = facts.shown_cells
        error = _of_shown(facts, typical(plans, kind.kind))
        columns = {
            "statistic": pa.array([kind.name] * len(status)),
            "status": pa.array(status.tolist()),
            "reason": pa.array([WHY.get(each) for each in status.tolist()], pa.string()),
            "users": pa.array(counts.users_per_cell[facts.shown]),
            "records": pa.array(counts.records[facts.shown]),
            "typical_error": pa.array(error, mask=np.isnan(error)),
        }
        for name, column in columns.items():
            table = table.append_column(name, column)
        blocks.append(table)
    return pa.concat_tables(blocks).combine_chunks()


def plan_text(
    request: Request, plans: Mapping[str, Facts], protected: str, line: str, warnings: list[str]
) -> TextTable:
    """Returns a plan on one screen: what, what is protected, and typical errors of cells."""
    facts = next(iter(plans.values()))
    head = [f"Noise will be added to {line}.", f"Protected: {protected}."]
    reliable = verdict(facts)
    if reliable:
        head.insert(0, f"Means: {reliable[0].lower()}{reliable[1:]}")
    errors = [_of_shown(facts, typical(plans, kind.kind)) for kind in request.kinds]
    users = facts.counts.users_per_cell[facts.shown]
    records = facts.counts.records[facts.shown]
    names = keys.labels(facts.shown_cells)
    order = np.argsort(errors[0], kind="stable")
    hidden = len(order) - SHOWN
    if hidden > 0:
        # Rows in the middle are hidden.
        order = np.delete(order, np.s_[SHOWN // 2 : SHOWN // 2 + hidden])
    rows = []
    for at in order.tolist():
        texts = [text_of(float(f"{error[at]:.3g}")) for error in errors]
        rows.append([printable(names[at]), f"{users[at]:,}", f"{records[at]:,}", *texts])
    if hidden > 0:
        rows.insert(SHOWN // 2, [f"... {hidden:,} more"])
    titles = [cell_title(facts.shown_cells), "users", "records", *request.statistics]
    notes = [
        "Columns of statistics have typical errors, from simulated releases with these counts, for "
        f"values with a standard deviation of {facts.width * SD:.3g} and users with similar "
        "values; no value was read.",
        *counted_out(facts.request, facts.left_out),
        *limited(facts.counts.of_whom, facts.counts.records_per_user),
    ]
    return TextTable("\n".join(head), titles, rows, notes, warnings)


def warnings_of(plans: Mapping[str, Facts]) -> list[str]:
    """Returns what a custodian should read before spending anything, each sentence once."""
    return [*dict.fromkeys(each for facts in plans.values() for each in plan_warnings(facts))]


def warnings_of_release(parts: Mapping[str, PublishedPart]) -> list[str]:
    """Returns the warnings of all parts; of squares they say so."""
    found = [*parts["mean"].warnings] if "mean" in parts else []
    if "squares" in parts:
        others = [each for each in parts["squares"].warnings if each not in found]
        found += [f"of squared deviations: {each}" for each in others]
    return found


def meaning(
    published: Published, rows: Sequence[Row], user: str, most_records: int | None
) -> Iterator[str]:
    """Yields why cells are not reliable, and what is counted."""
    yield clamped(published.basis.bounds)
    yield from reasons(rows, WHY)
    yield from published.sentences
    yield from limited(user, most_records)
    if "sum" in published.request.statistics:
        yield "sum: the mean times the public number of records, as far as they count."


def release_text(
    published: Published, rows: Sequence[Row], head: str, notes: list[str]
) -> TextTable:
    """Returns the verdict, the statistics of the first cells side by side, and what they mean."""
    counts = {"users": published.users, "records": published.records}
    shown = side_by_side(published.cells, rows, counts)
    if shown.others:
        notes = [f"{', '.join(shown.others)}: in to_pandas() and files", *notes]
    verdict_lines = "\n".join([*verdicts(rows), head])
    return TextTable(verdict_lines, shown.titles, shown.lines, notes, [*published.warnings])


def release_table(published: Published, rows: Sequence[Row], *, all: bool = False) -> pa.Table:
    """Returns a row for each cell and statistic."""
    counts = {
        "users": published.users.astype(np.float64),
        "records": published.records.astype(np.float64),
    }
    return rows_table(published.cells, rows, WHY, counts, all=all)
