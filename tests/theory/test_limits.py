"""The least error of one cell against a linear program and a grid search."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from shoal.theory import minimax as limits
from shoal.theory import variance

pytestmark = pytest.mark.property


def by_linear_program(counts: list[int], epsilon: float) -> float:
    """Minimise bias plus noise over kept weights w <= v: (1 - sum w)/2 + max w / epsilon."""
    share = np.array(counts) / sum(counts)
    users = len(counts)
    cost = np.append(np.full(users, -0.5), 1 / epsilon)
    above = np.hstack([np.eye(users), -np.ones((users, 1))])
    found = linprog(
        cost, A_ub=above, b_ub=np.zeros(users), bounds=[*((0, v) for v in share), (0, None)]
    )
    assert found.fun is not None
    return 0.5 + float(found.fun)


@given(
    counts=st.lists(st.integers(1, 50), min_size=1, max_size=8),
    epsilon=st.floats(0.05, 20),
)
def test_closed_form_equals_the_linear_program(counts: list[int], epsilon: float) -> None:
    """docs/theory/limits.md#means: T is the ceil(2/epsilon)-th largest."""
    found = limits.least_mean_error(np.zeros(len(counts), int), np.array(counts), 1, epsilon)
    assert found[0] == pytest.approx(by_linear_program(counts, epsilon), rel=1e-7, abs=1e-9)


def test_no_interval_on_a_grid_does_better() -> None:
    """Every choice of intervals [a, b] for two users, on a grid, errs at least as much."""
    sides = np.linspace(0, 1, 11)
    intervals = [(a, b) for a in sides for b in sides if a <= b]
    for counts, epsilon in itertools.product([(3, 1), (2, 2), (5, 1)], [0.5, 1.0, 3.0]):
        least = min(
            sum(m * max(a, 1 - b) for m, (a, b) in zip(counts, pair, strict=True))
            + max(m * (b - a) for m, (a, b) in zip(counts, pair, strict=True)) / epsilon
            for pair in itertools.product(intervals, repeat=2)
        ) / sum(counts)
        found = limits.least_mean_error(np.zeros(2, int), np.array(counts), 1, epsilon)[0]
        assert found <= least + 1e-12


def test_cells_do_not_mix() -> None:
    """Two cells at once give what each gives alone."""
    cell, counts = np.array([0, 1, 0, 1, 1]), np.array([5, 1, 2, 1, 7])
    together = limits.least_mean_error(cell, counts, 2, 0.9)
    for g in (0, 1):
        alone = limits.least_mean_error(np.zeros((cell == g).sum(), int), counts[cell == g], 1, 0.9)
        assert together[g] == alone[0]


@settings(max_examples=150, deadline=None)
@given(
    counts=st.lists(st.integers(1, 60), min_size=1, max_size=15),
    epsilon=st.floats(0.2, 60),
)
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
