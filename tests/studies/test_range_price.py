"""What a promise against noise on the whole range costs: against the figures of other programs."""

import math

import numpy as np
import pytest
from shoal_studies.benchmarks.range_price import least

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize(
    ("promise", "epsilon", "low", "high"),
    [
        (1.0, 1.0, 0.51, 0.59),
        (1.1, 1.0, 0.43, 0.47),
        (1.25, 1.0, 0.36, 0.38),
        (2.0, 1.0, 0.18, 0.19),
        (1.0, 2.0, 0.39, 0.43),
        (2.0, 2.0, 0.16, 0.18),
    ],
)
def test_the_price_is_known(promise: float, epsilon: float, low: float, high: float) -> None:
    """With 16 users; other grids and other numbers of users gave these ends."""
    assert low <= round(least(promise, epsilon, users=16), 2) <= high


def test_plain_noise_keeps_the_promise() -> None:
    """Laplace noise on the grid is one of the mechanisms, so that the program errs no more."""
    epsilon = 1.0
    found = least(1.2, epsilon, users=12)
    outputs = np.arange(-60, 61) / 2
    law = np.exp(-epsilon * np.abs(outputs))
    error = math.sqrt((law / law.sum() * outputs**2).sum() / (2 / epsilon**2))
    assert found < error < 1.2


def test_more_is_gained_for_a_weaker_promise() -> None:
    """And never more than all."""
    found = [least(promise, 1.0, users=10) for promise in (1.0, 1.5, 3.0)]
    assert 1 > found[0] > found[1] > found[2] > 0
