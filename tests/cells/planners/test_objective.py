"""What an objective chooses, from public counts alone, and that a plan keeps to it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shoal
from shoal.cells.facts.request import Request
from shoal.cells.planners.objective import choose
from shoal.errors import InputError
from shoal.theory import gaussian, user_clipping
from tests.support.loop import loop_over


def _counts(users: int, cells: int, heavy: int = 9) -> shoal.Counts:
    """Every other user has one record in each cell, the rest more."""
    who = np.repeat(np.arange(users), cells)
    counts = np.where(who % 2 == 0, 1, heavy)
    return shoal.Counts.from_counts(who, np.tile(np.arange(cells), users), counts)


WISHES: list[tuple[int, int, int, dict[str, Any], str]] = [
    (100, 3, 9, {}, "user_clipped"),
    (10, 3, 9, {}, "user_clipped"),
    (50, 1, 9, {}, "user_clipped"),
    (100, 1, 9, {}, "adaptive"),
    (300, 1, 4, {}, "user_clipped"),
    (20, 1, 1, {}, "user_clipped"),
    (100, 1, 3, {}, "optimal"),
    (4000, 1, 1, {}, "optimal"),
    (300, 12, 3, {}, "optimal"),
    (300, 12, 3, {"delta": "1e-9"}, "optimal"),
    (300, 13, 1, {}, "user_clipped"),
    (300, 12, 4, {"delta": "1e-9"}, "user_clipped"),
    (100, 3, 9, {"statistics": ["share_above(3)"], "objective": "worst_case"}, "optimal"),
    (100, 3, 9, {"epsilon": None, "error": 2}, "optimal"),
    (100, 3, 9, {"objective": "worst_case"}, "optimal"),
    (100, 3, 9, {"objective": "worst_case", "delta": "1e-9"}, "optimal"),
    (100, 30, 9, {"objective": "worst_case", "delta": "1e-4"}, "balanced"),
    (300, 30, 1, {"range": "tight"}, "optimal"),
    (300, 12, 4, {"range": "tight"}, "user_clipped"),
    (4000, 1, 1, {"range": "loose"}, "user_clipped"),
    (100, 1, 3, {"range": "loose"}, "adaptive"),
]


@loop_over(("users", "cells", "heavy", "wanted", "method"), WISHES)
def test_the_method_serves_the_objective(
    users: int, cells: int, heavy: int, wanted: dict[str, Any], method: str, tmp_path: Path
) -> None:
    """By counts, and by what is said of the bounds; typical is the default; a plan keeps to it."""
    counts, wanted = _counts(users, cells, heavy), {"epsilon": 1, **wanted}
    plan = shoal.plan(counts, bounds=(0, 10), **wanted)
    assert plan.method == method
    found, reason = choose(Request.of(bounds=(0, 10), **{"objective": "typical", **wanted}), counts)
    assert (found.name, bool(reason)) == (method, True)
    plan.save(tmp_path / "plan.json", overwrite=True)
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


@pytest.mark.parametrize("delta", [1e-9, 1e-4])
def test_in_few_cells_laplace_noise_is_allowed_wherever_gaussian_noise_is(delta: float) -> None:
    """Of users in up to k numbers; one cell more, and Gaussian noise is smaller."""
    most = int(gaussian.cells_at_least(1.0, delta))
    for cells in (most, most + 1):
        plan = shoal.plan(
            _counts(200, cells, heavy=1), method="balanced", bounds=(0, 10), epsilon=1, delta=delta
        )
        assert plan.gaussian == (cells > most)
