"""P-NORM: whatever a user has, its vector is from 0 and adds up to at most what was promised."""

import itertools

import numpy as np
import pytest

from shoal.presence.vectors import cut, sizes, sound, weights


def every_user() -> np.ndarray:
    """Parts of all users in up to three cells: records of up to 3, with priorities far apart."""
    counts = [each for each in itertools.product(range(4), repeat=3) if sum(each)]
    priorities = itertools.product((1e-9, 0.3, 1.0, 7e8), repeat=3)
    return np.array([np.multiply(*pair) for pair in itertools.product(counts, priorities)])


@pytest.mark.parametrize("whole", [1, 2, 3, 7, 2**24, 2**40 - 1])
@pytest.mark.parametrize("cap", [1e-6, 1.0, 3.0, 1e9])
def test_every_users_numbers_are_at_most_the_whole(whole: int, cap: float) -> None:
    """63 users of counts times 64 priorities: at the cap all but a unit a cell, else its part."""
    parts = every_user()
    user = np.repeat(np.arange(len(parts)), 3)
    found = weights(parts.ravel(), user, len(parts), whole=whole, cap=cap).reshape(parts.shape)
    assert found.min() >= 0
    assert found.sum(axis=1).max() <= whole
    total = parts.sum(axis=1)
    exact = whole * parts / np.maximum(total, cap)[:, None]
    assert (np.abs(found - np.floor(exact)) <= 1).all()
    assert (found.sum(axis=1)[total >= cap] >= whole - 3).all()
    assert (found[parts == 0] == 0).all()


def test_hostile_parts_are_nothing_or_within_the_whole() -> None:
    """Infinite, missing, negative, tiny and huge parts of 20,000 users."""
    rng = np.random.default_rng(0)
    odd = np.array([np.inf, -np.inf, np.nan, 1e300, 5e-324, -1.0, 0.0, 1.0, 3.0])
    user = np.repeat(np.arange(20_000), 4)
    parts = rng.choice(odd, len(user)) * 10.0 ** rng.integers(-8, 9, len(user))
    for whole in (3, 2**30, 2**52):
        found = weights(parts, user, 20_000, whole=whole, cap=2.0)
        assert found.min() >= 0
        assert np.bincount(user, found).max() <= whole
        assert not found[~(parts > 0) | np.isinf(parts)].any()


def test_who_has_too_much_has_nothing() -> None:
    """Also where a single number is below 0: no repair, no error."""
    user = np.array([0, 0, 1, 1, 2])
    vector = np.array([3, 2, 3, 1, -1])
    assert sound(vector, user, 3, 4).tolist() == [0, 0, 3, 1, 0]


def test_parts_of_a_weight_add_up_whatever_the_shares() -> None:
    """Missing, infinite, negative, rising and large shares: parts from 0 that add up."""
    rng = np.random.default_rng(1)
    odd = np.array([np.nan, np.inf, -np.inf, -0.5, 0.0, 0.25, 0.5, 1.0, 1.5])
    weight = rng.integers(0, 2**40, 3000)
    shares = rng.choice(odd, (8, 3000))
    found = cut(weight, shares)
    assert found.min() >= 0
    assert (found.sum(axis=0) == weight).all()
    # What falls is cut where it says.
    exact = cut(np.array([8]), np.array([[0.75], [0.5], [0.0]]))
    assert exact.ravel().tolist() == [2, 2, 4, 0]


def test_a_user_is_in_one_size() -> None:
    """By the sum of its parts; beyond the last edge it counts there."""
    user = np.array([0, 0, 1, 2, 3])
    parts = np.array([1.0, 1.0, 2.5, 4.0, 1e9])
    assert sizes(parts, user, 4, np.array([1.0, 2.0, 4.0])).tolist() == [0, 1, 3]
    assert sizes(parts, user, 5, np.array([1.0, 2.0, 4.0])).tolist() == [1, 1, 3]
