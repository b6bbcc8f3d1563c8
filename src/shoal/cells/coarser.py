"""Coarser grids of a plan's cells, and their typical errors: for cells that are too fine."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

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


class Coarser(NamedTuple):
    """A coarser grid in words, its cells, and the median of their typical errors."""

    name: str
    cells: int
    error: float


def best_coarser(plan: PlanFacts) -> Coarser | None:
    """Returns the coarser grid with the smallest median typical error; None without one.

    Tried are the cells without one of their key columns, and parents of hexagons.
    """
    counts, found = plan.counts, []
    if len(counts.user) > _MOST_MEMBERS or counts.n_cells > _MOST_CELLS:
        return None
    names = counts.cells.column_names
    grids = [(f"without {name}", counts.cells.drop_columns([name])) for name in names]
    for name, keys in [*(grids if len(names) > 1 else []), *_parents(counts.cells)]:
        merged = _merged(counts, keys)
        changes: dict[str, Any] = {"weights": {}, "uninformative": "keep", "max_error": None}
        request = plan.request.model_copy(update=changes)
        with suppress(ShoalError):
            errors = typical_errors(make_plan(merged, request))
            found.append(Coarser(name, merged.n_cells, float(np.median(errors))))
    return min(found, key=lambda each: each.error, default=None)


def _parents(cells: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Larger hexagons of each column that holds hexagons, if their package is there."""
    if find_spec("h3ronpy") is None:
        return
    from h3ronpy import cells_parse, cells_resolution, cells_to_string, change_resolution

    for at, name in enumerate(cells.column_names):
        hexagons: Any = None
        if cells.schema.field(name).type == pa.string():
            with suppress(ValueError):
                hexagons = cells_parse(cells.column(name).combine_chunks())
        if hexagons is None:
            continue
        levels: Any = cells_resolution(hexagons)
        finest = min(pa.array(levels).to_pylist())
        for level in range(finest - 1, max(finest - 1 - _PARENTS, -1), -1):
            texts: Any = cells_to_string(change_resolution(hexagons, level))
            parents = cells.set_column(at, name, pa.array(texts).cast(pa.string()))
            yield f"with hexagons of resolution {level}", parents


def _merged(counts: Counts, keys: pa.Table) -> Counts:
    """Returns the counts by other keys of the same cells, whatever these are called."""
    named = keys.rename_columns([f"key {at}" for at in range(keys.num_columns)])
    rows = named.take(counts.cell).append_column("user", pa.array(counts.user))
    table = (
        rows.append_column("count", pa.array(counts.count))
        .group_by(rows.column_names)
        .aggregate([("count", "sum")])
    )
    return Counts.from_counts(
        table["user"].combine_chunks(),
        table.select(named.column_names).rename_columns(keys.column_names),
        table["count_sum"].to_numpy(),
    )
