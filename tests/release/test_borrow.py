"""Borrowed estimates: closer where noise is large, covered, beside the plain ones."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.benchmarks import sparse
from shoal.errors import InputError
from tests.support import flights


def test_borrowed_estimates_of_sparse_cells() -> None:
    """G-BORROW: on 40 made-up data sets of sparse cells errors fall and intervals cover.

    Means of 2,000 errors with standard errors below 0.4 km/h: guessing errs by 12.6, plain
    estimates by less, borrowed ones by at most 5.5; at least 95% of the intervals cover.
    """
    *_, auto = sparse.run(40, 1.0)
    _, hopeless, plain, borrowed, _, covered = auto.split()
    assert float(plain) < 12.57
    assert float(borrowed) <= 5.5
    assert float(covered.rstrip("%")) >= 95
    assert 0 < int(hopeless) < 50


def test_borrowing_leaves_the_release_as_it_is() -> None:
    """Another table; value and manifest stay what they were."""
    release = flights.plan(worthless="keep").release(flights.records(), noise=shoal.Simulated(2))
    before = release.document
    found = release.borrow(confidence=0.9)
    assert found.column_names == ["place", "value", "borrowed", "low", "high"]
    assert found["value"].equals(release.table()["value"])
    assert release.document == before
    assert b"borrowed" not in before
    low, borrowed, high = (found[name].to_numpy() for name in ("low", "borrowed", "high"))
    assert ((low <= borrowed) & (borrowed <= high)).all()


def test_with_hardly_any_noise_nothing_is_borrowed() -> None:
    """The data speak for themselves."""
    release = flights.plan(epsilon=1e5).release(flights.records(), noise=shoal.Simulated(2))
    found = release.borrow()
    assert np.allclose(found["borrowed"].to_numpy(), found["value"].to_numpy(), atol=0.05)


def test_too_few_cells_have_nothing_to_borrow() -> None:
    """And a bad confidence is refused."""
    table = flights.table()
    few = table.filter(pa.compute.is_in(table["place"], pa.array(["EWR", "JFK"])))
    records = flights.records(few)
    plan = shoal.plan(records.occupancy(), bounds=flights.BOUNDS, epsilon=1, worthless="keep")
    release = plan.release(records, noise=shoal.Simulated(1))
    with pytest.raises(InputError, match="2 released cells"):
        release.borrow()
    with pytest.raises(InputError, match="confidence"):
        release.borrow(confidence=1)
