"""A private range where one user has much of the data: it is found, or not looked for."""

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.cells.mechanisms.methods import method_of
from shoal.cells.mechanisms.ranges import MOST_HALVINGS, USER
from tests.support import made_counts
from tests.support.draws import drawn

_USERS, _CELLS, _RUNS = 400, 4, 12


def _records(heavy: int) -> tuple[shoal.Records, np.ndarray]:
    rng = np.random.default_rng(3)
    counts = rng.geometric(0.05, _USERS)
    counts[0] = heavy
    who = np.repeat(np.arange(_USERS), counts)
    cell = rng.integers(0, _CELLS, len(who))
    value = np.clip(rng.gamma(3, 6, len(who)), 0, 120)
    table = pa.table({"who": pa.array(who), "cell": pa.array(cell), "value": pa.array(value)})
    truth = np.bincount(cell, value) / np.bincount(cell)
    made = shoal.Records(
        table, user="who", value="value", by=["cell"], bounds=(0, 120), counts="public"
    )
    return made, truth


@pytest.mark.parametrize("heavy", [20, 1500, 8000])
def test_intervals_cover_whatever_one_user_has(heavy: int) -> None:
    """In full the heaviest user made the selection one of noise alone."""
    records, truth = _records(heavy)
    plan = shoal.plan(
        records.counts(), bounds=(0, 120), epsilon=2, method="optimal",
        settings={"range": "selected"}, uninformative="keep",
    )  # fmt: skip
    sums, inside, off = records.aggregate()[1], 0, []
    for seed in range(_RUNS):
        numbers = drawn(plan, sums, seed)
        low, high = numbers.typical_intervals(0.95)
        inside += int(((low <= truth) & (truth <= high)).sum())
        off.append(np.abs(numbers.unclamped - truth).mean())
    # 95% of 48, less six standard deviations of as many draws.
    assert inside >= 36
    assert np.mean(off) < 12


def test_a_selection_that_costs_nothing_finds_nothing() -> None:
    """No reward is given for widths that the selection's part of the loss can't find."""
    counts = made_counts.sparse(5)
    method, cells = method_of("optimal", {"range": "selected"}), np.arange(counts.n_cells)
    full = method.parameters(counts, cells, np.ones(len(cells)), 10)
    weights, noise = method.weigh(counts, cells, full), np.full(len(cells), 1e-3)
    free = method.range.tune(weights, full, 1000.0, noise, 1e-6)
    assert free["reward"].tolist() == [0]
    paid = method.range.tune(weights, full, 1000.0, noise, 0.28)
    assert len(paid["reward"]) // 2 == MOST_HALVINGS
    assert 0 < paid["reward"][-1] <= _USERS * USER
