"""Weights of users, and groupings against a reference that places one user at a time."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cells.mechanisms import weights
from shoal.cells.mechanisms.methods import method_of
from shoal.cells.mechanisms.weights import PART, SHARE
from shoal.data.counts import Counts
from shoal.errors import InputError
from tests.support import made_counts

Pieces = list[tuple[int, int, int]]
several_counts = st.one_of(
    st.lists(st.integers(1, 12), min_size=1, max_size=60),
    st.lists(st.integers(1, 300), min_size=1, max_size=60),
)


def by_falling_size(several: list[int]) -> list[int]:
    """Users by falling count, ties by position."""
    return sorted(range(len(several)), key=lambda user: (-several[user], user))


def one_user_at_a_time(several: list[int], cap: int) -> tuple[Pieces, int]:
    """Best fit (docs/theory/cells.md#arrays-and-caps): (user, array, records), and how many."""
    free: list[int] = []
    pieces = []
    for user in by_falling_size(several):
        size = min(several[user], cap)
        fits = [(domain, array) for array, domain in enumerate(free) if domain >= size]
        if not fits:
            fits = [(cap, len(free))]
            free.append(cap)
        array = min(fits)[1]
        free[array] -= size
        pieces.append((user, array, size))
    return pieces, len(free)


def one_record_at_a_time(several: list[int], cap: int) -> tuple[Pieces, int]:
    """Wrap-around as docs/theory/cells.md#arrays-and-caps has it."""
    stream = [user for user in by_falling_size(several) for _ in range(min(several[user], cap))]
    full = len(stream) // cap
    inside = enumerate(stream[: full * cap])
    runs = itertools.groupby(inside, key=lambda entry: (entry[1], entry[0] // cap))
    return [(user, array, len(list(run))) for (user, array), run in runs], full


def placed(group: Any, several: list[int], cap: int) -> tuple[Pieces, int]:
    """What a grouping gives, array by array in the order of users."""
    user, array, records, number = group(np.array(several), cap)
    rank = {each: at for at, each in enumerate(by_falling_size(several))}
    pieces = zip(user.tolist(), array.tolist(), records.tolist(), strict=True)
    return sorted(pieces, key=lambda piece: (rank[piece[0]], piece[1])), number


@given(several=several_counts, cap=st.integers(1, 310))
def test_best_fit_is_one_user_at_a_time(several: list[int], cap: int) -> None:
    """The same user in the same array, for every cap."""
    assert placed(weights.best_fit, several, cap) == one_user_at_a_time(several, cap)


@given(data=st.data(), several=several_counts)
def test_wrap_around_is_one_record_at_a_time(data: st.DataObject, several: list[int]) -> None:
    """The same records in the same arrays; what fills no array is gone."""
    cap = data.draw(st.integers(1, max(several)))
    assert placed(weights.wrap_around, several, cap) == one_record_at_a_time(several, cap)


@given(data=st.data(), several=several_counts)
def test_users_weigh_their_shares_of_arrays(data: st.DataObject, several: list[int]) -> None:
    """Weights are shares of arrays, rounded downwards to 2^-24, and at most one array's each."""
    cap = data.draw(st.integers(1, max(several)))
    counts = Counts.from_counts(range(len(several)), [0] * len(several), several)
    for name, reference in (
        ("best_fit", one_user_at_a_time),
        ("wrap_around", one_record_at_a_time),
    ):
        pieces, number = reference(counts.count.tolist(), cap)
        filled = [Fraction(0)] * number
        for _, array, records in pieces:
            filled[array] += records
        exact = [Fraction(0)] * len(several)
        for user, array, records in pieces:
            exact[user] += Fraction(records) / filled[array] / number
        for clipped in (False, True):
            made = weights.arrays(counts, np.array([0]), np.array([cap]), name, clipped=clipped)
            stated = [Fraction(w, int(made.total[0])) for w in made.weight.tolist()]
            for one, true in zip(stated, exact, strict=True):
                assert true - Fraction(2, number << SHARE) <= one <= true
            assert made.largest[0] >= float(max(stated))
        assert max(exact) <= Fraction(1, number)
        touched = np.bincount([user for user, _, _ in pieces], minlength=len(several))
        assert (made.reach == touched << SHARE).all()
        assert made.touched == touched.max() <= (1 if name == "best_fit" else 2)
        assert made.pieces.tolist() == [number]


@pytest.mark.parametrize("cap", [0, -1])
def test_a_cap_is_at_least_one(cap: int) -> None:
    """Arrays hold something."""
    with pytest.raises(InputError, match="a cap of"):
        weights.best_fit(np.array([1, 2]), cap)
    with pytest.raises(InputError, match="a cap of"):
        weights.wrap_around(np.array([1, 2]), cap)


def test_wrap_around_needs_a_full_array() -> None:
    """Three records do not fill one array of four."""
    with pytest.raises(InputError, match="do not fill one array"):
        weights.wrap_around(np.array([1, 2]), 4)
    assert weights.best_fit(np.array([1, 2]), 4)[-1] == 1


COUNTS = made_counts.sparse(3)
CELLS = np.arange(COUNTS.n_cells)
EVERY = ["baseline", "clip_user", "optimal", "array_averaging", "levy", "adaptive", "akmv"]


@pytest.mark.parametrize("name", [*EVERY, "worst_case_optimal", "user_clipped"])
def test_weights_are_of_the_released_cells_alone(name: str) -> None:
    """Members of the cells that are released, whole weights, reaches of at most the total."""
    cells, method = CELLS[1:4], method_of(name)
    made = method.weigh(COUNTS, cells, method.bound(COUNTS, cells, np.ones(3)))
    assert set(COUNTS.cell[made.member].tolist()) == {1, 2, 3}
    assert (made.weight >= 0).all()
    assert (made.reach <= made.total[made.cell] * made.touched).all()
    assert (made.pieces >= 1).all()


def test_only_lone_users_are_widened() -> None:
    """Users of one cell each: lighter ones have wider ranges, and reach as far as the heaviest."""
    alone = Counts.from_counts(range(6), [0, 0, 0, 1, 1, 1], [1, 2, 3, 4, 5, 6])
    method = method_of("adaptive")
    for counts, wider in ((alone, True), (COUNTS, False)):
        cells = np.arange(counts.n_cells)
        made = method.weigh(counts, cells, method.bound(counts, cells, np.ones(len(cells))))
        assert made.widened == wider
        most = made.heaviest[made.cell] if wider else made.weight
        assert (made.reach == most).all()


def test_users_reach_a_threshold_or_a_part() -> None:
    """Each user reaches min(m, T) of its records, or its part of them; the rest is missing."""
    counts = Counts.from_counts(["a", "b"], [0, 0], [2, 9])
    cut = weights.truncated(counts, np.array([0]), np.array([3]))
    assert sorted(cut.reach.tolist()) == [2, 3]
    assert cut.missing.tolist() == [6 / 11]
    half = weights.parts(counts, np.array([0]), np.full(2, 1 << PART >> 1))
    assert half.missing.tolist() == [0.5]
    assert half.bias.tolist() == [0.25]
