"""Intervals with a noisy variance: coverage by quadrature over both noises."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.interpolate import CubicSpline
from scipy.stats import laplace, norm

from shoal.errors import InputError
from shoal.theory.questions.noisy_variance import added_noise, half_width, quantile, tail

pytestmark = pytest.mark.oracle

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(20)


def one(places: Floats) -> Floats:
    """Density of a Laplace variable of scale 1."""
    return np.asarray(np.exp(-np.abs(places)) / 2)


def two(places: Floats) -> Floats:
    """Density of the sum of two equal ones with the same variance."""
    far = np.abs(places) * math.sqrt(2)
    return np.asarray((1 + far) * np.exp(-far) * math.sqrt(2) / 4)


def unlike(places: Floats) -> Floats:
    """Density of the sum of two of scales 0.9 and the rest."""
    large, small = 0.9, math.sqrt(1 - 0.81)
    parts = [scale * np.exp(-np.abs(places) / scale) for scale in (large, small)]
    return np.asarray((parts[0] - parts[1]) / (2 * (large**2 - small**2)))


def many(places: Floats) -> Floats:
    """Density of the normal limit."""
    return np.asarray(norm.pdf(places, scale=math.sqrt(2)))


def worst(confidence: float, ratio: float, parts: Floats) -> float:
    """The least coverage over shapes of the noise and over V/b2, with half widths from a spline."""
    scale = ratio**-0.5
    grid = np.concatenate([[0.0], np.geomspace(1e-4, 400, 300)])
    smooth = CubicSpline(np.log(grid + 0.03), half_width(confidence, grid, scale, 1.0))
    edges = np.concatenate([[0.0], np.geomspace(2e-3, 38, 18)])
    found = 1.0
    for variance in parts.tolist():
        cuts = np.unique(np.concatenate([[max(-variance, -38)], -edges, edges]))
        cuts = cuts[cuts >= -variance]
        half = np.diff(cuts) / 2
        places = (cuts[:-1, None] + half[:, None] * (1 + NODES)).ravel()
        released = np.append(variance + places, 0.0)
        outside = tail(smooth(np.log(released + 0.03)), np.full(len(released), variance), scale)
        for density in (one, two, unlike, many):
            mass = (half[:, None] * WEIGHTS).ravel() * density(places)
            below = max(1 - float(mass.sum()), 0.0)
            found = min(found, 1 - float(np.append(mass, below) @ outside))
    return found


@pytest.mark.parametrize("confidence", [0.8, 0.85, 0.9, 0.95, 0.98, 0.995])
def test_intervals_cover_for_every_shape_of_the_noise(confidence: float) -> None:
    """One Laplace variable, two, many; ratios and confidences off the grid."""
    parts = np.concatenate([[0.0], np.geomspace(0.05, 40, 28)])
    for ratio in (0.004, 0.025, *np.geomspace(0.033, 95, 23).tolist(), 5.5, 150.0, 1e4):
        assert worst(confidence, ratio, parts) >= confidence - 1e-9, ratio


def test_other_confidences_take_the_larger_neighbour() -> None:
    """Between the confidences of the table."""
    for ratio in (0.3, 3.0, math.inf):
        near = [added_noise(each, ratio) for each in (0.95, 0.98)]
        assert added_noise(0.96, ratio) == max(near)


@pytest.mark.parametrize("ratio", [1e-6, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e6])
def test_tails_are_those_of_the_convolution(ratio: float) -> None:
    """Against an integral over the normal variable, from tiny to huge deviations."""
    for x in (0.0, 0.3, 1.0, 3.0, 9.0):
        size = max(ratio, 1.0)
        distance = x * size

        def outside(z: float, distance: float = distance) -> float:
            return float(
                norm.pdf(z)
                * (laplace.sf(distance - ratio * z) + laplace.cdf(-distance - ratio * z))
            )

        places = sorted({min(max(s * distance / ratio, -39.0), 39.0) for s in (-1, 1)})
        wanted = quad(outside, -40, 40, points=[*places, 0], limit=2000, epsabs=1e-13)[0]
        (found,) = tail(np.array([distance]), np.array([ratio**2]), 1.0)
        assert found == pytest.approx(wanted, abs=1e-9)


def test_the_ends_are_normal_and_laplace() -> None:
    """Without the other noise; the quantile inverts the tail."""
    assert quantile(0.95, np.array([4.0]), 0.0)[0] == pytest.approx(2 * norm.ppf(0.975))
    assert quantile(0.95, np.array([0.0]), 2.0)[0] == pytest.approx(2 * math.log(20))
    assert quantile(0.95, np.array([0.0]), 0.0)[0] == 0
    variance = np.geomspace(1e-9, 1e9, 40)
    found = quantile(0.99, variance, 1.0)
    np.testing.assert_allclose(tail(found, variance, 1.0), 0.01, rtol=1e-9)
    wide = half_width(0.95, np.array([-5.0, 1.0]), 0.0, 0.0, inflation=4.0)
    np.testing.assert_allclose(wide, [0, 2 * norm.ppf(0.975)])


@pytest.mark.parametrize(
    "call",
    [
        lambda: added_noise(0.7, 1.0),
        lambda: added_noise(0.999, 1.0),
        lambda: added_noise(0.95, math.nan),
        lambda: half_width(0.95, np.array([math.nan]), 1.0, 1.0),
        lambda: half_width(0.95, np.array([1.0]), -1.0, 1.0),
        lambda: quantile(0.95, np.array([-1.0]), 1.0),
    ],
)
def test_no_interval_without_numbers(call: object) -> None:
    """Confidences outside of the table, NaN, variances below 0."""
    assert callable(call)
    with pytest.raises(InputError):
        call()
