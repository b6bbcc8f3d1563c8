"""Users' vectors in a ball: all small data sets with the shipped planner, selections included."""

import itertools
import math
import os
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.cells.estimates.draw import draw
from shoal.cells.mechanisms.ranges import USER, centre_of
from shoal.cells.mechanisms.user_vectors import balls, bin_scores, radius_of, rank_scores
from shoal.cells.mechanisms.weights import FINE
from shoal.data.aggregate import Aggregate
from shoal.errors import InputError
from shoal.theory.user_clipping import RADII
from tests.support.gaussian_vectors import always_gaussian
from tests.support.loop import loop_over
from tests.support.tape import Tape

BITS = 1
TOP = 1 << (BITS + FINE)
FULL = bool(os.environ.get("SHOAL_FULL"))
CASES = {
    "one cell": {("a", 0): 1, ("b", 0): 2, ("c", 0): 3},
    "heavy": {("a", 0): 1, ("b", 0): 1, ("c", 0): 5},
    "two cells": {("a", 0): 1, ("b", 0): 1, ("a", 1): 2, ("c", 1): 1},
    "three cells": {("a", 0): 1, ("a", 1): 1, ("a", 2): 1, ("b", 2): 2},
}
if FULL:
    CASES["two cells"] |= {("b", 0): 2, ("c", 0): 1}
    CASES["three cells"] |= {("b", 0): 1}


def plan_of(
    counts: dict[tuple[str, int], int], epsilon: object, delta: object = 0, rounds: int = 1
) -> shoal.Plan:
    """A plan of users' vectors; its noise is Gaussian if there is a delta."""
    users, cells = zip(*counts, strict=True)
    public = shoal.Counts.from_counts(users, cells, list(counts.values()))
    with always_gaussian():
        return shoal.plan(
            public, bounds=(0, 1), epsilon=epsilon, delta=delta, method="user_clipped",
            settings={"rounds": rounds}, tick_bits=BITS, min_users=1,
        )  # fmt: skip


def data_sets(plan: shoal.Plan) -> list[Aggregate]:
    """Every vector of sums of ticks."""
    spans = [range((int(m) << BITS) + 1) for m in plan.counts.count]
    half = plan.counts.count << (BITS - 1)
    return [
        Aggregate(plan.counts.memberships, plan.lattice, np.array(sums) - half, np.zeros_like(half))
        for sums in itertools.product(*spans)
    ]


def recorded(plan: shoal.Plan, aggregate: Aggregate, answers: tuple[int, ...]) -> Tape:
    """What reaches noise and selections."""
    recorder = Tape(places=answers, rise=0)
    draw(plan, aggregate, recorder)
    return recorder


def moves(plan: shoal.Plan, shown: list[Tape], power: int) -> tuple[int, int]:
    """The most by which one user moves a score, and the vector of steps to a power, exactly."""
    user, every = plan.counts.user, data_sets(plan)
    most_scores, most_steps = 0, 0
    for own in range(plan.counts.n_users):
        groups: dict[bytes, list[Tape]] = {}
        for found, recorder in zip(every, shown, strict=True):
            groups.setdefault(found.centred[user != own].tobytes(), []).append(recorder)
        for group in groups.values():
            scores = np.stack([np.concatenate([[0], *each.scores]) for each in group])
            most_scores = max(most_scores, int(np.ptp(scores, axis=0).max()))
            steps = np.array([each.steps for each in group], dtype=object)
            apart = (abs(steps[:, None] - steps) ** power).sum(axis=2)
            most_steps = max(most_steps, int(apart.max()))
    return most_scores, most_steps


def some_answers(plan: shoal.Plan) -> list[tuple[int, ...]]:
    """Places of centres at both bounds and in the middle, each with large balls and others."""
    if not len(plan.decision.selection_scale):
        return [()]
    [bins], (first, end) = (plan.parameters[name].tolist() for name in ("centres", "radii"))
    last = {
        place: len(balls(centre_of(place, bins, TOP), first, end, TOP)) - 1
        for place in (0, bins // 2, bins - 1)
    }
    if FULL:
        return [(place, at) for place, end in last.items() for at in (0, 1, 2, end // 2, end)]
    return [(0, 0), (bins // 2, last[bins // 2] // 2), (bins - 1, last[bins - 1])]


@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize("counts", CASES.values(), ids=CASES)
def test_no_user_moves_more_than_the_ball_is_wide(
    counts: dict[tuple[str, int], int], delta: object
) -> None:
    """All data sets at several centres and radii: at most 2 T steps, and often all."""
    power = 2 if delta else 1
    for epsilon in (1, 30, 60) if FULL else (1, 60):
        plan = plan_of(counts, epsilon, delta)
        assert plan.gaussian == bool(delta)
        width, widest = (2 * int(plan.parameters["ball"][0])) ** power, 0
        for answers in some_answers(plan):
            shown = [recorded(plan, each, answers) for each in data_sets(plan)]
            scores, steps = moves(plan, shown, power)
            assert scores <= USER
            widest = max(widest, steps)
        assert 0.49**power * width <= widest <= width
        assert widest >= 0.98 * width or not len(plan.decision.selection_scale)


@loop_over("counts", CASES.values())
@loop_over("epsilon", ["0.01", 1, 30, 60, 1000])
def test_the_parts_of_the_loss_add_up(counts: dict[tuple[str, int], int], epsilon: object) -> None:
    """Selections and the ball's diameter are the loss; never more, and nearly all."""
    plan = plan_of(counts, epsilon)
    selections = sum(Fraction(2 * USER) / Fraction(each) for each in plan.decision.selection_scale)
    noise = Fraction(2 * int(plan.parameters["ball"][0]), 2**plan.decision.bits)
    assert selections + noise <= plan.exact_epsilon <= Fraction(str(epsilon))
    assert float(plan.exact_epsilon) >= float(str(epsilon)) * (1 - 1e-5)
    assert len(set(plan.user_losses.tolist())) == 1


def test_vectors_in_the_ball_are_not_moved() -> None:
    """With a radius that holds everybody the exact numbers are the weighed means."""
    rng = np.random.default_rng(1)
    counts = {(f"u{user}", cell): 1 + user % 3 for user in range(90) for cell in range(3)}
    plan = plan_of(counts, 30)
    sums = rng.integers(0, (plan.counts.count << BITS) + 1)
    half = plan.counts.count << (BITS - 1)
    aggregate = Aggregate(plan.counts.memberships, plan.lattice, sums - half, np.zeros_like(half))
    shown = recorded(plan, aggregate, (int(plan.parameters["centres"][0]) // 2, 0))
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
    plan = plan_of(CASES["three cells"], 60)
    for clipped in (2**40 + 1, 2**47 + 1, 2**61):
        wanted = {**plan.parameters, "clipped": np.array([clipped])}
        with pytest.raises(InputError, match="impossible decisions"):
            replace(plan, decision=replace(plan.decision, parameters=wanted))
    beyond = np.array([0, 1, 5])
    for wanted_rank in (2**40, 2**50):
        scores = rank_scores(beyond, wanted_rank, 9)
        assert (np.abs(scores - rank_scores(beyond + 1, wanted_rank, 9)) <= USER).all()


def test_noise_that_no_vector_fits_is_refused() -> None:
    """Sums of a user's steps could overflow, and the error would tell of its values."""
    plan = plan_of(CASES["three cells"], 60)
    for scale in (0.99, 2.0**-30):
        with pytest.raises(InputError, match="impossible decisions"):
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
