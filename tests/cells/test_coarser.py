"""Coarser grids: the same records in fewer cells, named as a person would."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.cells.coarser import best_coarser

pytestmark = pytest.mark.unit


def _sparse(cells: int, days: int) -> shoal.Plan:
    """140 users in nine of the cells each, one record a cell and day."""
    rng = np.random.default_rng(1)
    size = days * cells
    who = np.repeat(np.arange(140), 9)
    where = np.concatenate([rng.choice(size, 9, replace=False) for _ in range(140)])
    columns = {"shop": [f"s{at // days}" for at in where.tolist()]}
    if days > 1:
        columns["day"] = [f"d{at % days:02}" for at in where.tolist()]
    counts = shoal.Counts.from_counts(who, pa.table(columns), np.ones(len(who), dtype=int))
    return shoal.plan(counts, bounds=(0, 65), epsilon=1)


def test_a_column_that_makes_cells_too_fine_is_left_out() -> None:
    """The coarser grid has the same records, and the plan names it with its error."""
    plan = _sparse(3, 120)
    found = best_coarser(plan)
    assert found is not None
    assert (found.name, found.cells) == ("without day", 3)
    assert found.error < float(np.median(plan.typical_error()))
    assert "without day there are 3 cells" in str(plan)


def test_hexagons_have_parents() -> None:
    """Of the next three resolutions."""
    pytest.importorskip("h3ronpy")
    rng = np.random.default_rng(3)
    users = np.arange(1600) % 160
    columns = {
        "user": users,
        "value": rng.normal(30, 5, 1600),
        "lat": 40.7 + 0.05 * rng.random(1600),
        "lon": -74 + 0.05 * rng.random(1600),
    }
    table = pa.table({name: pa.array(each) for name, each in columns.items()})
    records = shoal.Records(
        table, user="user", value="value", bounds=(0, 65), by=shoal.hexagon("lat", "lon", 9)
    )
    plan = shoal.plan(records.counts(), bounds=(0, 65), epsilon=0.5)
    found = best_coarser(plan)
    assert found is not None
    assert found.name == "with hexagons of resolution 6"
    assert found.cells < plan.counts.n_cells / 10


def test_a_single_column_has_no_coarser_grid() -> None:
    """Nothing to leave out."""
    assert best_coarser(_sparse(30, 1)) is None


@pytest.mark.parametrize("names", [("user", "count"), ("key 1", "count_sum")])
def test_key_columns_have_any_name(names: tuple[str, str]) -> None:
    """Also that of a column which the merging of cells makes."""
    at = np.arange(576)
    columns = pa.table([at % 12, at // 12 % 12], names=names)
    counts = shoal.Counts.from_counts(at // 4, columns, np.ones(576, dtype=int))
    found = best_coarser(
        shoal.plan(counts, bounds=(0, 10), epsilon=0.05, method="balanced", uninformative="keep")
    )
    assert found is not None
    assert found.name in {f"without {name}" for name in names}
    assert found.cells == 12
