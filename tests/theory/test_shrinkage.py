"""Shrinkage: posterior means and quantiles against quadrature, the prior by its own equations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import integrate

from shoal.theory.shrinkage import Prior, fit_prior, posterior_mean, posterior_quantile

pytestmark = pytest.mark.oracle


def density(theta: float, y: float, b: float, prior: Prior) -> float:
    """Of theta given y, over its largest value: quadrature is exact to 1e-8 and no better."""

    def exponent(x: float) -> float:
        return -abs(y - x) / b - (x - prior.mean) ** 2 / (2 * prior.deviation**2)

    furthest = prior.deviation**2 / b
    mode = min(max(y, prior.mean - furthest), prior.mean + furthest)
    return math.exp(exponent(theta) - exponent(mode))


@given(st.floats(-3, 3), st.floats(0.2, 5), st.floats(-1, 1), st.floats(0.2, 3))
@example(-3.0, 0.21875, 1.0, 0.21875)
def test_the_posterior_against_quadrature(y: float, b: float, mean: float, t: float) -> None:
    """Mean and three quantiles."""
    prior = Prior(mean, t, 0.0)
    low, high = mean - 12 * t - 1, mean + 12 * t + 1
    points = sorted({min(max(x, low), high) for x in (y, mean, mean - t**2 / b, mean + t**2 / b)})

    def integral(weight: object, upto: float = high) -> float:
        assert callable(weight)
        inside = [p for p in points if p < upto]
        return float(integrate.quad(weight, low, upto, points=inside or None, limit=200)[0])

    mass = integral(lambda x: density(x, y, b, prior))
    first = integral(lambda x: x * density(x, y, b, prior)) / mass
    one = np.array([y]), np.array([b])
    assert math.isclose(float(posterior_mean(*one, prior)[0]), first, rel_tol=1e-6, abs_tol=1e-7)
    for level in (0.025, 0.4, 0.975):
        found = float(posterior_quantile(*one, prior, level)[0])
        reached = integral(lambda x: density(x, y, b, prior), found) / mass
        assert math.isclose(reached, level, abs_tol=1e-6)


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=20), st.floats(0.1, 50))
def test_the_prior_solves_its_equations(values: list[float], scale: float) -> None:
    """A fixed point of both moments, or no spread where the estimates differ less than noise."""
    estimate, variance = np.array(values), np.full(len(values), 2 * scale**2)
    found = fit_prior(estimate, variance)
    # Equal variances: the mean is plain, and the spread what the noise does not explain.
    assert math.isclose(found.mean, float(estimate.mean()), rel_tol=1e-9, abs_tol=1e-9)
    excess = max(0.0, float(np.var(estimate)) - 2 * scale**2)
    assert math.isclose(found.deviation**2, excess, rel_tol=1e-6, abs_tol=1e-6)


def test_without_spread_everything_is_the_common_mean() -> None:
    """Estimates that agree within their noise are all replaced by their weighted mean."""
    estimate, scale = np.array([1.0, 2.0, 3.0]), np.array([5.0, 5.0, 5.0])
    prior = fit_prior(estimate, 2 * scale**2)
    assert prior.deviation == 0
    assert posterior_mean(estimate, scale, prior).tolist() == [2.0] * 3
    assert posterior_quantile(estimate, scale, prior, 0.9).tolist() == [2.0] * 3


def test_extreme_scales_stay_finite() -> None:
    """Far more and far less noise than spread."""
    prior = Prior(0.0, 1.0, 0.0)
    estimate, scale = np.array([1e6, -3.0, 0.5]), np.array([1e-6, 1e9, 1e-9])
    assert np.isfinite(posterior_mean(estimate, scale, prior)).all()
    assert np.isfinite(posterior_quantile(estimate, scale, prior, 0.3)).all()
