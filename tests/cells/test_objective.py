"""What an objective chooses, from public counts alone, and that a plan keeps to it."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.cells.objective import choose
from shoal.cells.posterior import values_of
from shoal.cells.request import OBJECTIVES, Request
from shoal.errors import InputError
from shoal.theory import gaussian, user_clipping
from tests.support import draws
from tests.support.loop import loop_over


def _counts(users: int, cells: int, heavy: int = 9) -> shoal.Counts:
    """Every other user has one record in each cell, the rest more."""
    who = np.repeat(np.arange(users), cells)
    counts = np.where(who % 2 == 0, 1, heavy)
    return shoal.Counts.from_counts(who, np.tile(np.arange(cells), users), counts)


@pytest.mark.parametrize(
    ("objective", "users", "cells", "wanted", "method"),
    [
        ("typical", 100, 3, {"epsilon": 1}, "user_clipped"),
        ("typical", 10, 3, {"epsilon": 1}, "user_clipped"),
        ("typical", 20, 1, {"epsilon": 1}, "user_clipped"),
        ("typical", 50, 1, {"epsilon": 1}, "user_clipped"),
        ("typical", 100, 1, {"epsilon": 1}, "adaptive"),
        ("typical", 300, 1, {"epsilon": 1}, "user_clipped"),
        ("typical", 100, 3, {"epsilon": 1, "delta": "1e-9"}, "user_clipped"),
        ("typical", 100, 3, {"epsilon": 1, "statistics": ["share_above(3)"]}, "optimal"),
        ("typical", 100, 3, {"error": 2}, "optimal"),
        ("worst_case", 100, 3, {"epsilon": 1}, "optimal"),
        ("worst_case", 100, 3, {"epsilon": 1, "delta": "1e-9"}, "optimal"),
        ("worst_case", 100, 30, {"epsilon": 1, "delta": "1e-4"}, "balanced"),
    ],
)
def test_the_method_serves_the_objective(
    objective: str, users: int, cells: int, wanted: dict[str, Any], method: str
) -> None:
    """With what is asked for and the counts; typical is the default."""
    occupancy = _counts(users, cells)
    plan = shoal.plan(occupancy, bounds=(0, 10), objective=objective, **wanted)
    assert (plan.method, plan.request.objective) == (method, objective)
    if objective == "typical":
        assert shoal.plan(occupancy, bounds=(0, 10), **wanted).method == method
    asked = Request.of(bounds=(0, 10), objective=objective, **wanted)
    found, reason = choose(asked, occupancy)
    assert found.name == method
    assert reason


@loop_over(
    ("users", "cells", "heavy", "method"),
    [
        (20, 1, 1, "user_clipped"),
        (100, 1, 3, "certified"),
        (4000, 1, 1, "certified"),
        (300, 12, 3, "certified"),
        (300, 13, 1, "user_clipped"),
        (300, 12, 4, "user_clipped"),
        (300, 1, 4, "user_clipped"),
    ],
)
@loop_over("delta", [0, "1e-9"])
def test_few_cells_of_users_who_count_alike_keep_the_bounds(
    users: int, cells: int, heavy: int, method: str, delta: object
) -> None:
    """There a private radius would leave out more users than the noise is worth."""
    occupancy = _counts(users, cells, heavy)
    plan = shoal.plan(occupancy, bounds=(0, 10), epsilon=1, delta=delta)
    assert plan.method == ("optimal" if method == "certified" else method)


@pytest.mark.parametrize(
    ("users", "cells", "heavy", "known", "method"),
    [
        (4000, 1, 1, "tight", "optimal"),
        (300, 30, 1, "tight", "optimal"),
        (300, 12, 4, "tight", "user_clipped"),
        (4000, 1, 1, "loose", "user_clipped"),
        (100, 1, 3, "loose", "adaptive"),
        (300, 12, 1, "loose", "user_clipped"),
        (300, 30, 1, "loose", "user_clipped"),
    ],
)
def test_what_is_known_of_the_bounds_decides_where_counts_cannot(
    users: int, cells: int, heavy: int, known: str, method: str, tmp_path: Path
) -> None:
    """Tight bounds keep rare events, loose ones gain; a plan keeps to what was said."""
    occupancy = _counts(users, cells, heavy)
    plan = shoal.plan(occupancy, bounds=(0, 10), epsilon=1, range=known)
    assert (plan.method, plan.request.range) == (method, known)
    plan.save(tmp_path / "plan.json")
    loaded = shoal.Plan.load(tmp_path / "plan.json")
    assert (loaded.method, loaded.request) == (method, plan.request)


@pytest.mark.parametrize(
    "wrong",
    [
        {"range": "wide"},
        {"range": "tight", "method": "optimal"},
        {"range": "loose", "objective": "worst_case"},
        {"range": "loose", "epsilon": None, "error": 3},
    ],
)
def test_a_range_that_says_nothing_is_refused(wrong: dict[str, Any]) -> None:
    """No option does nothing."""
    with pytest.raises(InputError, match="range"):
        shoal.plan(_counts(100, 3), **{"bounds": (0, 10), "epsilon": 1, **wrong})


@pytest.mark.parametrize("cells", [1, 3, 12])
def test_outliers_are_covered_in_few_cells(cells: int) -> None:
    """Three percent of 1,000 users far from the others, and about Laplace's error."""
    rng = np.random.default_rng(cells)
    who, cell = np.arange(1000), np.arange(1000) % cells
    values = np.where(rng.random(1000) < 0.03, 90.0, np.clip(rng.normal(35, 6, 1000), 0, 100))
    columns = {"who": who, "cell": cell, "v": values}
    table = pa.table({name: pa.array(found) for name, found in columns.items()})
    records = shoal.Records(table, user="who", value="v", bounds=(0, 100), by="cell")
    plan = shoal.plan(records.counts(), bounds=(0, 100), epsilon=1)
    truth = np.array([values[cell == at].mean() for at in range(cells)])
    missed, error, sums = [], [], records.aggregate()
    for turn in range(100):
        found = values_of(draws.drawn(plan, sums, turn), 0.95)
        missed.append(((truth < found.low) | (truth > found.high)).mean())
        error.append(np.abs(found.value - truth).mean())
    # 5% expected: three deviations of 100 releases more.
    assert np.mean(missed) <= 0.05 + 3 * (0.05 * 0.95 / (100 * cells)) ** 0.5
    laplace = 100 / (1000 / cells)
    # Values lean on the other cells: with three that may cost a third.
    assert np.mean(error) <= 1.35 * laplace


def test_users_in_very_many_cells_have_two_rounds_with_a_delta(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By counts, epsilon and delta alone; the plan says so, and keeps to it when it is loaded."""
    who = np.repeat(np.arange(1000), 40)
    where = (np.arange(1000)[:, None] * 7 + np.arange(40)).ravel() % 300
    many = shoal.Counts.from_counts(who, where, np.ones_like(who))
    for delta, cells, turns in (
        ("1e-9", many, 2), ("0", many, None), ("1e-9", _counts(1000, 40), None),
    ):  # fmt: skip
        found, _ = choose(Request.of(bounds=(0, 10), epsilon=1, delta=delta), cells)
        assert (found.name, found.settings.get("rounds")) == ("user_clipped", turns)
    monkeypatch.setattr(user_clipping, "_MANY", 1)
    monkeypatch.setattr(user_clipping, "_SMALLER", 0.0)
    plan = shoal.plan(_counts(1000, 4), bounds=(0, 10), epsilon=1, delta="1e-9")
    assert (plan.rounds, plan.decision.method.settings) == (2, {"rounds": 2})
    assert "Two rounds" in str(plan)
    plan.save(tmp_path / "plan.json")
    assert shoal.Plan.load(tmp_path / "plan.json").rounds == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"objective": "best"},
        {"objective": "typical", "method": "balanced"},
        {"objective": "typical", "settings": {"cap": 3}},
        {"settings": {"cap": 3}},
        {"objective": 3},
    ],
)
def test_what_does_not_go_together_is_refused(wrong: dict[str, Any]) -> None:
    """With what is allowed, before any work."""
    with pytest.raises(InputError, match=r"; (leave|name|give)"):
        shoal.plan(_counts(50, 2), bounds=(0, 10), epsilon=1, **wrong)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_loaded_plan_has_the_method_of_its_objective(objective: str, tmp_path: Path) -> None:
    """It keeps what was asked for."""
    plan = shoal.plan(_counts(100, 3), bounds=(0, 10), epsilon=4, objective=objective)
    path = tmp_path / "plan.json"
    plan.save(path)
    assert shoal.Plan.load(path).request.objective == objective


def _shapes() -> dict[str, shoal.Counts]:
    """Users of one cell, of many cells, and heavy ones among them."""
    rng = np.random.default_rng(0)
    who, where = np.repeat(np.arange(200), 40), np.tile(np.arange(40), 200)
    ones, heavy = np.ones_like(who), np.where(who < 4, 10, 1)
    few = np.concatenate([np.arange(1000), np.repeat(np.arange(1000, 1010), 40)])
    spread = np.concatenate([np.arange(1000) % 40, np.tile(np.arange(40), 10)])
    unlike = np.ceil(rng.lognormal(0, 1, 200)).astype(np.int64)[who]
    found: dict[str, tuple[Any, Any, Any]] = {
        "one far heavier": (np.arange(1001), np.zeros(1001, int), [1] * 1000 + [18]),
        "alike in many": (who, where, ones),
        "heavy in many": (who, where, heavy),
        "unlike in many": (who, where, unlike),
        "few in many": (few, spread, np.ones_like(few)),
    }
    return {name: shoal.Counts.from_counts(*each) for name, each in found.items()}


@pytest.mark.full
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("delta", ["1e-9", "1e-4"])
@pytest.mark.parametrize(("shape", "occupancy"), _shapes().items())
def test_a_delta_never_makes_a_certified_plan_worse(
    shape: str, occupancy: shoal.Counts, delta: str, objective: str, tmp_path: Path
) -> None:
    """With more privacy loss granted no error that is certified is larger."""
    wanted: dict[str, Any] = {
        "bounds": (0, 10), "epsilon": 1, "uninformative": "keep", "objective": objective,
    }  # fmt: skip
    pure = shoal.plan(occupancy, **wanted)
    plan = shoal.plan(occupancy, delta=delta, **wanted)
    if pure.certified:
        error = [np.log(np.minimum(each.worst_case_error, 5)).mean() for each in (plan, pure)]
        assert error[0] <= error[1] + 1e-9
        helps = shape == "alike in many" or (shape, delta) == ("unlike in many", "1e-4")
        assert plan.method == ("balanced" if helps else "optimal")
        assert plan.gaussian == helps
        assert ('method="optimal"' in str(plan)) == plan.gaussian
        # Nothing is charged that is not needed.
        assert plan.gaussian or plan.delta == 0
    plan.save(tmp_path / "plan.json")
    assert shoal.Plan.load(tmp_path / "plan.json").method == plan.method


@pytest.mark.parametrize("delta", [1e-9, 1e-4])
def test_in_few_cells_laplace_noise_is_allowed_wherever_gaussian_noise_is(delta: float) -> None:
    """Of users in up to k numbers; one cell more, and Gaussian noise is smaller."""
    most = int(gaussian.cells_at_least(1.0, delta))
    for cells in (most, most + 1):
        plan = shoal.plan(
            _counts(200, cells, heavy=1), method="balanced", bounds=(0, 10), epsilon=1, delta=delta
        )
        assert plan.gaussian == (cells > most)
