"""Borrowed estimates: closer where noise is large, covered, beside the plain ones."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from shoal_studies.benchmarks import sparse

import shoal
from shoal.cells import table
from shoal.cells.estimates import Numbers
from shoal.errors import InputError
from tests.support import flights

pytestmark = pytest.mark.statistics


def test_shrunken_estimates_of_sparse_cells() -> None:
    """G-SHRINK: on 40 made-up data sets of sparse cells errors fall and intervals cover.

    Means of 2,000 errors with standard errors below 0.4 km/h: guessing errs by 12.6, plain
    estimates by less, shrunken ones by at most 5.5; at least 95% of the intervals cover.
    """
    rows = {line.split()[0]: line.split()[1:] for line in sparse.run(40, 1.0)}
    for method in ("user_clipped", "adaptive", "optimal_in_range"):
        _, plain, shrunken, _, covered = rows[method]
        assert float(plain) < 12.57
        assert float(shrunken) <= 5.5
        assert float(covered.rstrip("%")) >= 95
    assert 0 < int(rows["adaptive"][0]) < 50


def test_shrinking_leaves_the_release_as_it_is() -> None:
    """Another table; value and manifest stay what they were."""
    release = flights.plan(uninformative="keep").release(
        flights.records(), noise=shoal.Simulated(2)
    )
    before = release.document
    found = release.shrink(confidence=0.9)
    assert found.column_names == ["place", "value", "shrunken", "low", "high"]
    assert found["value"].equals(release.table()["value"])
    assert release.document == before
    assert b"shrunken" not in before
    low, shrunken, high = (found[name].to_numpy() for name in ("low", "shrunken", "high"))
    assert ((low <= shrunken) & (shrunken <= high)).all()


def test_with_hardly_any_noise_nothing_is_shrunken() -> None:
    """The data speak for themselves."""
    release = flights.plan(epsilon=1e5).release(flights.records(), noise=shoal.Simulated(2))
    found = release.shrink()
    assert np.allclose(found["shrunken"].to_numpy(), found["value"].to_numpy(), atol=0.05)


def test_too_few_cells_have_nothing_to_shrink() -> None:
    """And a bad confidence is refused."""
    table = flights.table()
    few = table.filter(pa.compute.is_in(table["place"], pa.array(["EWR", "JFK"])))
    records = flights.records(few)
    plan = shoal.plan(
        records.occupancy(),
        method="balanced",
        bounds=flights.BOUNDS,
        epsilon=1,
        uninformative="keep",
    )
    release = plan.release(records, noise=shoal.Simulated(1))
    with pytest.raises(InputError, match="2 released cells"):
        release.shrink()
    with pytest.raises(InputError, match="confidence"):
        release.shrink(confidence=1)


def test_groups_of_cells_are_shrunk_within_their_own() -> None:
    """G-SHRINK: two coarse cells 40 apart: each fine cell errs less within its own, and is covered.

    200 cells with a deviation of 1 around 20 or 60 and noise of about 6: of the 95% intervals at
    least 90% cover (190 expected of 200, with a standard deviation of 3).
    """
    rng = np.random.default_rng(3)
    side = np.arange(200) % 2
    truth = 20 + 40 * side + rng.normal(size=200)
    occupancy = shoal.Occupancy.from_counts(
        np.arange(200 * 20), {"side": np.repeat(side, 20), "cell": np.repeat(np.arange(200), 20)},
        np.ones(4000, dtype=int),
    )  # fmt: skip
    plan = shoal.plan(
        occupancy, method="balanced", bounds=(0, 80), epsilon=0.7, uninformative="keep"
    )
    # Cells are sorted by side first.
    truth = truth[occupancy.cells["cell"].to_numpy()]
    noisy = truth + rng.laplace(scale=plan.noise_scale)
    steps = noisy / (plan.statistic_range * plan.relative_scale) * 2.0**plan.lattice_bits
    numbers = Numbers(plan, [round(x) for x in steps.tolist()], None)
    alone, together = (table.shrunken_table(numbers, 0.95, each) for each in ("side", None))
    own, other = (np.abs(each["shrunken"].to_numpy() - truth).mean() for each in (alone, together))
    assert own < 2
    assert own < 0.5 * other
    inside = (alone["low"].to_numpy() <= truth) & (truth <= alone["high"].to_numpy())
    assert inside.mean() >= 0.9
    labels = occupancy.cells["side"].to_pylist()
    assert table.shrunken_table(numbers, 0.95, labels).equals(alone)
    with pytest.raises(InputError, match="one label for each of the 200 cells"):
        table.shrunken_table(numbers, 0.95, "elsewhere")
