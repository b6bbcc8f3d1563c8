"""Least worst-case errors against linear programs and grids of intervals."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from shoal.errors import InputError
from shoal.theory import limits, variance
from tests.support import worst_case_errors

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


@given(counts=st.lists(st.integers(1, 50), min_size=1, max_size=8), epsilon=st.floats(0.05, 20))
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


@pytest.mark.oracle
@given(counts=few_counts, epsilon=epsilons)
def test_numbers_against_the_linear_program(counts: list[int], epsilon: float) -> None:
    """docs/theory/limits.md#means, d = 1; `limits` says the same of many cells at once."""
    found = worst_case_errors.error(np.array(counts), epsilon)
    assert found == pytest.approx(vectors_by_linear_program(counts, epsilon), rel=1e-7)
    cells = limits.least_mean_error(np.zeros(len(counts), int), np.array(counts), 1, epsilon)
    assert found == pytest.approx(cells[0])


@pytest.mark.oracle
@given(counts=few_counts, epsilon=epsilons, dimension=st.integers(2, 5))
def test_erratum_5_vectors_against_the_linear_program(
    counts: list[int], epsilon: float, dimension: int
) -> None:
    """T is the ceil(2d/epsilon)-th largest, a = 0 and b = min(1, T/m)."""
    found = worst_case_errors.error(np.array(counts), epsilon, dimension)
    assert found == pytest.approx(vectors_by_linear_program(counts, epsilon, dimension), rel=1e-7)


@pytest.mark.oracle
def test_erratum_5_as_printed_the_norms_lie_around_a_half_and_err_more() -> None:
    """The printed norms, with the noise that privacy takes, against the corrected ones."""
    m, epsilon, dimension = np.array([10, 4, 1, 1]), 2.0, 2
    most = limits.threshold(m, epsilon, dimension)
    low, high = np.maximum(0, (m - most) / (2 * m)), np.minimum(1, (m + most) / (2 * m))
    noise = 2 * dimension * (m * high).max() / epsilon
    printed = ((m * np.maximum(low, 1 - high)).sum() + noise) / m.sum()
    assert printed > 1.2 * worst_case_errors.error(m, epsilon, dimension)


CASES = list(itertools.product([(3, 1), (2, 2), (5, 1)], [0.5, 1.0, 3.0, 8.0]))


@pytest.mark.oracle
@pytest.mark.parametrize(("counts", "epsilon"), CASES)
def test_no_intervals_on_a_grid_do_better(counts: tuple[int, int], epsilon: float) -> None:
    """Numbers: all pairs of intervals, with the exact bias over all data sets, one-sided too."""
    sides = np.linspace(0, 1, 11)
    pairs = [(a, b) for a in sides for b in sides if a <= b]
    least = min(
        max(
            sum(m * a for m, (a, _) in zip(counts, chosen, strict=True)),
            sum(m * (1 - b) for m, (_, b) in zip(counts, chosen, strict=True)),
        )
        + max(m * (b - a) for m, (a, b) in zip(counts, chosen, strict=True)) / epsilon
        for chosen in itertools.product(pairs, repeat=2)
    ) / sum(counts)
    assert worst_case_errors.error(np.array(counts), epsilon) <= least + 1e-12


@pytest.mark.oracle
@pytest.mark.parametrize(("counts", "epsilon"), CASES)
def test_erratum_5_no_annuli_on_a_grid_do_better(counts: tuple[int, int], epsilon: float) -> None:
    """Vectors of two numbers: all pairs of annuli, with noise for 2b."""
    sides = np.linspace(0, 1, 11)
    pairs = [(a, b) for a in sides for b in sides if a <= b]
    least = min(
        sum(m * max(a, 1 - b) for m, (a, b) in zip(counts, chosen, strict=True))
        + 2 * 2 * max(m * b for m, (_, b) in zip(counts, chosen, strict=True)) / epsilon
        for chosen in itertools.product(pairs, repeat=2)
    ) / sum(counts)
    assert worst_case_errors.error(np.array(counts), epsilon, 2) <= least + 1e-12


@pytest.mark.oracle
@given(
    several=st.lists(st.integers(1, 50), min_size=1, max_size=10),
    epsilon=st.floats(0.05, 20),
    dimension=st.integers(1, 5),
)
def test_intervals_at_the_threshold_attain_the_least_error(
    several: list[int], epsilon: float, dimension: int
) -> None:
    """Bias plus noise of numbers and of vectors in a ball, from the intervals."""
    counts = np.array(several)
    most = limits.threshold(counts, epsilon, dimension)
    if dimension == 1:
        cut = np.maximum(0, counts - most) / (2 * counts)
        noise = (counts * (1 - 2 * cut)).max() / epsilon
        error = ((counts * cut).sum() + noise) / counts.sum()
        assert error == pytest.approx(worst_case_errors.error(counts, epsilon))
        return
    norm = np.minimum(1.0, most / counts)
    noise = dimension * 2 * (counts * norm).max() / epsilon
    error = ((counts * (1 - norm)).sum() + noise) / counts.sum()
    assert error == pytest.approx(worst_case_errors.error(counts, epsilon, dimension))


@pytest.mark.oracle
def test_erratum_4_noise_as_printed_is_not_private() -> None:
    """One user moves from one corner of the annulus to another: ratio e^(2b/(b-a) epsilon)."""
    inner, outer, epsilon = 0.25, 0.75, 1.0
    one, other = outer * np.eye(2)
    output = one

    def log_ratio(sensitivity: float) -> float:
        scale = sensitivity / epsilon
        return float((np.abs(output - other) - np.abs(output - one)).sum() / scale)

    assert log_ratio(outer - inner) == pytest.approx(3 * epsilon)
    assert log_ratio(outer - inner) > epsilon
    assert log_ratio(2 * outer) <= epsilon
    # No two points of the annulus are farther apart, so that the corrected noise is private.
    sample = np.random.default_rng(1).dirichlet([0.2, 0.2], 400)
    norm = np.random.default_rng(2).uniform(inner, outer, (400, 1))
    inside = np.concatenate([sample * norm, inner * np.eye(2), outer * np.eye(2)])
    apart = np.abs(inside[:, None] - inside[None]).sum(axis=2)
    assert apart.max() <= 2 * outer + 1e-12


@pytest.mark.oracle
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


@pytest.mark.oracle
def test_erratum_6_ceilings_of_decimal_budgets() -> None:
    """2/epsilon that is whole but for rounding does not rise to the next whole number."""
    counts = np.arange(1, 200)
    for wanted in range(1, 200):
        assert limits.threshold(counts, 2 / wanted) == 200 - wanted


@pytest.mark.oracle
@given(counts=few_counts, epsilon=epsilons)
def test_the_linear_estimator_has_the_same_error(counts: list[int], epsilon: float) -> None:
    """Weights min(v, T/n) with an offset of half of what is missing."""
    m = np.array(counts)
    most = limits.threshold(m, epsilon)
    w, v = np.minimum(m, most) / m.sum(), m / m.sum()
    middle = (1 - w.sum()) / 2
    off = max(np.maximum(v - w, 0).sum() - middle, np.maximum(w - v, 0).sum() + middle)
    error = off + w.max() / epsilon
    assert error == pytest.approx(worst_case_errors.error(m, epsilon))


@pytest.mark.oracle
@given(counts=few_counts, epsilon=epsilons, more=st.floats(1, 10), dimension=st.integers(1, 3))
def test_more_budget_never_errs_more(
    counts: list[int], epsilon: float, more: float, dimension: int
) -> None:
    """E_OPT does not increase, and a constant is never better than it."""
    m = np.array(counts)
    error = worst_case_errors.error(m, epsilon, dimension)
    assert worst_case_errors.error(m, epsilon * more, dimension) <= error + 1e-12
    assert error <= (0.5 if dimension == 1 else 1) + 1e-12


@pytest.mark.oracle
@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan")])
def test_epsilon_must_be_above_zero(epsilon: float) -> None:
    """There is no threshold otherwise."""
    with pytest.raises(InputError, match="epsilon is"):
        limits.threshold(np.array([1]), epsilon)


@pytest.mark.oracle
def test_extreme_budgets_and_dimensions() -> None:
    """No overflow at either end; a dimension is at least 1."""
    counts = np.array([3, 1])
    assert limits.threshold(counts, 1e-310) == 0
    assert limits.threshold(counts, math.inf) == 3
    with pytest.raises(InputError, match="dimension"):
        limits.threshold(counts, 1.0, 0)
