"""Balls that a private radius chooses from: by enumeration of all small widths."""

import itertools

import numpy as np
import pytest

import shoal
from shoal.cells.estimates.draw import draw
from shoal.cells.mechanisms.ranges import USER
from shoal.cells.mechanisms.user_vectors import balls, moved, radius_of, rank_scores
from shoal.data.aggregate import Aggregate
from shoal.theory.user_clipping import RADII
from tests.support.tape import Tape


@pytest.mark.parametrize("top", [8, 17, 64])
def test_a_moved_ball_holds_the_same_values(top: int) -> None:
    """Values within the bounds are in a ball and in the moved one, or in neither."""
    for centre, radius in itertools.product(range(top + 1), range(1, top + 1)):
        middle, half = moved(centre, radius, top)
        assert half <= radius
        for value in range(top + 1):
            # Where the length is odd the ball is wider by half a tick at one end.
            if abs(value - centre) <= radius:
                assert abs(value - middle) <= half
            else:
                assert abs(value - middle) >= half


@pytest.mark.parametrize(("first", "end"), [(0, RADII), (2, 3), (0, 6)])
@pytest.mark.parametrize("top", [8, 64, 1000, 2**20])
def test_no_ball_is_larger_than_that_of_all_values(top: int, first: int, end: int) -> None:
    """Nor smaller than the shortest radius, on which the lattice's room rests."""
    for centre in sorted({0, 1, top // 3, top // 2, top - 1, top}):
        found = balls(centre, first, end, top)
        radius = [each for _, each in found]
        assert radius == sorted(radius, reverse=True)
        assert len(set(found)) == len(found)
        assert (top + 1) // 2 >= radius[0]
        assert radius[-1] >= radius_of(end - 1, top)
        assert all(0 <= middle <= top for middle, _ in found)
        middle, half = found[0]
        assert middle - half <= 0
        assert middle + half >= top


def test_no_user_moves_a_score_of_any_counts_by_more_than_one() -> None:
    """Counts that one user changes by at most one each, in any directions."""
    changes = np.array([*itertools.product((-1, 0, 1), repeat=4)])
    every = [*itertools.product(range(5), repeat=4)]
    for wanted in (0, 1, 2):
        scores = np.array([rank_scores(np.array(each), wanted, 3) for each in every])
        scores = scores.reshape(5, 5, 5, 5, -1)
        for one in itertools.product(range(4), repeat=4):
            others = np.maximum(one + changes, 0)
            assert (np.abs(scores[one] - scores[tuple(others.T)]) <= USER).all()


def test_the_smallest_ball_that_leaves_out_few_enough_is_best() -> None:
    """By -max(K_j - k, k - min(K_i : i > j), 0), by hand, whatever the order of the K."""
    scores = rank_scores(np.array([0, 3, 0, 4, 2, 9]), 2, 9)
    assert (scores // USER).tolist() == [-2, -2, 0, -2, 0, -7]


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("cells", [5, 13, 30])
def test_nobody_is_beyond_the_ball_of_all_values(cells: int, delta: str) -> None:
    """Users at the bounds are on its edge, where roundings of a norm must not decide."""
    for users in (195, 200):
        who, cell = np.repeat(np.arange(users), cells), np.tile(np.arange(cells), users)
        counts = shoal.Counts.from_counts(who, cell, np.ones_like(who))
        plan = shoal.plan(
            counts, bounds=(0, 1), epsilon=4, delta=delta, method="user_clipped", tick_bits=1
        )
        ends = np.random.default_rng(users).choice([-1, 1], len(who))
        aggregate = Aggregate(counts.memberships, plan.lattice, ends, np.zeros_like(ends))
        tape = Tape(part=0)
        draw(plan, aggregate, tape)
        scores = [each.numbers for each in tape.asked if each.kind == "select"]
        wanted = int(plan.parameters["clipped"][0])
        # The largest ball leaves out nobody, and no other holds enough: only ranks tell.
        assert -scores[1][0] // USER <= wanted
