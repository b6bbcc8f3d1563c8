"""Why cells are left out, in words."""

from typing import Any

import numpy as np
import pytest

import shoal
from shoal.cells.left_out import budgets_needed, reasons
from tests.support import occupancies


def apart() -> shoal.Counts:
    """Nobody is in two cells: 40, 10 and 4 users of one record each."""
    return shoal.Counts.from_counts(range(54), [0] * 40 + [1] * 10 + [2] * 4, [1] * 54)


def test_counts_below_a_rule_are_told() -> None:
    """With what was asked for."""
    plan = shoal.plan(
        apart(), bounds=(0, 10), epsilon=8, method="balanced", min_users=5, min_records=20
    )
    assert reasons(plan) == [
        "", "fewer than 20", "fewer than 5"
    ]  # fmt: skip
    assert "too few users (1 cell): fewer than 5" in str(plan)


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("method", ["balanced", "equalised", "uniform"])
def test_a_cell_by_itself_needs_what_is_said(method: str, delta: str) -> None:
    """Where nobody is in two cells the budget is exact: a bit less leaves the cell out."""
    wanted: dict[str, Any] = {"method": method, "delta": delta, "max_error": "5%"}
    plan = shoal.plan(apart(), bounds=(0, 10), epsilon=1, **wanted)
    assert plan.status == ("released", "error too large", "error too large")
    needed = budgets_needed(plan, np.array([1, 2]))
    if not plan.gaussian:
        assert needed == pytest.approx([2, 5], rel=0.01)
        assert reasons(plan)[1:] == [
            "needs about 2 times the budget", "needs about 5 times the budget"
        ]  # fmt: skip
        for cell, factor in zip((1, 2), needed.tolist(), strict=True):
            less, more = (
                shoal.plan(apart(), bounds=(0, 10), epsilon=factor * bit, **wanted)
                for bit in (0.98, 1.02)
            )
            assert (less.status[cell], more.status[cell]) == ("error too large", "released")


def test_users_in_several_cells_pay_for_all() -> None:
    """Two cells of the same users: each needs the budget of both, and of what is released."""
    user = [*range(40), *range(40), *range(40)]
    occupancy = shoal.Counts.from_counts(user, np.repeat([0, 1, 2], 40), [1] * 120)
    plan = shoal.plan(occupancy, bounds=(0, 10), epsilon=0.5, method="equalised", max_error="5.01%")
    assert len(plan.released) == 1
    others = np.flatnonzero(np.array(plan.status, dtype=object) != "released")
    assert sorted(budgets_needed(plan, others)) == pytest.approx([2, 3], rel=0.01)


@pytest.mark.parametrize("wanted", [
    {"method": "balanced"}, {"method": "optimal"}, {}, {"method": "adaptive"},
    {"method": "equalised", "delta": "1e-6"},
    {"statistics": ["mean", "variance"], "method": "equalised", "max_error": "45%"},
])  # fmt: skip
def test_every_left_out_cell_has_its_words(wanted: dict[str, Any]) -> None:
    """Whatever was asked for, and in the plan's table, too."""
    plan = shoal.plan(
        occupancies.sparse(4, users=60, cells=12),
        **{"bounds": (0, 9), "epsilon": 3, "max_error": "5%", **wanted},
    )
    told = reasons(plan)
    assert 0 < len(plan.released) < 12
    for status, words in zip(plan.status, told, strict=True):
        assert (status == "released") == (words == "")
        assert status == "released" or words.startswith("needs ")
    assert plan.table()["reason"].to_pylist()[:12] == [each or None for each in told]


def test_uninformative_cells_are_told_what_they_need() -> None:
    """A word alone helps nobody."""
    plan = shoal.plan(apart(), bounds=(0, 10), epsilon=0.3, method="balanced")
    assert plan.status[2] == "uninformative"
    assert reasons(plan)[2] == "needs about 1.7 times the budget"
