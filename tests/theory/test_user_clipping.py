"""How the budget of the user-clipped mean is split, and tails."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.theory.user_clipping import balancing_users, clipped_users, hidden_radii, rounds, split


@example(epsilon=3.0, users=25, cells=3)
@given(epsilon=st.floats(0.01, 50), users=st.integers(1, 10**7), cells=st.integers(1, 10**5))
def test_parts_leave_most_for_the_noise(epsilon: float, users: int, cells: int) -> None:
    """At most a fifth for the centre, a quarter for the radius, an eighth for the excess.

    At most 35% are clipped.
    """
    found = split(epsilon, users, users, cells)
    if found is None:
        assert epsilon * users < 75
        return
    assert 0 < found.centre <= 0.2
    assert 0 < found.radius <= 0.25
    assert 0 <= found.excess <= 0.125
    assert found.noise == pytest.approx(1 - found.centre - found.radius - found.excess)
    assert found.noise >= 0.425
    assert 1 <= found.clipped <= max(1, 0.35 * users)
    assert found.bins in (8, 16, 32, 64, 128, 256, 512, 1024)


def test_the_parts_are_those_of_the_page() -> None:
    """4000 users in 100 cells at 1: 40/4000, r/(1 + r) with r = sqrt(0.003), 3 cells/noise.

    The excess gets more in fewer cells; in the fewest, twice as much where users are in fewer than
    1.5 of them each.
    """
    found = split(1.0, 4000, 6000, 100)
    assert found is not None
    assert found.excess == 0.08
    for members, cells, part in ((6000, 22, 2 / 22), (6000, 9, 0.06), (5999, 9, 0.12)):
        fewer = split(1.0, 4000, members, cells)
        assert fewer is not None
        assert fewer.excess == part
    rate = 0.003**0.5
    assert (found.centre, found.radius) == (0.01, rate / (1 + rate))
    assert found.clipped == int(300 / found.noise)
    assert found.bins == 1024


@given(
    epsilon=st.floats(0.01, 50),
    delta=st.sampled_from([0.0, 1e-12, 1e-9, 1e-5]),
    users=st.integers(1, 10**6),
    each=st.integers(1, 500),
    cells=st.integers(1, 2000),
)
def test_two_rounds_need_a_delta_users_and_cells(
    epsilon: float, delta: float, users: int, each: int, cells: int
) -> None:
    """And once there are two, more cells a user, or more cells, leave two."""
    found = rounds(epsilon, delta, users, users * each, cells)
    if not delta or cells < 250 or epsilon * users < 1000:
        assert found == 1
    elif found == 2:
        assert rounds(epsilon, delta, users, users * (each + 1), cells + 1) == 2


@pytest.mark.parametrize(("epsilon", "fewest"), [(0.5, 31), (1.0, 32), (4.0, 37)])
def test_two_rounds_from_so_many_cells_a_user(epsilon: float, fewest: int) -> None:
    """At delta 1e-9, where noise is 1.3 times smaller: sqrt(pi rho d) against 0.8 epsilon."""
    many = [rounds(epsilon, 1e-9, 4000, 4000 * each, 900) for each in (fewest - 1, fewest)]
    assert many == [1, 2]


@pytest.mark.parametrize(("epsilon", "users", "cells"), [(0.0, 1, 1), (1.0, 0, 1), (1.0, 1, 0)])
def test_counts_that_there_are_not_are_refused(epsilon: float, users: int, cells: int) -> None:
    """One of our errors."""
    with pytest.raises(InputError):
        split(epsilon, users, 1, cells)


def test_longer_tails_hide_more() -> None:
    """One radius where the bounds are near, half of one more each time they are twice as far."""
    assert [hidden_radii(ratio) for ratio in (0.5, 2, 16, 64, 256)] == [1, 1, 1, 2, 3]


@given(distance=st.floats(1e-3, 10), cells=st.integers(1, 1000), each=st.floats(1, 100))
def test_gaussian_noise_is_weighed_by_its_mean_size(
    distance: float, cells: int, each: float
) -> None:
    """Laplace noise of the same mean size, and deviations that are spread over all cells."""
    laplace = 3 * cells / (distance / np.sqrt(2 / np.pi))
    assert balancing_users(distance, cells, each) == pytest.approx(laplace / np.sqrt(each))


def test_a_rank_can_be_found_and_most_users_are_kept() -> None:
    """10 over the loss of the selection at least, 35% of the users at most, 20% if they are few."""
    assert clipped_users(5.0, 10**6, 0.25, 1000.0) == 40
    assert clipped_users(1e9, 1000, 0.25, 1000.0) == 350
    assert clipped_users(1e9, 1000, 0.25, 999.0) == 200
    assert clipped_users(1e9, 1, 0.25, 1000.0) == 1
