"""Projection into the l2 ball in whole numbers, against exact division and all pairs of points."""

from __future__ import annotations

import itertools
import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.theory.l2_projection import MOST, MOST_RADIUS, norms, project

if TYPE_CHECKING:
    from types import FrameType

    TraceFunction = Any

pytestmark = pytest.mark.property

vectors = st.lists(st.integers(-(2**58), 2**58), min_size=1, max_size=5)


def one(vector: list[int], radius: int) -> list[int]:
    """The projection of a single owner's vector."""
    moved = project(np.array(vector), np.zeros(len(vector), dtype=np.int64), radius)
    return [int(each) for each in moved]


@given(vector=vectors, radius=st.integers(0, MOST_RADIUS))
def test_no_norm_is_above_the_radius(vector: list[int], radius: int) -> None:
    """Squares in whole numbers; directions stay, and nothing moves that is well inside."""
    moved = one(vector, radius)
    square, length = sum(x * x for x in moved), sum(x * x for x in vector)
    assert square <= radius**2
    assert all(x * z >= 0 and abs(z) <= abs(x) for x, z in zip(vector, moved, strict=True))
    if length <= (radius * (1 - 2.0**-20) - 1) ** 2:
        assert moved == vector
    # Nearly all of the ball is used: each number is at most one below the exact scaling.
    if length > radius**2:
        for x, z in zip(vector, moved, strict=True):
            assert abs(z) >= abs(x) * radius / math.sqrt(length) * (1 - 2.0**-20) - 2


@given(vector=vectors, radius=st.integers(1, MOST_RADIUS))
def test_numbers_are_those_of_exact_division(vector: list[int], radius: int) -> None:
    """The remainder of 64-bit products that wrap around is the exact one."""
    size = np.abs(np.array(vector))
    [norm] = norms(size, np.zeros(len(vector), dtype=np.int64)).tolist()
    exact = [
        x if norm <= radius else (abs(x) * radius // norm) * (1 if x > 0 else -1) for x in vector
    ]
    assert one(vector, radius) == exact


@given(vector=vectors)
def test_norms_are_rounded_upwards(vector: list[int]) -> None:
    """Never below the root of the sum of squares, and a millionth above at most."""
    size, owner = np.abs(np.array(vector)), np.zeros(len(vector), dtype=np.int64)
    [norm] = norms(size, owner).tolist()
    square = sum(x * x for x in vector)
    assert norm**2 >= square
    assert norm <= 1 + math.isqrt(square) * (1 + 2.0**-20) + 1


@pytest.mark.parametrize("radius", [0, 1, 2, 3, 5, 6])
def test_no_two_vectors_are_further_apart_than_two_radii(radius: int) -> None:
    """All pairs of vectors of two numbers; two opposite ones nearly attain it."""
    numbers = range(-8, 9)
    points = {tuple(one(list(each), radius)) for each in itertools.product(numbers, repeat=2)}
    apart = max(
        sum((x - y) ** 2 for x, y in zip(a, b, strict=True))
        for a, b in itertools.product(points, repeat=2)
    )
    assert (2 * max(radius - 1, 0)) ** 2 <= apart <= (2 * radius) ** 2


def test_owners_do_not_see_each_other() -> None:
    """Each is projected as if it were alone, also where owners are interleaved."""
    rng = np.random.default_rng(2)
    owner = rng.integers(0, 40, 300)
    vector = rng.integers(-(2**40), 2**40, 300)
    together = project(vector, owner, 2**38)
    for each in range(40):
        mine = owner == each
        np.testing.assert_array_equal(together[mine], one(vector[mine].tolist(), 2**38))


def test_what_does_not_fit_is_refused() -> None:
    """No product of 64 bits wraps around unseen."""
    large, owner = np.full(4, MOST // 2 + 1), np.zeros(4, dtype=np.int64)
    with pytest.raises(OverflowError, match="norm"):
        project(large, owner, 1)
    for radius in (-1, MOST_RADIUS + 1):
        with pytest.raises(OverflowError, match="radius"):
            project(owner, owner, radius)


def test_whether_anybody_is_outside_decides_no_step() -> None:
    """The same lines run where no vector is moved, one is, and all are."""

    def lines(radius: int) -> list[int]:
        ran: list[int] = []

        def watch(frame: FrameType, event: str, _: object) -> TraceFunction:
            if event == "line" and frame.f_code.co_name == "project":
                ran.append(frame.f_lineno)
            return watch

        before = sys.gettrace()
        sys.settrace(watch)
        try:
            project(np.array([5, -3, 1, 2]), np.array([0, 0, 0, 1]), radius)
        finally:
            sys.settrace(before)
        return ran

    assert len(lines(4)) > 5
    assert lines(100) == lines(4) == lines(0)
