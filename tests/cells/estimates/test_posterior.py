"""Values: closer than plain numbers where noise is large, covered, and nothing else changed."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.cells.estimates import intervals
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.estimates.posterior import values_of
from tests.support import flights


def test_values_leave_the_release_as_it_is() -> None:
    """The manifest holds the noisy numbers; values follow from it, within their ends."""
    release = flights.plan(uninformative="keep").release(
        flights.records(), noise=shoal.Simulated(2)
    )
    found = release.table(confidence=0.9, all=True)
    noisy = found["noisy_value"].to_pylist()
    assert [each["value"] for each in release.record["results"]] == noisy
    assert "noisy_value" not in release.table().column_names
    middle = found["value"].to_numpy()
    assert (found["low"].to_numpy() <= middle).all()
    assert (middle <= found["high"].to_numpy()).all()
    assert not found["value"].equals(found["noisy_value"])


def test_two_cells_say_nothing_of_each_other() -> None:
    """Then values are the numbers, with their intervals."""
    table = flights.table()
    few = table.filter(pa.compute.is_in(table["place"], pa.array(["EWR", "JFK"])))
    records = flights.records(few)
    plan = shoal.plan(
        records.counts(), method="balanced", bounds=flights.BOUNDS, epsilon=1, uninformative="keep"
    )
    release = plan.release(records, noise=shoal.Simulated(1))
    found, own = release.table(all=True), release.numbers.intervals(0.95)
    assert found["value"].equals(found["noisy_value"])
    assert [found[name].to_pylist() for name in ("low", "high")] == [each.tolist() for each in own]


def test_labels_tell_what_cells_have_in_common() -> None:
    """Two coarse cells 40 apart: a label of them makes errors smaller.

    200 cells with a deviation of 1 around 20 or 60 and noise of about 6: of the 95% intervals at
    least 90% cover (190 expected of 200, with a standard deviation of 3).
    """
    rng = np.random.default_rng(3)
    side = np.arange(200) % 2
    truth = 20 + 40 * side + rng.normal(size=200)
    counts = shoal.Counts.from_counts(
        np.arange(200 * 20), {"side": np.repeat(side, 20), "cell": np.repeat(np.arange(200), 20)},
        np.ones(4000, dtype=int),
    )  # fmt: skip
    plan = shoal.plan(counts, method="balanced", bounds=(0, 80), epsilon=0.7, uninformative="keep")
    # Cells are sorted by side first.
    truth = truth[counts.cells["cell"].to_numpy()]
    noisy = truth + rng.laplace(scale=plan.noise_scale)
    steps = noisy / (plan.statistic_range * plan.decision.scale) * 2.0**plan.decision.bits
    numbers = Estimates.of(plan, [round(x) for x in steps.tolist()], None)
    found = values_of(numbers, 0.95)
    flat = shoal.Counts.from_counts(
        np.arange(200 * 20), np.repeat(np.arange(200), 20), np.ones(4000, dtype=int)
    )
    other = replace(plan, counts=flat)
    blind = values_of(Estimates.of(other, numbers.steps, None), 0.95)
    own, rest = (np.abs(each.value - truth).mean() for each in (found, blind))
    assert own < 2
    assert own < 0.5 * rest
    assert ((found.low <= truth) & (truth <= found.high)).mean() >= 0.9


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [(5, {"objective": "worst_case"}), (40, {"objective": "worst_case"}), (5, {"range": "loose"})],
)
def test_intervals_are_those_of_the_numbers(cells: int, wanted: dict[str, Any]) -> None:
    """Whatever the values of other cells: certified, or of a private radius."""
    counts = shoal.Counts.from_counts(
        np.arange(2000), np.arange(2000) % cells, np.ones(2000, dtype=np.int64)
    )
    plan = shoal.plan(counts, bounds=(0, 100), epsilon=1, **wanted)
    assert plan.decision.method.range.of_vectors == ("range" in wanted)
    values = np.where(np.arange(2000) % cells == 1, 90.0, 20.0)
    columns = {"who": np.arange(2000), "cell": np.arange(2000) % cells, "v": values}
    table = pa.table({name: pa.array(each) for name, each in columns.items()})
    records = shoal.Records(
        table, user="who", value="v", bounds=(0, 100), by="cell", counts="public"
    )
    release = plan.release(records, noise=shoal.Simulated(1))
    ends = intervals.intervals if "range" in wanted else Estimates.intervals
    found, (low, high) = release.to_pandas(all=True), ends(release.numbers, 0.95)
    assert (found["low"] == np.minimum(low, found["value"])).all()
    assert (found["high"] == np.maximum(high, found["value"])).all()
    assert (found["value"] != found["noisy_value"]).any()
