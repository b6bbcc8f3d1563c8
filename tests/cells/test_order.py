"""No order of rows reaches a mechanism: the same integers, and neighbours stay neighbours."""

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal import mean
from shoal.data.aggregate import Aggregate
from shoal.privacy import noise
from tests.support import methods
from tests.support.loop import loop_over
from tests.support.tape import Tape, lost

CALLS: dict[str, tuple[Any, dict[str, Any]]] = {
    "baseline": (mean.baseline, {}),
    "array_averaging": (mean.array_averaging, {}),
    "array_averaging-wrap_around": (mean.array_averaging, {"cap": 8, "grouping": "wrap_around"}),
    "opt_array_averaging": (mean.opt_array_averaging, {}),
    "worst_case_optimal": (mean.worst_case_optimal, {}),
    "levy": (mean.levy, {}),
    "levy-wrap_around": (mean.levy, {"cap": 12, "grouping": "wrap_around"}),
    "quantile": (mean.quantile, {}),
    "quantile-optimised": (mean.quantile, {"quantiles": "optimised", "grouping": "wrap_around"}),
    "akmv": (mean.akmv, {}),
    "adaptive": (mean.adaptive, {}),
    "user_clipped": (mean.user_clipped, {}),
    "auto": (mean.auto, {}),
}
LARGE: dict[str, Any] = {"cap": 300}
ATTACKS: dict[str, tuple[Any, dict[str, Any]]] = {
    "levy": (mean.levy, LARGE),
    "levy-wrap_around": (mean.levy, {**LARGE, "grouping": "wrap_around"}),
    "quantile": (mean.quantile, LARGE),
    "quantile-optimised": (mean.quantile, {**LARGE, "quantiles": "optimised"}),
    "array_averaging": (mean.array_averaging, LARGE),
}
PARTS = (0.0, 0.5, 0.9)


def call(
    monkeypatch: pytest.MonkeyPatch,
    function: Any,
    table: pa.Table,
    part: float = 0.5,
    **options: Any,
) -> tuple[Tape, Any]:
    """What reached the noise of a call on one cell, and its estimate."""
    tape = Tape(part=part)
    monkeypatch.setattr(noise, "OperatingSystem", lambda: tape)
    options = {"bounds": methods.BOUNDS, "epsilon": 1, **options}
    return tape, function(table.column("value").to_numpy(), table.column("who"), **options)


@cache
def sums_of(order: str, statistics: tuple[str, ...], value: float | None = None) -> Aggregate:
    """A pass over the rows of tied users in some order, one of whom may have another value."""
    table = methods.tied(seed=3)
    if value is not None:
        lowest = table.sort_by("value").column("who")[0].as_py()
        table = methods.neighbour(table, lowest, value)
    wanted = {"method": "balanced", "statistics": statistics}
    rows = {"": table, **methods.orders(table)}[order]
    return methods.aggregate(methods.plan(table, wanted), rows)


@cache
def plan_of(name: str) -> shoal.Plan:
    """A plan for them, by a method."""
    return methods.plan(methods.tied(seed=3), methods.METHODS[name])


@loop_over("name", methods.METHODS)
def test_no_order_of_rows_reaches_noise_or_selections(name: str) -> None:
    """Every method, ties in every kind of users; rows in all orders: tests/data/test_order.py."""
    plan = plan_of(name)
    names = tuple(each.name for each in plan.statistics)
    expected = methods.recorded(plan, sums_of("", names)).asked
    for order in ("shuffled", "by value"):
        assert methods.recorded(plan, sums_of(order, names)).asked == expected, order


@loop_over("name", methods.METHODS)
def test_neighbours_in_sorted_files_are_as_near_as_accounted(name: str) -> None:
    """Rows sorted by value on both sides; nothing moves further than the user's loss."""
    plan = plan_of(name)
    names = tuple(each.name for each in plan.statistics)
    for value, order in ((60.0, "by value"), (100.0, "by falling value")):
        one = methods.recorded(plan, sums_of(order, names))
        other = methods.recorded(plan, sums_of(order, names, value), like=one)
        assert max(lost(one, other)) <= plan.user_losses.max()


@pytest.mark.parametrize("settings", [{}, {"noise": "balanced"}], ids=["uniform", "balanced"])
def test_suppressed_users_stay_the_same_when_another_moves(settings: dict[str, str]) -> None:
    """39 tied users, most suppressed in a cell; 6.4 times the stated loss if by rows."""
    one, other = (
        methods.sorted_by_value({"p0": 2, "p2": 1}, 39, {"p1": 14}, 1, level)
        for level in (0.0, 100.0)
    )
    plan = methods.plan(one, {"method": "clip_user", "settings": settings}, epsilon=1)
    assert 0 < plan.parameters["kept"].sum() < len(plan.parameters["kept"])
    tapes = [methods.recorded(plan, methods.aggregate(plan, each)) for each in (one, other)]
    assert lost(*tapes)[0] <= plan.epsilon


@pytest.mark.parametrize("name", ATTACKS)
def test_arrays_of_others_stay_the_same_when_a_user_moves(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """300 tied users in arrays of two; scores of 75 arrays would move if by rows."""
    function, options = ATTACKS[name]
    one, other = (
        methods.sorted_by_value({"p": 150}, 300, {"p": 300}, 2, level) for level in (0.0, 100.0)
    )
    for part in PARTS:
        (before, estimate), (after, _) = (
            call(monkeypatch, function, each, part, **options) for each in (one, other)
        )
        assert lost(before, after)[0] <= estimate.epsilon


@pytest.mark.parametrize("name", CALLS)
def test_no_order_of_rows_reaches_the_noise_of_a_call(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls on one cell, with everything public that they return."""
    function, options = CALLS[name]
    table = methods.tied(users=90, cells=1)
    tape, estimate = call(monkeypatch, function, table, **options)
    for order, rows in methods.orders(table).items():
        found = call(monkeypatch, function, rows, **options)
        assert (found[0].asked, found[1]) == (tape.asked, estimate), order


@pytest.mark.parametrize("domain", ["ball", "box"])
def test_no_order_of_rows_reaches_the_noise_of_vectors(
    domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Means of vectors, in the ball and in the box."""
    rng = np.random.default_rng(4)
    users = rng.integers(0, 20, 200)
    points = rng.dirichlet([1, 1, 1], 200) * 100

    def asked(order: np.ndarray[Any, Any]) -> tuple[Any, Any]:
        tape = Tape()
        monkeypatch.setattr(noise, "OperatingSystem", lambda: tape)
        found = mean.vector(points[order], users[order], bounds=(0, 100), epsilon=50, domain=domain)
        return tape.asked, found

    expected = asked(np.arange(200))
    for order in (rng.permutation(200), np.argsort(points[:, 0]), np.argsort(-points[:, 1])):
        assert asked(order) == expected
