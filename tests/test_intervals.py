"""Intervals and power: coverage by quadrature over both noises, SciPy, closed forms."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.interpolate import CubicSpline
from scipy.special import log_ndtr

from shoal.errors import InputError
from shoal.intervals import added_noise, detectable, half_width, power, quantile, student

Floats = NDArray[np.float64]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(20)


def tail(x: Floats, variance: float, scale: float) -> Floats:
    """P[|N + L| > x] of a normal variable and a Laplace variable, by the closed convolution."""
    deviation = max(math.sqrt(variance), 1e-9)
    s, far = deviation / scale, x / scale
    pull = s**2 / 2 - far + log_ndtr(far / s - s), s**2 / 2 + far + log_ndtr(-far / s - s)
    return np.asarray(2 * stats.norm.sf(far / s) + np.exp(pull[0]) - np.exp(pull[1]))


def densities(places: Floats) -> list[Floats]:
    """Of the noise of a variance: one Laplace variable, two equal ones, and the normal limit."""
    far = np.abs(places) * math.sqrt(2)
    two = (1 + far) * np.exp(-far) * math.sqrt(2) / 4
    return [np.exp(-np.abs(places)) / 2, two, stats.norm.pdf(places, scale=math.sqrt(2))]


def worst(confidence: float, ratio: float) -> float:
    """The least coverage over shapes of that noise and over V, whose noise has scale 1."""
    scale = ratio**-0.5
    grid = np.concatenate([[0.0], np.geomspace(1e-3, 100, 80)])
    halves = [half_width(confidence, each, 2 * scale**2, 1, 1.0) for each in grid.tolist()]
    smooth = CubicSpline(np.log(grid + 0.03), halves)
    edges = np.concatenate([[0.0], np.geomspace(2e-3, 38, 18)])
    found = 1.0
    for variance in (0.0, 0.1, 0.3, 1.0, 2.0, 4.0, 10.0, 40.0):
        cuts = np.unique(np.concatenate([[-variance], -edges, edges]))
        cuts = cuts[cuts >= -variance]
        half = np.diff(cuts) / 2
        places = (cuts[:-1, None] + half[:, None] * (1 + NODES)).ravel()
        outside = tail(smooth(np.log(np.append(variance + places, 0.0) + 0.03)), variance, scale)
        for density in densities(places):
            mass = (half[:, None] * WEIGHTS).ravel() * density
            below = max(1 - float(mass.sum()), 0.0)
            found = min(found, 1 - float(np.append(mass, below) @ outside))
    return found


@pytest.mark.parametrize("confidence", [0.8, 0.93, 0.95, 0.995])
def test_intervals_with_a_noisy_variance_cover(confidence: float) -> None:
    """For every variance, at ratios on and off the grid; no more than needed on it."""
    found = [worst(confidence, ratio) for ratio in (0.025, 0.1, 0.55, 1.0, 5.5, 30.0, 1e4)]
    assert min(found) >= confidence - 1e-6
    assert confidence == 0.93 or min(found) < confidence + 0.05 * (1 - confidence)


@pytest.mark.parametrize("ratio", [1e-4, 0.1, 1.0, 10.0, 1e4])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_quantiles_of_normal_and_laplace_noise(confidence: float, ratio: float) -> None:
    """The closed tail at the quantile is what is left, from all normal to all Laplace."""
    x = quantile(confidence, ratio, 2.0, 1)
    assert tail(np.array([x]), ratio, 1.0)[0] == pytest.approx(1 - confidence, abs=2e-6)


def test_ends_of_quantiles() -> None:
    """Normal alone, two Laplace variables, many; nothing; and few degrees of freedom."""
    assert quantile(0.95, 4.0) == pytest.approx(2 * stats.norm.ppf(0.975))
    x = quantile(0.95, 0.0, 4.0, 2)
    assert math.exp(-x) * (1 + x / 2) == pytest.approx(0.05, rel=1e-3)
    assert quantile(0.95, 0.0, 1.0, 1e5) == pytest.approx(stats.norm.ppf(0.975), rel=1e-3)
    assert quantile(0.95, 0.0, 0.0) == 0
    assert quantile(0.9, 2.25, degrees=7) == pytest.approx(1.5 * stats.t.ppf(0.95, 7))
    near = [added_noise(each, 3.0) for each in (0.95, 0.98)]
    assert added_noise(0.96, 3.0) == max(near)


def test_a_sum_of_unlike_laplace_variables() -> None:
    """A million draws, by matched moments; a tenth too wide is rejected. False alarms 1e-9."""
    rng, scales = np.random.default_rng(5), np.array([0.5, 1.0, 2.0])
    draws = rng.normal(0, 1.3, 10**6) + (rng.laplace(size=(10**6, 3)) * scales).sum(axis=1)
    parts = 2 * scales**2
    x = quantile(0.95, 1.69, parts.sum(), parts.sum() ** 2 / (parts**2).sum())
    slack = 6.11 * math.sqrt(0.95 * 0.05 / 10**6) + 1e-3
    assert abs((np.abs(draws) <= x).mean() - 0.95) <= slack
    assert abs((np.abs(1.1 * draws) <= x).mean() - 0.95) > slack


@pytest.mark.parametrize("degrees", [1.7, 6.0, 300.0, math.inf])
def test_power_against_scipy(degrees: float) -> None:
    """The noncentral t distribution; the least detectable effect inverts it."""
    limit = student(degrees, 0.95)
    assert limit == pytest.approx(
        stats.norm.ppf(0.975) if math.isinf(degrees) else stats.t.ppf(0.975, degrees)
    )
    for effect in (0.0, 0.7, 2.8):
        if math.isinf(degrees):
            wanted = stats.norm.sf(limit - effect) + stats.norm.cdf(-limit - effect)
        else:
            wanted = stats.nct.sf(limit, degrees, effect) + stats.nct.cdf(-limit, degrees, effect)
        assert power(1.5 * effect, 1.5, 0.95, degrees) == pytest.approx(wanted, abs=1e-7)
    least = detectable(1.5, 0.8, 0.95, degrees)
    assert power(least, 1.5, 0.95, degrees) == pytest.approx(0.8, abs=1e-9)


@pytest.mark.parametrize(
    "call",
    [
        lambda: added_noise(0.7, 1.0),
        lambda: half_width(0.999, 1.0, 1.0, 1, 1.0),
        lambda: student(0.0, 0.95),
        lambda: student(5.0, 1.0),
        lambda: power(1.0, 0.0),
        lambda: power(math.nan, 1.0),
        lambda: detectable(1.0, 0.05),
        lambda: detectable(1.0, 1.0),
    ],
)
def test_no_interval_without_numbers(call: object) -> None:
    """Confidences outside of the table, NaN, a power that no effect has."""
    assert callable(call)
    with pytest.raises(InputError):
        call()
