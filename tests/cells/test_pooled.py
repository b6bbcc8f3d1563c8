"""Values of cells that are left out: from released numbers alone, marked, and covered."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.cells.estimates.posterior import left_out, pooled
from shoal.cells.shown.arrow_tables import make_table, rows_of
from shoal.data.aggregate import Aggregate
from tests.support import made_counts
from tests.support.draws import drawn, sums_of

_SPREAD, _DRAWS = 1 / 6, 12


@cache
def uneven() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """400 users in 60 cells, half of which have few of them: user, cell, count."""
    rng = np.random.default_rng(0)
    part = np.r_[rng.uniform(0.15, 0.5, 30), rng.uniform(0.002, 0.06, 30)]
    count = (rng.random((400, 60)) < part) * rng.integers(1, 6, (400, 60))
    user, cell = np.nonzero(count)
    return user, cell, count[user, cell]


@cache
def uneven_plan(**wanted: Any) -> shoal.Plan:
    """A plan for them."""
    return shoal.plan(shoal.Counts.from_counts(*uneven()), bounds=(0, 10), **wanted)


def for_errors(plan: shoal.Plan) -> shoal.Plan:
    """The same plan as if it left cells out for their errors, so that readers see them."""
    status = tuple(each if each == "planned" else "error too large" for each in plan.status)
    return replace(plan, decision=replace(plan.decision, status=status))


def population(
    counts: shoal.Counts, plan: shoal.Plan, seed: int, between: float, users: float,
    keys: np.ndarray,
) -> Aggregate:  # fmt: skip
    """Private sums of normal values: parts of the variance between cells (by keys) and users."""
    rng = np.random.default_rng([seed, 7])
    cells = rng.normal(0, between**0.5, int(keys.max()) + 1)[keys][counts.cell]
    people = rng.normal(0, users**0.5, counts.n_users)[counts.user]
    rest = rng.normal(size=len(people)) * ((1 - between - users) / counts.count) ** 0.5
    return sums_of(plan, 0.45 + _SPREAD * (cells + people + rest))


def outcome(
    counts: shoal.Counts, plan: shoal.Plan, between: float, users: float, keys: np.ndarray
) -> tuple[float, float, float]:
    """How often intervals cover, and mean errors of pooled values and of the midpoint."""
    covered, errors, guesses = [], [], []
    for seed in range(_DRAWS):
        private = population(counts, plan, seed, between, users, keys)
        numbers = drawn(plan, private, seed)
        found, where = pooled(numbers, 0.95), left_out(numbers)
        assert found is not None
        truth, known = private.cell_means()[plan.shown][where], ~np.isnan(found.low)
        covered.append(((found.low <= truth) & (truth <= found.high))[known])
        errors.append(np.abs(found.value - truth))
        guesses.append(np.abs(truth - 5.0))
    return (
        float(np.concatenate(covered).mean()),
        float(np.concatenate(errors).mean()),
        float(np.concatenate(guesses).mean()),
    )


@pytest.mark.parametrize("epsilon", [1, 4])
@pytest.mark.parametrize(("between", "users"), [(0.3, 0.4), (0.05, 0.7), (0.05, 0.95), (0.8, 0.1)])
def test_intervals_of_pooled_values_cover(epsilon: float, between: float, users: float) -> None:
    """Wherever the variance is, 95% intervals of left-out cells cover at least 95%."""
    plan = for_errors(uneven_plan(epsilon=epsilon, min_users=20))
    assert len(plan.planned) == 35
    found = outcome(plan.counts, plan, between, users, np.arange(60))
    assert found[0] >= 0.95


def test_labels_that_released_cells_have_tell_of_the_others() -> None:
    """Values by labels err less than half as much as guessing, and are covered."""
    user, cell, count = uneven()
    place = np.random.default_rng(3).permutation(60)[cell]
    cells = pa.table({"row": place % 8, "column": place // 8})
    counts = shoal.Counts.from_counts(user, cells, count)
    plan = shoal.plan(counts, bounds=(0, 10), epsilon=4, max_error=0.35)
    assert len(plan.planned) < 40
    keys = counts.cells.column("row").to_numpy()
    covered, error, guess = outcome(counts, plan, 0.6, 0.2, keys)
    assert covered >= 0.95
    assert error < guess / 2


def rows(plan: shoal.Plan, seed: int = 0) -> list[dict[str, Any]]:
    """The table of a release of made-up values."""
    counts = plan.counts
    private = population(counts, plan, seed, 0.3, 0.4, np.arange(counts.n_cells))
    return make_table(drawn(plan, private, seed), rows_of(plan), 0.95).to_pylist()


def test_pooled_values_are_marked() -> None:
    """They have no number of their own, and say so."""
    plan = uneven_plan(epsilon=1, max_error=0.3)
    assert 10 <= len(plan.planned) < 60
    for row in rows(plan):
        own = row["status"] == "reliable"
        assert row["source"] == ("own" if own else "common")
        assert (row["reason"] is None) == own
        assert row["value"] is not None
        assert row["low"] <= row["value"] <= row["high"]
        for name in ("noise_scale", "worst_case_error"):
            assert (row[name] is None) != own


def test_a_label_that_no_released_cell_has_tells_nothing() -> None:
    """Such a cell has a value, by its other labels, and no interval."""
    user, cell, count = uneven()
    cells = pa.table({"row": pa.array(cell % 8), "column": pa.array(cell // 8)})
    counts = shoal.Counts.from_counts(user, cells, count)
    plan = for_errors(shoal.plan(counts, bounds=(0, 10), epsilon=4, min_users=20))
    keys = counts.cells.column("row").to_numpy()
    numbers = drawn(plan, population(counts, plan, 1, 0.6, 0.2, keys), 1)
    found, columns = pooled(numbers, 0.95), counts.cells.column("column").to_numpy()
    known = np.isin(columns[left_out(numbers)], columns[plan.planned])
    assert found is not None
    assert known.any()
    assert not known.all()
    assert (np.isnan(found.low) == ~known).all()
    assert np.isfinite(found.value).all()


@pytest.mark.parametrize(("method", "most"), [("balanced", "20%"), ("user_clipped", 0.22)])
def test_no_interval_is_better_than_a_short_one(method: str, most: object) -> None:
    """Without a private radius, or with few cells, the spread of users is unknown."""
    plan = uneven_plan(method=method, epsilon=8 if method == "balanced" else 1, max_error=most)
    assert plan.decision.method.range.of_vectors == (len(plan.planned) < 10)
    others = [row for row in rows(plan) if row["status"] != "reliable"]
    assert others
    assert all(row["low"] is None and row["high"] is None for row in others)
    assert all(row["value"] is not None for row in others)


def test_two_cells_say_nothing_of_a_third() -> None:
    """Then a cell that is left out has no value, and no source."""
    counts = shoal.Counts.from_counts([*range(60), *range(60), 0], [0] * 60 + [1] * 60 + [2],
                                            [1] * 121)  # fmt: skip
    plan = shoal.plan(counts, bounds=(0, 10), epsilon=4, min_users=1, max_error=1)
    last = rows(plan)[-1]
    assert (last["value"], last["source"], last["status"]) == (None, None, "error too large")


def test_only_means_are_pooled() -> None:
    """A variance, and its root, of a cell that is left out stay null."""
    counts = made_counts.sparse(4, users=60, cells=8)
    plan = shoal.plan(
        counts, bounds=(0, 9), epsilon=15, max_error="30%", statistics=["mean", "variance"]
    )
    others = [row for row in rows(plan) if row["status"] != "reliable"]
    assert {row["statistic"]: row["source"] for row in others} == {
        "mean": "common", "variance": None, "std": None
    }  # fmt: skip
    assert all((row["value"] is None) == (row["statistic"] != "mean") for row in others)
