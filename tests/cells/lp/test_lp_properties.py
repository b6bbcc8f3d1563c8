"""The certificate of the optimal plan, in fractions and by enumeration."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shoal.cells.lp import linear
from shoal.cells.lp.dual_bound import dual_bound
from shoal.cells.lp.problem import TargetProblem
from shoal.cells.lp.solution import adapt, certify, loss_of, verify
from shoal.cells.lp.solve import Method, solve
from shoal.cells.lp.target_scaling import least_factor
from tests.support import targets

pytestmark = pytest.mark.property

numbers = st.integers(0, 2**32)


@pytest.mark.parametrize("method", ["linear", "interior", "first_order"])
@given(problem=targets.small())
@settings(deadline=None, max_examples=40)
def test_the_certificate_holds_in_fractions(method: Method, problem: TargetProblem) -> None:
    """Errors <= targets, loss <= as stated, and no vertex of any cell costs less.

    With a gap of 1e-6 that proves the plan optimal, whatever the solver did. The method of first
    order is for large problems: of it only what it proves is held here, not how close it comes.
    """
    found = solve(problem, 1e-6, method=method, seconds=1 if method == "first_order" else 5)
    assert verify(problem, found) == ()
    errors = targets.exact_errors(problem, found.weight, found.noise_scale)
    for error, target in zip(errors, problem.target.tolist(), strict=True):
        assert error <= Fraction(target) or target >= 1 / 2
    assert targets.exact_loss(problem, found.weight, found.noise_scale) <= Fraction(found.loss)
    if (problem.target < 1 / 2).any():
        assert Fraction(found.lower_bound) <= targets.exact_bound(problem, found.duals)
        assert found.gap <= 1e-6 or method == "first_order"
    else:
        assert found.loss == 0


@given(problem=targets.small(), seed=numbers, sparse=st.booleans())
@settings(deadline=None)
def test_any_prices_give_the_bound_of_all_vertices(
    problem: TargetProblem, seed: int, *, sparse: bool
) -> None:
    """D(duals) is the enumerated minimum, from below, for any duals."""
    assume((problem.target < 1 / 2).any())
    rng = np.random.default_rng(seed)
    duals = rng.lognormal(0, 3, problem.n_users)
    if sparse:
        duals *= rng.random(problem.n_users) < 1 / 2
    assume(duals.max() > 0)
    exact, found = targets.exact_bound(problem, duals), dual_bound(problem, duals)
    assert Fraction(found) <= exact
    assert found >= float(exact) * (1 - 1e-9)


@given(problem=targets.small(), seed=numbers)
@settings(deadline=None)
def test_no_plan_costs_less_than_the_bound(problem: TargetProblem, seed: int) -> None:
    """Random weights, with the most noise they allow, against random dual variables."""
    rng = np.random.default_rng(seed)
    weight = problem.share * rng.random(len(problem.share)) ** rng.choice([0, 0.1, 1])
    kept, noise = adapt(problem, weight)
    loss = loss_of(problem, kept, noise)
    assert loss >= dual_bound(problem, rng.exponential(size=problem.n_users))
    assert loss >= solve(problem, 1e-6).lower_bound


@given(problem=targets.small(), seed=numbers)
@settings(deadline=None, max_examples=30)
def test_the_order_of_entries_does_not_matter(problem: TargetProblem, seed: int) -> None:
    """Entries in another order: the same problem, and weights in that order."""
    order = np.random.default_rng(seed).permutation(len(problem.share))
    other = TargetProblem(
        problem.user[order],
        problem.cell[order],
        problem.share[order],
        problem.n_users,
        problem.n_cells,
        problem.target,
        problem.cost[order],
    )
    found = linear.solve(problem)
    moved = certify(other, found.weight[order], found.duals)
    assert moved.loss == pytest.approx(found.loss, rel=1e-12)
    assert moved.lower_bound == pytest.approx(found.lower_bound, rel=1e-12)


@given(problem=targets.small(), epsilon=st.floats(0.05, 20))
@settings(deadline=None, max_examples=30)
def test_the_least_factor_is_proved_from_both_sides(problem: TargetProblem, epsilon: float) -> None:
    """The plan costs at most epsilon; below the bound HiGHS finds no cheaper one."""
    found = least_factor(problem, epsilon, tolerance=1e-3)
    at = problem.scaled(found.factor)
    assert verify(at, found.solution) == ()
    assert found.solution.loss <= epsilon
    assert found.gap <= 1e-3
    assert dual_bound(problem.scaled(found.lower_bound), found.duals) > epsilon
    assert linear.solve(problem.scaled(found.lower_bound * (1 - 1e-6))).loss > epsilon
