"""Posteriors of estimates under a scale mixture, against numerical integration."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from shoal.theory.scale_mixture import Mixture, fit_mixture, log_density, posterior_quantile

positive = st.floats(0.05, 20)


@given(apart=st.floats(-30, 30), scale=positive, deviation=positive)
def test_the_density_is_the_convolution(apart: float, scale: float, deviation: float) -> None:
    """Of a normal and a Laplace variable, by quadrature."""

    def product(x: float) -> float:
        noise = math.exp(-abs(apart - x) / scale) / (2 * scale)
        return math.exp(-((x / deviation) ** 2) / 2) / (deviation * math.sqrt(2 * math.pi)) * noise

    near = sorted({-9 * deviation, 0.0, apart, 9 * deviation})
    expected = sum(integrate.quad(product, a, b)[0] for a, b in pairwise(near))
    found = float(log_density(np.array(apart), np.array(scale), np.array(deviation)))
    # What lies outside nine deviations counts where the noise is that far off only.
    if expected > 1e-12:
        assert found == pytest.approx(np.log(expected), rel=1e-4, abs=1e-4)


@given(apart=st.floats(-30, 30), scale=positive, deviation=positive)
def test_two_normals_are_one(apart: float, scale: float, deviation: float) -> None:
    """The density with normal noise."""
    expected = stats.norm.logpdf(apart, scale=(scale**2 + deviation**2) ** 0.5)
    args = np.array(apart), np.array(scale), np.array(deviation)
    assert float(log_density(*args, normal=True)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("normal", [False, True])
@given(
    estimate=st.lists(st.floats(-10, 10), min_size=1, max_size=3),
    scale=positive,
    level=st.sampled_from([0.025, 0.5, 0.9]),
)
def test_quantiles_are_those_of_the_posterior(
    normal: bool, estimate: list[float], scale: float, level: float
) -> None:
    """The posterior integrated on a fine grid has this much below the quantile."""
    y, b = np.array(estimate), np.full(len(estimate), scale)
    deviation = np.array([0.5, 4.0])
    joint = np.log([0.3, 0.7]) + log_density(y[:, None], b[:, None], deviation, normal=normal)
    share = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
    mixture = Mixture(deviation, share, 0.0)
    found = posterior_quantile(y, b, np.zeros(len(y)), mixture, level, normal=normal)
    grid = np.linspace(-60, 60, 48_001)
    prior = 0.3 * stats.norm.pdf(grid, scale=0.5) + 0.7 * stats.norm.pdf(grid, scale=4)
    for at, each in enumerate(y):
        apart = np.abs(each - grid) / scale
        density = prior * np.exp(-(apart**2) / 2 if normal else -apart)
        below = (np.cumsum(density) - density / 2) / density.sum()
        assert np.interp(found[at], grid, below) == pytest.approx(level, abs=2e-3)


def test_noise_far_below_the_spread_leaves_numbers_as_they_are() -> None:
    """Without a prior to speak of the posterior is the noise around the number: b ln(1/20) below.

    Logarithms of masses near -5e17, all alike, must not decide.
    """
    estimate = np.random.default_rng(3).normal(0, 100, 200)
    scale = np.full(200, 1e-7)
    mixture = fit_mixture(estimate, scale, np.zeros(200), 1000.0)
    found = posterior_quantile(estimate, scale, np.zeros(200), mixture, 0.025)
    np.testing.assert_allclose((found - estimate) / scale, np.log(0.05), atol=1e-5)


def test_a_few_cells_that_are_unlike_the_rest_are_let_be() -> None:
    """One cell far away keeps its estimate; the others are pulled together."""
    rng = np.random.default_rng(1)
    truth = np.append(rng.normal(0, 0.5, 60), 80.0)
    scale = np.full(61, 2.0)
    estimate = truth + rng.laplace(0, 2.0, 61)
    prediction = np.full(61, np.median(estimate))
    mixture = fit_mixture(estimate, scale, prediction, 100.0)
    value = posterior_quantile(estimate, scale, prediction, mixture, 0.5)
    assert abs(value[-1] - estimate[-1]) < 1.0
    assert np.abs(value - truth)[:-1].mean() < 0.4 * np.abs(estimate - truth)[:-1].mean()


def test_the_order_of_cells_does_not_matter() -> None:
    """The same cell has the same posterior wherever it stands."""
    rng = np.random.default_rng(2)
    estimate, scale = rng.normal(0, 3, 20), rng.uniform(0.1, 3, 20)
    mixture = fit_mixture(estimate, scale, np.zeros(20), 50.0)
    value = posterior_quantile(estimate, scale, np.zeros(20), mixture, 0.5)
    order = rng.permutation(20)
    moved = fit_mixture(estimate[order], scale[order], np.zeros(20), 50.0)
    again = posterior_quantile(estimate[order], scale[order], np.zeros(20), moved, 0.5)
    np.testing.assert_allclose(again, value[order], rtol=1e-9, atol=1e-9)
