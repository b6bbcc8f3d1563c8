"""Column generation against a linear program over all sets of levels and a fine grid of outputs."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from shoal.trials.best_table.columns import Program, Solved
from tests.support.loop import loop_over

pytestmark = pytest.mark.oracle

# Least worst variances on evenly spaced levels of [0, 1], by levels and epsilon.
VALUES = {
    (2, 0.5): 3.918, (3, 0.5): 3.980, (5, 0.5): 3.996, (11, 0.5): 4.000,
    (2, 1.0): 0.9207, (3, 1.0): 0.9832, (5, 1.0): 0.9950, (11, 1.0): 0.9972,
    (2, 2.0): 0.1810, (3, 2.0): 0.2140, (5, 2.0): 0.2141, (11, 2.0): 0.2159,
    (2, 4.0): 0.01901, (3, 4.0): 0.02358, (5, 4.0): 0.02957, (11, 4.0): 0.03129,
}  # fmt: skip


def _variances(program: Program, solved: Solved) -> np.ndarray:
    columns = solved.columns
    chance = np.where(columns.likely, program.ratio, 1.0) * columns.mass[:, None]
    assert np.allclose(chance.sum(axis=0), 1, atol=1e-9)
    assert np.allclose((chance * columns.output[:, None]).sum(axis=0), program.levels, atol=1e-9)
    return np.asarray((chance * columns.output[:, None] ** 2).sum(axis=0) - program.levels**2)


def _on_a_grid(program: Program, points: int) -> float:
    """The least value over outputs on a grid, with every set of levels."""
    y, size = program.levels, len(program.levels)
    far = 0.5 + 1.2 / (program.ratio - 1) + 0.5
    grid = np.linspace(-far, far, points)
    sets = np.array(list(itertools.product([1.0, program.ratio], repeat=size)))
    chance = np.repeat(sets, points, axis=0)
    o = np.tile(grid, len(sets))[:, None]
    weights = np.eye(size) if program.priors is None else program.priors
    square = weights @ (chance * o**2).T
    run: Any = linprog
    found = run(
        [*np.zeros(len(o)), 1],
        A_ub=np.hstack([square, -np.ones((len(square), 1))]),
        b_ub=weights @ y**2,
        A_eq=np.hstack([np.vstack([chance.T, (chance * o).T]), np.zeros((2 * size, 1))]),
        b_eq=[*np.ones(size), *y],
        bounds=[(0, None)] * len(o) + [(None, None)],
    )
    return float(found.fun)


@loop_over("case", VALUES)
def test_the_values_of_even_levels(case: tuple[int, float]) -> None:
    """The largest variance and the bound are within 1e-4 of each other."""
    levels, epsilon = case
    program = Program(np.linspace(-0.5, 0.5, levels), None, math.exp(epsilon))
    solved = program.solve()
    worst = float(_variances(program, solved).max())
    assert worst == pytest.approx(VALUES[case], rel=1e-3)
    assert 0 <= worst - solved.certificate.bound(program.levels) <= 1e-4 * worst


@pytest.mark.parametrize("epsilon", [0.5, 1.5, 3.0])
@pytest.mark.parametrize(
    "levels", [(-0.5, 0.5), (-0.5, 0.0, 0.5), (-0.5, -0.3, 0.5), (-0.5, -0.1, 0.2, 0.5)]
)
def test_a_grid_of_outputs_does_not_do_better(levels: tuple[float, ...], epsilon: float) -> None:
    """Outputs on a grid are a restriction; on a fine one they come close."""
    size = len(levels)
    falling = np.exp(-np.arange(size))
    for priors in (None, (falling / falling.sum())[None], np.eye(size) * 0.9 + 0.1 / size):
        program = Program(np.array(levels), priors, math.exp(epsilon))
        solved = program.solve()
        own = _variances(program, solved)
        value = float(own.max() if priors is None else (priors @ own).max())
        grid = _on_a_grid(program, 241)
        assert value <= grid * (1 + 1e-4)
        assert value >= grid * (1 - 0.02)
        assert solved.certificate.bound(program.levels) <= value


def test_one_prior_is_the_prior_of_the_bound() -> None:
    """The mean variance under a prior is bounded under the same prior."""
    prior = np.array([[0.6, 0.25, 0.1, 0.05]])
    program = Program(np.linspace(-0.5, 0.5, 4), prior, math.exp(2))
    assert np.allclose(program.solve().certificate.weight, prior[0], rtol=0, atol=1e-15)


def test_one_output_for_each_set() -> None:
    """Outputs of one set are joined: there are no more of them than that."""
    columns = Program(np.linspace(-0.5, 0.5, 8), None, math.exp(1.0)).solve().columns
    assert len(np.unique(columns.likely, axis=0)) == len(columns.output)


def _uniform_prior(kept: tuple[int, ...], epsilon: float) -> float:
    """Largest variance at 11 even levels with a uniform prior on some of them, by its law."""
    even = np.linspace(0, 1, 11)
    levels, ratio = even[list(kept)], math.exp(epsilon)
    other = 1 / (ratio + len(kept) - 1)
    said = levels.mean() + (levels - levels.mean()) / ((ratio - 1) * other)
    squares = (ratio - 1) * other * said**2 + other * (said**2).sum()
    return float((np.interp(even, levels, squares) - even**2).max())


@pytest.mark.parametrize(
    ("epsilon", "uniform", "table"),
    [(0.5, 4.168, 4.000), (1, 1.171, 0.9972), (2, 0.2489, 0.2159), (4, 0.0397, 0.03129)],
)
def test_the_best_uniform_prior_on_some_of_eleven_levels(
    epsilon: float, uniform: float, table: float
) -> None:
    """Over all sets with both ends: what the best table takes away is said in the docs."""
    inner = [each for size in range(10) for each in itertools.combinations(range(1, 10), size)]
    least = min(_uniform_prior((0, *each, 10), epsilon) for each in inner)
    assert least == pytest.approx(uniform, rel=2e-3)
    assert 0.04 < 1 - table / least < 0.22
