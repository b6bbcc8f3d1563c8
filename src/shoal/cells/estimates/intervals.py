"""Intervals of means of clipped users, and which cells are reliable.

Post-processing of released numbers. Clipping moves users into the ball: two excesses say by how
many noise scales in the average cell, and ends of intervals are further out by multiples of them.
A cell whose own number is expected to err more than a common one is too noisy.

Source: docs/theory/cells.md#intervals and #which-cells-are-reliable.
"""

from typing import NamedTuple

import numpy as np
from scipy import special

from shoal.arrays import Bools, Floats
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.facts.facts import PlanFacts
from shoal.cells.mechanisms.user_vectors import ball_of, excess_of, largest_excess
from shoal.theory.scale_mixture import log_density, some_cells
from shoal.theory.user_clipping import MEASURED, are_apart, hidden_radii

# Why a cell is not reliable, and what to do.
WHY = {
    "too noisy": "one number for all cells should be more accurate: merge cells or raise epsilon",
    "likely too noisy": "one number for all cells is likely better: merge cells or raise epsilon",
    "outlying users": "users far from all others are clipped: give narrower bounds, or worst_case",
    "few users dominate": "few users have most of its records: merge cells, or keep fewer of each",
}
# Of the average bias: how much a cell may have, and how much more those that are far have.
_HIDDEN = 3.5
_FARTHER = 16.0
# How many times that is where users are mostly in one cell each, and where one user leads.
_APART = 1.5
_FEW_MEET = 3.0
_MOST_MEET = 4.0
_LEADS = 2.0
# Noise scales: from the centre of a far cell; most from number to value (Laplace, normal noise).
_NEAR = 2.0
VALUE = (2.0, 1.6)
# With so many cells beside it, one of few may hide twice as much as the average.
_SEVERAL = 8
# Of its distance, what a far cell hides at most; radii by which heavy users may differ from others.
_FAR = 1.5
_UNLIKE = 2.0
# Of its weight, what may be taken from a cell's heaviest users; of the spread, what it may err.
_MOVED = 0.25
ERROR = 0.8
# Noise scales: the largest bias expected of a cell.
_EXPECTED = 1.5
# Cells are reliable while clipped users hide at most so many radii each and, where users are
# mostly in one cell each, the average bias on a side is at most so many noise scales.
_FAR_USERS = 2.5
_LARGEST_APART = 0.5
# Of an excess, part of its noise scale that is added against a low draw: in few cells more.
_CAREFUL = 0.4
_CAREFUL_CELLS = 9
_STEPS = 24
_STEP = 1.5
_LIKELY = 0.5
_ROBUST = 1.5


class Ends(NamedTuple):
    """Both ends of the interval of each number, in the value's unit."""

    low: Floats
    high: Floats


def biases(numbers: Estimates) -> tuple[float, float]:
    """Returns by how many noise scales the average cell's truth may be below and above its number.

    R = (max(Q, 0) + a q)/(2^j G) of G cells, with a noisy excess Q, the scale q of its noise, in
    lattice steps, and a = max(0.4, 9/G) against a low draw; where it is not measured, Q = f k T as
    if all k users who should be clipped hid f radii.
    """
    plan = numbers.plan
    cells = len(numbers.plan.planned)
    if numbers.chosen is None or not len(plan.decision.selection_scale):
        return 0.0, 0.0
    radius = int(numbers.chosen.width[0])
    top = numbers.top
    if numbers.excess is None:
        clipped = int(plan.parameters["clipped"][0])
        steps = hidden_radii(top / radius) * clipped * ball_of(plan.parameters)
        return (steps / 2.0**plan.decision.bits / cells,) * 2
    parts, bits = excess_of(plan.parameters)
    part = largest_excess(plan.parameters, radius, top, cells) / parts / cells
    noise = max(_CAREFUL, _CAREFUL_CELLS / cells) * 2.0**bits
    below, above = (part * (max(x, 0) + noise) / 2.0**plan.decision.bits for x in numbers.excess)
    return below, above


def moved(plan: PlanFacts) -> Floats:
    """Returns the part of each cell's weight that caps took from its heaviest users: public."""
    weights = plan.weights
    apart = np.abs(weights.weight / weights.total[weights.cell] - weights.share)
    return np.bincount(weights.cell, apart, minlength=weights.n_cells) / 2


def intervals(numbers: Estimates, confidence: float) -> Ends:
    """Returns intervals around the noisy numbers, widened by what clipping may hide.

    h = q b + 2 D M for noise and moved weights; on each side a multiple of R noise scales of its
    own R, in proportion to the cell's weight; a far cell hides more on its outer side. A bias is on
    one side alone: q is the quantile at 2 (1 - confidence)/(1 + e^-t), t what both sides have for
    it, or half its square if noise is Gaussian.
    """
    plan = numbers.plan
    scale = numbers.noise_scale
    number = numbers.unclamped
    below, above = biases(numbers)
    radius = numbers.radius if len(plan.decision.selection_scale) else plan.width / 4
    miss = 1 - confidence
    hides = _UNLIKE * (radius or 0.0) * moved(plan)
    if len(scale) < MEASURED:
        half = numbers.quantile(miss) * scale + hides
        scale = scale * (1 + (len(scale) - 1) / _SEVERAL)
        return _within(plan, number - half - below * scale, number + half + above * scale)
    most = _HIDDEN * _crowding(plan)
    both = most * (below + above)
    outside = 2 * miss / (1 + np.exp(-(both**2) / 2 if plan.gaussian else -both))
    half = numbers.quantile(min(outside, 1.0)) * scale + hides
    away = number - centres(numbers)
    load = 1 / plan.decision.scale
    leads = load * plan.weights.largest
    share = np.maximum(load / load.mean(), np.clip(leads / leads.mean(), 1.0, _LEADS))
    far = np.maximum(np.abs(away) / scale - _NEAR, 0.0)
    farther = _FARTHER * far / max(float(far.mean()), 1e-9)

    def side(outer: Bools, hidden: float) -> Floats:
        beyond = np.where(outer, np.minimum(_FAR * np.abs(away), farther * hidden * scale), 0.0)
        return np.asarray(half + most * hidden * share * scale + beyond)

    return _within(plan, number - side(away < 0, below), number + side(away > 0, above))


def _crowding(plan: PlanFacts) -> float:
    """Returns how many times as much a cell may hide where users are mostly in one cell each.

    1.5 + 3/m^2, at most 4, as m = k/G clipped users are in a cell on average.
    """
    meet = int(plan.parameters["clipped"][0]) / len(plan.planned)
    return min(_APART + _FEW_MEET / meet**2, _MOST_MEET) if meet and _are_apart(plan) else 1.0


def _are_apart(plan: PlanFacts) -> bool:
    """Whether users are mostly in one cell each."""
    return are_apart(plan.weights.n_users, len(plan.weights.user))


def dominated(plan: PlanFacts) -> Bools:
    """Returns in which planned cells few users dominate: known before anything is drawn."""
    keeps = not plan.decision.method.range.of_vectors or plan.request.uninformative == "keep"
    return np.zeros(len(plan.planned), dtype=bool) if keeps else moved(plan) > _MOVED


def decides(plan: PlanFacts) -> bool:
    """Returns whether cells may be too noisy: users are clipped in cells enough for a spread."""
    kept = plan.request.uninformative == "keep"
    return plan.decision.method.range.of_vectors and len(plan.planned) >= MEASURED and not kept


def statuses(numbers: Estimates) -> list[str]:
    """Returns whether each planned cell is reliable, or why not: found once."""
    known: dict[str, list[str]] = vars(numbers)
    if "statuses" not in known:
        known["statuses"] = _statuses(numbers)
    return known["statuses"]


def _statuses(numbers: Estimates) -> list[str]:
    """Returns whether each planned cell is reliable, or why not.

    Reliable is what errs at most 0.8 of the spread between cells, by noise and expected bias, never
    by the cell's own number alone; nothing, if clipped users hide more than 2.5 radii each, or if
    users are mostly in one cell each and the average bias of a side might be above half a noise
    scale, so that few cells may have all of it.
    """
    plan = numbers.plan
    known = np.where(dominated(plan), "few users dominate", "reliable")
    if not decides(plan):
        return list(known.tolist())
    scale = numbers.noise_scale
    parameters = plan.parameters
    most = int(parameters["clipped"][0]) * ball_of(parameters) / 2.0**plan.decision.bits
    sides = biases(numbers)
    average = sum(sides)
    clipped = min(average, most / len(scale), _EXPECTED)
    off = clipped + (numbers.radius or 0.0) * moved(plan) / (2 * scale)
    noisy = _mean_error(scale, off, gaussian=plan.gaussian) > ERROR * spread(numbers)
    apart = _are_apart(plan) and max(sides) > _LARGEST_APART
    far = apart or average * len(scale) > _FAR_USERS * most
    # First what makes numbers and intervals wrong, then what makes them wide.
    found = "outlying users" if far else np.where(noisy, "too noisy", "reliable")
    return list(np.where(known == "reliable", found, known).tolist())


def spread(numbers: Estimates) -> float:
    """Returns the standard deviation between cells: the least that is about as likely as any.

    Numbers are normal around a common one, with noise; of a grid of deviations the least whose log
    likelihood is within 1/2 of the largest, so that noise alone is no spread. Of more than 5,000
    cells some say it.
    """
    some = some_cells(len(numbers.steps))
    scale = numbers.noise_scale[some]
    number = numbers.unclamped[some]
    normal = numbers.plan.gaussian
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


def _mean_error(scale: Floats, off: Floats, *, gaussian: bool) -> Floats:
    """Mean absolute error of a number with noise and a bias of so many noise scales."""
    if gaussian:
        density = np.sqrt(2 / np.pi) * np.exp(-(off**2) / 2)
        return np.asarray(scale * (density + off * (1 - 2 * special.ndtr(-off))))
    return np.asarray(scale * (off + np.exp(-off)))


def _within(plan: PlanFacts, low: Floats, high: Floats) -> Ends:
    """Cut to the bounds; an interval that misses them says nothing, and becomes all of them."""
    lo = plan.bounds.lo
    hi = plan.bounds.hi
    misses = (low > hi) | (high < lo)
    return Ends(
        np.where(misses, lo, np.maximum(low, lo)), np.where(misses, hi, np.minimum(high, hi))
    )
