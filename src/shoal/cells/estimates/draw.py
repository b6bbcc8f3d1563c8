"""Carries a plan out: selects ranges, adds up exactly, rounds to the lattice and adds noise."""

from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from shoal.arrays import Ints
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.estimates.posterior import values_of
from shoal.cells.facts.accounting import ReleasedStatistics
from shoal.cells.facts.facts import Facts
from shoal.cells.mechanisms.cell_statistics import Fractions, Variance
from shoal.cells.mechanisms.private_sums import Interval, PrivateMeans, WeightedMoments
from shoal.cells.mechanisms.user_vectors import CentreAndRadius, UserVectors, ball_of, excess_of
from shoal.data.aggregate import Aggregate
from shoal.privacy.noise import Counted, Noise
from shoal.release.envelope import CONFIDENCE

# The number of the draw that hides the centres in a first round.
_FIRST_ROUND = 1
# The number of the draw that hides the excess.
_EXCESS = 2


class Exact(NamedTuple):
    """Private lattice numbers, selected ranges, and the private excess, before noise is added."""

    steps: list[int]
    chosen: Interval | None
    excess: Counted


class Drawn(NamedTuple):
    """The output of the mechanism, which is public: lattice steps, selected ranges, the excess."""

    steps: list[int]
    chosen: Interval | None
    excess: Counted | None


def draw(plan: Facts, aggregate: Aggregate, noise: Noise) -> Drawn:
    """Selects first, then draws one noisy number for each statistic of each cell.

    Formal guarantee: each user's privacy loss is at most the one in `plan.losses`, whatever the
    values are. Neighbours differ only in the values of one user.
    """
    return add_noise(plan, exact_numbers(plan, aggregate, noise), noise)


def add_noise(plan: Facts, numbers: Exact, noise: Noise, turn: int = 0) -> Drawn:
    """Adds noise to each exact number, and to the excess if the plan measures it."""
    parts, bits = excess_of(plan.parameters)
    noisy_excess = None
    if parts:
        noisy_excess = noise.add_counted(numbers.excess, bits, _EXCESS)
    steps = plan.law.add(noise, numbers.steps, plan.decision.bits, turn)
    return Drawn(steps, numbers.chosen, noisy_excess)


def exact_numbers(plan: Facts, aggregate: Aggregate, noise: Noise) -> Exact:
    """Returns private lattice numbers, selected ranges and the private excess, before noise."""
    decision = plan.decision
    means = PrivateMeans(plan.weights, aggregate)
    if plan.of_vectors:
        return _exact_vectors(plan, means, noise)
    selection_scale = decision.selection_scale
    selected = decision.method.range.select(means, plan.parameters, selection_scale, noise)
    if selected is None:
        private = fractions(plan.numbers, aggregate)
    else:
        sums = means.add_up(selected)
        # These products are whole numbers of Python: they do not overflow.
        largest_sums = plan.weights.total.astype(object) * selected.width
        private = [*zip(sums, largest_sums.tolist(), strict=True)]
    steps = []
    scales = decision.scale.tolist()
    for (total, largest_total), scale in zip(private, scales, strict=True):
        steps.append(to_steps(total, largest_total, scale, decision.bits))
    return Exact(steps, selected, excess=(0, 0, 0))


def _exact_vectors(plan: Facts, means: PrivateMeans, noise: Noise) -> Exact:
    """Returns the same for users' vectors that are clipped to a ball."""
    decision = plan.decision
    step = decision.scale * 2.0**-decision.bits
    vectors = UserVectors(means, plan.parameters, step, plan.law)
    if plan.rounds > 1:
        centres = _centres(first_round(plan), means.aggregate, noise)
        ball = vectors.select_around(centres, float(decision.selection_scale[-1]), noise)
    else:
        ball = vectors.select(decision.selection_scale, noise)
    steps, excess = vectors.steps(ball)
    return Exact(steps, ball, excess)


def fractions(numbers: ReleasedStatistics, aggregate: Aggregate) -> Fractions:
    """Returns the private value of each number, divided by its range, as an exact fraction."""
    moments = WeightedMoments(numbers.weights, aggregate, linear=numbers.joint)
    private: Fractions = []
    for statistic in numbers.statistics:
        if numbers.joint and statistic == Variance():
            private += moments.second_moment()
        else:
            private += statistic.fractions(moments)
    return private


def to_steps(total: int, most: int, scale: float, bits: int) -> int:
    """Returns total/most in lattice steps of scale/2^bits, rounded to the nearest, halves upwards.

    Integer arithmetic is exact: the result never falls as the total grows, and moving total/most by
    whole steps moves the result by as many.
    """
    up, down = scale.as_integer_ratio()
    numerator = (total << bits) * down
    denominator = most * up
    return (2 * numerator + denominator) // (2 * denominator)


def first_round(plan: Facts) -> Facts:
    """Returns the plan of the first of two rounds, whose ball is smaller and noise larger."""
    decision = plan.decision
    parameters = dict(plan.parameters)
    clipped = parameters.pop("first_clipped")
    ball = parameters.pop("first_ball")
    # The same bounds in fewer lattice steps: each step, and so the noise, is larger.
    times_larger = float(Fraction(ball_of(parameters), int(ball[0])))
    no_excess = np.zeros(2, dtype=np.int64)
    parameters |= {"clipped": clipped, "ball": ball, "excess": no_excess}
    first = replace(
        decision,
        method=replace(decision.method, range=CentreAndRadius()),
        scale=decision.scale * times_larger,
        parameters=parameters,
        selection_scale=decision.selection_scale[:2],
    )
    return Facts(plan.counts, plan.request, first)


def _centres(plan: Facts, aggregate: Aggregate, noise: Noise) -> Ints:
    """Releases the first round and returns its values, as whole multiples of 2^-FINE ticks."""
    exact = exact_numbers(plan, aggregate, noise)
    drawn = add_noise(plan, exact, noise, _FIRST_ROUND)
    estimates = Estimates.of(plan, *drawn)
    return public_ticks(estimates, estimates.top)


def public_ticks(estimates: Estimates, top: int) -> Ints:
    """Returns the released means as whole parts of the width, of which there are `top`."""
    try:
        value = values_of(estimates, CONFIDENCE).value
    except np.linalg.LinAlgError:
        # A draw that fails is not charged: nothing may raise on a private number.
        value = estimates.value
    basis = estimates.basis
    part = (value - basis.bounds.lo) / basis.width
    # Instead of a NaN the middle is taken, as nothing may raise.
    part = np.nan_to_num(part, nan=0.5)
    ticks = np.rint(part * top)
    return np.clip(ticks, 0, top).astype(np.int64)
