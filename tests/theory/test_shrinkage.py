"""Shrinkage: posterior means and quantiles against quadrature, the prior by its own equations."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.theory.shrinkage import fit_prior


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
    assert prior.mean == pytest.approx(2.0)
