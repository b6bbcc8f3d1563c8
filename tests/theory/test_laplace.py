"""The discrete Laplace distribution against high-precision sums."""

import itertools
import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate

from shoal.errors import InputError
from shoal.theory import laplace


def probability(z: int, scale: float) -> Any:
    """P[Z = z], from the definition."""
    q = mpmath.exp(-1 / mpmath.mpf(scale))
    return (1 - q) / (1 + q) * q ** abs(z)


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.0, 17.5])
def test_mean_absolute_is_the_sum(scale: float) -> None:
    """1/sinh(1/t) equals the sum of |z| P[z]."""
    exact = 2 * sum(z * probability(z, scale) for z in range(1, int(60 * scale) + 60))
    assert laplace.mean_absolute(scale) == pytest.approx(float(exact), rel=1e-12)


def test_mean_absolute_stays_below_the_continuous_one() -> None:
    """The worst-case error of a plan never understates by using b for E|noise|."""
    for scale in (0.5, 2.0, 2.0**20, 2.0**40):
        assert laplace.mean_absolute(scale) <= scale


@given(scale=st.floats(0.2, 50), beta=st.floats(1e-6, 0.9))
def test_tail_quantile_is_the_least(scale: float, beta: float) -> None:
    """The tail beyond z is at most beta, and beyond z - 1 it is more (up to rounding)."""
    z = laplace.tail_quantile(scale, beta)
    q = mpmath.exp(-1 / mpmath.mpf(scale))

    def tail(at: int) -> float:
        return float(2 * q ** (at + 1) / (1 + q))

    assert tail(z) <= beta * (1 + 1e-15)
    assert z == 0 or tail(z - 1) > beta * (1 - 1e-9)


@pytest.mark.parametrize("beta", [0.0, 1.0, -1.0, float("nan")])
def test_tail_quantile_refuses_what_is_no_probability(beta: float) -> None:
    """An interval at confidence 0 or 1 does not exist."""
    with pytest.raises(InputError, match="the error probability is"):
        laplace.tail_quantile(1.0, beta)


@given(st.floats(-1, 2), st.floats(0.05, 2), st.floats(-0.5, 1.5), st.floats(0, 0.4))
def test_the_expected_error_is_the_integral(
    centre: float, scale: float, truth: float, low: float
) -> None:
    """Against quadrature of |clip(c + z) - f| times the Laplace density."""
    high = low + 0.5

    def weighed(z: float) -> float:
        clipped = min(max(centre + z, low), high)
        return abs(clipped - truth) * math.exp(-abs(z) / scale) / (2 * scale)

    kinks = sorted({0.0, low - centre, high - centre, min(max(truth, low), high) - centre})
    ends = [kinks[0] - 60 * scale, *kinks, kinks[-1] + 60 * scale]
    exact = sum(integrate.quad(weighed, a, b)[0] for a, b in itertools.pairwise(ends))
    one = np.ones(1)
    found = laplace.clamped_error(centre * one, scale * one, truth * one, low * one, high * one)
    assert math.isclose(float(found[0]), exact, rel_tol=1e-6, abs_tol=1e-9)
