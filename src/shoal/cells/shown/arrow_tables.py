"""Makes Arrow tables of plans and releases of cells, with a row for each cell and statistic."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.arrays import Floats, Ints
from shoal.cells.estimates import intervals
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.estimates.posterior import Values, pooled, values_of
from shoal.cells.estimates.typical_error import (
    CELLS,
    SD,
    often_reliable,
    typical_errors,
    typical_half_widths,
)
from shoal.cells.facts.decision import BY_RULE, Status
from shoal.cells.facts.facts import Facts
from shoal.cells.mechanisms.cell_statistics import Mean, Variance
from shoal.cells.shown.left_out import reasons

# The columns that cells left out by a public rule have, beside their keys.
_KNOWN = ("statistic", "status", "reason")


class Rows(NamedTuple):
    """Cells with their keys, totals, status, and why they are left out."""

    cells: pa.Table
    users: Ints
    records: Ints
    status: tuple[Status, ...]
    reason: list[str]

    @property
    def planned(self) -> Ints:
        """Positions of the planned cells."""
        return np.flatnonzero([each == "planned" for each in self.status])


def rows_of(plan: Facts) -> Rows:
    """All cells of a plan."""
    counts = plan.counts
    return Rows(counts.cells, counts.users_per_cell, counts.records, plan.status, reasons(plan))


def make_table(
    numbers: Estimates, rows: Rows, confidence: float, *, all: bool = False, left_out: bool = False
) -> pa.Table:
    """Returns the table of a release, with a row for each cell and statistic.

    Cells left out for their errors have the common mean, and nulls for other statistics. `value` is
    the posterior median for means, and the noisy number for other statistics. With `all` the noisy
    number has a column of its own. A variance is followed by the statistic `std`, with the roots of
    the value and of its interval.
    """
    basis = numbers.basis
    cells = len(basis.planned)
    best = values_of(numbers, confidence)
    pooled_values = pooled(numbers, confidence)
    columns = {
        "value": best.value,
        "low": best.low,
        "high": best.high,
        "noisy_value": numbers.value,
        "noise_scale": numbers.noise_scale,
        "bias_bound": numbers.bias_bound,
        "worst_case_error": basis.worst_case_error,
    }
    blocks = []
    status = statuses(rows, intervals.statuses(numbers))
    for at, statistic in enumerate(basis.statistics):
        of_statistic = slice(at * cells, (at + 1) * cells)
        block = {name: values[of_statistic] for name, values in columns.items()}
        common = pooled_values if statistic == Mean() else None
        table = _block(rows, statistic.name, status, block)
        blocks.append(_with_source(table, rows, common))
        if statistic == Variance():
            roots = _block(rows, "std", status, _roots(block))
            blocks.append(_with_source(roots, rows, None))
    table = _for_readers(blocks, rows, left_out=left_out)
    return table if all else table.drop_columns(["noisy_value"])


def plan_table(plan: Facts, *, left_out: bool = False) -> pa.Table:
    """Returns the table of a plan, with a row for each cell and statistic.

    It has the errors that are known before anything is spent, in the statistic's unit.
    """
    cells = len(plan.planned)
    blocks = []
    status_of_planned = np.where(intervals.dominated(plan), "few users dominate", "planned")
    if intervals.judges_reliability(plan):
        noisy = (often_reliable(plan, CELLS) < 1 / 2) & (status_of_planned == "planned")
        status_of_planned = np.where(noisy, "likely too noisy", status_of_planned)
    every = rows_of(plan)
    status = statuses(every, status_of_planned.tolist())
    unknown = np.full(cells, np.nan)
    error = unknown
    half_width = unknown
    if plan.statistics == (Mean(),):
        unit = plan.width * SD
        error = typical_errors(plan) * unit
        half_width = typical_half_widths(plan) * unit
    for at, statistic in enumerate(plan.statistics):
        rows = slice(at * cells, (at + 1) * cells)
        block = {
            "typical_error": error,
            "typical_half_width": half_width,
            "certified_error": plan.worst_case_error[rows] if plan.certified else unknown,
            "lower_bound": plan.lower_bound[rows],
        }
        blocks.append(_block(every, statistic.name, status, block))
    return _for_readers(blocks, every, left_out=left_out)


def _for_readers(blocks: list[pa.Table], rows: Rows, *, left_out: bool) -> pa.Table:
    """Returns one table, without cells that a public rule leaves out unless `left_out`.

    Those cells then have their keys, their status and the reason, and nulls elsewhere.
    """
    table = pa.concat_tables(blocks).combine_chunks()
    by_rule = pc.is_in(table["status"], pa.array(BY_RULE))
    if not left_out:
        return table.filter(pc.invert(by_rule))
    for at, name in enumerate(table.column_names):
        if name not in _KNOWN and name not in rows.cells.column_names:
            column = table[name]
            hidden = pc.if_else(by_rule, pa.scalar(None, column.type), column)
            table = table.set_column(at, name, hidden)
    return table


def statuses(rows: Rows, planned: list[str]) -> dict[str, list[str | None]]:
    """Returns the status of every cell, given those of planned cells, and the reason in words."""
    status: list[str | None] = [*rows.status]
    reason = [each or None for each in rows.reason]
    for cell, each in zip(rows.planned.tolist(), planned, strict=True):
        status[cell] = each
        reason[cell] = intervals.WHY.get(each)
    return {"status": status, "reason": reason}


def _block(
    rows: Rows,
    statistic: str,
    status: dict[str, list[str | None]],
    columns: dict[str, Floats],
) -> pa.Table:
    """Returns the rows of all cells for one statistic; `columns` have numbers of planned cells."""
    table = rows.cells
    size = table.num_rows
    table = table.append_column("statistic", pa.array([statistic] * size))
    for name, texts in status.items():
        table = table.append_column(name, pa.array(texts, pa.string()))
    table = table.append_column("users", pa.array(rows.users))
    table = table.append_column("records", pa.array(rows.records))
    for name, values in columns.items():
        table = table.append_column(name, _spread(values, rows.planned, size))
    return table


def _with_source(table: pa.Table, rows: Rows, common: Values | None) -> pa.Table:
    """Adds the column `source` to a table, and the common values of left-out cells, if any."""
    status = np.array(rows.status, dtype=object)
    left_out = status != "planned"
    sources = ["own" if each == "reliable" else "common" for each in table["status"].to_pylist()]
    # Left-out cells without common values have no source.
    absent = left_out if common is None else None
    at = table.column_names.index("reason") + 1
    table = table.add_column(at, "source", pa.array(sources, pa.string(), mask=absent))
    if common is None:
        return table
    # Cells that a public rule leaves out have no common value either: it is for readers' cells.
    by_error = left_out & ~np.isin(status, BY_RULE)
    for name, numbers in common._asdict().items():
        column = table.column_names.index(name)
        all_cells = table.column(name).to_numpy().copy()
        all_cells[by_error] = numbers
        filled = pa.array(all_cells, mask=np.isnan(all_cells))
        table = table.set_column(column, name, filled)
    return table


def _roots(columns: dict[str, Floats]) -> dict[str, Floats]:
    """Returns the columns of standard deviations; those that are not roots become NaN."""
    roots = {name: np.full(len(values), np.nan) for name, values in columns.items()}
    for name in ("value", "low", "high", "noisy_value"):
        roots[name] = np.sqrt(columns[name])
    return roots


def _spread(values: Floats, cells: Ints, n_cells: int) -> pa.Array[Any]:
    """Returns a column of all cells with values in some of them, and nulls elsewhere."""
    all_cells = np.zeros(n_cells)
    absent = np.ones(n_cells, dtype=bool)
    all_cells[cells] = values
    absent[cells] = np.isnan(values)
    return pa.array(all_cells, mask=absent)
