"""Sensitivities and biases of means against enumeration of small data sets, and exact ceilings."""

import contextlib
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cells.mechanisms import weights as weighing
from shoal.data.counts import Counts
from shoal.errors import InputError
from shoal.theory import sensitivity

GRID = (Fraction(0), Fraction(1, 2), Fraction(1))


def largest_move(counts: tuple[int, ...], user: int) -> Fraction:
    """Most that the mean moves over all pairs of data sets that differ in one user's values."""
    total = sum(counts)
    others = total - counts[user]
    means = [
        sum(own, start=Fraction(0)) / total for own in itertools.product(GRID, repeat=counts[user])
    ]
    # The others add the same amount to both data sets of a pair, whatever it is.
    moves = [abs(one - other) for one in means for other in means]
    assert others >= 0
    return max(moves)


def test_the_mean_moves_by_the_users_share_and_no_more() -> None:
    """M/n is attained and never exceeded, for all counts with n <= 6."""
    for users in (1, 2, 3):
        for counts in itertools.product(range(1, 5), repeat=users):
            if sum(counts) > 6:
                continue
            total = np.full(users, sum(counts))
            stated = sensitivity.mean(np.array(counts), total)
            for user in range(users):
                exact = largest_move(counts, user)
                assert exact == Fraction(counts[user], sum(counts))
                assert exact <= Fraction(float(stated[user])) <= exact * (1 + Fraction(1, 2**50))


@given(
    m=st.integers(1, 10**6),
    extra=st.integers(0, 10**9),
    scale=st.floats(1e-9, 1e6),
    bits=st.integers(1, 30),
)
def test_steps_are_never_below_the_exact_ceiling(
    m: int, extra: int, scale: float, bits: int
) -> None:
    """Rounding goes against us, by one step at most (and a relative 2^-50 of large numbers)."""
    exact = math.ceil(Fraction(m, m + extra) * 2**bits / Fraction(scale))
    moved = sensitivity.mean(np.array([m]), np.array([m + extra]))
    if exact >= 2**52:
        # Beyond 2^53 steps sums would not be exact: refused, or still right.
        with contextlib.suppress(InputError):
            assert exact <= int(sensitivity.whole_steps(moved, np.array([scale]), bits)[0])
        return
    stated = int(sensitivity.whole_steps(moved, np.array([scale]), bits)[0])
    assert exact <= stated <= exact + 1 + (exact >> 49)


@given(scale=st.floats(1e-6, 1e6), steps=st.integers(1, 10**9))
def test_a_quotient_that_rounds_to_a_whole_number_is_not_taken_for_it(
    scale: float, steps: int
) -> None:
    """Sensitivities a hair above whole steps, where the quotient hides the hair."""
    moved = scale * steps
    while Fraction(moved) <= Fraction(scale) * steps:
        moved = math.nextafter(moved, math.inf)
    stated = int(sensitivity.whole_steps(np.array([moved]), np.array([scale]), 0)[0])
    assert Fraction(moved) / Fraction(scale) <= stated


@pytest.mark.parametrize("moved", [0.0, 1.0, math.nan])
def test_steps_that_are_no_numbers_are_refused(moved: float) -> None:
    """Noise of scale 0 has no finite loss, also where nothing is moved."""
    with np.errstate(divide="ignore", invalid="ignore"), pytest.raises(InputError, match="small"):
        sensitivity.whole_steps(np.array([moved]), np.array([0.0]), 3)


@given(
    users=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=4),
    total=st.integers(1, 30),
)
def test_linear_is_the_most_over_all_data_sets(users: list[tuple[int, int]], total: int) -> None:
    """The difference is linear in every user's mean: the corners of the cube decide."""
    counts, weights = np.array(users).T
    public = Counts.from_counts(range(len(users)), [0] * len(users), counts.tolist())
    found = weighing.linear(public, np.array([0]), weights, np.array([total])).bias
    apart = public.count / counts.sum() - weights / total
    most = max(abs(apart @ corner) for corner in itertools.product((0, 1), repeat=len(users)))
    assert found.tolist() == pytest.approx([most], abs=1e-12)


@given(several=st.lists(st.integers(1, 9), min_size=1, max_size=5), most=st.integers(0, 9))
def test_what_own_intervals_leave_out_lies_in_the_middle(several: list[int], most: int) -> None:
    """Half of the missing mass: over users' means at both ends and in the middle."""
    counts = np.array(several)
    public = Counts.from_counts(range(len(counts)), [0] * len(counts), several)
    threshold = np.array([min(most, max(several))])
    found = weighing.truncated(public, np.array([0]), threshold).bias
    half = np.minimum(counts, most) / (2 * counts)
    apart = max(
        abs(counts @ (np.clip(means, 0.5 - half, 0.5 + half) - means)) / counts.sum()
        for means in itertools.product((0.0, 0.5, 1.0), repeat=len(counts))
    )
    assert found.tolist() == pytest.approx([apart], abs=1e-12)
