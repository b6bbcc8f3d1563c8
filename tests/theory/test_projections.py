"""Projection into balls in whole numbers, against thresholds, exact division and all pairs."""

import itertools
import math
import sys
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.theory.projections import L1, L2, MOST_L1, MOST_L2, MOST_RADIUS, Ball

TraceFunction = Any


small = st.lists(st.integers(-9, 9), min_size=1, max_size=5)
large = st.lists(st.integers(-(2**58), 2**58), min_size=1, max_size=5)


def one(ball: Ball, vector: list[int], radius: int) -> list[int]:
    """The projection of a single owner's vector."""
    moved = ball.project(np.array(vector), np.zeros(len(vector), dtype=np.int64), radius)
    return [int(each) for each in moved]


@given(vector=small, radius=st.integers(0, 40))
def test_the_threshold_is_the_least(vector: list[int], radius: int) -> None:
    """Of all whole thresholds the first that leads into the ball."""

    def shrunk(by: int) -> list[int]:
        return [int(np.sign(x)) * max(abs(x) - by, 0) for x in vector]

    least = next(t for t in range(10) if sum(map(abs, shrunk(t))) <= radius)
    assert one(L1, vector, radius) == shrunk(least)


@pytest.mark.parametrize("radius", [0, 1, 2, 3, 5, 6])
def test_no_two_vectors_are_further_apart_than_two_radii(radius: int) -> None:
    """All pairs of vectors of two numbers; two opposite corners attain it, nearly in l2."""
    for ball, power, numbers in ((L1, 1, range(-4, 5)), (L2, 2, range(-8, 9))):
        every = itertools.product(numbers, repeat=2)
        points = {tuple(one(ball, list(each), radius)) for each in every}
        apart = max(
            sum(abs(x - y) ** power for x, y in zip(a, b, strict=True))
            for a, b in itertools.product(points, repeat=2)
        )
        if power == 1:
            assert apart == 2 * min(radius, 8)
        else:
            assert (2 * max(radius - 1, 0)) ** 2 <= apart <= (2 * radius) ** 2


@given(vector=small, radius=st.integers(0, 40), seed=st.integers(0, 5))
def test_the_order_of_rows_does_not_matter(vector: list[int], radius: int, seed: int) -> None:
    """Each number has the same projection wherever it stands, ties included."""
    order = np.random.default_rng(seed).permutation(len(vector))
    moved = one(L1, [vector[at] for at in order], radius)
    assert [one(L1, vector, radius)[at] for at in order] == moved


@pytest.mark.parametrize("ball", [L1, L2], ids=["l1", "l2"])
def test_owners_do_not_see_each_other(ball: Ball) -> None:
    """Each is projected as if it were alone, also where owners are interleaved."""
    rng = np.random.default_rng(2)
    owner = rng.integers(0, 40, 300)
    # So large that a running sum over all of them wraps around.
    vector = rng.integers(-(2**56), 2**56, 300)
    together = ball.project(vector, owner, 2**38)
    for each in range(40):
        mine = owner == each
        np.testing.assert_array_equal(together[mine], one(ball, vector[mine].tolist(), 2**38))


@given(vector=large, radius=st.integers(0, MOST_RADIUS))
def test_no_norm_is_above_the_radius(vector: list[int], radius: int) -> None:
    """Squares in whole numbers; directions stay, and nothing moves that is well inside."""
    moved = one(L2, vector, radius)
    square, length = sum(x * x for x in moved), sum(x * x for x in vector)
    assert square <= radius**2
    assert all(x * z >= 0 and abs(z) <= abs(x) for x, z in zip(vector, moved, strict=True))
    if length <= (radius * (1 - 2.0**-20) - 1) ** 2:
        assert moved == vector
    # Nearly all of the ball is used: each number is at most one below the exact scaling.
    if length > radius**2:
        for x, z in zip(vector, moved, strict=True):
            assert abs(z) >= abs(x) * radius / math.sqrt(length) * (1 - 2.0**-20) - 2


@given(vector=large, radius=st.integers(1, MOST_RADIUS))
def test_numbers_are_those_of_exact_division(vector: list[int], radius: int) -> None:
    """The remainder of 64-bit products that wrap around is the exact one."""
    size = np.abs(np.array(vector))
    [norm] = L2.norms(size, np.zeros(len(vector), dtype=np.int64)).tolist()
    exact = [
        x if norm <= radius else (abs(x) * radius // norm) * (1 if x > 0 else -1) for x in vector
    ]
    assert one(L2, vector, radius) == exact


@given(vector=large)
def test_norms_are_rounded_upwards(vector: list[int]) -> None:
    """Never below the root of the sum of squares, and a millionth above at most."""
    size, owner = np.abs(np.array(vector)), np.zeros(len(vector), dtype=np.int64)
    [norm] = L2.norms(size, owner).tolist()
    square = sum(x * x for x in vector)
    assert norm**2 >= square
    assert norm <= 1 + math.isqrt(square) * (1 + 2.0**-20) + 1


def test_what_does_not_fit_is_refused() -> None:
    """No sum and no product of 64 bits wraps around unseen."""
    owner = np.zeros(4, dtype=np.int64)
    with pytest.raises(OverflowError, match="2\\^61"):
        L1.project(np.full(4, MOST_L1 // 3), owner, 1)
    with pytest.raises(OverflowError, match="norm"):
        L2.project(np.full(4, MOST_L2 // 2 + 1), owner, 1)
    for radius in (-1, MOST_RADIUS + 1):
        with pytest.raises(OverflowError, match="radius"):
            L2.project(owner, owner, radius)


@pytest.mark.parametrize("ball", [L1, L2], ids=["l1", "l2"])
def test_whether_anybody_is_outside_decides_no_step(ball: Ball) -> None:
    """The same lines run where no vector is moved, one is, and all are."""

    def lines(radius: int) -> list[int]:
        ran: list[int] = []

        def watch(frame: FrameType, event: str, _: object) -> TraceFunction:
            if event == "line" and frame.f_code.co_name.startswith("project"):
                ran.append(frame.f_lineno)
            return watch

        before = sys.gettrace()
        sys.settrace(watch)
        try:
            ball.project(np.array([5, -3, 1, 2]), np.array([0, 0, 0, 1]), radius)
        finally:
            sys.settrace(before)
        return ran

    assert len(lines(4)) > 5
    assert lines(100) == lines(4) == lines(0)
