"""Least variances: known values, a linear program, the dual bound, randomised response."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from shoal.arrays import Floats
from shoal.errors import InputError
from shoal.trials import Domain, Expected, Experiment
from shoal.trials.best_table import Proof, TableColumns, best_table, whole
from shoal.trials.unit_table import least_table

pytestmark = pytest.mark.oracle

# Least worst variances on evenly spaced levels of [0, 1], by levels and epsilon.
VALUES = {
    (2, "1"): 0.92067, (2, "1/100"): 9999.92,
    (3, "1/2"): 3.980, (11, "1/2"): 4.000, (3, "1"): 0.9832, (5, "1"): 0.9950, (11, "1"): 0.9972,
    (5, "2"): 0.2141, (11, "2"): 0.2159, (3, "4"): 0.02358, (11, "4"): 0.03129, (32, "4"): 0.03172,
}  # fmt: skip


def _known(levels: Floats, epsilon: Fraction, weights: Floats | None) -> tuple[float, float]:
    """Worst or weighted variance, and what none is below."""
    table, proof = best_table(levels, epsilon, weights)
    found = table.variances.max() if weights is None else weights @ table.variances
    return float(found), proof.bound(levels)


@pytest.mark.parametrize("case", VALUES)
def test_the_values_of_even_levels(case: tuple[int, str]) -> None:
    """Whole numbers and the bound are within 1e-4 of each other."""
    levels, epsilon = case
    worst, bound = _known(np.linspace(0, 1, levels), Fraction(epsilon), None)
    assert worst == pytest.approx(VALUES[case], rel=1e-3)
    assert 0 <= worst - bound <= 1e-4 * worst


def _on_a_grid(levels: Floats, ratio: float, weights: Floats, points: int) -> float:
    """The least value over outputs on a grid, with every set of levels likelier by the ratio."""
    size, far = len(levels), 1 + 1.2 / (ratio - 1)
    sets = np.array(list(itertools.product([1.0, ratio], repeat=size)))
    chance = np.repeat(sets, points, axis=0)
    o = np.tile(np.linspace(-far, far, points), len(sets))[:, None]
    square = weights @ (chance * o**2).T
    run: Any = linprog
    found = run(
        [*np.zeros(len(o)), 1],
        A_ub=np.hstack([square, -np.ones((len(square), 1))]),
        b_ub=weights @ levels**2,
        A_eq=np.hstack([np.vstack([chance.T, (chance * o).T]), np.zeros((2 * size, 1))]),
        b_eq=[*np.ones(size), *levels],
        bounds=[(0, None)] * len(o) + [(None, None)],
    )
    return float(found.fun)


@pytest.mark.parametrize("epsilon", ["1/2", "3"])
@pytest.mark.parametrize("levels", [(-0.5, -0.3, 0.5), (-0.5, -0.1, 0.2, 0.5)])
def test_a_grid_of_outputs_does_not_do_better(levels: tuple[float, ...], epsilon: str) -> None:
    """Outputs on a grid are a restriction; on a fine one they come close."""
    own, falling = np.array(levels), np.exp(-np.arange(len(levels)))
    for weights in (None, falling / falling.sum()):
        value, bound = _known(own, Fraction(epsilon), weights)
        rows = np.eye(len(own)) if weights is None else weights[None]
        grid = _on_a_grid(own, math.exp(Fraction(epsilon)), rows, 241)
        assert grid * (1 - 0.02) <= value <= grid * (1 + 1e-4)
        assert bound <= value


RNG = np.random.default_rng(7)


def _any(levels: int) -> Proof:
    weight = RNG.dirichlet(np.ones(levels))
    slope, total = RNG.normal(size=levels), RNG.normal(scale=0.3, size=levels)
    return Proof(weight=weight, slope=slope, total=total)


@pytest.mark.parametrize("levels", [2, 7, 20])
def test_the_least_of_a_curve_is_that_of_a_fine_grid(levels: int) -> None:
    """No point of a grid lies below the exact minimum, which is attained; mended, none below 0."""
    for ratio in (1.1, math.e, 50.0):
        dual = _any(levels)
        least, at, _ = dual.pieces(ratio)

        def curve(output: Floats, dual: Proof = dual, ratio: float = ratio) -> Floats:
            o = output[:, None]
            h = dual.weight * o**2 - dual.slope * o - dual.total
            return np.asarray((h + (ratio - 1) * np.minimum(h, 0)).sum(axis=1))

        far = 2 + float(np.abs(at).max())
        assert float(least.min()) <= curve(np.linspace(-far, far, 100_001)).min() + 1e-9
        assert np.allclose(curve(at), least, rtol=1e-9, atol=1e-9)
        assert float(dual.repaired(ratio).pieces(ratio)[0].min()) >= 0


def test_no_unbiased_table_beats_a_bound() -> None:
    """Weak duality for random dual variables and randomised response."""
    for size, epsilon in itertools.product((2, 6), (0.3, 3.0)):
        y, more = np.sort(RNG.uniform(-0.5, 0.5, size)), math.exp(epsilon) - 1
        chance = (1 + more * np.eye(size)) / (more + size)
        variance = chance @ ((y * (more + size) - y.sum()) / more) ** 2 - y**2
        for _ in range(50):
            dual = _any(size).repaired(math.exp(epsilon))
            assert dual.least(y) <= dual.weight @ variance + 1e-9


def test_an_expectation_lowers_the_mean_variance() -> None:
    """What is expected counts, and the worst level may be worse for it."""
    domain, expected = Domain.counts(0, 15), Expected(mean=2, sd=1.5)
    study = Experiment([0, 1] * 50)
    plain = study.table(domain, 4).response_table.variances
    plan = study.table(domain, 4, expected=expected)
    weights, own = plan.chosen.proof.mean_of, plan.response_table.variances
    assert weights @ own < 0.75 * (weights @ plain)
    assert own.max() > plain.max()
    assert plan.bound <= plan.variance <= plan.bound * (1 + 2e-4)
    assert "its mean expected variance is" in plan.reason


def test_levels_in_use() -> None:
    """Few are evenly spaced; of many no more than 32 are used unless asked for."""
    wide = Domain.counts(0, 80)
    assert least_table(wide, Fraction(1), 3, None).kept.tolist() == [0, 40, 80]
    assert len(least_table(wide, Fraction(1, 2), "auto", None).kept) == 32
    with pytest.raises(InputError, match="81 levels"):
        least_table(wide, Fraction(1), "all", None)
    with pytest.raises(InputError, match="at most 64"):
        least_table(wide, Fraction(1), 65, None)


@pytest.mark.parametrize("epsilon", ["1/101", "9"])
def test_losses_beyond_the_solver_are_refused(epsilon: str) -> None:
    """Before anything is drawn."""
    with pytest.raises(InputError, match='mechanism="uniform_prior"'):
        best_table(np.array([0.0, 1.0]), Fraction(epsilon))


def test_columns_that_lose_more_or_say_nothing_are_refused() -> None:
    """Masses that leave a column without a mean."""
    likely = np.array([[True, False], [False, True]])
    columns = TableColumns(np.array([0.0, 0.0]), likely, np.array([0.9, 0.9]))
    with pytest.raises(InputError):
        whole(np.array([0.0, 1.0]), columns, Fraction(1))
