"""Least worst-case errors against linear programs and grids of intervals."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from shoal.errors import InputError
from shoal.theory import limits, variance
from tests.support import worst_case_errors


def test_cells_do_not_mix() -> None:
    """Two cells at once give what each gives alone."""
    cell, counts = np.array([0, 1, 0, 1, 1]), np.array([5, 1, 2, 1, 7])
    together = limits.least_mean_error(cell, counts, 2, 0.9)
    for g in (0, 1):
        alone = limits.least_mean_error(np.zeros((cell == g).sum(), int), counts[cell == g], 1, 0.9)
        assert together[g] == alone[0]


@settings(max_examples=150, deadline=None)
@given(counts=st.lists(st.integers(1, 60), min_size=1, max_size=15), epsilon=st.floats(0.2, 60))
def test_the_least_error_of_a_variance(counts: list[int], epsilon: float) -> None:
    """No threshold on the weights of a variance does better, whatever plan is known."""
    shares = np.array(counts) / sum(counts)
    errors = []
    for most in np.linspace(0, shares.max(), 200):
        weight = np.minimum(shares, most)
        kept = weight.sum()
        bias = variance.mass_bias(np.array([1 - kept]), np.array([1 - kept]))[0]
        moved = variance.mass_sensitivity(weight, np.full(len(weight), kept)).max()
        errors.append(float(bias + moved / epsilon))
    known = np.array([min(errors)])
    cell, number = np.zeros(len(counts), dtype=np.int64), np.array(counts)
    least = limits.least_variance_error(cell, number, 1, epsilon, known)[0]
    assert least <= known[0] * (1 + 1e-9)
    # Close where the plan misses little and nobody is heavy.
    if known[0] < 0.1 and shares.max() < 0.1:
        assert least >= 0.8 * known[0]


few_counts = st.lists(st.integers(1, 50), min_size=1, max_size=7)
epsilons = st.floats(0.05, 20)


def vectors_by_linear_program(counts: list[int], epsilon: float, dimension: int = 1) -> float:
    """Least bias plus noise over a, b, the bias t >= a, 1 - b of each user, and the noise s."""
    m, users = np.array(counts, dtype=float), len(counts)
    one, none = np.eye(users), np.zeros((users, users))
    last = np.zeros((users, 1))
    # Two vectors of norm b are 2b apart, however large a is; two numbers only b - a.
    apart = -np.diag(m) if dimension == 1 else none
    factor = 1 if dimension == 1 else 2
    rows = np.block(
        [
            [one, none, -one, last],
            [none, -one, -one, last],
            [one, -one, none, last],
            [factor * apart, factor * np.diag(m), none, last - 1],
        ]
    )
    right = np.concatenate([np.zeros(users), -np.ones(users), np.zeros(2 * users)])
    cost = np.concatenate([np.zeros(2 * users), m, [dimension / epsilon]])
    found = linprog(
        cost, A_ub=rows, b_ub=right, bounds=[(0, 1)] * 2 * users + [(0, None)] * (users + 1)
    )
    assert found.fun is not None
    return float(found.fun) / sum(counts)


@given(counts=few_counts, epsilon=epsilons)
def test_numbers_against_the_linear_program(counts: list[int], epsilon: float) -> None:
    """docs/theory/cells.md#limits-of-means, d = 1; `limits` says the same of many cells at once."""
    found = worst_case_errors.error(np.array(counts), epsilon)
    assert found == pytest.approx(vectors_by_linear_program(counts, epsilon), rel=1e-7)
    cells = limits.least_mean_error(np.zeros(len(counts), int), np.array(counts), 1, epsilon)
    assert found == pytest.approx(cells[0])


@given(counts=few_counts, epsilon=epsilons, dimension=st.integers(2, 5))
def test_erratum_5_vectors_against_the_linear_program(
    counts: list[int], epsilon: float, dimension: int
) -> None:
    """T is the ceil(2d/epsilon)-th largest, a = 0 and b = min(1, T/m)."""
    found = worst_case_errors.error(np.array(counts), epsilon, dimension)
    assert found == pytest.approx(vectors_by_linear_program(counts, epsilon, dimension), rel=1e-7)


def test_erratum_6_where_the_threshold_ends() -> None:
    """T is the largest count from epsilon = 2d on, and 0 below 2d/L."""
    counts = np.array([9, 5, 4, 2])
    for dimension in (1, 2, 3):
        edge = 2.0 * dimension
        assert limits.threshold(counts, edge, dimension) == 9
        assert limits.threshold(counts, math.nextafter(edge, 0), dimension) == 9
        assert limits.threshold(counts, edge * 0.999, dimension) == 5
        assert limits.threshold(counts, edge / 4, dimension) == 2
        assert limits.threshold(counts, edge / 4 * 0.999, dimension) == 0
        # As printed the largest count would come from 2d/L on.
        assert limits.threshold(counts, edge / 4, dimension) != counts.max()


def test_erratum_6_ceilings_of_decimal_budgets() -> None:
    """2/epsilon that is whole but for rounding does not rise to the next whole number."""
    counts = np.arange(1, 200)
    for wanted in range(1, 200):
        assert limits.threshold(counts, 2 / wanted) == 200 - wanted


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan")])
def test_epsilon_must_be_above_zero(epsilon: float) -> None:
    """There is no threshold otherwise."""
    with pytest.raises(InputError, match="epsilon is"):
        limits.threshold(np.array([1]), epsilon)


def test_extreme_budgets_and_dimensions() -> None:
    """No overflow at either end; a dimension is at least 1."""
    counts = np.array([3, 1])
    assert limits.threshold(counts, 1e-310) == 0
    assert limits.threshold(counts, math.inf) == 3
    with pytest.raises(InputError, match="dimension"):
        limits.threshold(counts, 1.0, 0)
