"""What caps cost, against their definitions user by user."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cells import caps

pytestmark = pytest.mark.property

several_counts = st.lists(st.integers(1, 60), min_size=1, max_size=12)


def surrogate(counts: np.ndarray, caps: np.ndarray) -> np.ndarray:
    """Paper 002, equation (19): 1 - K(m)/n + max(m, mean count)/m*."""
    left_out = 1 - caps.kept(counts, caps) / counts.sum()
    return np.asarray(left_out + np.maximum(caps, counts.mean()) / counts.max())


@given(several=several_counts, epsilon=st.floats(0.01, 10))
def test_objectives_are_their_definitions(several: list[int], epsilon: float) -> None:
    """All caps at once, also beyond the largest count."""
    counts, caps = np.array(several), np.arange(1, 70)
    n = sum(several)
    kept = np.array([sum(min(m, cap) for m in several) for cap in caps.tolist()])
    assert caps.kept(counts, caps).tolist() == kept.tolist()
    np.testing.assert_allclose(
        caps.minimax_error(counts, caps, epsilon),
        1 - kept / n + caps / (epsilon * kept),
        atol=1e-12,
    )
    np.testing.assert_allclose(capping.levy_objective(counts, caps), kept / np.sqrt(caps))


def test_caps_of_any_shape() -> None:
    """A number gives a number, a table a table."""
    counts = np.array([5, 1, 2])
    assert caps.kept(counts, 2).shape == ()
    assert caps.minimax_error(counts, np.array([[1, 2], [3, 9]]), 1.0).shape == (2, 2)


def test_erratum_10_the_surrogate_has_kinks_inside() -> None:
    """Counts (1, 1, 10): 4 gives 0.9, the ends 1.15 and 1; m_q, with q = n/m* = 1.2, is an end."""
    found = surrogate(np.array([1, 1, 10]), np.arange(1, 11))
    assert found[[0, 3, 9]] == pytest.approx([1.15, 0.9, 1.0])
    assert found.argmin() == 3


@given(several=several_counts)
def test_the_surrogate_is_convex(several: list[int]) -> None:
    """Second differences over all whole caps, on a grid that has the mean count as a point."""
    finer = np.array(several) * len(several)
    caps = np.arange(1, max(several) * len(several) + 1)
    bends = np.diff(surrogate(finer, caps), 2)
    assert (bends >= -1e-9).all()
