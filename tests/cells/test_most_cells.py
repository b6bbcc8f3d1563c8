"""Cells that are released where a largest error is asked for: nested, and within it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.cells.estimates.typical_error import SD
from shoal.cells.facts.decision import Task, public_status
from shoal.cells.planners import planner
from shoal.cells.planners.largest_error import keeping_order
from shoal.errors import InputError
from tests.support import made_counts
from tests.support.loop import loop_over

SHARED = ("balanced", "equalised", "uniform")


def released(counts: shoal.Counts, **wanted: Any) -> set[int]:
    """Cells of a plan with a largest error; none if there is no such plan."""
    try:
        plan = shoal.plan(counts, bounds=(0, 10), min_users=1, **wanted)
    except InputError as error:
        said = str(error)
        assert "no cell has an error of at most" in said or "the plan would have no cell" in said
        return set()
    assert (plan.cell_error <= (plan.request.largest_error or 0) * (1 + 1e-6)).all()
    return set(plan.planned.tolist())


def task_of(plan: shoal.Plan) -> Task:
    """What its planner was asked, with every cell that the counts allow."""
    status = public_status(plan.counts, plan.request)
    return Task(plan.counts, plan.request, plan.decision.method, tuple(status))


def crowd_and_few() -> shoal.Counts:
    """Gaussian noise is better for the crowded cells, and worse for the one with few users."""
    rng = np.random.default_rng(6)
    users, cells = int(rng.integers(30, 60)), int(rng.integers(5, 60))
    inside = (rng.random((users, cells)) < rng.uniform(0.3, 1)) * 1
    inside[:, 0] = 1
    few = np.zeros((users, 1), int)
    few[: int(rng.integers(2, 20)), 0] = 1
    inside = np.hstack([inside, few])
    user, cell = np.nonzero(inside)
    return shoal.Counts.from_counts(user, cell, inside[user, cell])


@pytest.mark.parametrize("method", SHARED)
@given(
    counts=made_counts.small,
    epsilon=st.floats(0.5, 40),
    more=st.floats(1.01, 20),
    most=st.floats(0.02, 0.45),
    deltas=st.sampled_from([("0", "0"), ("0", "1e-9"), ("1e-9", "1e-3")]),
)
@settings(max_examples=12)
def test_a_larger_budget_leaves_out_no_other_cell(
    method: str,
    counts: shoal.Counts,
    epsilon: float,
    more: float,
    most: float,
    deltas: tuple[str, str],
) -> None:
    """What is released with less epsilon and delta is released with more of them."""
    wanted = {"method": method, "max_error": f"{100 * most:.6f}%"}
    small = released(counts, epsilon=epsilon, delta=deltas[0], **wanted)
    large = released(counts, epsilon=epsilon * more, delta=deltas[1], **wanted)
    assert small <= large


def test_gaussian_noise_takes_no_cell_away() -> None:
    """Of the two kinds of noise the one is taken whose errors are small enough."""
    wanted: dict[str, Any] = {"method": "balanced", "epsilon": 4, "max_error": "38%"}
    pure = released(crowd_and_few(), **wanted)
    assert len(pure) == crowd_and_few().n_cells
    assert released(crowd_and_few(), delta="1e-6", **wanted) == pure


@pytest.mark.parametrize("method", SHARED)
@given(counts=made_counts.small, epsilon=st.floats(0.5, 40), most=st.floats(0.02, 0.45))
@settings(max_examples=12)
def test_where_more_cells_cost_all_as_many_are_kept_as_can_be(
    method: str, counts: shoal.Counts, epsilon: float, most: float
) -> None:
    """The next cell of the order is left out because some error would be too large."""
    wanted: dict[str, Any] = {"method": method, "epsilon": epsilon}
    kept = released(counts, max_error=f"{100 * most:.6f}%", **wanted)
    base = shoal.plan(counts, bounds=(0, 10), uninformative="keep", min_users=1, **wanted)
    order = keeping_order(task_of(base))
    assert set(order[: len(kept)].tolist()) == kept
    if method != "balanced" and len(kept) < len(order):
        status = np.full(len(order), "too few users", dtype=object)
        status[order[: len(kept) + 1]] = "planned"
        more = planner._plan(task_of(base).with_status(status))
        assert more.cell_error.max() > round(most, 8) * (1 - 1e-6)


def test_typical_errors_are_those_that_are_printed() -> None:
    """No planned cell of a plan for the typical error has one above the largest."""
    counts = made_counts.sparse(3, users=100, cells=20)
    plan = shoal.plan(counts, bounds=(0, 60), epsilon=1, max_error=4)
    assert 0 < len(plan.planned) < counts.n_cells
    assert (plan.typical_error() * SD * 60 <= 4 * (1 + 1e-6)).all()
    assert {*plan.status} == {"planned", "error too large"}


def test_the_order_knows_counts_alone() -> None:
    """Neither budget nor error nor the public rules change the order of cells."""
    counts = made_counts.sparse(1)
    asked = [
        task_of(shoal.plan(counts, bounds=(0, 9), method="balanced", **wanted))
        for wanted in (
            {"epsilon": 8, "max_error": "40%"},
            {"epsilon": 9, "delta": "1e-6", "max_error": "45%"},
            {"epsilon": 80, "min_users": 12},
        )
    ]
    orders = [keeping_order(task).tolist() for task in asked]
    assert orders[0] == orders[1] == orders[2]
    assert sorted(orders[0]) == list(range(counts.n_cells))


@loop_over(
    ("wanted", "message"),
    [
        ({"max_error": 0}, "max_error is 0"),
        ({"max_error": "0%"}, "above 0% and below 50%"),
        ({"max_error": 5}, "below 50%"),
        ({"max_error": "50%"}, "below 50%"),
        ({"max_error": "much"}, "max_error is 'much'"),
        ({"max_error": float("nan")}, "max_error is nan"),
        ({"max_error": 1, "uninformative": "keep"}, "an error or with uninformative"),
        ({"max_error": 1, "epsilon": None, "error": 1}, "given together with an error"),
        ({"max_error": 1, "statistics": ["mean", "variance"]}, "give a percentage"),
        (
            {"max_error": 0.001, "epsilon": 0.1},
            r"no cell has an error of at most 0\.001 \(0\.000111",
        ),
        ({"max_error": "0.1%", "epsilon": 0.1}, r"the cell 0, is 13\.2 \(1\.46 of the range\)"),
        (
            {"max_error": "1%", "epsilon": 0.1, "statistics": ["mean", "variance"]},
            r"no cell has an error of at most 0\.01 of the range",
        ),
    ],
)
def test_a_largest_error_that_no_plan_takes(wanted: dict[str, Any], message: str) -> None:
    """With what is allowed."""
    with pytest.raises(InputError, match=message):
        shoal.plan(
            made_counts.sparse(1),
            **{"bounds": (0, 9), "epsilon": 8, "method": "balanced", **wanted},
        )


def test_several_statistics_share_a_percentage() -> None:
    """The largest error over the ranges decides."""
    plan = shoal.plan(
        made_counts.sparse(4, users=60, cells=12), bounds=(0, 9), epsilon=60, max_error="30%",
        statistics=["mean", "variance"],
    )  # fmt: skip
    assert plan.request.largest_error == 0.3
    assert (plan.cell_error <= 0.3 * (1 + 1e-6)).all()
