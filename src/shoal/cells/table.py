"""Results as tables and files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from shoal.cells.cell_statistics import Mean, Variance
from shoal.cells.estimates import Estimates
from shoal.cells.left_out import reasons
from shoal.cells.plan_facts import PlanFacts
from shoal.cells.posterior import Values, pooled, values_of
from shoal.cells.typical_error import SPREAD, typical_errors, typical_half_widths
from shoal.cells.weights import Floats, Ints
from shoal.files.text_table import TextTable, first_rows


def make_table(numbers: Estimates, confidence: float) -> pa.Table:
    """One row a cell and statistic, left-out cells with a pooled mean and else nulls.

    `source` says where a value is from: `released`, the cell's own number, or `pooled`, the
    released numbers of other cells. `reason` says in words why a cell is left out. `value` with
    `low` and `high` is the posterior median of means, and the plain number of all else; `plain` is
    the released number.

    Of a variance, its square root follows as the statistic `std`: post-processing, so the interval
    is that of the variance, and there is no noise scale.
    """
    plan, cells = numbers.plan, numbers.plan.released
    low, high = numbers.plain_intervals(confidence)
    best = values_of(numbers, confidence)
    columns = {
        "value": best.value,
        "low": best.low,
        "high": best.high,
        "plain": numbers.value,
        "plain_low": low,
        "plain_high": high,
        "noise_scale": numbers.noise_scale,
        "bias_bound": numbers.bias_bound,
        "worst_case_error": plan.worst_case_error,
    }
    blocks, others, why = [], pooled(numbers, confidence), reasons(plan)
    for at, statistic in enumerate(plan.statistics):
        rows = slice(at * len(cells), (at + 1) * len(cells))
        block = {name: values[rows] for name, values in columns.items()}
        pooled_values = others if statistic == Mean() else None
        blocks.append(_with_source(_block(plan, statistic.name, why, block), plan, pooled_values))
        if statistic == Variance():
            blocks.append(_with_source(_block(plan, "std", why, _roots(block)), plan, None))
    return pa.concat_tables(blocks).combine_chunks()


def plan_table(plan: PlanFacts) -> pa.Table:
    """One row a cell and statistic: what is known before anything is spent, in its unit."""
    cells, blocks, why = len(plan.released), [], reasons(plan)
    likely = unknown = np.full(cells, np.nan), np.full(cells, np.nan)
    if plan.statistics == (Mean(),):
        unit = plan.width * SPREAD
        likely = typical_errors(plan) * unit, typical_half_widths(plan) * unit
    for at, statistic in enumerate(plan.statistics):
        rows = slice(at * cells, (at + 1) * cells)
        block = {
            "typical_error": likely[0],
            "typical_half_width": likely[1],
            "certified_error": plan.worst_case_error[rows] if plan.certified else unknown[0],
            "lower_bound": plan.lower_bound[rows],
        }
        blocks.append(_block(plan, statistic.name, why, block))
    return pa.concat_tables(blocks).combine_chunks()


def _block(plan: PlanFacts, statistic: str, why: list[str], columns: dict[str, Floats]) -> pa.Table:
    table = plan.counts.cells
    size = table.num_rows
    table = table.append_column("statistic", pa.array([statistic] * size))
    table = table.append_column("status", pa.array(plan.status))
    table = table.append_column("reason", pa.array([each or None for each in why], pa.string()))
    table = table.append_column("users", pa.array(plan.counts.users_per_cell))
    table = table.append_column("records", pa.array(plan.counts.totals))
    for name, values in columns.items():
        table = table.append_column(name, _spread(values, plan.released, size))
    return table


def _with_source(table: pa.Table, plan: PlanFacts, others: Values | None) -> pa.Table:
    """Rows with where their values are from, and with pooled values in those of left-out cells."""
    released = np.array(plan.status, dtype=object) == "released"
    absent = None if others is None else "pooled"
    sources = pa.array(["released" if each else absent for each in released.tolist()], pa.string())
    at = table.column_names.index("reason") + 1
    table = table.add_column(at, "source", sources)
    if others is None:
        return table
    for name, own in (("value", others.value), ("low", others.low), ("high", others.high)):
        column = table.column_names.index(name)
        whole = table.column(name).to_numpy().copy()
        whole[~released] = own
        filled = pa.array(whole, mask=np.isnan(whole))
        table = table.set_column(column, name, filled)
    return table


def _roots(columns: dict[str, Floats]) -> dict[str, Floats]:
    """Standard deviations of variances; what has no root is not a number."""
    rooted = {"value", "low", "high", "plain", "plain_low", "plain_high"}
    return {
        name: np.sqrt(values) if name in rooted else np.full(len(values), np.nan)
        for name, values in columns.items()
    }


def _spread(values: Floats, cells: Ints, n_cells: int) -> pa.Array[Any]:
    whole, absent = np.zeros(n_cells), np.ones(n_cells, dtype=bool)
    whole[cells], absent[cells] = values, np.isnan(values)
    return pa.array(whole, mask=absent)


def text_of(head: str, table: pa.Table, notes: list[str], rows: int) -> TextTable:
    """The first rows of a table from `make_table`, without columns that say nothing."""
    left_out = {"bias_bound"}
    if set(table["status"].to_pylist()) == {"released"}:
        left_out |= {"reason", "source"}
    if len(set(table["statistic"].to_pylist())) == 1:
        left_out |= {"statistic"}
    if table["value"].equals(table["plain"]) and table["low"].equals(table["plain_low"]):
        left_out |= {"plain", "plain_low", "plain_high"}
    names = [name for name in table.column_names if name not in left_out]
    return first_rows(head, table.select(names), notes, rows)
