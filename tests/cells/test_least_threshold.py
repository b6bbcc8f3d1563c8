"""Truncated users against every threshold, where the best one is 0 as well."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal import mean

# Ticks, lattice steps and scales of 24 bits, over the width.
ROUNDINGS = 1e-5


def least(counts: list[int], epsilon: float) -> float:
    """Bias and noise over the width, by trying every threshold from 0 on."""
    m = np.array(counts)
    return min(
        float(np.maximum(m - most, 0).sum() / 2 + most / epsilon) / sum(counts)
        for most in range(max(counts) + 1)
    )


@given(counts=st.lists(st.integers(1, 12), min_size=1, max_size=6), epsilon=st.floats(0.05, 4))
def test_no_threshold_has_a_smaller_error(counts: list[int], epsilon: float) -> None:
    """Of one cell; at most half the width, whatever epsilon is."""
    users = np.repeat(np.arange(len(counts)), counts)
    found = mean.worst_case_optimal(
        np.full(len(users), 0.3), users, bounds=(0, 1), epsilon=epsilon, noise=shoal.Simulated(1)
    )
    error = found.bias_bound + found.noise_scale
    assert error <= least(counts, epsilon) + ROUNDINGS
    assert error <= 0.5 + ROUNDINGS
    assert found.epsilon <= epsilon


def test_below_two_over_the_users_everybody_is_in_the_middle() -> None:
    """The middle costs nobody anything, and is what is released."""
    found = mean.worst_case_optimal([9.0, 8.0, 9.0], [1, 2, 3], bounds=(0, 10), epsilon=0.6)
    assert (found.parameters["threshold"], found.epsilon) == ((0,), 0)
    assert found.value == pytest.approx(5, abs=1e-3)
    assert found.interval == pytest.approx((0, 10), abs=1e-3)


def test_vectors_of_nobody_cost_nothing() -> None:
    """Below 2d/L the zero vector has the least error, U: noise would only add to it."""
    points = np.full((3, 2), 0.5)
    found = mean.vector(points, [1, 2, 3], bounds=(0, 1), epsilon=1)
    assert (found.threshold, found.epsilon) == (0, 0)
    assert found.worst_case_error <= 1 + ROUNDINGS
    assert found.value == pytest.approx((0, 0), abs=1e-3)
    assert mean.vector(points, [1, 2, 3], bounds=(0, 1), epsilon=1.4).threshold == 1
