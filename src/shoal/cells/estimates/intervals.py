"""Intervals of means of clipped users, and which cells are reliable.

Post-processing of released numbers. Clipping moves users into the ball: two excesses say by how
many noise scales in the average cell, and ends of intervals are further out by multiples of them.
A cell whose own number is expected to err more than a common one is too noisy.

Source: docs/theory/cells.md#intervals and #which-cells-are-reliable.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from shoal.arrays import Bools, Floats
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.facts.facts import Facts
from shoal.cells.facts.remembered import remembered
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
# Multiples of the average bias: what a cell may have, and what far cells may have beyond it.
_HIDDEN = 3.5
_FARTHER = 16.0
# The factors of `_crowding`, where users are mostly in one cell each.
_APART = 1.5
_FEW_MEET = 3.0
_MOST_MEET = 4.0
# The largest multiple of the average that a cell with one heavy user may have.
_LEADS = 2.0
# Noise scales from the centre within which no cell is far.
_NEAR = 2.0
# Noise scales from number to value at most, of Laplace and of Gaussian noise.
VALUE = (2.0, 1.6)
# With so many cells beside it, one of few may hide twice as much as the average.
_SEVERAL = 8
# The part of its distance from its centre that a far cell hides at most.
_FAR = 1.5
# The radii by which the mean of heavy users may differ from the mean of the others.
_UNLIKE = 2.0
# The part of a cell's weight that may be taken from its heaviest users.
_MOVED = 0.25
# The part of the spread between cells that a reliable cell may err.
ERROR = 0.8
# Noise scales: the largest bias expected of a cell.
_EXPECTED = 1.5
# Radii that each clipped user may hide at most while cells are reliable.
_FAR_USERS = 2.5
# Noise scales of average bias on a side at most, where users are mostly in one cell each.
_LARGEST_APART = 0.5
# The part of the noise scale of an excess that is added against a low draw.
_CAREFUL = 0.4
# Over the number of cells, the same part where there are few cells.
_CAREFUL_CELLS = 9
# The grid of `spread`: its last exponent, and its points in a factor of two.
_STEPS = 24
_STEP = 1.5
# A log likelihood that is lower than the largest by at most this is about as likely.
_LIKELY = 0.5
# Standard deviations beyond which a number weighs less in the common one.
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
    chosen = numbers.chosen
    if chosen is None or not len(plan.decision.selection_scale):
        return 0.0, 0.0
    parameters = plan.parameters
    cells = len(plan.planned)
    radius = int(chosen.width[0])
    top = numbers.top
    steps_a_scale = 2.0**plan.decision.bits
    if numbers.excess is None:
        hidden = hidden_radii(top / radius) * _clipped_users(plan) * ball_of(parameters)
        bias = hidden / steps_a_scale / cells
        return bias, bias
    parts, bits = excess_of(parameters)
    part = largest_excess(parameters, radius, top, cells) / parts / cells
    noise = max(_CAREFUL, _CAREFUL_CELLS / cells) * 2.0**bits
    cut_below, cut_above = numbers.excess
    below = part * (max(cut_below, 0) + noise) / steps_a_scale
    above = part * (max(cut_above, 0) + noise) / steps_a_scale
    return below, above


def _clipped_users(plan: Facts) -> int:
    """Returns how many users should be clipped."""
    return int(plan.parameters["clipped"][0])


def moved(plan: Facts) -> Floats:
    """Returns the part of each cell's weight that caps took from its heaviest users: public."""
    weights = plan.weights
    cell = weights.cell
    apart = np.abs(weights.weight / weights.total[cell] - weights.share)
    return np.bincount(cell, apart, minlength=weights.n_cells) / 2


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
    cells = len(scale)
    below, above = biases(numbers)
    miss = 1 - confidence
    radius = numbers.radius or 0.0
    if not len(plan.decision.selection_scale):
        radius = plan.width / 4
    hides = _UNLIKE * radius * moved(plan)
    if cells < MEASURED:
        half = numbers.quantile(miss) * scale + hides
        scale = scale * (1 + (cells - 1) / _SEVERAL)
        low = number - half - below * scale
        high = number + half + above * scale
        return _within(plan, low, high)
    most = _HIDDEN * _crowding(plan)
    both = most * (below + above)
    # The logarithm of how much less likely noise reaches over the bias of both sides.
    unlikely = -both
    if plan.gaussian:
        unlikely = -(both**2) / 2
    outside = 2 * miss / (1 + np.exp(unlikely))
    half = numbers.quantile(min(outside, 1.0)) * scale + hides
    distance = number - centres(numbers)
    load = 1 / plan.decision.scale
    heaviest_load = load * plan.weights.largest
    lead = np.clip(heaviest_load / heaviest_load.mean(), 1.0, _LEADS)
    share = np.maximum(load / load.mean(), lead)
    # A cell is far from its centre where noise alone does not explain the distance.
    far = np.maximum(np.abs(distance) / scale - _NEAR, 0.0)
    farther = _FARTHER * far / max(float(far.mean()), 1e-9)

    def side(outer: Bools, hidden: float) -> Floats:
        beyond = np.minimum(_FAR * np.abs(distance), farther * hidden * scale)
        beyond = np.where(outer, beyond, 0.0)
        reach: Floats = half + most * hidden * share * scale + beyond
        return reach

    low = number - side(distance < 0, below)
    high = number + side(distance > 0, above)
    return _within(plan, low, high)


def _crowding(plan: Facts) -> float:
    """Returns how many times as much a cell may hide where users are mostly in one cell each.

    1.5 + 3/m^2, at most 4, as m = k/G clipped users are in a cell on average.
    """
    clipped_a_cell = _clipped_users(plan) / len(plan.planned)
    if not clipped_a_cell or not _are_apart(plan):
        return 1.0
    return min(_APART + _FEW_MEET / clipped_a_cell**2, _MOST_MEET)


def _are_apart(plan: Facts) -> bool:
    """Returns whether users are mostly in one cell each."""
    return are_apart(plan.weights.n_users, len(plan.weights.user))


def dominated(plan: Facts) -> Bools:
    """Returns in which planned cells few users dominate: known before anything is drawn."""
    if _tells(plan):
        return moved(plan) > _MOVED
    return np.zeros(len(plan.planned), dtype=bool)


def decides(plan: Facts) -> bool:
    """Returns whether cells may be too noisy: users are clipped in cells enough for a spread."""
    return _tells(plan) and len(plan.planned) >= MEASURED


def _tells(plan: Facts) -> bool:
    """Returns whether users are clipped and unreliable cells are to be told from the others."""
    return plan.decision.method.range.of_vectors and plan.request.uninformative != "keep"


@remembered
def statuses(numbers: Estimates) -> list[str]:
    """Returns whether each planned cell is reliable, or why not.

    Reliable is what errs at most 0.8 of the spread between cells, by noise and expected bias, never
    by the cell's own number alone; nothing, if clipped users hide more than 2.5 radii each, or if
    users are mostly in one cell each and the average bias of a side might be above half a noise
    scale, so that few cells may have all of it.
    """
    plan = numbers.plan
    known = np.where(dominated(plan), "few users dominate", "reliable")
    if decides(plan):
        known = np.where(known == "reliable", _noisy_or_far(numbers), known)
    found: list[str] = known.tolist()
    return found


def _noisy_or_far(numbers: Estimates) -> NDArray[np.str_]:
    """Returns whether each cell is reliable by its noise and by the excess of clipped users."""
    plan = numbers.plan
    scale = numbers.noise_scale
    cells = len(scale)
    # Noise scales of bias, in all cells together, if every clipped user hides a radius.
    one_radius = _clipped_users(plan) * ball_of(plan.parameters) / 2.0**plan.decision.bits
    sides = biases(numbers)
    average = sum(sides)
    apart = _are_apart(plan) and max(sides) > _LARGEST_APART
    # What makes numbers and intervals wrong comes before what makes them wide.
    if apart or average * cells > _FAR_USERS * one_radius:
        return np.full(cells, "outlying users")
    clipped = min(average, one_radius / cells, _EXPECTED)
    radius = numbers.radius or 0.0
    bias = clipped + radius * moved(plan) / (2 * scale)
    error = _mean_error(scale, bias, gaussian=plan.gaussian)
    noisy = error > ERROR * spread(numbers)
    return np.where(noisy, "too noisy", "reliable")


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
    noise = scale**2
    if not normal:
        noise *= 2
    exponent = -np.arange(2, _STEPS + 1) / _STEP
    found = []
    for deviation in numbers.plan.width * 2.0**exponent:
        variance = deviation**2 + noise
        weight = 1 / variance
        for _ in range(3):
            middle = (weight * number).sum() / weight.sum()
            distance = np.abs(number - middle) / np.sqrt(variance)
            weight = 1 / variance / np.maximum(distance / _ROBUST, 1.0)
        density = log_density(number - middle, scale, np.array(deviation), normal=normal)
        found.append((float(deviation), float(density.sum())))
    most = max(likelihood for _, likelihood in found)
    return min(deviation for deviation, likelihood in found if likelihood >= most - _LIKELY)


def centres(numbers: Estimates) -> Floats:
    """Returns the centre of each cell, in the value's unit."""
    lo = numbers.plan.bounds.lo
    width = numbers.plan.width
    if numbers.chosen is None:
        return np.full(len(numbers.steps), lo + width / 2)
    return lo + numbers.chosen.low / numbers.top * width


def _mean_error(scale: Floats, bias: Floats, *, gaussian: bool) -> Floats:
    """Returns the mean absolute error of numbers with noise and a bias of so many noise scales."""
    error: Floats = bias + np.exp(-bias)
    if gaussian:
        density = np.sqrt(2 / np.pi) * np.exp(-(bias**2) / 2)
        error = density + bias * (1 - 2 * special.ndtr(-bias))
    return scale * error


def _within(plan: Facts, low: Floats, high: Floats) -> Ends:
    """Returns the ends, cut to the bounds; an interval that misses the bounds becomes all of them.

    Such an interval says nothing.
    """
    lo = plan.bounds.lo
    hi = plan.bounds.hi
    misses = (low > hi) | (high < lo)
    low = np.where(misses, lo, np.maximum(low, lo))
    high = np.where(misses, hi, np.minimum(high, hi))
    return Ends(low, high)
