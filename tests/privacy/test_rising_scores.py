"""P-MONOTONE: a selection by scores that a user only raises costs half of one that may fall."""

import itertools
import math

import numpy as np
import pytest

from shoal.presence.rounds import Round
from shoal.privacy.accounting import account


def chances(scores: np.ndarray) -> np.ndarray:
    """Of each candidate, by all orders in which permute-and-flip may ask them; scale 1."""
    found = np.zeros(len(scores))
    accepted = np.exp(scores - scores.max())
    for order in itertools.permutations(range(len(scores))):
        left = 1.0
        for at in order:
            found[at] += left * accepted[at]
            left *= 1 - accepted[at]
    return found / math.factorial(len(scores))


# What the accountant charges for a range of which a user moves scores by one scale.
CHARGED = float(account([Round({"range": 1}, 0).step("range")]).epsilon)


@pytest.mark.parametrize(("least", "most"), [(0, CHARGED), (-1, 2 * CHARGED)])
def test_the_loss_of_a_selection(least: int, most: float) -> None:
    """3,000 pairs of scores that differ by at most one scale; what is charged is attained."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(3000):
        scores = rng.integers(-6, 7, rng.integers(2, 5)).astype(float)
        other = scores + rng.integers(least, 2, len(scores))
        worst = max(worst, float(np.abs(np.log(chances(scores) / chances(other))).max()))
    far = np.array([0.0, -9.0, -9.0, -9.0])
    moved = far + np.array([float(least), 1.0, 1.0, 1.0])
    worst = max(worst, float(np.abs(np.log(chances(far) / chances(moved))).max()))
    assert worst <= most * (1 + 1e-9)
    assert worst >= most * 0.99
