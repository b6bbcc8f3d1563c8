"""Carrying a plan out: select the ranges, add up exactly, round to the lattice, draw."""

from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np

from shoal.arrays import Ints
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.estimates.posterior import values_of
from shoal.cells.facts.accounting import ReleasedStatistics
from shoal.cells.facts.facts import PlanFacts
from shoal.cells.mechanisms.cell_statistics import Fractions, Variance
from shoal.cells.mechanisms.private_sums import Interval, PrivateMeans, WeightedMoments
from shoal.cells.mechanisms.user_vectors import CentreAndRadius, UserVectors, ball_of, excess_of
from shoal.cells.mechanisms.weights import FINE
from shoal.data.aggregate import Aggregate
from shoal.privacy.noise import Noise, Pair
from shoal.release.envelope import CONFIDENCE

Exact: TypeAlias = tuple[list[int], Interval | None, Pair]
# Tells the noise of the excesses from that of the numbers.
_EXCESS = 2


class Drawn(NamedTuple):
    """What left the mechanism, public from now on: lattice steps, selected ranges, excesses."""

    steps: list[int]
    chosen: Interval | None
    excess: Pair | None


def draw(plan: PlanFacts, aggregate: Aggregate, noise: Noise) -> Drawn:
    """Selects first, then draws one noisy number for each statistic of each cell.

    Formal guarantee: user l loses what `plan.losses` says, whatever the values, and nothing but the
    values of one user differs between neighbours.
    """
    return add_noise(plan, exact_numbers(plan, aggregate, noise), noise)


def add_noise(plan: PlanFacts, numbers: Exact, noise: Noise) -> Drawn:
    """Draws one noisy number for each exact one, and of the excesses."""
    exact, chosen, excess = numbers
    add = noise.add_gaussian if plan.gaussian else noise.add_laplace
    parts, bits = excess_of(plan.parameters)
    measured = noise.add_pair(excess, bits, _EXCESS) if parts else None
    return Drawn(add(exact, plan.decision.bits), chosen, measured)


def exact_numbers(plan: PlanFacts, aggregate: Aggregate, noise: Noise) -> Exact:
    """Returns the lattice numbers and the excesses, which noise is yet to hide, and ranges."""
    chosen = plan.decision
    means = PrivateMeans(plan.weights, aggregate)
    where = chosen.method.range
    selection_scale = chosen.selection_scale
    if where.of_vectors:
        step = chosen.scale * 2.0**-chosen.bits
        vectors = UserVectors(means, chosen.parameters, step, gaussian=chosen.gaussian)
        if plan.rounds > 1:
            centres = _centres(first_round(plan), aggregate, noise)
            ball = vectors.select_around(centres, float(selection_scale[-1]), noise)
        else:
            ball = vectors.select(selection_scale, noise)
        exact, excess = vectors.steps(ball)
        return exact, ball, excess
    selected = where.select(means, chosen.parameters, selection_scale, noise)
    if selected is None:
        private = fractions(plan.numbers, aggregate)
    else:
        sums = means.add_up(selected)
        total = plan.weights.total.tolist()
        widths: list[int] = selected.width.tolist()
        private = [(x, n * width) for x, n, width in zip(sums, total, widths, strict=True)]
    exact = [
        to_steps(part, whole, scale, chosen.bits)
        for (part, whole), scale in zip(private, chosen.scale.tolist(), strict=True)
    ]
    return exact, selected, (0, 0)


def fractions(numbers: ReleasedStatistics, aggregate: Aggregate) -> Fractions:
    """Returns the private value of each number over its range, exactly."""
    moments = WeightedMoments(numbers.weights, aggregate, linear=numbers.joint)
    private: Fractions = []
    for statistic in numbers.statistics:
        second = numbers.joint and statistic == Variance()
        private += moments.second_moment() if second else statistic.fractions(moments)
    return private


def to_steps(total: int, most: int, scale: float, bits: int) -> int:
    """Returns the share total/most in lattice steps b/2^j, rounded to the nearest, halves upwards.

    Exact integer arithmetic: non-decreasing in the total, and a shift by whole steps shifts it.
    """
    up, down = scale.as_integer_ratio()
    numerator, denominator = (total << bits) * down, most * up
    return (2 * numerator + denominator) // (2 * denominator)


def first_round(plan: PlanFacts) -> PlanFacts:
    """Returns the plan of the first of two rounds: its noise is larger as its ball is smaller."""
    chosen = plan.decision
    own = dict(plan.parameters)
    clipped = own.pop("first_clipped")
    ball = own.pop("first_ball")
    larger = float(Fraction(ball_of(own), int(ball[0])))
    decision = replace(
        chosen,
        method=replace(chosen.method, range=CentreAndRadius()),
        scale=chosen.scale * larger,
        parameters=own | {"clipped": clipped, "ball": ball, "excess": np.zeros(2, dtype=np.int64)},
        selection_scale=chosen.selection_scale[:2],
    )
    return PlanFacts(plan.counts, plan.request, decision)


def _centres(plan: PlanFacts, aggregate: Aggregate, noise: Noise) -> Ints:
    """Values of a first round in ticks over 2^FINE: they follow from what the round released."""
    exact, chosen, _ = exact_numbers(plan, aggregate, noise)
    add = noise.add_gaussian if plan.gaussian else noise.add_laplace
    estimates = Estimates(plan, add(exact, plan.decision.bits, 1), chosen, None)
    try:
        value = values_of(estimates, CONFIDENCE).value
    except np.linalg.LinAlgError:
        # A draw that fails is not charged: nothing may raise on a private number.
        value = estimates.value
    top = 1 << (plan.lattice.bits + FINE)
    share = np.nan_to_num((value - plan.bounds.lo) / plan.width, nan=0.5)
    return np.clip(np.rint(share * top), 0, top).astype(np.int64)
