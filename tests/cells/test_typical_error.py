"""Errors to expect: simulated on a plan's counts, and about what is made on such data."""

from __future__ import annotations

import numpy as np
import pytest

import shoal
from shoal.cells.draw import drawing_of
from shoal.cells.estimates import Numbers
from shoal.cells.posterior import values_of
from shoal.cells.simulation.simulate import made_up
from shoal.cells.typical_error import CELLS, SPREAD, USERS, typical_errors
from shoal.cells.warnings import warnings
from shoal.errors import InputError
from tests.support import occupancies

pytestmark = pytest.mark.statistics


def _crowd(seed: int = 1, users: int = 600, cells: int = 12) -> shoal.Occupancy:
    rng = np.random.default_rng(seed)
    degree = rng.integers(1, 5, users)
    who = np.repeat(np.arange(users), degree)
    where = np.concatenate([rng.choice(cells, each, replace=False) for each in degree.tolist()])
    return shoal.Occupancy.from_counts(who, where, rng.geometric(0.2, len(who)))


@pytest.mark.parametrize("method", ["user_clipped", "balanced", "adaptive"])
def test_the_error_is_about_what_is_made_on_such_data(method: str) -> None:
    """G-SIMULATED: other draws of the population err as much, within a fifth, over all cells."""
    counts = _crowd()
    plan = shoal.plan(counts, bounds=(0, 60), epsilon=1, method=method, uninformative="keep")
    wide = 60 * SPREAD
    normal = shoal.Normal(24, wide * (1 - CELLS) ** 0.5, USERS / (1 - CELLS), wide * CELLS**0.5)
    user, cell = (np.repeat(each, counts.count) for each in (counts.user, counts.cell))
    made = []
    for turn in range(60):
        values = normal(np.random.default_rng([77, turn]), user, cell)
        drawn = drawing_of(plan).draw(
            made_up(counts, plan.lattice, values), shoal.Simulated(1000 + turn)
        )
        value = values_of(Numbers(plan, drawn.steps, drawn.chosen), 0.95).value
        truth = np.bincount(cell, np.clip(values, 0, 60)) / counts.totals
        made.append(np.abs(value - truth).mean())
    assert abs(plan.typical_error(wide).mean() / np.mean(made) - 1) < 0.2


@pytest.mark.parametrize("method", ["user_clipped", "uniform"])
@pytest.mark.parametrize("spread", [0.1, 3.0, 20.0])
def test_the_error_follows_the_spread_as_the_noise_does(method: str, spread: float) -> None:
    """G-SIMULATED: noise from the bounds stays what it is if values are said to be closer."""
    counts = _crowd()
    plan = shoal.plan(counts, bounds=(0, 60), epsilon=1, method=method, uninformative="keep")
    said, made = plan.typical_error(spread), []
    for turn in range(40):
        rng = np.random.default_rng([78, turn])
        apart = [rng.normal(0, size**0.5, many) for size, many in
                 ((CELLS, 12), (USERS, counts.n_users), (1 - CELLS - USERS, len(counts.user)))]  # fmt: skip
        rest = apart[2] / counts.count**0.5
        mean = np.clip(24 + spread * (apart[0][counts.cell] + apart[1][counts.user] + rest), 0, 60)
        values, cell = np.repeat(mean, counts.count), np.repeat(counts.cell, counts.count)
        drawn = drawing_of(plan).draw(
            made_up(counts, plan.lattice, values), shoal.Simulated(2000 + turn)
        )
        value = values_of(Numbers(plan, drawn.steps, drawn.chosen), 0.95).value
        made.append(np.abs(value - np.bincount(cell, values) / counts.totals).mean())
    # Not their mean: one radius in fifty is far too large.
    assert abs(said.mean() / np.median(made) - 1) < 0.3


def test_the_error_is_a_public_number_of_the_plan() -> None:
    """G-PURE: the same for the same counts; less with more epsilon; in the unit of the spread."""
    plans = [shoal.plan(_crowd(), bounds=(0, 60), epsilon=epsilon) for epsilon in (1, 1, 4)]
    one, same, more = (typical_errors(plan) for plan in plans)
    assert np.array_equal(one, same)
    assert one.shape == (12,)
    assert more.mean() < 0.7 * one.mean()
    assert np.array_equal(plans[0].typical_error(60 * SPREAD), 60 * SPREAD * one)
    with pytest.raises(ValueError, match="read-only"):
        plans[0].typical_error()[:] = 0


def test_other_statistics_and_spreads_are_refused() -> None:
    """With what is allowed."""
    plan = shoal.plan(_crowd(), bounds=(0, 60), epsilon=1, statistics=["mean", "variance"])
    with pytest.raises(InputError, match="the mean alone"):
        plan.typical_error()
    for wrong in (0, -1, float("nan"), "far", 30.1):
        with pytest.raises(InputError, match="spread"):
            shoal.plan(_crowd(), bounds=(0, 60), epsilon=1).typical_error(wrong)  # type: ignore[arg-type]


def test_counts_that_speak_against_a_plan_are_told() -> None:
    """Nothing where nothing is wrong; heavy users, few users, and cells that are too fine."""
    plan = shoal.plan(_crowd(), bounds=(0, 60), epsilon=4)
    assert warnings(plan) == []
    assert "warning" not in str(plan)
    heavy = shoal.Occupancy.from_counts(
        np.arange(400), np.arange(400) % 3, np.where(np.arange(400) == 3, 500, 2)
    )
    [told] = warnings(shoal.plan(heavy, bounds=(0, 60), epsilon=4))
    assert told.startswith("in 1 cells one user owns a quarter of the records or more (0: 6")
    few = shoal.plan(_crowd(users=30), bounds=(0, 60), epsilon=1)
    assert any("epsilon times users is 30" in each for each in warnings(few))
    fine = shoal.plan(occupancies.sparse(3), bounds=(0, 60), epsilon=0.5)
    assert any("cells are too fine" in each for each in warnings(fine))
