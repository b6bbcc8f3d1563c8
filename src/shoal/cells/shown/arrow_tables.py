"""Plans and releases of cells as Arrow tables: one row a cell and statistic."""

from __future__ import annotations

from typing import Any

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
from shoal.cells.facts.decision import BY_RULE
from shoal.cells.facts.facts import Facts
from shoal.cells.mechanisms.cell_statistics import Mean, Variance
from shoal.cells.shown.left_out import reasons

# Columns of cells that a public rule leaves out, beside their keys.
_KNOWN = ("statistic", "status", "reason")


def make_table(
    numbers: Estimates, confidence: float, *, all: bool = False, left_out: bool = False
) -> pa.Table:
    """One row a cell and statistic, cells left out for errors with a common mean and else nulls.

    `value` is the posterior median of means, and the noisy number of all else; that is a column of
    its own if `all` columns are asked for. Of a variance, its square root follows as the statistic
    `std`, with the roots of the interval.
    """
    plan = numbers.plan
    cells = numbers.plan.planned
    best = values_of(numbers, confidence)
    others = pooled(numbers, confidence)
    columns = {
        "value": best.value,
        "low": best.low,
        "high": best.high,
        "noisy_value": numbers.value,
        "noise_scale": numbers.noise_scale,
        "bias_bound": numbers.bias_bound,
        "worst_case_error": plan.worst_case_error,
    }
    blocks = []
    status = statuses(plan, intervals.statuses(numbers))
    for at, statistic in enumerate(plan.statistics):
        rows = slice(at * len(cells), (at + 1) * len(cells))
        block = {name: values[rows] for name, values in columns.items()}
        common = others if statistic == Mean() else None
        blocks.append(_with_source(_block(plan, statistic.name, status, block), plan, common))
        if statistic == Variance():
            rooted = _block(plan, "std", status, _roots(block))
            blocks.append(_with_source(rooted, plan, None))
    table = _for_readers(blocks, plan, left_out=left_out)
    return table if all else table.drop_columns(["noisy_value"])


def plan_table(plan: Facts, *, left_out: bool = False) -> pa.Table:
    """One row a cell and statistic: what is known before anything is spent, in its unit."""
    cells = len(plan.planned)
    blocks = []
    own = np.where(intervals.dominated(plan), "few users dominate", "planned").tolist()
    if intervals.decides(plan):
        often = often_reliable(plan, CELLS).tolist()
        own = [
            "likely too noisy" if part < 1 / 2 and each == "planned" else each
            for part, each in zip(often, own, strict=True)
        ]
    status = statuses(plan, own)
    likely = unknown = np.full(cells, np.nan), np.full(cells, np.nan)
    if plan.statistics == (Mean(),):
        unit = plan.width * SD
        likely = typical_errors(plan) * unit, typical_half_widths(plan) * unit
    for at, statistic in enumerate(plan.statistics):
        rows = slice(at * cells, (at + 1) * cells)
        block = {
            "typical_error": likely[0],
            "typical_half_width": likely[1],
            "certified_error": plan.worst_case_error[rows] if plan.certified else unknown[0],
            "lower_bound": plan.lower_bound[rows],
        }
        blocks.append(_block(plan, statistic.name, status, block))
    return _for_readers(blocks, plan, left_out=left_out)


def _for_readers(blocks: list[pa.Table], plan: Facts, *, left_out: bool) -> pa.Table:
    """One table, without cells that a public rule leaves out, or with their keys and reasons."""
    table = pa.concat_tables(blocks).combine_chunks()
    by_rule = pc.is_in(table["status"], pa.array(BY_RULE))
    if not left_out:
        return table.filter(pc.invert(by_rule))
    for at, name in enumerate(table.column_names):
        if name not in _KNOWN and name not in plan.counts.cells.column_names:
            column = table[name]
            own = pc.if_else(by_rule, pa.scalar(None, column.type), column)
            table = table.set_column(at, name, own)
    return table


def statuses(plan: Facts, own: list[str]) -> dict[str, list[str | None]]:
    """Status of every cell, given those of the planned ones, and in words why not reliable."""
    status: list[str | None] = [*plan.status]
    reason = [each or None for each in reasons(plan)]
    for cell, each in zip(plan.planned.tolist(), own, strict=True):
        status[cell], reason[cell] = each, intervals.WHY.get(each)
    return {"status": status, "reason": reason}


def _block(
    plan: Facts,
    statistic: str,
    status: dict[str, list[str | None]],
    columns: dict[str, Floats],
) -> pa.Table:
    table = plan.counts.cells
    size = table.num_rows
    table = table.append_column("statistic", pa.array([statistic] * size))
    for name, texts in status.items():
        table = table.append_column(name, pa.array(texts, pa.string()))
    table = table.append_column("users", pa.array(plan.counts.users_per_cell))
    table = table.append_column("records", pa.array(plan.counts.totals))
    for name, values in columns.items():
        table = table.append_column(name, _spread(values, plan.planned, size))
    return table


def _with_source(table: pa.Table, plan: Facts, others: Values | None) -> pa.Table:
    """Rows with where their values are from, and with common values in those of left-out cells."""
    left_out = np.array(plan.status, dtype=object) != "planned"
    sources = ["own" if each == "reliable" else "common" for each in table["status"].to_pylist()]
    absent = left_out if others is None else None
    at = table.column_names.index("reason") + 1
    table = table.add_column(at, "source", pa.array(sources, pa.string(), mask=absent))
    if others is None:
        return table
    for name, own in (("value", others.value), ("low", others.low), ("high", others.high)):
        column = table.column_names.index(name)
        whole = table.column(name).to_numpy().copy()
        whole[left_out] = own
        filled = pa.array(whole, mask=np.isnan(whole))
        table = table.set_column(column, name, filled)
    return table


def _roots(columns: dict[str, Floats]) -> dict[str, Floats]:
    """Standard deviations of variances; what has no root is not a number."""
    rooted = {"value", "low", "high", "noisy_value"}
    return {
        name: np.sqrt(values) if name in rooted else np.full(len(values), np.nan)
        for name, values in columns.items()
    }


def _spread(values: Floats, cells: Ints, n_cells: int) -> pa.Array[Any]:
    whole = np.zeros(n_cells)
    absent = np.ones(n_cells, dtype=bool)
    whole[cells], absent[cells] = values, np.isnan(values)
    return pa.array(whole, mask=absent)
