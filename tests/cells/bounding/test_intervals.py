"""Intervals with the least worst-case error, and the projection to an annulus."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cells.bounding import intervals
from shoal.theory import worst_case

pytestmark = pytest.mark.property

several_counts = st.lists(st.integers(1, 50), min_size=1, max_size=10)
epsilons = st.floats(0.05, 20)


@given(several=several_counts, epsilon=epsilons)
def test_numbers_have_the_least_error(several: list[int], epsilon: float) -> None:
    """Bias plus noise of the intervals themselves is `worst_case.error`."""
    counts = np.array(several)
    low, high = intervals.worst_case_optimal(counts, epsilon)
    most = worst_case.threshold(counts, epsilon)
    np.testing.assert_allclose(low, np.maximum(0, (counts - most) / (2 * counts)))
    np.testing.assert_allclose(high, np.minimum(1, (counts + most) / (2 * counts)))
    assert ((low >= 0) & (low <= high) & (high <= 1)).all()
    cut = (counts * np.maximum(low, 1 - high)).sum()
    error = (cut + (counts * (high - low)).max() / epsilon) / counts.sum()
    assert error == pytest.approx(worst_case.error(counts, epsilon))


@given(several=several_counts, epsilon=epsilons, dimension=st.integers(2, 5))
def test_vectors_have_the_least_error(several: list[int], epsilon: float, dimension: int) -> None:
    """The same in the ball, with noise for 2b on each of d numbers, and in the cube."""
    counts = np.array(several)
    low, high = intervals.worst_case_optimal_ball(counts, epsilon, dimension)
    assert low == 0
    noise = dimension * 2 * (counts * high).max() / epsilon
    error = ((counts * (1 - high)).sum() + noise) / counts.sum()
    assert error == pytest.approx(worst_case.error(counts, epsilon, dimension))

    start, stop = intervals.worst_case_optimal_cube(counts, epsilon, dimension)
    noise = (counts * (stop - start)).max() * dimension / epsilon
    error = dimension * ((counts * start).sum() + noise) / counts.sum()
    assert error == pytest.approx(worst_case.error_in_cube(counts, epsilon, dimension))


@given(several=several_counts, epsilon=epsilons, dimension=st.integers(1, 5))
def test_the_cube_is_a_number_with_its_share(
    several: list[int], epsilon: float, dimension: int
) -> None:
    """The intervals of epsilon/d."""
    counts = np.array(several)
    cube = intervals.worst_case_optimal_cube(counts, epsilon, dimension)
    number = intervals.worst_case_optimal(counts, epsilon / dimension)
    np.testing.assert_array_equal(cube, number)


def points(count: int, dimension: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Points of the ball, with some at the centre, at corners and of tiny norm."""
    rng = np.random.default_rng(dimension)
    inside = rng.dirichlet(np.full(dimension, 0.3), count) * rng.random((count, 1))
    inside[0] = 0
    inside[1] = np.eye(dimension)[-1]
    inside[2] = np.eye(dimension)[-1] * 5e-324
    inside[3] = 1e-310
    return inside


@pytest.mark.parametrize("dimension", [1, 2, 5])
@pytest.mark.parametrize(
    ("inner", "outer"), [(0.0, 1.0), (0.0, 0.0), (0.25, 0.75), (0.5, 0.5), (1.0, 1.0)]
)
def test_projection_ends_in_the_annulus_and_moves_least(
    dimension: int, inner: float, outer: float
) -> None:
    """Norms lie between a and b, and the way is |x| - b or a - |x|: the triangle inequality."""
    before = points(500, dimension)
    after = intervals.project_to_annulus(before, inner, outer)
    norm = before.sum(axis=1)
    assert (after >= 0).all()
    assert (after.sum(axis=1) >= inner - 1e-15).all()
    assert (after.sum(axis=1) <= outer + 1e-15).all()
    way = np.abs(after - before).sum(axis=1)
    np.testing.assert_allclose(
        way, np.maximum(0, np.maximum(inner - norm, norm - outer)), atol=1e-14
    )
    there = (norm >= inner) & (norm <= outer)
    np.testing.assert_array_equal(after[there], before[there])


def test_projection_with_an_annulus_for_each_point() -> None:
    """The centre goes to the first axis; inputs stay as they were."""
    before = np.array([[0.0, 0.0], [0.0, 1.0], [0.3, 0.1]])
    copy = before.copy()
    after = intervals.project_to_annulus(before, np.array([0.5, 0.0, 0.0]), np.array([1, 0.5, 0.2]))
    np.testing.assert_allclose(after, [[0.5, 0.0], [0.0, 0.5], [0.15, 0.05]])
    np.testing.assert_array_equal(before, copy)
    assert intervals.project_to_annulus(np.empty((0, 2)), 0.1, 0.2).shape == (0, 2)
