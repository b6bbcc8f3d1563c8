"""The optimal plan against closed forms, HiGHS, the paper's setting and the flights."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from shoal_studies.occupancies import itms_many, synthetic

import shoal
from shoal.cells.allocation import balanced
from shoal.cells.allocation_problem import Problem
from shoal.cells.lp import linear
from shoal.cells.lp.problem import TargetProblem
from shoal.cells.lp.solution import Solution, certify, verify
from shoal.cells.lp.solve import Method, solve
from shoal.cells.lp.target_scaling import least_factor
from shoal.errors import InputError
from shoal.theory import limits
from tests.support import targets, worst_case_errors

if TYPE_CHECKING:
    from shoal.cells.lp.problem import Floats

pytestmark = pytest.mark.oracle

ONE = TargetProblem(
    np.array([0, 1]), np.array([0, 0]), np.array([0.75, 0.25]), 2, 1, np.array([0.4])
)


def papers(gamma: float, seed: int) -> TargetProblem:
    """The synthetic occupancy at the error of loss 1 per cell, the same for all cells."""
    occupancy = synthetic(gamma, seed)
    share = occupancy.count / occupancy.totals[occupancy.cell]
    return targets.of_occupancy(occupancy, np.full(occupancy.n_cells, share.max()))


@cache
def flights(cells: tuple[str, ...], least: int) -> TargetProblem:
    """Cells of the flights of 2013 with at least so many flights; targets are all 1."""
    options: Any = {"bounds": (0, 700), "missing": "public", "by": [*cells]}
    if "hour" in cells:
        options["by"] = ["origin", shoal.hour_of_day("time_hour")]
    data = str(files("shoal") / "datasets" / "flights_2013.parquet")
    occupancy = shoal.Records(data, user="tailnum", value="speed", **options).counts()
    keep = occupancy.totals[occupancy.cell] >= least
    cell = np.unique(occupancy.cell[keep], return_inverse=True)[1]
    ones = np.ones(int(cell.max()) + 1)
    return targets.of_counts(occupancy.user[keep], cell, occupancy.count[keep], ones)


@pytest.mark.parametrize("seed", range(4))
def test_one_cell_is_the_closed_form(seed: int) -> None:
    """At the error E_OPT(epsilon) the least loss is epsilon.

    Source: docs/theory/limits.md#means.
    """
    rng = np.random.default_rng(seed)
    counts = np.ceil(rng.lognormal(2, 1.5, 30)).astype(np.int64)
    user, cell = np.arange(30), np.zeros(30, dtype=np.int64)
    for epsilon in np.geomspace(0.068, 30, 12).tolist():
        error = worst_case_errors.error(counts, epsilon)
        assert limits.least_mean_error(cell, counts, 1, epsilon)[0] == pytest.approx(error)
        problem = targets.of_counts(user, cell, counts, np.array([error]))
        exact = linear.solve(problem)
        assert exact.loss == pytest.approx(epsilon, rel=1e-9)
        assert exact.lower_bound == pytest.approx(epsilon, rel=1e-9)
        assert solve(problem, 1e-7).loss == pytest.approx(epsilon, rel=1e-7)
        found = least_factor(replace(problem, target=np.ones(1)), epsilon, 1e-7)
        assert found.lower_bound <= error * (1 + 1e-9)
        assert found.factor == pytest.approx(error, rel=1e-6)


def test_a_loss_too_small_for_any_plan_frees_the_cell() -> None:
    """Below 2/L nothing helps: s e = 1/2, no weights, no loss, proved from below by the jump."""
    counts = np.array([5, 3, 2])
    problem = targets.of_counts(np.arange(3), np.zeros(3, dtype=np.int64), counts, np.array([0.2]))
    found = least_factor(problem, 2 / 3 - 0.01, tolerance=1e-3)
    assert found.factor == pytest.approx(2.5)
    assert found.gap <= 1e-3
    assert found.solution.loss == 0
    assert not found.solution.weight.any()
    assert least_factor(problem, 2 / 3 + 0.01).factor < 2.5


def random_problem(seed: int) -> TargetProblem:
    """An occupancy of buses with targets from 0.05 to 0.55 and costs from 0.3 to 3."""
    occupancy, rng = itms_many(seed), np.random.default_rng(seed)
    target = rng.uniform(0.05, 0.55, occupancy.n_cells)
    return targets.of_occupancy(occupancy, target, rng.uniform(0.3, 3, len(occupancy.count)))


@pytest.mark.parametrize("seed", range(3))
def test_all_methods_agree(seed: int) -> None:
    """HiGHS, interior points and dual variables: three solvers that share only the judge."""
    problem = random_problem(seed)
    exact = linear.solve(problem)
    assert exact.gap < 1e-7
    inside = solve(problem, 1e-6, method="interior")
    assert inside.gap < 1e-6
    assert inside.loss == pytest.approx(exact.loss, rel=1e-6)
    duals = solve(problem, 0.03, method="first_order", seconds=20)
    assert duals.gap <= 0.03
    assert exact.loss <= duals.loss * (1 + 1e-9)
    for found in (exact, inside, duals):
        assert verify(problem, found) == ()
        assert not found.weight[problem.target[problem.cell] >= 1 / 2].any()


@pytest.mark.parametrize("method", ["interior", "first_order"])
def test_prices_of_a_similar_problem_are_a_start(method: Method) -> None:
    """Started from given dual variables, also useless ones, a method ends at the same loss."""
    problem = random_problem(0)
    exact = linear.solve(problem)
    for start in (exact.duals, np.ones(problem.n_users)):
        found = solve(problem, 0.03, method=method, seconds=20, start_duals=start)
        assert found.gap <= 0.03
        assert found.lower_bound <= exact.loss <= found.loss * (1 + 1e-9)


def test_costs_are_losses() -> None:
    """Costs of 3 cost three times as much; a dearer user keeps less."""
    problem = replace(random_problem(1), cost=np.ones(1))
    once, thrice = solve(problem, 1e-6), solve(replace(problem, cost=np.full(1, 3.0)), 1e-6)
    assert thrice.loss == pytest.approx(3 * once.loss, rel=1e-5)
    equal = replace(ONE, share=np.array([0.5, 0.5]), target=np.array([0.3]))
    dearer = linear.solve(replace(equal, cost=np.array([10.0, 1.0])))
    assert dearer.weight[0] < dearer.weight[1]


@pytest.mark.parametrize(("gamma", "most"), [(3, 0.45), (9, 0.17)])
def test_the_papers_setting_costs_a_fraction(gamma: float, most: float) -> None:
    """docs/theory/optimal.md: 12 by the paper's accounting at the same worst-case error."""
    found = solve(papers(gamma, seed=1))
    assert found.loss <= most
    assert found.gap <= 0.01


@pytest.mark.full
@pytest.mark.parametrize(
    ("cells", "least", "most"), [(("origin", "hour"), 200, 0.75), (("dest",), 200, 0.75)]
)
def test_flights_err_less_than_equalised(cells: tuple[str, ...], least: int, most: float) -> None:
    """One error for all cells at a total loss of 1: at least a quarter below `equalised`."""
    problem = flights(cells, least)
    equalised = float(np.bincount(problem.user, problem.share).max())
    found = least_factor(problem, 1.0)
    assert found.gap <= 0.01
    assert found.solution.loss <= 1
    assert found.factor <= most * equalised


@pytest.mark.full
@pytest.mark.parametrize(
    ("cells", "least", "most"), [(("origin", "hour"), 200, 0.88), (("dest",), 0, 0.95)]
)
def test_flights_err_less_than_balanced(cells: tuple[str, ...], least: int, most: float) -> None:
    """Every cell errs by the same part less than `balanced` lets it, at a total loss of 1."""
    problem = flights(cells, least)
    ones = np.ones(problem.n_cells)
    fair = balanced.solve(Problem(problem.user, problem.cell, problem.share, problem.n_users, ones))
    found = least_factor(replace(problem, target=fair.noise_scale), 1.0)
    assert found.gap <= 0.01
    assert found.factor <= most


def test_lies_are_found() -> None:
    """Each part of a solution that does not hold is named."""
    sound = linear.solve(ONE)
    lies: dict[str, dict[str, Floats | float]] = {
        "weights outside": {"weight": np.array([0.25, 0.26])},
        "above its target": {"noise_scale": sound.noise_scale + 1e-9},
        "negative noise": {"noise_scale": np.array([-0.1])},
        "loss is larger": {"loss": sound.loss * (1 - 1e-9)},
        "negative dual variables": {"duals": np.array([1.0, -1e-9])},
        "does not follow": {"lower_bound": sound.loss * 1.001},
    }
    assert verify(ONE, sound) == ()
    for words, changes in lies.items():
        wrong: Any = changes
        found = verify(ONE, replace(sound, **wrong))
        assert any(words in each for each in found), words


def test_nonsense_becomes_feasible() -> None:
    """Any weights and any dual variables are made a plan with a valid, useless bound."""
    for weight in (np.array([-1.0, 9.0]), np.zeros(2), np.full(2, 1e-9)):
        made = certify(ONE, weight, np.array([-1.0, 0.0]))
        assert verify(ONE, made) == ()
        assert made.lower_bound == 0
        assert made.gap == np.inf


def test_nothing_to_do_costs_nothing() -> None:
    """Targets from 1/2 on: no weights, no noise, no loss."""
    for method in ("linear", "interior", "first_order"):
        found: Solution = solve(ONE.scaled(1.25), method=method)
        assert (found.loss, found.gap, found.noise_scale.tolist()) == (0.0, 0.0, [0.0])


@pytest.mark.parametrize(
    "changes",
    [
        {"share": np.array([0.75, 0.2])},
        {"share": np.array([1.0, 0.0])},
        {"share": np.array([np.nan, 0.25])},
        {"user": np.array([0, 2])},
        {"cell": np.array([0, -1])},
        {"user": np.array([0])},
        {"target": np.array([0.0])},
        {"target": np.array([np.nan])},
        {"target": np.array([0.1, 0.1])},
        {"cost": np.array([1.0, 0.0])},
        {"cost": np.array([1.0, np.inf])},
        {"cost": np.ones(3)},
    ],
)
def test_arrays_that_do_not_fit_are_refused(changes: dict[str, Any]) -> None:
    """With the words of every error."""
    with pytest.raises(InputError, match="allowed"):
        replace(ONE, **changes)


def test_wishes_that_make_no_sense_are_refused() -> None:
    """Tolerance, loss, method."""
    wrong: Any = "simplex"
    for wanted in (
        lambda: solve(ONE, 0),
        lambda: solve(ONE, method=wrong),
        lambda: least_factor(ONE, 0),
        lambda: least_factor(ONE, np.inf),
        lambda: least_factor(ONE, 1, -1),
    ):
        with pytest.raises(InputError, match="allowed"):
            wanted()
