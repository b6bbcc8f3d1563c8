"""Finds intervals for means of clipped users, and decides which cells are reliable.

All this is post-processing of released numbers. Clipping moves users into the ball. The two noisy
excesses say by how many noise scales that moves the average cell downwards and upwards; intervals
are widened by multiples of them. A cell is too noisy if its own number is expected to err more than
a common one.

Source: docs/theory/cells.md#intervals and #which-cells-are-reliable.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from shoal.arrays import Bools, Floats
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.facts.basis import Basis
from shoal.cells.facts.facts import Facts
from shoal.cells.facts.remembered import remembered
from shoal.cells.mechanisms.user_vectors import largest_excess
from shoal.theory.scale_mixture import log_density, some_cells
from shoal.theory.user_clipping import MEASURED, are_apart, hidden_radii

# The reasons why a cell is not reliable, each with a remedy.
WHY = {
    "too noisy": "one number for all cells should be more accurate: merge cells or raise epsilon",
    "likely too noisy": "one number for all cells is likely better: merge cells or raise epsilon",
    "outlying users": "users far from all others are clipped: give narrower bounds, or worst_case",
    "few users dominate": "few users have most of its records: merge cells, or keep fewer of each",
}
# The bias that any cell may have, as a multiple of the average bias.
_HIDDEN = 3.5
# The bias that a cell far from its centre may have beyond that, as a multiple of the average bias.
_FARTHER = 16.0
# The factor of `_crowding` with many clipped users in each cell.
_APART = 1.5
# What `_crowding` adds to it for one clipped user a cell; it is divided by their squared number.
_FEW_MEET = 3.0
# The largest factor of `_crowding`.
_MOST_MEET = 4.0
# Noise scales from the centre within which no cell is far.
_NEAR = 2.0
# The most noise scales between a number and its value, with Laplace and with Gaussian noise.
VALUE = (2.0, 1.6)
# Where cells are few, the room for the bias of a cell doubles with this many other cells.
_SEVERAL = 8
# The most bias that a far cell may hide, as a multiple of its distance from its centre.
_FAR = 1.5
# The radii by which the mean of heavy users may differ from the mean of the others.
_UNLIKE = 2.0
# The part of a cell's weight that may be taken from its heaviest users.
_MOVED = 0.25
# The largest error of a reliable cell, as a part of the spread between cells.
ERROR = 0.8
# The largest bias expected of a cell, in noise scales.
_EXPECTED = 1.5
# The most radii that each clipped user may hide while cells are reliable.
_FAR_USERS = 2.5
# The largest average bias on a side, in noise scales, with which cells are reliable where users are
# mostly in one cell each.
_LARGEST_APART = 0.5
# The part of its noise scale that is added to an excess, as the draw may have been low.
_CAREFUL = 0.4
# Divided by the number of cells, this is that part where cells are so few that it is larger.
_CAREFUL_CELLS = 9
# The deviations of the grid of `spread` are the width times 2^(-k/1.5), with k from 2 to 24.
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
    """Returns how many noise scales the average cell's truth may lie below and above its number.

    Each is a noisy excess, or 0 if it is negative, plus a margin against a low draw, in noise
    scales and divided by the number of cells. The margin is the noise scale of the excess times 0.4
    or, with few cells, 9 divided by their number. Where the excess is not measured, it is taken to
    be as large as if every user who should be clipped hid `hidden_radii` radii of the ball.
    """
    basis = numbers.basis
    chosen = numbers.chosen
    if chosen is None or not basis.selects:
        return 0.0, 0.0
    cells = len(basis.planned)
    radius = int(chosen.width[0])
    top = numbers.top
    steps_a_scale = 2.0**basis.bits
    if numbers.excess is None:
        hidden = hidden_radii(top / radius) * basis.clipped * basis.ball
        bias = hidden / steps_a_scale / cells
        return bias, bias
    parts, bits = basis.excess
    # The lattice steps of one part of the excess, in each cell on average.
    steps_a_part = largest_excess(basis.ball, radius, top, cells) / parts / cells
    margin = max(_CAREFUL, _CAREFUL_CELLS / cells) * 2.0**bits
    cut_below, cut_above = numbers.excess
    below = steps_a_part * (max(cut_below, 0) + margin) / steps_a_scale
    above = steps_a_part * (max(cut_above, 0) + margin) / steps_a_scale
    return below, above


def intervals(numbers: Estimates, confidence: float) -> Ends:
    """Returns intervals around the noisy numbers, widened by the bias that clipping may hide.

    The half width is a quantile of the noise, plus two radii times the `moved` weight. Each side
    then gets a multiple of its bias from `biases`, in proportion to the cell's weight; a cell far
    from its centre gets more on its outer side. A true mean can be missed on one side alone: so the
    quantile is taken at 2 (1 - confidence)/(1 + e^-t), where t is the room for bias on both sides
    in noise scales, or half its square if noise is Gaussian.
    """
    basis = numbers.basis
    scale = numbers.noise_scale
    number = numbers.unclamped
    below, above = biases(numbers)
    miss = 1 - confidence
    if len(scale) < MEASURED:
        return _in_few_cells(numbers, miss)
    multiple = _HIDDEN * _crowding(basis)
    both = multiple * (below + above)
    # The logarithm of how much less likely noise is that passes the room for bias of both sides.
    log_ratio = -both
    if basis.gaussian:
        log_ratio = -(both**2) / 2
    outside = 2 * miss / (1 + np.exp(log_ratio))
    half = numbers.quantile(min(outside, 1.0)) * scale + _of_heavy_users(numbers)
    distance = number - centres(numbers)
    # A cell's weight in noise scales, divided by that of the average cell.
    load = 1 / basis.scale
    relative_load = np.maximum(load / load.mean(), basis.lead)
    # A cell is far from its centre where noise alone does not explain the distance.
    far = np.maximum(np.abs(distance) / scale - _NEAR, 0.0)
    farther = _FARTHER * far / max(float(far.mean()), 1e-9)

    def side(outer: Bools, bias: float) -> Floats:
        """Returns how far intervals reach on one side, which is the outer one of some cells."""
        beyond = np.minimum(_FAR * np.abs(distance), farther * bias * scale)
        beyond = np.where(outer, beyond, 0.0)
        reach: Floats = half + multiple * bias * relative_load * scale + beyond
        return reach

    low = number - side(distance < 0, below)
    high = number + side(distance > 0, above)
    return _within(basis, low, high)


def _in_few_cells(numbers: Estimates, miss: float) -> Ends:
    """Returns intervals where cells are too few to compare; all have the same room for bias."""
    scale = numbers.noise_scale
    number = numbers.unclamped
    below, above = biases(numbers)
    half = numbers.quantile(miss) * scale + _of_heavy_users(numbers)
    room = scale * (1 + (len(scale) - 1) / _SEVERAL)
    low = number - half - below * room
    high = number + half + above * room
    return _within(numbers.basis, low, high)


def _of_heavy_users(numbers: Estimates) -> Floats:
    """Returns how far the weight that caps took from heavy users may move each cell's mean."""
    basis = numbers.basis
    radius = numbers.radius or 0.0
    if not basis.selects:
        # Without a selection the radius is half of the width, and half of that is taken.
        radius = basis.width / 4
    return _UNLIKE * radius * basis.moved


def _crowding(basis: Basis) -> float:
    """Returns the factor for the bias of a cell where users are mostly in one cell each, else 1.

    With m clipped users in a cell on average it is 1.5 + 3/m^2, at most 4.
    """
    clipped_a_cell = basis.clipped / len(basis.planned)
    if not clipped_a_cell or not _are_apart(basis):
        return 1.0
    return min(_APART + _FEW_MEET / clipped_a_cell**2, _MOST_MEET)


def _are_apart(basis: Basis) -> bool:
    """Returns whether users are mostly in one cell each."""
    return are_apart(basis.users, basis.members)


def dominated(plan: Facts | Basis) -> Bools:
    """Returns whether few users dominate each planned cell; counts say so before any draw."""
    if _may_be_unreliable(plan):
        return plan.moved > _MOVED
    return np.zeros(len(plan.planned), dtype=bool)


def judges_reliability(plan: Facts | Basis) -> bool:
    """Returns whether cells may be found too noisy: if users are clipped in ten cells or more.

    With fewer cells there are too few numbers to compare them.
    """
    return _may_be_unreliable(plan) and len(plan.planned) >= MEASURED


def _may_be_unreliable(plan: Facts | Basis) -> bool:
    """Returns whether users are clipped and the request lets cells be called unreliable."""
    return plan.of_vectors and plan.request.uninformative != "keep"


@remembered
def statuses(numbers: Estimates) -> list[str]:
    """Returns whether each planned cell is reliable, or why not.

    A cell is reliable if its error, expected from noise and bias and never from its own number
    alone, is at most 0.8 of the spread between cells. No cell is reliable if clipped users hide
    more than 2.5 radii each. Nor is any if users are mostly in one cell each and the average bias
    of a side might be above half a noise scale, as a few cells may then have all of that bias.
    """
    basis = numbers.basis
    status = np.where(dominated(basis), "few users dominate", "reliable")
    if judges_reliability(basis):
        status = np.where(status == "reliable", _noisy_or_far(numbers), status)
    texts: list[str] = status.tolist()
    return texts


def _noisy_or_far(numbers: Estimates) -> NDArray[np.str_]:
    """Returns each cell's status, judged by its noise and by the excess of clipped users."""
    basis = numbers.basis
    scale = numbers.noise_scale
    cells = len(scale)
    # Noise scales of bias, in all cells together, if every clipped user hides a radius.
    one_radius = basis.clipped * basis.ball / 2.0**basis.bits
    sides = biases(numbers)
    average = sum(sides)
    concentrated = _are_apart(basis) and max(sides) > _LARGEST_APART
    # This test comes first: a wrong number or interval is a worse fault than a wide interval.
    if concentrated or average * cells > _FAR_USERS * one_radius:
        return np.full(cells, "outlying users")
    bias_of_clipping = min(average, one_radius / cells, _EXPECTED)
    radius = numbers.radius or 0.0
    bias = bias_of_clipping + radius * basis.moved / (2 * scale)
    error = _mean_error(scale, bias, gaussian=basis.gaussian)
    noisy = error > ERROR * spread(numbers)
    return np.where(noisy, "too noisy", "reliable")


def spread(numbers: Estimates) -> float:
    """Returns the standard deviation between cells: the least that is about as likely as any.

    The model is that cells are normal around a common mean, with noise added. From a grid of
    deviations it takes the least whose log likelihood is within 1/2 of the largest, so that noise
    alone is not taken for spread. With more than 5,000 cells only some are used.
    """
    some = some_cells(len(numbers.steps))
    scale = numbers.noise_scale[some]
    number = numbers.unclamped[some]
    normal = numbers.basis.gaussian
    noise_variance = scale**2
    if not normal:
        # The variance of Laplace noise is twice its squared scale.
        noise_variance *= 2
    exponent = -np.arange(2, _STEPS + 1) / _STEP
    # Each deviation of the grid, with its log likelihood.
    found = []
    for deviation in numbers.basis.width * 2.0**exponent:
        variance = deviation**2 + noise_variance
        weight = 1 / variance
        # Three rounds settle the common mean, in which numbers far from it weigh less.
        for _ in range(3):
            common = (weight * number).sum() / weight.sum()
            distance = np.abs(number - common) / np.sqrt(variance)
            weight = 1 / variance / np.maximum(distance / _ROBUST, 1.0)
        density = log_density(number - common, scale, np.array(deviation), normal=normal)
        found.append((float(deviation), float(density.sum())))
    highest = max(likelihood for _, likelihood in found)
    return min(deviation for deviation, likelihood in found if likelihood >= highest - _LIKELY)


def centres(numbers: Estimates) -> Floats:
    """Returns the centre around which each cell was clipped, in the value's unit."""
    lo = numbers.basis.bounds.lo
    width = numbers.basis.width
    if numbers.chosen is None:
        return np.full(len(numbers.steps), lo + width / 2)
    return lo + numbers.chosen.low / numbers.top * width


def _mean_error(scale: Floats, bias: Floats, *, gaussian: bool) -> Floats:
    """Returns the mean absolute error of numbers with noise and a `bias` in noise scales."""
    # These are the means of |X + bias| for Laplace, or normal, X with a scale of 1.
    error: Floats = bias + np.exp(-bias)
    if gaussian:
        density = np.sqrt(2 / np.pi) * np.exp(-(bias**2) / 2)
        error = density + bias * (1 - 2 * special.ndtr(-bias))
    return scale * error


def _within(basis: Basis, low: Floats, high: Floats) -> Ends:
    """Returns the ends, cut to the bounds; an interval outside the bounds becomes all of them."""
    lo = basis.bounds.lo
    hi = basis.bounds.hi
    misses = (low > hi) | (high < lo)
    low = np.where(misses, lo, np.maximum(low, lo))
    high = np.where(misses, hi, np.minimum(high, hi))
    return Ends(low, high)
