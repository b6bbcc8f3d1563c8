"""Bias of linear estimators against enumeration of all small data sets."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shoal.cells.contributions.truncated_users import TruncatedUsers

from shoal.cells.weights import linear
from shoal.data.occupancy import Counts
from shoal.theory import bias

pytestmark = pytest.mark.property


def test_kept_mean_over_all_data_sets() -> None:
    """(n - K)/n is the largest difference of the two means, for all n <= 6."""
    for n in range(1, 7):
        values = np.indices((3,) * n) / 2
        for kept in range(1, n + 1):
            apart = np.abs(values.mean(axis=0) - values[:kept].mean(axis=0)).max()
            found = bias.kept_mean(np.array([kept]), np.array([n]))[0]
            assert found == pytest.approx(apart, abs=1e-12)
            assert found == float(Fraction(n - kept, n))


@given(
    users=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=4),
    total=st.integers(1, 30),
)
def test_linear_is_the_most_over_all_data_sets(users: list[tuple[int, int]], total: int) -> None:
    """The difference is linear in every user's mean: the corners of the cube decide."""
    counts, weights = np.array(users).T
    occupancy = Counts.from_counts(range(len(users)), [0] * len(users), counts.tolist())
    found = linear(occupancy, np.array([0]), weights, np.array([total])).bias
    apart = occupancy.count / counts.sum() - weights / total
    most = max(abs(apart @ corner) for corner in itertools.product((0, 1), repeat=len(users)))
    assert found.tolist() == pytest.approx([most], abs=1e-12)


@given(several=st.lists(st.integers(1, 9), min_size=1, max_size=5), most=st.integers(0, 9))
def test_what_own_intervals_leave_out_lies_in_the_middle(several: list[int], most: int) -> None:
    """Half of the missing mass: over users' means at both ends and in the middle."""
    counts = np.array(several)
    occupancy = Counts.from_counts(range(len(counts)), [0] * len(counts), several)
    parameters = {"threshold": np.array([min(most, max(several))])}
    found = TruncatedUsers().design(occupancy, np.array([0]), parameters).bias
    half = np.minimum(counts, most) / (2 * counts)
    apart = max(
        abs(counts @ (np.clip(means, 0.5 - half, 0.5 + half) - means)) / counts.sum()
        for means in itertools.product((0.0, 0.5, 1.0), repeat=len(counts))
    )
    assert found.tolist() == pytest.approx([apart], abs=1e-12)
