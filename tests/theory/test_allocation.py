"""What each planning method promises, against formulas and a general solver."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

import shoal
from shoal.cells.plan import Plan
from shoal.theory import allocation
from shoal.theory.allocation import Problem
from tests.support import made_counts

BOUNDS = (0, 50)


def problem_of(plan: Plan) -> Problem:
    """Sensitivities of the released cells."""
    return plan.numbers.problem(plan.importance, plan.decision.scale)


def make(seed: int, counts: shoal.Counts | None = None, **wanted: object) -> Plan:
    """A plan that keeps every cell."""
    counts = made_counts.sparse(seed) if counts is None else counts
    wanted = {"epsilon": 1, "uninformative": "keep", "min_users": 1, **wanted}
    return shoal.plan(counts, bounds=BOUNDS, **{"method": "balanced", **wanted})


def shares(plan: Plan) -> np.ndarray:
    """m/n as a dense users x cells matrix."""
    counts = plan.counts
    dense = np.zeros((counts.n_users, counts.n_cells))
    dense[counts.user, counts.cell] = counts.count / counts.totals[counts.cell]
    return dense


@given(
    counts=made_counts.small,
    epsilon=st.sampled_from(["0.01", "0.1", "1/3", "1", "7.5", "40"]),
    method=st.sampled_from(["balanced", "equalised", "uniform"]),
)
@settings(deadline=None)
def test_the_loss_never_exceeds_what_was_asked_for(
    counts: shoal.Counts, epsilon: str, method: str
) -> None:
    """Exact loss <= epsilon for every counts, method and epsilon; nearly all used."""
    plan = shoal.plan(
        counts, bounds=BOUNDS, epsilon=epsilon, method=method, uninformative="keep", min_users=1
    )
    asked = Fraction(epsilon)
    assert plan.exact_epsilon <= asked
    assert Fraction(plan.epsilon) >= plan.exact_epsilon
    if method != "uniform":
        assert plan.exact_epsilon >= asked * (1 - Fraction(1, 10**4))


@pytest.mark.parametrize("seed", range(5))
def test_equalised_is_the_closed_form(seed: int) -> None:
    """One error for all, max_l sum_g U v_gl / epsilon (docs/theory/cells.md#equalised-plans)."""
    plan = make(seed, method="equalised", epsilon=0.7)
    exact = 50 * shares(plan).sum(axis=1).max() / 0.7
    assert plan.worst_case_error == pytest.approx(exact, rel=1e-5)
    assert np.ptp(plan.noise_scale) == 0


@pytest.mark.parametrize("seed", range(5))
def test_uniform_is_the_papers_plan(seed: int) -> None:
    """Noise G_1 Delta_g / epsilon, and the paper's accounting gives epsilon back."""
    plan = make(seed, method="uniform", epsilon=0.7)
    share = shares(plan)
    g_1 = (share > 0).sum(axis=1).max()
    assert plan.noise_scale == pytest.approx(50 * g_1 * share.max(axis=0) / 0.7, rel=1e-5)
    assert plan.paper_epsilon == pytest.approx(0.7, rel=1e-5)
    assert plan.epsilon <= 0.7


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("epsilon", [0.3, 4.0, 40.0])
def test_kinds_of_noise_are_compared_at_one_loss(seed: int, epsilon: float) -> None:
    """With a delta uniform Laplace noise is charged by the true loss, as Gaussian noise is."""
    for delta in ("1e-6", "1e-2"):
        found = make(seed, method="uniform", epsilon=epsilon, delta=delta)
        papers = make(seed, method="uniform", epsilon=epsilon)
        laplace = papers.mean_noise * papers.epsilon / epsilon
        product = np.log(found.mean_noise / laplace).mean()
        assert product <= 1e-5
        assert found.gaussian == (product < -1e-5)
        assert epsilon * (1 - 1e-4) <= found.exact_epsilon <= Fraction(epsilon)


@pytest.mark.parametrize("seed", range(3))
def test_balanced_is_the_optimum_of_a_general_solver(seed: int) -> None:
    """Sum ln b is within the certified gap of SciPy's optimum."""
    plan = make(seed)
    matrix = shares(plan)
    solver: Any = minimize
    found = solver(
        lambda x: -np.log(x).sum(),
        np.full(plan.counts.n_cells, 1 / matrix.sum(axis=1).max() / 2),
        jac=lambda x: -1 / x,
        hess=lambda x: np.diag(1 / x**2),
        constraints=LinearConstraint(matrix, -np.inf, 1),
        method="trust-constr",
        options={"gtol": 1e-9, "xtol": 1e-12, "maxiter": 2000},
    )
    cells = plan.counts.n_cells
    own = np.log(plan.decision.scale).sum() / cells
    best = found.fun / cells
    assert plan.gap is not None
    assert plan.gap < 1e-3
    assert best <= own + 1e-5
    assert own - best <= plan.gap + 1e-5


def test_few_users_decide_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dual variables of users who may lose most prove as good a plan as those of all."""
    counts = made_counts.sparse(2, users=3_000, cells=20)
    whole = make(2, counts=counts)
    monkeypatch.setattr(allocation, "_MANY", 0)
    asked: list[int] = []
    of_users = Problem.of_users

    def noted(problem: Problem, users: np.ndarray) -> Problem:
        asked.append(len(users))
        return of_users(problem, users)

    monkeypatch.setattr(Problem, "of_users", noted)
    found = make(2, counts=counts)
    assert max(asked) < 1_000
    assert found.gap is not None
    assert found.gap < 1e-3
    assert np.log(found.decision.scale / whole.decision.scale).mean() < 1e-3
    assert found.exact_epsilon <= 1


@given(counts=made_counts.small, seed=st.integers(0, 10))
@settings(deadline=None)
def test_the_gap_holds_for_any_prices(counts: shoal.Counts, seed: int) -> None:
    """Weak duality. Whatever the dual variables, no feasible plan beats the bound."""
    plan = shoal.plan(
        counts, method="balanced", bounds=BOUNDS, epsilon=1, uninformative="keep", min_users=1
    )
    rng = np.random.default_rng(seed)
    problem = problem_of(plan)
    duals = rng.exponential(size=problem.n_users) + 1e-6
    scale = rng.exponential(size=problem.n_cells) + 0.01
    scale *= problem.loss(scale).max()
    claimed = allocation.balanced_gap(problem, scale, duals, 1.0)
    improvement = float(np.mean(np.log(scale) - np.log(plan.decision.scale)))
    assert improvement <= claimed + 1e-6
    assert allocation.balanced_gap(problem, scale, 0 * duals, 1.0) == math.inf


def test_weights_share_the_budget_in_proportion() -> None:
    """Twenty equal users in four cells: b_g = (W / w_g) / 20 exactly, and the gap is certified."""
    users, cells = np.divmod(np.arange(80), 4)
    counts = shoal.Counts.from_counts(users, cells, np.full(80, 3))
    plan = shoal.plan(
        counts,
        method="balanced",
        bounds=BOUNDS,
        epsilon=1,
        weights={"3": 10},
        uninformative="keep",
    )
    assert plan.decision.scale == pytest.approx([13 / 20, 13 / 20, 13 / 20, 1.3 / 20], rel=1e-4)
    assert plan.gap is not None
    assert plan.gap < 1e-3


@given(counts=made_counts.small)
@settings(deadline=None)
def test_no_plan_beats_the_lower_bound(counts: shoal.Counts) -> None:
    """Every worst-case error is at least its cell's bound."""
    for method in ("balanced", "equalised", "uniform"):
        plan = shoal.plan(
            counts, bounds=BOUNDS, epsilon=2, method=method, uninformative="keep", min_users=1
        )
        assert (plan.worst_case_error >= plan.lower_bound * (1 - 1e-6)).all()


def test_plans_by_clip_user_stay_within_the_papers_account() -> None:
    """The paper's charge is at most epsilon, ours is lower still."""
    for epsilon in (1, 4, 16):
        wanted = {"method": "clip_user", "epsilon": epsilon, "statistics": ["mean", "variance"]}
        plan = make(3, **wanted)
        assert plan.epsilon <= plan.paper_epsilon * (1 + 1e-6)
        assert 0.999 * epsilon <= plan.paper_epsilon <= epsilon * (1 + 1e-5)
    spared = make(3, method="clip_user", epsilon=6, settings={"spare": "best"})
    assert spared.paper_epsilon <= 6 * (1 + 1e-5)
