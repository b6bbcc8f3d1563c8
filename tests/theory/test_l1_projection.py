"""Projection onto the l1 ball in whole numbers, against every threshold and every point."""

from __future__ import annotations

import itertools
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.theory.l1_projection import MOST, norms, project

if TYPE_CHECKING:
    from types import FrameType

    TraceFunction = Any

pytestmark = pytest.mark.property

vectors = st.lists(st.integers(-9, 9), min_size=1, max_size=5)


def one(vector: list[int], radius: int) -> list[int]:
    """The projection of a single owner's vector."""
    moved = project(np.array(vector), np.zeros(len(vector), dtype=np.int64), radius)
    return [int(each) for each in moved]


@given(vector=vectors, radius=st.integers(0, 40))
def test_the_threshold_is_the_least(vector: list[int], radius: int) -> None:
    """Of all whole thresholds the first that leads into the ball."""

    def shrunk(by: int) -> list[int]:
        return [int(np.sign(x)) * max(abs(x) - by, 0) for x in vector]

    least = next(t for t in range(10) if sum(map(abs, shrunk(t))) <= radius)
    assert one(vector, radius) == shrunk(least)


@pytest.mark.parametrize("radius", [0, 1, 2, 3, 5])
def test_no_two_vectors_are_further_apart_than_two_radii(radius: int) -> None:
    """All pairs of vectors of two numbers; two opposite corners attain it."""
    numbers = range(-4, 5)
    points = {tuple(one(list(each), radius)) for each in itertools.product(numbers, repeat=2)}
    apart = max(
        sum(abs(x - y) for x, y in zip(a, b, strict=True))
        for a, b in itertools.product(points, repeat=2)
    )
    assert apart == 2 * min(radius, 8)


def test_a_hundred_thousand_pairs_stay_within_two_radii() -> None:
    """Long vectors of very different sizes, up to 2^40 a number."""
    rng = np.random.default_rng(1)
    owners = 200_000
    length = rng.integers(1, 12, owners)
    owner = np.repeat(np.arange(owners), length)
    size = (2.0 ** rng.uniform(0, 40, len(owner))).astype(np.int64)
    vector = size * rng.choice([-1, 1], len(owner))
    for radius in (1, 10**6, 2**39):
        inside = project(vector, owner, radius)
        assert norms(np.abs(inside), owner).max() <= radius
        still = norms(size, owner) <= radius
        np.testing.assert_array_equal(inside[still[owner]], vector[still[owner]])
        assert (np.abs(inside) <= size).all()
        assert ((np.sign(inside) == np.sign(vector)) | (inside == 0)).all()


@given(vector=vectors, radius=st.integers(0, 40), seed=st.integers(0, 5))
def test_the_order_of_rows_does_not_matter(vector: list[int], radius: int, seed: int) -> None:
    """Each number has the same projection wherever it stands, ties included."""
    order = np.random.default_rng(seed).permutation(len(vector))
    moved = one([vector[at] for at in order], radius)
    assert [one(vector, radius)[at] for at in order] == moved


def test_owners_do_not_see_each_other() -> None:
    """Each is projected as if it were alone, also where owners are interleaved."""
    rng = np.random.default_rng(2)
    owner = rng.integers(0, 40, 300)
    vector = rng.integers(-(2**40), 2**40, 300)
    together = project(vector, owner, 2**38)
    for each in range(40):
        mine = owner == each
        np.testing.assert_array_equal(
            together[mine], one(vector[mine].tolist(), 2**38) if mine.any() else []
        )


def test_sums_that_do_not_fit_are_refused() -> None:
    """No sum wraps around."""
    large = np.full(4, MOST // 3)
    with pytest.raises(OverflowError):
        project(large, np.zeros(4, dtype=np.int64), 1)


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

    assert len(lines(4)) > 8
    assert lines(100) == lines(4) == lines(0)
