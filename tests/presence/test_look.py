"""Caps from noisy sizes of users: noise makes no ghosts, and what may be users is not trusted."""

import numpy as np

from shoal.presence.look import cap_of, sizes_of

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
    plain = cap_of(seen(), SCALE, SIZES, 20, 1.0, 0.5)
    ghost = cap_of(seen(last=8), SCALE, SIZES, 20, 1.0, 0.5)
    assert (ghost.size, ghost.up) == (plain.size, plain.up)
    assert plain.moved < 0.25 < ghost.moved


def test_users_who_stand_out_for_certain_move_the_cap() -> None:
    """Thirty scales are users."""
    assert cap_of(seen(last=30), SCALE, SIZES, 20, 1.0, 0.5).size > 1000


def test_a_look_that_sees_nothing_says_nothing() -> None:
    """Sizes that are noise alone."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        noise = rng.laplace(0, SCALE, len(SIZES.edges))
        found = cap_of(np.clip(noise, None, 5 * SCALE), SCALE, SIZES, 20, 1.0, 0.5)
        assert not found.known
