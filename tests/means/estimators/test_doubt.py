"""Failure bounds of a symmetric mean: sums of chances, again from exact distributions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from shoal.means.estimators import failure_probability as doubt
from shoal.means.estimators.coarse import Coarse
from shoal.means.estimators.middle import Middle
from shoal.means.estimators.middle_failure import Off, middle_offs
from shoal.theory import clipping
from shoal.theory.clipping import Moment

pytestmark = pytest.mark.oracle

COARSE = [
    Coarse(users, 1, per_user, 3, threshold, windows)
    for users, per_user, threshold in ((9, 5, 40), (30, 3, 60), (200, 1, 70))
    for windows in (1, 2)
]


def exact(coarse: Coarse, chance: float) -> tuple[float, float]:
    """The least, over all numbers f of far users, of two union bounds with exact tails.

    A bin of far users alone wins: one of n users' bins, or of its two windows, beats the bin of
    near ones, or more than f users are far; and no bin is above the threshold, or more are.
    """
    n, q = coarse.users, math.exp(-(2.0**-coarse.bits))
    z = np.arange(-2000, 2001)
    distribution = (1 - q) / (1 + q) * q ** np.abs(z)
    difference, values = np.convolve(distribution, distribution), np.arange(-4000, 4001)
    far_squares, fail = float(n), 1.0
    for far in range(1, n // 3 + 1):
        many = float(stats.binom.sf(far - 1, n - 1, chance))
        near = n - far if coarse.windows == 2 else math.ceil((n - far) / 2)
        wins = 1.0
        if near > far:
            wins = float(difference[values >= coarse.per_user * (near - far)].sum())
        far_squares = min(far_squares, n * (coarse.windows * wins + many))
        short = distribution[z < coarse.threshold - coarse.per_user * near].sum()
        fail = min(fail, float(short) + many)
    return far_squares, fail


@pytest.mark.parametrize("coarse", COARSE)
@pytest.mark.parametrize("size", [0.05, 0.4, 0.7])
def test_doubts_are_no_less_than_the_sums_of_their_chances(
    monkeypatch: pytest.MonkeyPatch, coarse: Coarse, size: float
) -> None:
    """A union bound adds up every chance, for every user and window, halves none."""
    moments = (Moment(2, 1), Moment(8, size))
    chance = clipping.tail(moments, coarse.near)

    def tail(n: int, least: int, p: float) -> float:
        # Chernoff's bound may hide a factor of two: with the exact tail nothing does.
        return float(stats.binom.sf(least - 1, n, p))

    monkeypatch.setattr(doubt, "binomial_tail", tail)
    found, truth = doubt.failure_bounds.__wrapped__(coarse, moments), exact(coarse, chance)
    assert found.far_squares >= truth[0] * (1 - 1e-9)
    assert found.fail >= truth[1] * (1 - 1e-9)
    # And no more, but for the numbers f that are not tried.
    assert found.far_squares <= truth[0] * 1.5
    assert found.fail <= truth[1] * 1.5


def test_a_middle_guess_is_off_by_less_than_both_sides_of_bernstein_allow() -> None:
    """The mean of clipped values may be too low or too high: the chances of both."""
    coarse = Coarse.fit(2000, 3, Fraction(1, 2), Fraction(1, 10**6))
    middle, moments = Middle.fit(2000, 3, 12.0, Fraction(1, 4)), (Moment(40, 1.0),)
    t = middle.width(3) - coarse.near - coarse.width / 2
    sd = clipping.deviation(moments)
    for off in middle_offs(coarse, middle, moments):
        # Nobody is far with these moments: values, noise and a tick are left.
        mean = off.most - off.noise - middle.tick(3)
        bernstein = 2 * math.exp(-2000 * mean**2 / (2 * (sd**2 + t * mean / 3)))
        assert bernstein == pytest.approx(off.chance, rel=1e-6)
        steps = off.noise / off.scale
        assert math.exp(-steps) <= off.chance


@pytest.mark.parametrize(("start", "c"), [(0.0, 0.0), (0.3, 0.0), (1.0, 5.0)])
def test_rare_cases_cost_what_they_cost(start: float, c: float) -> None:
    """Two rare cases of values and one of noise, each with its whole square."""
    off = Off(most=1.0, chance=1e-4, start=start, noise=2.5, scale=0.7)

    def squares(beyond: float) -> float:
        found, _ = integrate.quad(
            lambda z: (start + c + beyond + z) ** 2 * math.exp(-z / 0.7) / 0.7, 0, 60
        )
        return float(found)

    truth = 1e-4 * (2 * squares(0.0) + squares(2.5))
    assert truth * (1 - 1e-9) <= off.rare(c) <= truth * 1.2
