"""Errata 19 to 21 by enumeration: what papers state, and what every data set shows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shoal_studies import collections

from shoal.cells import caps, weights

pytestmark = pytest.mark.oracle

Interval = tuple[float, float]
sides = st.tuples(st.integers(0, 8), st.integers(0, 8)).map(
    lambda ends: (min(ends) / 8, max(ends) / 8)
)


def bias_by_enumeration(counts: list[int], intervals: list[Interval]) -> float:
    """Most that means of users clipped to their intervals differ, over means on a grid."""
    grid = np.linspace(0, 1, 9)
    low, high = np.array(intervals).T
    means = np.array(list(itertools.product(grid, repeat=len(counts))))
    moved = (np.clip(means, low, high) - means) @ np.array(counts)
    return float(np.abs(moved).max()) / sum(counts)


def printed(counts: list[int], intervals: list[Interval]) -> float:
    """Paper 001, Lemma III.2."""
    low, high = np.array(intervals).T
    return float(np.array(counts) @ np.maximum(low, 1 - high)) / sum(counts)


def test_erratum_19_the_printed_bias_is_twice_the_true_one() -> None:
    """Counts (1, 1), intervals [0, 1/2] and [1/2, 1]: 1/4, printed is 1/2."""
    intervals = [(0.0, 0.5), (0.5, 1.0)]
    assert bias_by_enumeration([1, 1], intervals) == 0.25
    assert printed([1, 1], intervals) == 0.5


@given(users=st.lists(st.tuples(st.integers(1, 5), sides), min_size=1, max_size=3))
def test_erratum_19_the_bias_is_the_larger_of_two_sums(users: list[tuple[int, Interval]]) -> None:
    """All values at 0, or all at the upper bound: the printed sum is an upper bound."""
    counts, intervals = [count for count, _ in users], [interval for _, interval in users]
    low, high = np.array(intervals).T
    m = np.array(counts)
    found = bias_by_enumeration(counts, intervals)
    assert found == pytest.approx(max(m @ low, m @ (1 - high)) / m.sum())
    assert found <= printed(counts, intervals) + 1e-12


def moved_by_a_user(counts: list[int], most: int) -> float:
    """Most that one user moves the variance of at most so many records each, by enumeration."""
    kept = [min(count, most) for count in counts]
    grid, worst = (0.0, 0.5, 1.0), 0.0
    ends = np.cumsum([0, *kept])
    for at, size in enumerate(kept):
        others = itertools.product(grid, repeat=sum(kept) - size)
        for rest in others:
            left, right = rest[: ends[at]], rest[ends[at] :]
            found = [np.var([*left, *own, *right]) for own in itertools.product(grid, repeat=size)]
            worst = max(worst, float(max(found) - min(found)))
    return worst


def test_erratum_20_the_least_sensitivity_lies_between_the_counts() -> None:
    """Counts (1, 4): 2/9 at the cap 2, but 1/4 and 6/25 at the counts themselves."""
    found = {most: moved_by_a_user([1, 4], most) for most in (1, 2, 3, 4)}
    assert found[1] == pytest.approx(1 / 4)
    assert found[2] == pytest.approx(2 / 9)
    assert found[4] == pytest.approx(6 / 25)
    assert min(found, key=found.__getitem__) == 2


def test_erratum_21_ten_times_the_users_fill_more_than_ten_times_the_arrays() -> None:
    """The cap stays, and 160 full arrays of wrap_around become 1,604: rounding leaves less out."""
    counts = collections.itms()
    tenfold = np.tile(counts, 10)
    cap = caps.levy(counts)
    assert caps.levy(tenfold) == cap
    assert weights.wrap_around(counts, cap)[3] == 160
    assert weights.wrap_around(tenfold, cap)[3] == 1604
    full = [int(np.minimum(each, cap).sum()) // cap for each in (counts, tenfold)]
    assert full == [160, 1604]
