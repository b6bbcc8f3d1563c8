"""Noise on counts without a cap: every outcome as likely as it should be, by enumeration."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from shoal.privacy.accounting import NoisyVector, account
from shoal.privacy.hull_noise import hull_noise
from shoal.privacy.noise import OperatingSystem, Simulated
from shoal.theory import hull


def norm(numbers: tuple[int, ...]) -> int:
    """The largest number above 0 and the smallest below it, together."""
    return max(*numbers, 0) - min(*numbers, 0)


@pytest.mark.parametrize("cells", [1, 2, 3, 4])
def test_a_ball_holds_as_many_numbers_as_the_sampler_says(cells: int) -> None:
    """(k + 1)^(G + 1) - k^(G + 1), counted; and a user who raises some by u moves the norm by u."""
    for size in range(4):
        every = itertools.product(range(-size, size + 1), repeat=cells)
        inside = sum(norm(each) <= size for each in every)
        assert inside == (size + 1) ** (cells + 1) - size ** (cells + 1)
    for numbers in itertools.product(range(-2, 3), repeat=cells):
        for user in itertools.product((0, 1, 2), repeat=cells):
            moved = tuple(x + y for x, y in zip(numbers, user, strict=True))
            assert abs(norm(moved) - norm(numbers)) <= max(user)


@pytest.mark.parametrize(("cells", "bits"), [(1, 0), (2, 1), (3, 0)])
def test_outcomes_are_as_likely_as_their_norm_says(cells: int, bits: int) -> None:
    """A chi-squared test of 3,000 draws over all outcomes of small norms."""
    many = 3000
    source = Simulated(7)
    drawn = Counter(tuple(hull_noise(source, cells, bits, turn + 1)) for turn in range(many))
    q = math.exp(-(2.0**-bits))
    sizes = range(400)
    shells = [
        (k + 1) ** (cells + 1) - 2 * k ** (cells + 1) + max(k - 1, 0) ** (cells + 1) for k in sizes
    ]
    shells[0] = 1
    whole = sum(shell * q**k for k, shell in zip(sizes, shells, strict=True))
    known = [each for each in itertools.product(range(-6, 7), repeat=cells) if norm(each) <= 6]
    expected = np.array([many * q ** norm(each) / whole for each in known])
    seen = np.array([drawn[each] for each in known])
    enough = expected >= 5
    rest = many - expected[enough].sum(), many - seen[enough].sum()
    expected = np.append(expected[enough], rest[0])
    found = stats.chisquare(np.append(seen[enough], rest[1]), expected)
    assert found.pvalue > 1e-4


def test_tails_and_means_are_those_of_the_noise() -> None:
    """Of one cell among five, on a fine lattice, within five standard errors."""
    cells, bits, many = 5, 12, 2000
    source = Simulated(3)
    drawn = (
        np.array([hull_noise(source, cells, bits, turn + 1) for turn in range(many)]) / 2.0**bits
    )
    size = np.abs(drawn[:, 2])
    assert abs(size.mean() - hull.mean_absolute(cells)) < 5 * size.std() / many**0.5
    for miss in (0.5, 0.1, 0.02):
        above = (size > hull.tail_quantile(cells, miss)).mean()
        assert abs(above - miss) < 5 * math.sqrt(miss * (1 - miss) / many)
        assert hull.tail(hull.tail_quantile(cells, miss), cells) == pytest.approx(miss)


def test_the_operating_system_adds_it_and_the_accountant_knows_it() -> None:
    """Numbers far from 0 come back around themselves; the loss is the move over the scale."""
    steps = [10**6, -(10**6), 0]
    noisy = OperatingSystem().add_hull(steps, 3, draw=1)
    assert all(abs(x - y) < 2000 for x, y in zip(noisy, steps, strict=True))
    assert OperatingSystem().add_hull(steps, 3, draw=1) != noisy
    assert account([NoisyVector("hull", 3, np.array([16]))]).epsilon == 2
