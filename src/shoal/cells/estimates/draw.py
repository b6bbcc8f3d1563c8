"""Carrying a plan out: select the ranges, add up exactly, round to the lattice, draw."""

from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple, TypeAlias

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
from shoal.privacy.noise import Noise, Pair
from shoal.release.envelope import CONFIDENCE

Exact: TypeAlias = tuple[list[int], Interval | None, Pair]
# The draw of the noise of centres in a first round.
_FIRST_ROUND = 1
# The draw of the noise of excesses.
_EXCESS = 2


class Drawn(NamedTuple):
    """What left the mechanism, public from now on: lattice steps, selected ranges, excesses."""

    steps: list[int]
    chosen: Interval | None
    excess: Pair | None


def draw(plan: Facts, aggregate: Aggregate, noise: Noise) -> Drawn:
    """Selects first, then draws one noisy number for each statistic of each cell.

    Formal guarantee: user l loses what `plan.losses` says, whatever the values, and nothing but the
    values of one user differs between neighbours.
    """
    return add_noise(plan, exact_numbers(plan, aggregate, noise), noise)


def add_noise(plan: Facts, numbers: Exact, noise: Noise, turn: int = 0) -> Drawn:
    """Draws one noisy number for each exact one, and of the excesses."""
    exact, chosen, excess = numbers
    add = noise.add_gaussian if plan.gaussian else noise.add_laplace
    parts, bits = excess_of(plan.parameters)
    measured = None
    if parts:
        measured = noise.add_pair(excess, bits, _EXCESS)
    steps = add(exact, plan.decision.bits, turn)
    return Drawn(steps, chosen, measured)


def exact_numbers(plan: Facts, aggregate: Aggregate, noise: Noise) -> Exact:
    """Returns the lattice numbers and the excesses, which noise is yet to hide, and ranges."""
    decision = plan.decision
    bits = decision.bits
    where = decision.method.range
    selection_scale = decision.selection_scale
    means = PrivateMeans(plan.weights, aggregate)
    if where.of_vectors:
        step = decision.scale * 2.0**-bits
        vectors = UserVectors(means, plan.parameters, step, gaussian=plan.gaussian)
        if plan.rounds > 1:
            centres = _centres(first_round(plan), aggregate, noise)
            ball = vectors.select_around(centres, float(selection_scale[-1]), noise)
        else:
            ball = vectors.select(selection_scale, noise)
        exact, excess = vectors.steps(ball)
        return exact, ball, excess
    selected = where.select(means, plan.parameters, selection_scale, noise)
    if selected is None:
        private = fractions(plan.numbers, aggregate)
    else:
        sums = means.add_up(selected)
        # These products are whole numbers of Python: they do not overflow.
        most = plan.weights.total.astype(object) * selected.width
        private = [*zip(sums, most.tolist(), strict=True)]
    exact = []
    scales = decision.scale.tolist()
    for (part, whole), scale in zip(private, scales, strict=True):
        exact.append(to_steps(part, whole, scale, bits))
    return exact, selected, (0, 0)


def fractions(numbers: ReleasedStatistics, aggregate: Aggregate) -> Fractions:
    """Returns the private value of each number over its range, exactly."""
    moments = WeightedMoments(numbers.weights, aggregate, linear=numbers.joint)
    private: Fractions = []
    for statistic in numbers.statistics:
        if numbers.joint and statistic == Variance():
            private += moments.second_moment()
        else:
            private += statistic.fractions(moments)
    return private


def to_steps(total: int, most: int, scale: float, bits: int) -> int:
    """Returns the share total/most in lattice steps b/2^j, rounded to the nearest, halves upwards.

    Exact integer arithmetic: non-decreasing in the total, and a shift by whole steps shifts it.
    """
    up, down = scale.as_integer_ratio()
    numerator = (total << bits) * down
    denominator = most * up
    return (2 * numerator + denominator) // (2 * denominator)


def first_round(plan: Facts) -> Facts:
    """Returns the plan of the first of two rounds: its noise is larger as its ball is smaller."""
    decision = plan.decision
    parameters = dict(plan.parameters)
    clipped = parameters.pop("first_clipped")
    ball = parameters.pop("first_ball")
    larger = float(Fraction(ball_of(parameters), int(ball[0])))
    no_excess = np.zeros(2, dtype=np.int64)
    parameters |= {"clipped": clipped, "ball": ball, "excess": no_excess}
    first = replace(
        decision,
        method=replace(decision.method, range=CentreAndRadius()),
        scale=decision.scale * larger,
        parameters=parameters,
        selection_scale=decision.selection_scale[:2],
    )
    return Facts(plan.counts, plan.request, first)


def _centres(plan: Facts, aggregate: Aggregate, noise: Noise) -> Ints:
    """Returns values of a first round, which it releases, in ticks over 2^FINE."""
    exact = exact_numbers(plan, aggregate, noise)
    drawn = add_noise(plan, exact, noise, _FIRST_ROUND)
    estimates = Estimates(plan, *drawn)
    try:
        value = values_of(estimates, CONFIDENCE).value
    except np.linalg.LinAlgError:
        # A draw that fails is not charged: nothing may raise on a private number.
        value = estimates.value
    top = estimates.top
    share = (value - plan.bounds.lo) / plan.width
    share = np.nan_to_num(share, nan=0.5)
    ticks = np.rint(share * top)
    return np.clip(ticks, 0, top).astype(np.int64)
