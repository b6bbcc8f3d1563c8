"""Coarser grids of a plan's cells, and their typical errors: for cells that are too fine."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from shoal.cells.planner import make_plan
from shoal.cells.typical_error import typical_errors
from shoal.data.occupancy import Counts
from shoal.errors import ShoalError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shoal.cells.plan_facts import PlanFacts

_PARENTS = 3
# Planning for every column of a large table would keep people waiting.
_MOST_MEMBERS, _MOST_CELLS = 200_000, 2_000


@dataclass(frozen=True)
class Coarser:
    """A coarser grid.

    Attributes:
        name: What it is, in words.
        cells: How many cells it has.
        error: Median typical error, in parts of the standard deviation of the values.
    """

    name: str
    cells: int
    error: float


def best_coarser(plan: PlanFacts) -> Coarser | None:
    """The coarser grid with the smallest median typical error; None if none can be told.

    Tried are the cells without one of their key columns, and parents of hexagons.
    """
    if len(plan.counts.user) > _MOST_MEMBERS or plan.counts.n_cells > _MOST_CELLS:
        return None
    found = []
    for name, keys in _grids(plan.counts.cells):
        counts = _merged(plan.counts, keys)
        changes: dict[str, Any] = {"weights": {}, "uninformative": "keep", "max_error": None}
        request = plan.request.model_copy(update=changes)
        try:
            errors = typical_errors(make_plan(counts, request))
        except ShoalError:
            continue
        found.append(Coarser(name, counts.n_cells, float(np.median(errors))))
    return min(found, key=lambda each: each.error, default=None)


def _grids(cells: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    names = cells.column_names
    if len(names) > 1:
        for name in names:
            yield f"without {name}", cells.drop_columns([name])
    for name in names:
        yield from _parents(cells, name)


def _parents(cells: pa.Table, name: str) -> Iterator[tuple[str, pa.Table]]:
    """Larger hexagons, if this column holds hexagons and their package is there."""
    if cells.schema.field(name).type != pa.string() or find_spec("h3ronpy") is None:
        return
    from h3ronpy import cells_parse, cells_resolution, cells_to_string, change_resolution

    try:
        hexagons = cells_parse(cells.column(name).combine_chunks())
    except ValueError:
        return
    levels: Any = cells_resolution(hexagons)
    finest = min(pa.array(levels).to_pylist())
    at = cells.column_names.index(name)
    for level in range(finest - 1, max(finest - 1 - _PARENTS, -1), -1):
        texts: Any = cells_to_string(change_resolution(hexagons, level))
        parents = pa.array(texts)
        yield (
            f"with hexagons of resolution {level}",
            cells.set_column(at, name, parents.cast(pa.string())),
        )


def _merged(occupancy: Counts, keys: pa.Table) -> Counts:
    """The counts by other keys of the same cells, whatever these are called."""
    given = keys.column_names
    named = keys.rename_columns([f"key {at}" for at in range(len(given))])
    rows = named.take(occupancy.cell).append_column("user", pa.array(occupancy.user))
    added = rows.append_column("count", pa.array(occupancy.count)).group_by(rows.column_names)
    table = added.aggregate([("count", "sum")])
    return Counts.from_counts(
        table.column("user").combine_chunks(),
        table.select(named.column_names).rename_columns(given),
        table.column("count_sum").to_numpy(),
    )
