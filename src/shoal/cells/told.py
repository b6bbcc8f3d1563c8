"""Intervals of means of clipped users, and which cells can be told from one common number.

Post-processing of released numbers. Clipping moves users towards the centre; the excess says by how
many noise scales in the average cell, and intervals are wider by a multiple of that. A cell whose
own number errs more than a common one is too noisy to be told.

Source: docs/theory/user-clipped.md#intervals and #which-cells-are-told.
"""

from typing import NamedTuple

import numpy as np
from scipy import special

from shoal.cells.estimates import Estimates
from shoal.cells.plan_facts import PlanFacts
from shoal.cells.user_vectors import ball_of, excess_of, largest_excess
from shoal.cells.weights import Floats
from shoal.theory.scale_mixture import log_density
from shoal.theory.user_clipping import MEASURED, hidden_radii

# What a released cell's number is good for, and why it is not told.
WHY: dict[str, str | None] = {
    "released": None,
    "too noisy": "one common number errs less: merge cells or raise epsilon",
    "likely too noisy": "one common number will likely err less: merge cells or raise epsilon",
    "heavy users": "a quarter or more of its weight is taken from heavy users",
}
# Of the average bias: how much a cell may have outwards and towards the centre.
_OUTWARD, _INWARD = 4.0, 1.0
# Noise scales from the centre from where on a cell is far, and from its number to its value.
_NEAR, VALUE = 2.0, 2.0
# Of the way to the farther bound, the way to the nearer one where users hide on one side.
_LOPSIDED = 0.25
# Where all who are clipped lie on one side of the ball, their biases add up.
_ONE_SIDED = 2.0
# A far cell hides at most this part of its distance.
_FAR = 1.5
# Radii by which heavy users may differ from the others, whose weight caps have moved.
_UNLIKE = 2.0
# Of its weight, what may be taken from a cell's heaviest users; of the spread, what it may err.
_MOVED, ERROR = 0.25, 0.8
# A bias of more noise scales is not expected of a cell.
_EXPECTED = 1.5
_STEPS, _STEP, _LIKELY, _ROBUST = 24, 1.5, 0.5, 1.5


class Ends(NamedTuple):
    """Both ends of the interval of each number, in the value's unit."""

    low: Floats
    high: Floats


def bias(numbers: Estimates, *, careful: bool = True) -> float:
    """Returns how many noise scales clipping biases the average cell by, at most.

    R = (max(Q, 0) + q/2)/(2^j G) of G cells, with the noisy excess Q and the scale q of its noise,
    in lattice steps; where it is not measured, Q = f k T as if all k users who should be clipped
    hid f radii. Careful adds q/2, against a low draw of the noise.
    """
    plan, cells = numbers.plan, len(numbers.plan.released)
    if numbers.chosen is None or not len(plan.decision.selection_scale):
        return 0.0
    radius, top = int(numbers.chosen.width[0]), numbers.top
    parts, bits = excess_of(plan.parameters)
    if numbers.excess is not None:
        noise = 2.0 ** (bits - 1) if careful else 0.0
        most = largest_excess(plan.parameters, radius, top)
        steps = (max(numbers.excess, 0) + noise) * most / parts
    else:
        clipped = int(plan.parameters["clipped"][0])
        steps = hidden_radii(top / radius) * clipped * ball_of(plan.parameters)
    return float(steps) / 2.0**plan.decision.bits / cells


def moved(plan: PlanFacts) -> Floats:
    """Returns the part of each cell's weight that caps took from its heaviest users: public."""
    weights = plan.weights
    apart = np.abs(weights.weight / weights.total[weights.cell] - weights.share)
    return np.bincount(weights.cell, apart, minlength=weights.n_cells) / 2


def intervals(numbers: Estimates, confidence: float) -> Ends:
    """Returns intervals around the noisy numbers, widened by what clipping may hide.

    h = quantile b + 2 D M for noise and moved weights; R noise scales inwards and 4 R outwards, in
    proportion to the cell's weight; a cell far from the centre hides more on its outer side. Where
    the centre is near a bound, outwards is towards the other bound, where users can hide.
    """
    plan, scale, number = numbers.plan, numbers.noise_scale, numbers.unclamped
    hidden = bias(numbers) * scale * (_ONE_SIDED if _at_bound(numbers) else 1.0)
    radius = numbers.radius if len(plan.decision.selection_scale) else plan.width / 4
    half = numbers.quantile(1 - confidence) * scale + _UNLIKE * (radius or 0.0) * moved(plan)
    if len(scale) < MEASURED:
        return _within(plan, number - half - hidden, number + half + hidden)
    away, load = number - centres(numbers), 1 / plan.decision.scale
    share = np.maximum(load / load.mean(), 1.0)
    far = np.maximum(np.abs(away) / scale - _NEAR, 0.0)
    beyond = _OUTWARD * hidden * far / max(float(far.mean()), 1e-9)
    beyond = np.minimum(_FAR * np.abs(away), beyond)

    towards = _farther_bound(numbers)

    def side(way: int) -> Floats:
        outer = away * way > 0
        wide = np.full(len(scale), way == towards) if towards else outer | (far == 0)
        part = np.where(wide, _OUTWARD, _INWARD)
        return np.asarray(half + part * hidden * share + np.where(outer & wide, beyond, 0.0))

    return _within(plan, number - side(-1), number + side(1))


def planned(plan: PlanFacts) -> list[str]:
    """Returns what is known of each released cell before anything is drawn."""
    keeps = not plan.decision.method.range.of_vectors or plan.request.uninformative == "keep"
    heavy = np.zeros(len(plan.released), dtype=bool) if keeps else moved(plan) > _MOVED
    return ["heavy users" if each else "released" for each in heavy.tolist()]


def decides(plan: PlanFacts) -> bool:
    """Returns whether cells may be too noisy: users are clipped in cells enough for a spread."""
    kept = plan.request.uninformative == "keep"
    return plan.decision.method.range.of_vectors and len(plan.released) >= MEASURED and not kept


def statuses(numbers: Estimates) -> list[str]:
    """Returns what each released cell's number is good for: to be told, or not and why.

    Told is what errs at most 0.8 of the spread between cells, by noise and expected bias: never
    the cell's own number alone.
    """
    plan, found = numbers.plan, planned(numbers.plan)
    if not decides(plan):
        return found
    scale, parameters = numbers.noise_scale, plan.parameters
    most = int(parameters["clipped"][0]) * ball_of(parameters) / 2.0**plan.decision.bits
    clipped = min(bias(numbers, careful=False), most / len(scale), _EXPECTED)
    off = clipped + (numbers.radius or 0.0) * moved(plan) / (2 * scale)
    noisy = _mean_error(scale, off, gaussian=plan.gaussian) > ERROR * spread(numbers)
    return [
        "too noisy" if each == "released" and too else each
        for each, too in zip(found, noisy.tolist(), strict=True)
    ]


def spread(numbers: Estimates) -> float:
    """Returns the standard deviation between cells: the least that is about as likely as any.

    Numbers are normal around a common one, with noise; of a grid of deviations the least whose log
    likelihood is within 1/2 of the largest, so that noise alone is no spread.
    """
    scale, number, normal = numbers.noise_scale, numbers.unclamped, numbers.plan.gaussian
    noise = scale**2 * (1 if normal else 2)
    found = []
    for deviation in numbers.plan.width * 2.0 ** (-np.arange(2, _STEPS + 1) / _STEP):
        variance = deviation**2 + noise
        weight = 1 / variance
        for _ in range(3):
            middle = (weight * number).sum() / weight.sum()
            away = np.abs(number - middle) / np.sqrt(variance)
            weight = 1 / variance / np.maximum(away / _ROBUST, 1.0)
        density = log_density(number - middle, scale, np.array(deviation), normal=normal)
        found.append((float(deviation), float(density.sum())))
    most = max(likelihood for _, likelihood in found)
    return min(deviation for deviation, likelihood in found if likelihood >= most - _LIKELY)


def centres(numbers: Estimates) -> Floats:
    """Returns the centre of each cell, in the value's unit."""
    if numbers.chosen is None:
        return np.full(len(numbers.steps), numbers.plan.bounds.lo + numbers.plan.width / 2)
    return numbers.plan.bounds.lo + numbers.chosen.low / numbers.top * numbers.plan.width


def _farther_bound(numbers: Estimates) -> int:
    """1 or -1 towards the bound that is much farther from the centre; 0 if there is none."""
    to_low = float(np.median(centres(numbers))) - numbers.plan.bounds.lo
    to_high = numbers.plan.width - to_low
    if min(to_low, to_high) >= _LOPSIDED * max(to_low, to_high):
        return 0
    return 1 if to_low < to_high else -1


def _at_bound(numbers: Estimates) -> bool:
    """Whether the ball ends at a bound, so that all who are clipped lie on one side of it."""
    if numbers.chosen is None:
        return False
    low, high = 2 * numbers.chosen.low - numbers.chosen.high, numbers.chosen.high
    return bool((np.abs(low) <= 1).all() != (np.abs(high - numbers.top) <= 1).all())


def _mean_error(scale: Floats, off: Floats, *, gaussian: bool) -> Floats:
    """Mean absolute error of a number with noise and a bias of so many noise scales."""
    if gaussian:
        density = np.sqrt(2 / np.pi) * np.exp(-(off**2) / 2)
        return np.asarray(scale * (density + off * (1 - 2 * special.ndtr(-off))))
    return np.asarray(scale * (off + np.exp(-off)))


def _within(plan: PlanFacts, low: Floats, high: Floats) -> Ends:
    """Cut to the bounds; an interval that misses them says nothing, and becomes all of them."""
    lo, hi = plan.bounds.lo, plan.bounds.hi
    misses = (low > hi) | (high < lo)
    return Ends(
        np.where(misses, lo, np.maximum(low, lo)), np.where(misses, hi, np.minimum(high, hi))
    )
