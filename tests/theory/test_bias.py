"""Bias of linear estimators against enumeration of all small data sets."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import InputError
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


weights = st.lists(st.floats(0, 1), min_size=1, max_size=4)


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[float], list[float], float]:
    """Weights, shares and an offset of a few users."""
    w = draw(weights)
    counts = np.array(draw(st.lists(st.integers(1, 9), min_size=len(w), max_size=len(w))))
    return w, (counts / counts.sum()).tolist(), draw(st.floats(-1, 1))


@given(problem=problems())
def test_linear_is_the_most_over_all_data_sets(
    problem: tuple[list[float], list[float], float],
) -> None:
    """The difference is linear in every user's mean: the corners of the cube decide."""
    w, v, offset = problem
    most = max(
        abs(sum((b - a) * x for a, b, x in zip(w, v, corner, strict=True)) - offset)
        for corner in itertools.product((0, 1), repeat=len(w))
    )
    found = bias.linear(np.array(w), np.array(v), offset)
    assert found == pytest.approx(most, abs=1e-12)
    # Clipping to the whole range changes nothing.
    assert bias.clipped_linear(np.array(w), np.array(v), offset, 0.0, 1.0) == pytest.approx(found)


def test_linear_of_weights_that_add_up_is_half_their_distance() -> None:
    """docs/theory/grouping.md#linear-estimators-and-their-bias: the two special cases."""
    w, v = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.3, 0.1])
    assert bias.linear(w, v, 0.0) == pytest.approx(np.abs(v - w).sum() / 2)
    w = np.array([0.2, 0.1, 0.1])
    offset = (1 - w.sum()) / 2
    assert bias.linear(w, v, offset) == pytest.approx(offset)


@given(data=st.data(), problem=problems())
def test_clipped_linear_is_the_most_over_a_grid_of_data_sets(
    data: st.DataObject, problem: tuple[list[float], list[float], float]
) -> None:
    """Intervals with ends on a grid: every combination of means on the same grid."""
    w, v, offset = problem
    grid = np.linspace(0, 1, 9)
    steps = st.integers(0, 8)
    ends = np.array([sorted((data.draw(steps), data.draw(steps))) for _ in w]) / 8
    low, high = ends.T
    means = np.stack(np.meshgrid(*[grid] * len(w), indexing="ij"), axis=-1)
    most = np.abs(means @ np.array(v) - np.clip(means, low, high) @ np.array(w) - offset).max()
    found = bias.clipped_linear(np.array(w), np.array(v), offset, low, high)
    assert found == pytest.approx(most, abs=1e-12)


def test_clipped_linear_with_off_grid_ends() -> None:
    """Ends that no grid meets, one interval for all, many random means: never exceeded."""
    rng = np.random.default_rng(3)
    w, v = np.array([0.5, 0.1, 0.4]), np.array([0.7, 0.2, 0.1])
    found = bias.clipped_linear(w, v, 0.05, 0.123, 0.777)
    means = rng.random((20_000, 3))
    means[::2] = np.array([0, 0.123, 0.777, 1])[rng.integers(0, 4, (10_000, 3))]
    apart = np.abs(means @ v - np.clip(means, 0.123, 0.777) @ w - 0.05)
    assert apart.max() == pytest.approx(found)
    assert apart.max() <= found + 1e-12


@pytest.mark.parametrize(
    ("low", "high"), [(0.6, 0.5), (-0.1, 0.5), (0.5, 1.1), (float("nan"), 1.0)]
)
def test_clipped_linear_refuses_bad_intervals(low: float, high: float) -> None:
    """An interval lies in the bounds and has its smaller end first."""
    with pytest.raises(InputError, match="clipping intervals"):
        bias.clipped_linear(np.ones(1), np.ones(1), 0.0, low, high)
