"""The least factor at a loss, proved from both sides."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.cells.facts.program import dual_bound
from shoal.cells.planners.optimal.search import least_factor
from tests.support import programs, worst_case_errors


@given(program=programs.small(), epsilon=st.floats(0.05, 20))
@settings(deadline=None, max_examples=40)
def test_the_least_factor_is_proved_from_both_sides(
    program: programs.Program, epsilon: float
) -> None:
    """The plan costs at most epsilon; below the bound HiGHS finds no cheaper one."""
    best = least_factor(program, epsilon, tolerance=1e-3)
    assert best.solution.loss <= epsilon
    errors = programs.exact_errors(program, best.solution.weight, best.solution.noise)
    for error, target in zip(errors, (best.factor * program.target).tolist(), strict=True):
        assert error <= target or target >= 1 / 2
    assert best.factor <= best.lower_bound * (1 + 1e-3)
    assert dual_bound(program.scaled(best.lower_bound), best.solution.duals) > epsilon
    assert programs.by_highs(program.scaled(best.lower_bound * (1 - 1e-6)))[0] > epsilon


@pytest.mark.parametrize("seed", range(3))
def test_one_cell_is_the_closed_form(seed: int) -> None:
    """E_OPT(epsilon) of a single cell (docs/theory/cells.md#limits-of-means)."""
    rng = np.random.default_rng(seed)
    counts = np.ceil(rng.lognormal(2, 1.5, 30)).astype(np.int64)
    one = programs.of_counts(np.arange(30), np.zeros(30, dtype=np.int64), counts, np.ones(1), 1.0)
    for epsilon in np.geomspace(0.068, 30, 8).tolist():
        best, error = least_factor(one, epsilon, 1e-6), worst_case_errors.error(counts, epsilon)
        assert best.lower_bound <= error * (1 + 1e-9)
        assert best.factor == pytest.approx(error, rel=1e-6)


def test_a_loss_too_small_for_any_plan_frees_the_cell() -> None:
    """Below 2/L nothing helps: s e = 1/2, no weights, no loss, proved from below by the jump."""
    counts = np.array([5, 3, 2])
    zeros = np.zeros(3, dtype=np.int64)
    one = programs.of_counts(np.arange(3), zeros, counts, np.array([0.2]), 1.0)
    best = least_factor(one, 2 / 3 - 0.01, tolerance=1e-3)
    assert best.factor == pytest.approx(2.5)
    assert best.factor <= best.lower_bound * (1 + 1e-3)
    assert best.solution.loss == 0
    assert least_factor(one, 2 / 3 + 0.01).factor < 2.5
