"""Predictions from labels, against fits that really leave a cell out."""

import numpy as np
import pytest

from shoal.theory.label_effects import fitted_without, useful_columns


def grid(rows: int, columns: int) -> list[np.ndarray]:
    """Every row with every column."""
    return [np.repeat(np.arange(rows), columns), np.tile(np.arange(columns), rows)]


def test_the_own_estimate_does_not_decide_the_prediction() -> None:
    """A cell that is moved far away hardly moves its own prediction, and does move others'."""
    rng = np.random.default_rng(1)
    labels = grid(8, 9)
    truth = rng.normal(0, 5, 8)[labels[0]] + rng.normal(0, 3, 9)[labels[1]]
    variance = np.full(72, 0.5)
    estimate = truth + rng.normal(0, 0.5**0.5, 72)
    plain = fitted_without(estimate, variance, labels)
    moved = estimate.copy()
    moved[10] += 3
    again = fitted_without(moved, variance, labels)
    assert abs(again[10] - plain[10]) < 0.25
    assert np.abs(again - plain).max() > 0.2


@pytest.mark.parametrize("seed", range(3))
def test_predictions_are_nearer_than_noisy_estimates(seed: int) -> None:
    """Where labels explain the cells and noise is large."""
    rng = np.random.default_rng(seed)
    labels = grid(10, 12)
    truth = rng.normal(0, 5, 10)[labels[0]] + rng.normal(0, 3, 12)[labels[1]]
    estimate = truth + rng.normal(0, 4, 120)
    found = fitted_without(estimate, np.full(120, 16.0), labels)
    assert np.abs(found - truth).mean() < 0.6 * np.abs(estimate - truth).mean()


def test_labels_that_say_nothing_give_the_common_mean() -> None:
    """Effects without a variance are none."""
    rng = np.random.default_rng(5)
    estimate = 7 + rng.normal(0, 1, 120)
    found = fitted_without(estimate, np.ones(120), grid(10, 12))
    assert np.abs(found - 7).mean() < 0.35


def test_equal_estimates_are_no_division_by_zero() -> None:
    """All effects vanish; whatever the noise."""
    for noise in (1e-12, 1.0, 1e12):
        found = fitted_without(np.full(12, 3.0), np.full(12, noise), grid(3, 4))
        np.testing.assert_allclose(found, 3.0, rtol=1e-6)


def test_labels_that_explain_all_without_noise() -> None:
    """Where rounding hides that a matrix is positive definite."""
    labels = grid(10, 12)
    truth = 3.0 * labels[0] + labels[1]
    found = fitted_without(truth, np.full(120, 1e-20), labels)
    np.testing.assert_allclose(found, truth, atol=0.1)


def test_columns_with_a_level_a_cell_are_left_out() -> None:
    """They would predict each cell from itself."""
    labels = [*grid(3, 4), np.arange(12), np.zeros(12, dtype=np.int64)]
    assert [int(each.max()) + 1 for each in useful_columns(labels)] == [3, 4]
