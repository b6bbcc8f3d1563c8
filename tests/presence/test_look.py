"""Caps from noisy sizes of users: noise makes no ghosts, and what may be users is not trusted."""

import numpy as np
import pytest

from shoal.presence.look import cap_of, priorities, sizes_of

SIZES = sizes_of("records", 20)
SCALE = 10.0


def seen(**more: float) -> np.ndarray:
    """Two thousand users of about eight records, and so many scales of users at the last size."""
    found = np.zeros(len(SIZES.edges))
    found[5:8] = [500.0, 1000.0, 500.0]
    found[-1] = more.get("last", 0.0) * SCALE
    return found


def test_a_size_that_noise_may_make_decides_no_cap_and_no_total_is_trusted() -> None:
    """At eight scales it may be noise, or users who have most of all records."""
    plain = cap_of(seen(), SCALE, SIZES, 20, 1.0)
    ghost = cap_of(seen(last=8), SCALE, SIZES, 20, 1.0)
    assert (ghost.size, ghost.up) == (plain.size, plain.up)
    assert plain.moved < 0.25 < ghost.moved


def test_users_who_stand_out_for_certain_move_the_cap() -> None:
    """Thirty scales are users."""
    assert cap_of(seen(last=30), SCALE, SIZES, 20, 1.0).size > 1000


def test_two_kinds_of_users_are_both_seen() -> None:
    """Half of 2,000 users have a record and half have 64: neither kind is most of them."""
    two = np.where(SIZES.edges == 1, 1000.0, 0.0) + np.where(SIZES.edges == 64, 1000.0, 0.0)
    found = cap_of(two, SCALE, SIZES, 20, 0.01)
    assert found.known
    assert found.size == 64


def test_a_look_that_sees_nothing_says_nothing() -> None:
    """Sizes that are noise alone."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        noise = rng.laplace(0, SCALE, len(SIZES.edges))
        found = cap_of(np.clip(noise, None, 5 * SCALE), SCALE, SIZES, 20, 1.0)
        assert not found.known


def test_users_of_one_size_all_have_their_whole_weight() -> None:
    """A cap above them would only add noise."""
    sizes = sizes_of("values", 20)
    one = np.where(sizes.edges == 4, 2000.0, 0.0)
    found = cap_of(one, SCALE, sizes, 20, 1.0, apart=0.1)
    assert found.size < 4
    assert found.users == 2000


def test_a_cap_of_means_moves_weight_only_where_noise_is_more() -> None:
    """Of 1,000 users with a record and as many with 64, half of the weight would be moved."""
    sizes = sizes_of("values", 20)
    two = np.where(np.isin(sizes.edges, (1, 64)), 1000.0, 0.0)
    exact = cap_of(two, SCALE, sizes, 20, 0.01, apart=0.1)
    noisy = cap_of(two, SCALE, sizes, 20, 100.0, apart=0.1)
    assert exact.moved < 0.1
    assert noisy.size <= 1


def test_cells_that_differ_by_noise_alone_have_one_priority() -> None:
    """Others have what their users need, relative to the average user."""
    rng = np.random.default_rng(4)
    found = priorities(300 + rng.laplace(0, SCALE / 2, 2000), SCALE, 2000)
    assert np.ptp(found) == 0
    few, many = priorities(np.array([1000.0] * 5 + [4000.0] * 5), SCALE, 10)[[0, -1]]
    assert few / many == pytest.approx(4, rel=1e-3)
