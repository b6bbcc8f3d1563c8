"""Mean and second moment together against search over pairs of points and quadrature."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.theory import joint
from tests.support.loop import loop_over

pytestmark = pytest.mark.property

SCALES = [(0.1, 0.2), (0.1, 0.1), (0.1, 0.099), (0.2, 0.05), (1.0, 0.01), (3.0, 5.0)]


@pytest.mark.parametrize(("first", "second"), SCALES)
def test_loss_is_the_most_over_all_pairs(first: float, second: float) -> None:
    """A convex function of two points of the hull is largest at the curve: all pairs on a grid."""
    y = np.linspace(-0.5, 0.5, 2001)
    apart = (
        np.abs(y[:, None] - y) / first + np.abs((y**2)[:, None] - y**2) / second  # all pairs
    )
    stated = float(joint.loss(first, second))
    assert apart.max() <= stated * (1 + 1e-12)
    assert apart.max() == pytest.approx(stated, rel=1e-6)


@pytest.mark.parametrize(("first", "second"), SCALES)
def test_no_pair_inside_the_hull_loses_more(first: float, second: float) -> None:
    """Means of several values, as a user with several records has them, stay below."""
    values = np.random.default_rng(0).uniform(-0.5, 0.5, (2, 4, 20_000))
    values[:, :, ::2] = np.sign(values[:, :, ::2]) / 2
    (x, x2), (z, z2) = values.mean(axis=1), (values**2).mean(axis=1)
    apart = np.abs(x - x2) / first + np.abs(z - z2) / second
    assert apart.max() <= joint.loss(first, second)


@given(first=st.floats(1e-6, 1e6), second=st.floats(1e-6, 1e6))
def test_loss_is_rounded_upwards(first: float, second: float) -> None:
    """Never below the exact value of the formula, with h = 1/2, and a hair above at most."""
    b1, b2 = Fraction(first), Fraction(second)
    exact = 1 / b1 if b2 >= b1 else (Fraction(1, 2) + b2 / (2 * b1)) ** 2 / b2
    found = Fraction(float(joint.loss(first, second)))
    assert exact <= found <= exact * (1 + Fraction(1, 2**48))


def expectation(first: float, second: float, mean: float) -> tuple[float, float]:
    """E of Var^ - Var and of its absolute value, by quadrature over the noise of the mean."""
    z, step = np.linspace(-40 * first, 40 * first, 800_001, retstep=True)
    density = np.exp(-np.abs(z) / first) / (2 * first) * step
    # Without the noise of the second moment; with it, E|c + N| = |c| + b e^(-|c|/b).
    rest = -2 * mean * z - z**2 + 2 * first**2
    away = np.abs(rest) + second * np.exp(-np.abs(rest) / second)
    return float(density @ rest), float(density @ away)


@loop_over(
    ("first", "second"),
    SCALES,
)
@loop_over(
    "mean",
    [-0.5, 0.0, 0.2, 0.5],
)
def test_error_bound_holds_and_the_estimate_is_unbiased(
    first: float, second: float, mean: float
) -> None:
    """For the largest, the least and other means."""
    centre, error = expectation(first, second, mean)
    assert centre == pytest.approx(0, abs=1e-6 * first)
    assert error <= joint.error_bound(first, second) * (1 + 1e-9)


def test_each_term_of_the_bound_is_exact_alone() -> None:
    """Nothing in the bound is larger than it has to be when the other terms vanish."""
    assert expectation(1.0, 1e-9, 0.0)[1] == pytest.approx(
        4 * (1 + math.sqrt(2)) * math.exp(-math.sqrt(2)), rel=1e-6
    )
    assert expectation(1.0, 1e-9, 0.0)[1] == pytest.approx(
        float(joint.error_bound(1.0, 0.0)) - 1.0, rel=1e-6
    )
    assert expectation(1e-6, 1e-12, 0.5)[1] == pytest.approx(1e-6, rel=1e-4)
    assert expectation(1e-9, 1.0, 0.5)[1] == pytest.approx(1.0, rel=1e-6)


def test_error_bound_against_draws() -> None:
    """The same by Monte Carlo, with every piece of the estimator written out."""
    rng = np.random.default_rng(7)
    values = rng.uniform(-0.5, 0.5, 50)
    first, second = 0.05, 0.04
    mean = values.mean() + rng.laplace(0, first, 200_000)
    square = (values**2).mean() + rng.laplace(0, second, 200_000)
    error = square - mean**2 + 2 * first**2 - values.var()
    assert abs(error.mean()) < 6 * error.std() / math.sqrt(200_000)
    assert np.abs(error).mean() <= joint.error_bound(first, second)
