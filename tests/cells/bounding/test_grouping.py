"""Groupings against a reference that places one user, or one record, at a time."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cells.bounding import grouping
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.cells.bounding.grouping import Grouping

pytestmark = pytest.mark.property

Pieces = list[tuple[int, int, int]]
several_counts = st.one_of(
    st.lists(st.integers(1, 12), min_size=1, max_size=60),
    st.lists(st.integers(1, 300), min_size=1, max_size=60),
)


def by_falling_size(several: list[int]) -> list[int]:
    """Users by falling count, ties by position."""
    return sorted(range(len(several)), key=lambda user: (-several[user], user))


def one_user_at_a_time(several: list[int], cap: int) -> tuple[Pieces, int]:
    """Best fit (docs/theory/grouping.md#arrays): (user, array, records), the number of arrays."""
    free: list[int] = []
    pieces = []
    for user in by_falling_size(several):
        size = min(several[user], cap)
        fits = [(space, array) for array, space in enumerate(free) if space >= size]
        if not fits:
            fits = [(cap, len(free))]
            free.append(cap)
        array = min(fits)[1]
        free[array] -= size
        pieces.append((user, array, size))
    return pieces, len(free)


def one_record_at_a_time(several: list[int], cap: int) -> tuple[Pieces, int]:
    """Wrap-around as docs/theory/grouping.md#arrays has it."""
    stream = [user for user in by_falling_size(several) for _ in range(min(several[user], cap))]
    full = len(stream) // cap
    inside = enumerate(stream[: full * cap])
    runs = itertools.groupby(inside, key=lambda entry: (entry[1], entry[0] // cap))
    return [(user, array, len(list(run))) for (user, array), run in runs], full


def pieces_of(made: Grouping) -> Pieces:
    """The pieces of a grouping."""
    return list(zip(made.user.tolist(), made.array.tolist(), made.records.tolist(), strict=True))


@given(several=several_counts, cap=st.integers(1, 310))
def test_best_fit_is_one_user_at_a_time(several: list[int], cap: int) -> None:
    """The same user in the same array, for every cap."""
    made = grouping.best_fit(np.array(several), cap)
    assert (pieces_of(made), made.n_arrays) == one_user_at_a_time(several, cap)


@given(data=st.data(), several=several_counts)
def test_wrap_around_is_one_record_at_a_time(data: st.DataObject, several: list[int]) -> None:
    """The same records in the same arrays; what fills no array is gone."""
    cap = data.draw(st.integers(1, max(several)))
    made = grouping.wrap_around(np.array(several), cap)
    assert (pieces_of(made), made.n_arrays) == one_record_at_a_time(several, cap)
    assert (made.filled == cap).all()


def test_best_fit_of_many_users_in_many_classes() -> None:
    """Thousands of users, small and large, with ties and rests of every size."""
    rng = np.random.default_rng(5)
    for cap in (7, 30, 211):
        several = np.ceil(rng.pareto(1.0, 1500) * 3 + 0.01).astype(int)
        made = grouping.best_fit(several, cap)
        assert (pieces_of(made), made.n_arrays) == one_user_at_a_time(several.tolist(), cap)


@given(data=st.data(), several=several_counts)
def test_facts_of_both_groupings(data: st.DataObject, several: list[int]) -> None:
    """Arrays of a user, records, weights, sensitivity, and which grouping has more arrays."""
    cap = data.draw(st.integers(1, max(several)))
    counts = np.array(several)
    wrap, fit = grouping.wrap_around(counts, cap), grouping.best_fit(counts, cap)
    assert wrap.n_arrays <= fit.n_arrays
    assert np.bincount(fit.user).max() == 1
    assert np.bincount(wrap.user).max() <= 2
    assert (fit.filled >= 1).all()
    assert (fit.filled <= cap).all()
    assert fit.filled.sum() == np.minimum(counts, cap).sum()
    for made in (wrap, fit):
        assert made.filled.sum() == made.records.sum()
        exact = [Fraction(0)] * len(several)
        for user, array, records in pieces_of(made):
            exact[user] += Fraction(records, int(made.filled[array])) / made.n_arrays
        weights = made.weights(len(several))
        assert sum(exact) == 1
        assert weights.tolist() == pytest.approx([float(weight) for weight in exact])
        found = Fraction(made.sensitivity())
        assert max(exact) <= found <= max(exact) * (1 + Fraction(1, 2**48))
        assert max(exact) <= Fraction(1, made.n_arrays)


def moves(made: Grouping, users: int) -> float:
    """Most that one user moves the mean of the array means, over all values 0 and 1."""
    owner = np.repeat(made.user, made.records)
    share = np.repeat(1 / made.filled[made.array] / made.n_arrays, made.records)
    # All data sets at once, an axis a record.
    means = sum(
        share[at] * axis for at, axis in enumerate(np.indices((2,) * len(owner), sparse=True))
    )
    found = 0.0
    for user in range(users):
        own = tuple(np.flatnonzero(owner == user).tolist())
        if own:
            apart = np.max(means, axis=own) - np.min(means, axis=own)
            found = max(found, float(apart.max()))
    return found


def test_erratum_7_a_user_moves_plain_averages_by_one_array_at_most() -> None:
    """All small counts and caps: the sensitivity is exact, at most 1/K where 2/K is printed."""
    straddling = 0
    for users in (1, 2, 3, 4):
        for several in itertools.combinations_with_replacement(range(1, 5), users):
            for cap in range(1, min(sum(several), max(several) + 2) + 1):
                # Caps above the largest count are no use but show more straddling.
                for group in (grouping.wrap_around, grouping.best_fit):
                    made = group(np.array(several), cap)
                    if made.records.sum() > 12:
                        continue
                    exact = moves(made, users)
                    assert made.sensitivity() == pytest.approx(exact)
                    assert exact <= 1 / made.n_arrays + 1e-12
                    straddling += np.bincount(made.user).max() == 2
    assert straddling > 20


def test_erratum_7_clipped_array_means_do_move_twice() -> None:
    """A user in two arrays moves the mean of two clipped means by 2 (b - a)/K."""
    made = grouping.wrap_around(np.array([4, 4, 4]), 4)
    assert np.bincount(made.user).max() == 1
    made = grouping.wrap_around(np.array([4, 3, 3, 2]), 4)
    assert np.bincount(made.user).max() == 2
    user = int(np.flatnonzero(np.bincount(made.user) == 2)[0])
    own = made.records * (made.user == user)
    share = np.bincount(made.array, own) / made.filled
    low, high = 0.0, 0.25
    moved = np.clip(share, low, high).mean()
    assert moved > (high - low) / made.n_arrays
    assert moved <= min(2 * (high - low), 1) / made.n_arrays


@pytest.mark.parametrize("cap", [0, -1])
def test_a_cap_is_at_least_one(cap: int) -> None:
    """Arrays hold something."""
    with pytest.raises(InputError, match="a cap of"):
        grouping.best_fit(np.array([1, 2]), cap)
    with pytest.raises(InputError, match="a cap of"):
        grouping.wrap_around(np.array([1, 2]), cap)


def test_wrap_around_needs_a_full_array() -> None:
    """Three records fill no array of four."""
    with pytest.raises(InputError, match="fill no array"):
        grouping.wrap_around(np.array([1, 2]), 4)
    assert grouping.best_fit(np.array([1, 2]), 4).n_arrays == 1
