"""Users' vectors in a ball: all small data sets with the shipped planner, selections included."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import shoal
from shoal.cells.draw import draw
from shoal.cells.ranges import USER, centre_of
from shoal.cells.user_vectors import balls, bin_scores, radius_of, rank_scores
from shoal.cells.weights import FINE
from shoal.data.aggregate import Aggregate
from shoal.errors import InputError
from shoal.theory.user_clipping import RADII
from tests.support.loop import loop_over

pytestmark = pytest.mark.property

BITS = 1
TOP = 1 << (BITS + FINE)
CASES = {
    "one cell": {("a", 0): 1, ("b", 0): 2, ("c", 0): 3},
    "heavy": {("a", 0): 1, ("b", 0): 1, ("c", 0): 5},
    "two cells": {("a", 0): 1, ("b", 0): 2, ("c", 0): 1, ("a", 1): 2, ("c", 1): 1},
    "three cells": {("a", 0): 1, ("a", 1): 1, ("a", 2): 1, ("b", 0): 1, ("b", 2): 2},
}


@dataclass
class Recorder:
    """Stands in for noise: keeps what it is shown, and chooses what it is told."""

    answers: tuple[int, ...] = ()
    scores: list[NDArray[np.int64]] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    simulated: bool = True

    def select(self, scores: NDArray[np.int64], scale: float, draw: int) -> int:
        """Remember, and answer in turn."""
        assert scale > 0
        self.scores.append(scores)
        return self.answers[draw]

    def add_laplace(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """No noise."""
        assert lattice_bits
        self.steps = steps
        return steps

    add_gaussian = add_laplace


def _plan(counts: dict[tuple[str, int], int], epsilon: object) -> shoal.Plan:
    users, cells = zip(*counts, strict=True)
    occupancy = shoal.Counts.from_counts(users, cells, list(counts.values()))
    return shoal.plan(
        occupancy, bounds=(0, 1), epsilon=epsilon, method="user_clipped", tick_bits=BITS
    )


def _data_sets(plan: shoal.Plan) -> Iterator[NDArray[np.int64]]:
    spans = [range((int(m) << BITS) + 1) for m in plan.counts.count]
    for sums in itertools.product(*spans):
        yield np.array(sums)


def _recorded(plan: shoal.Plan, sums: NDArray[np.int64], answers: tuple[int, ...]) -> Recorder:
    centred = sums - (plan.counts.count << (BITS - 1))
    aggregate = Aggregate(plan.counts, plan.lattice, centred, np.zeros_like(centred))
    recorder = Recorder(answers)
    draw(plan, aggregate, recorder)
    return recorder


def some_answers(plan: shoal.Plan) -> list[tuple[int, ...]]:
    """Places of centres at both bounds and in the middle, each with large balls and others."""
    if not len(plan.decision.selection_scale):
        return [()]
    [bins], (first, end) = (plan.parameters[name].tolist() for name in ("centres", "radii"))
    last = {
        place: len(balls(centre_of(place, bins, TOP), first, end, TOP)) - 1
        for place in (0, bins // 2, bins - 1)
    }
    return [(place, at) for place in last for at in (0, 1, 2, last[place] // 2, last[place])]


@pytest.mark.parametrize("counts", CASES.values(), ids=CASES)
@pytest.mark.parametrize("epsilon", [1, 30, 60])
def test_no_user_moves_more_than_the_ball_is_wide(
    counts: dict[tuple[str, int], int], epsilon: int
) -> None:
    """All data sets, all centres, all radii: at most 2 T steps in l1, and often all."""
    plan = _plan(counts, epsilon)
    ball = int(plan.parameters["ball"][0])
    widest = 0.0
    for answers in some_answers(plan):
        shown = {
            sums.tobytes(): np.array(_recorded(plan, sums, answers).steps)
            for sums in _data_sets(plan)
        }
        for user in range(plan.counts.n_users):
            own = plan.counts.user == user
            groups: dict[bytes, list[NDArray[np.int64]]] = {}
            for sums in _data_sets(plan):
                groups.setdefault(sums[~own].tobytes(), []).append(shown[sums.tobytes()])
            for found in groups.values():
                every = np.stack(found)
                apart = np.abs(every[:, None] - every[None, :]).sum(axis=2).max()
                assert apart <= 2 * ball
                widest = max(widest, apart / (2 * ball))
    assert widest >= 0.49
    assert widest >= 0.99 or not len(plan.decision.selection_scale)


@pytest.mark.parametrize("counts", CASES.values(), ids=CASES)
def test_no_user_moves_a_score_by_more_than_accounted(counts: dict[tuple[str, int], int]) -> None:
    """All data sets: a centre's score by its votes, a radius' by one user."""
    plan = _plan(counts, 60)
    assert len(plan.decision.selection_scale) == 2
    for place in (0, int(plan.parameters["centres"][0]) - 1):
        shown = {
            sums.tobytes(): _recorded(plan, sums, (place, 3)).scores for sums in _data_sets(plan)
        }
        for user in range(plan.counts.n_users):
            own = plan.counts.user == user
            groups: dict[bytes, list[list[NDArray[np.int64]]]] = {}
            for sums in _data_sets(plan):
                groups.setdefault(sums[~own].tobytes(), []).append(shown[sums.tobytes()])
            for found in groups.values():
                for selection in range(2):
                    every = np.stack([each[selection] for each in found])
                    assert (every.max(axis=0) - every.min(axis=0)).max() <= USER


@loop_over("counts", CASES.values())
@loop_over("epsilon", ["0.01", 1, 30, 60, 1000])
def test_the_parts_of_the_loss_add_up(counts: dict[tuple[str, int], int], epsilon: object) -> None:
    """Selections and the ball's diameter are the loss; never more, and nearly all."""
    plan = _plan(counts, epsilon)
    selections = sum(Fraction(2 * USER) / Fraction(each) for each in plan.decision.selection_scale)
    noise = Fraction(2 * int(plan.parameters["ball"][0]), 2**plan.decision.bits)
    assert selections + noise <= plan.exact_epsilon <= Fraction(str(epsilon))
    assert float(plan.exact_epsilon) >= float(str(epsilon)) * (1 - 1e-5)
    assert len(set(plan.user_losses.tolist())) == 1


def test_vectors_in_the_ball_are_not_moved() -> None:
    """With a radius that holds everybody the exact numbers are the weighed means."""
    rng = np.random.default_rng(1)
    counts = {(f"u{user}", cell): 1 + user % 3 for user in range(90) for cell in range(3)}
    plan = _plan(counts, 30)
    sums = rng.integers(0, (plan.counts.count << BITS) + 1)
    shown = _recorded(plan, sums, (int(plan.parameters["centres"][0]) // 2, 0))
    weight = plan.weights.weight / plan.weights.total[plan.weights.cell]
    mean = sums / plan.counts.count / 2**BITS
    exact = np.bincount(plan.weights.cell, weight * mean)
    # The ball of all values has half of the width.
    found = np.array(shown.steps) * plan.decision.scale * 2.0 ** -(plan.decision.bits + 1)
    assert np.allclose(found, exact, atol=1e-4)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=40), st.integers(0, 60))
@settings(deadline=None)
def test_equal_users_get_the_shortest_radius(norm: list[int], wanted: int) -> None:
    """If nobody is beyond any radius, the last one has the best score, alone or not."""
    beyond = np.zeros(RADII, dtype=np.int64)
    scores = rank_scores(beyond, wanted, len(norm))
    assert scores[-1] == scores.max()


def test_scores_are_largest_at_the_middle() -> None:
    """The bin that holds the median has the score 0, up to a rounding."""
    rng = np.random.default_rng(2)
    for _ in range(50):
        place, vote = rng.integers(0, 16, 30), rng.integers(1, USER, 30)
        scores = bin_scores(place, vote, 16)
        order = np.argsort(place, kind="stable")
        half = np.searchsorted(np.cumsum(vote[order]), vote.sum() / 2)
        assert scores[place[order][half]] >= scores.max() - 1 >= -2


def test_radii_halve_every_two_steps() -> None:
    """U 2^(-j/2), down to a single tick."""
    top = 1 << (20 + FINE)
    for step in range(RADII):
        assert math.isclose(radius_of(step, top), top / 2 ** (step / 2), rel_tol=1e-5)
    assert radius_of(24, 2) == 1


def test_ranks_that_nobody_has_are_refused() -> None:
    """A wanted rank beyond all users could make scores wrap around."""
    plan = _plan(CASES["three cells"], 60)
    for clipped in (2**40 + 1, 2**47 + 1, 2**61):
        wanted = {**plan.parameters, "clipped": np.array([clipped])}
        with pytest.raises(InputError, match="a decision"):
            replace(plan, decision=replace(plan.decision, parameters=wanted))
    beyond = np.array([0, 1, 5])
    for wanted_rank in (2**40, 2**50):
        scores = rank_scores(beyond, wanted_rank, 9)
        assert (np.abs(scores - rank_scores(beyond + 1, wanted_rank, 9)) <= USER).all()


def test_noise_that_no_vector_fits_is_refused() -> None:
    """Sums of a user's steps could overflow, and the error would tell of its values."""
    plan = _plan(CASES["three cells"], 60)
    for scale in (0.99, 2.0**-30):
        with pytest.raises(InputError, match="a decision"):
            replace(plan, decision=replace(plan.decision, scale=plan.decision.scale * scale))


def test_users_of_large_cells_are_planned() -> None:
    """The lattice is as fine as vectors need, not as many cells as one user has."""
    rng = np.random.default_rng(1)
    user = np.r_[np.arange(60_000), np.repeat(np.arange(20), 3000)]
    cell = np.r_[np.zeros(60_000, int), np.tile(1 + np.arange(3000), 20)]
    counts = shoal.Counts.from_counts(user, cell, 1 + rng.integers(0, 3, len(user)))
    for epsilon in ("0.1", 1, 10):
        plan = shoal.plan(counts, bounds=(0, 1), epsilon=epsilon)
        assert plan.method == "user_clipped"
        assert plan.exact_epsilon <= Fraction(str(epsilon))


def test_where_means_are_not_clipped_is_around_the_centre() -> None:
    """The range of one cell: a radius to both sides, within the bounds."""
    values, users = np.tile([29.0, 31.0], 400), np.repeat(np.arange(200), 4)
    found = shoal.mean.user_clipped(values, users, bounds=(0, 65), epsilon=4)
    assert found.range is not None
    low, high = found.range
    assert 0 <= low < 30 < high <= 65
