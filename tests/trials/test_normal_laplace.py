"""Quantiles of normal plus Laplace noise against closed forms and simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from shoal.errors import InputError
from shoal.trials.normal_laplace import quantile

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99, 0.999])
def test_the_ends_are_the_normal_and_the_laplace_quantile(confidence: float) -> None:
    """SciPy's quantiles, and those of many Laplace variables, which are nearly normal."""
    normal = stats.norm.ppf((1 + confidence) / 2)
    assert quantile(confidence, 4.0, 0.0, 1) == pytest.approx(2 * normal, rel=1e-6)
    laplace = stats.laplace.ppf((1 + confidence) / 2, scale=3.0)
    assert quantile(confidence, 0.0, 18.0, 1) == pytest.approx(laplace, rel=2e-4)
    assert quantile(confidence, 0.0, 1.0, 1e5) == pytest.approx(normal, rel=1e-3)
    assert quantile(confidence, 0.0, 0.0, 1) == 0


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_two_laplace_variables_have_their_closed_form(confidence: float) -> None:
    """The sum of two of scale 1 has P[|X| > x] = exp(-x) (1 + x/2)."""
    x = quantile(confidence, 0.0, 4.0, 2)
    assert math.exp(-x) * (1 + x / 2) == pytest.approx(1 - confidence, rel=1e-3)


def test_a_mixture_covers_as_often_as_it_says() -> None:
    """A million draws, unequal scales; a wrong variance is rejected. False alarms below 1e-9."""
    rng = np.random.default_rng(5)
    scales = np.array([0.5, 1.0, 2.0])
    variance, fourth = 2 * (scales**2).sum(), 12 * (scales**4).sum()
    draws = rng.normal(0, 1.3, 10**6) + (rng.laplace(size=(10**6, 3)) * scales).sum(axis=1)
    x = quantile(0.95, 1.69, variance, 3 * variance**2 / fourth)
    slack = 6.11 * math.sqrt(0.95 * 0.05 / 10**6)
    # The matched moments leave a tenth of a percent.
    assert abs((np.abs(draws) <= x).mean() - 0.95) <= slack + 1e-3
    assert abs((np.abs(1.1 * draws) <= x).mean() - 0.95) > slack + 1e-3


def test_an_unusable_confidence_is_refused() -> None:
    """Neither 0 nor 1."""
    for confidence in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(InputError, match="confidence"):
            quantile(confidence, 1.0, 1.0, 1)
