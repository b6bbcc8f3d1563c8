"""Finds intervals for means of clipped users, and decides which cells are reliable.

All this is post-processing of released numbers. Clipping moves users into the ball. Two noisy
excesses say by how many noise scales that moves the average cell downwards and upwards; intervals
are widened by multiples of them, and by what a few users at the bounds would add whom no count can
see. A third number counts users who are too far for that. A cell is too noisy if its own number is
expected to err more than a common one.

Source: docs/theory/cells.md#intervals and #which-cells-are-reliable.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.arrays import Bools, Floats
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.facts.basis import Basis
from shoal.cells.facts.facts import Facts
from shoal.cells.facts.remembered import remembered
from shoal.cells.mechanisms.user_vectors import FAR, excess_unit
from shoal.privacy.law import GAUSSIAN, LAPLACE, Law
from shoal.theory.scale_mixture import log_density, some_cells
from shoal.theory.user_clipping import MEASURED, SPREAD, are_apart, hidden_radii

# What to do if users far from the others cannot be clipped.
_CLIP_NOBODY = (
    'give narrower bounds; or range="tight" (--setting range=tight) if users have about equally '
    'many records, or objective="worst_case" for means alone: both hold for any values'
)
# The reasons why a cell is not reliable, each with a remedy.
WHY = {
    "too noisy": "one number for all cells should be more accurate: merge cells or raise epsilon",
    "likely too noisy": "one number for all cells is likely better: merge cells or raise epsilon",
    "outlying users": f"users far from all others are clipped: {_CLIP_NOBODY}",
    "wide bounds": f"users at the bounds would not be seen: {_CLIP_NOBODY}",
    "few users dominate": "few users have most of its records: merge cells, or keep fewer of each",
}
# The bias that any cell may have on a side, as a multiple of the average bias of that side.
_HIDDEN = 3.0
# The same with fewer than 25 cells, of which a single one may have most of the bias. In fewer than
# ten, users whom no count sees have more room than it would need.
_HIDDEN_OF_SOME = 6.5
_MANY = 25
# The bias that a cell far from its centre may have, as a multiple of the same. The room for both is
# the root of the sum of their squares, as they are of the same users.
_FARTHER = 10.0
# The users as far from the others as the bounds reach that intervals allow for, beside those who
# are counted beyond one noise scale. In fewer than ten cells the counted ones are not allowed for:
# they would make intervals so long that they say nothing.
UNSEEN = 2
# The factor for the bias of a cell where users are mostly in one cell each.
_APART = 3.0
# The largest average bias on a side, in noise scales, with which cells are reliable there, as a few
# cells may have all of it.
_LARGEST_APART = 0.25
# Noise scales from the centre within which no cell is far.
_NEAR = 2.0
# The most noise scales between a number and its value, with Laplace and with Gaussian noise.
VALUE: dict[Law, float] = {LAPLACE: 2.0, GAUSSIAN: 1.6}
# The most bias that a far cell may hide, as a multiple of its distance from its centre.
_FAR = 1.5
# The radii by which the mean of heavy users may differ from the mean of the others.
_UNLIKE = 2.0
# The part of a cell's weight that may be taken from its heaviest users.
_MOVED = 0.25
# The largest error of a reliable cell, as a part of the spread between cells.
ERROR = 0.8
# The noise scales that one of three counted numbers exceeds in 5% of draws: computed from their law
# (docs/theory/cells.md#the-excess).
SEEN = 3.39
# The noise scales by which users whom no count sees may move the average cell: with more there is a
# warning, and with more than the second number none of ten cells or more is reliable. Of fewer
# cells the noise is so small that nearly all bounds are wide in this sense.
WARNED = 10.0
REFUSED = 40.0
# The deviations of the grid of `spread` are the width times 2^(-k/1.5), with k from 2 to 24.
_STEPS = 24
_STEP = 1.5
# A log likelihood that is lower than the largest by at most this is about as likely.
_LIKELY = 0.5
# Standard deviations beyond which a number weighs less in the common one.
_ROBUST = 1.5


class Ends(NamedTuple):
    """A lower and an upper number for each cell; ends of intervals are in the value's unit."""

    low: Floats
    high: Floats


class FarUsers(NamedTuple):
    """What a release knows of users far from the others.

    Attributes:
        possible: Whether anybody can be far within the bounds.
        number: About how many there are, with noise.
        allowed: As many at the bounds are allowed for by intervals.
        seen: More than so many are noticed: noise alone counts as many in 5% of releases.
        distance: A user of the largest weight is far if it is farther than this in all of its
            cells, in the value's unit; a user of less weight has to be farther.
        middle: About where the others are, in the value's unit.
        reach: How far the bounds reach from the others, in the value's unit.
        harm: The noise scales by which `seen` users at the bounds would move the average cell; 0
            if bounds are so close that nobody can be far.
    """

    possible: bool
    number: float
    allowed: float
    seen: float
    distance: float
    middle: float
    reach: float
    harm: float


def far_users(numbers: Estimates) -> FarUsers | None:
    """Returns what is known of far users; None where nothing is measured."""
    basis = numbers.basis
    radius = numbers.radius
    if numbers.excess is None or radius is None:
        return None
    parts, _ = basis.excess
    number = numbers.excess[2] / parts
    seen = seen_users(basis.excess)
    distance = (FAR + 1) * radius
    centre = centres(numbers)
    farthest = max(float(centre.max()) - basis.bounds.lo, basis.highest - float(centre.min()))
    possible = farthest > distance
    counted = 0.0
    if possible and len(basis.planned) >= SPREAD:
        counted = max(number - seen / SEEN, 0.0)
    reach = max(_reaches(numbers))
    harm = seen * _scales_of_a_radius(basis) * reach / radius
    return FarUsers(
        possible=possible,
        number=number,
        allowed=UNSEEN + counted,
        seen=seen,
        distance=distance,
        middle=float(np.median(centre)),
        reach=reach,
        harm=harm if possible else 0.0,
    )


def seen_users(excess: tuple[int, int]) -> float:
    """Returns how many far users are noticed, from the parts of an excess and its lattice bits."""
    parts, bits = excess
    return SEEN * 2.0**bits / parts


def biases(numbers: Estimates) -> tuple[float, float]:
    """Returns how many noise scales the average cell's truth may lie below and above its number.

    Each is a noisy excess in radii of one user, or 0 if it is negative. Where the excess is not
    measured, it is taken to be as large as if every user who should be clipped hid `hidden_radii`
    radii of the ball.
    """
    basis = numbers.basis
    chosen = numbers.chosen
    if chosen is None or not basis.selects:
        return 0.0, 0.0
    scales_of_a_radius = _scales_of_a_radius(basis)
    if numbers.excess is None:
        ratio = numbers.top / int(chosen.width[0])
        bias = hidden_radii(ratio) * basis.clipped * scales_of_a_radius
        return bias, bias
    parts, _ = basis.excess
    below, above, _ = numbers.excess
    scales_of_a_part = scales_of_a_radius / parts
    below = max(below, 0)
    above = max(above, 0)
    return scales_of_a_part * below, scales_of_a_part * above


def _scales_of_a_radius(basis: Basis) -> float:
    """Returns the noise scales by which one radius of one user moves the average cell."""
    unit = excess_unit(basis.ball, basis.users, basis.members, basis.law)
    return unit / 2.0**basis.bits / len(basis.planned)


def _reaches(numbers: Estimates) -> tuple[float, float]:
    """Returns how far the bounds reach below and above the centres, in the value's unit."""
    basis = numbers.basis
    centre = float(np.median(centres(numbers)))
    return max(centre - basis.bounds.lo, 0.0), max(basis.highest - centre, 0.0)


def intervals(numbers: Estimates, confidence: float) -> Ends:
    """Returns intervals around the noisy numbers, widened by the bias that clipping may hide.

    On each side an interval has a quantile of the noise, and two radii times the `moved` weight. In
    proportion to the cell's weight it has a multiple of the side's bias from `biases`, and what
    `FarUsers.allowed` users at the bound would add; a cell far from its centre gets more on its
    outer side. A true mean can be missed on one side alone: so the quantile is less by ln(2/(1 +
    e^-t)), where t is the room for bias on both sides in noise scales. With far users it is the
    bounds.
    """
    basis = numbers.basis
    scale = numbers.noise_scale
    number = numbers.unclamped
    if hides_far_users(numbers):
        lowest = np.full(len(scale), basis.bounds.lo)
        highest = np.full(len(scale), basis.highest)
        return Ends(lowest, highest)
    below, above = rooms(numbers)
    miss = 1 - confidence
    saved = np.zeros(len(scale))
    if len(basis.planned) >= MEASURED:
        saved = basis.law.one_sided(below + above, miss)
    half = (numbers.quantile(miss) - saved) * scale + of_heavy_users(numbers)
    low = number - half - below * scale
    high = number + half + above * scale
    return _within(basis, low, high)


def rooms(numbers: Estimates) -> Ends:
    """Returns the room for bias below and above each number, in noise scales."""
    basis = numbers.basis
    scale = numbers.noise_scale
    below, above = biases(numbers)
    if len(basis.planned) < MEASURED:
        return Ends(np.full(len(scale), below), np.full(len(scale), above))
    distance = numbers.unclamped - centres(numbers)
    # A cell's weight in noise scales, divided by that of the average cell.
    load = 1 / basis.scale
    relative_load = np.maximum(load / load.mean(), basis.lead)
    if _are_apart(basis):
        relative_load = _APART * relative_load
    cells = len(basis.planned)
    multiple = _HIDDEN_OF_SOME if SPREAD <= cells < _MANY else _HIDDEN
    # A cell is far from its centre where noise alone does not explain the distance.
    far = np.maximum(np.abs(distance) / scale - _NEAR, 0.0)
    farther = _FARTHER * far / max(float(far.mean()), 1e-9)

    def room(outer: Bools, bias: float, unseen: float) -> Floats:
        """Returns the room for bias on one side, the outer one of some cells, in noise scales."""
        beyond = np.minimum(_FAR * np.abs(distance) / scale, farther * bias)
        beyond = np.where(outer, beyond, 0.0)
        hidden = np.hypot(multiple * bias * relative_load, beyond)
        return np.asarray(hidden + unseen * relative_load)

    unseen_below, unseen_above = _unseen(numbers)
    return Ends(
        room(distance < 0, below, unseen_below),
        room(distance > 0, above, unseen_above),
    )


def _unseen(numbers: Estimates) -> tuple[float, float]:
    """Returns by how many noise scales users at either bound would move the average cell.

    They are as many as `FarUsers.allowed`. It is nothing where the excess is not measured.
    """
    found = far_users(numbers)
    radius = numbers.radius
    if found is None or radius is None:
        return 0.0, 0.0
    below, above = _reaches(numbers)
    scales = found.allowed * _scales_of_a_radius(numbers.basis) / radius
    return scales * below, scales * above


def of_heavy_users(numbers: Estimates) -> Floats:
    """Returns how far the weight that caps took from heavy users may move each cell's mean."""
    basis = numbers.basis
    radius = numbers.radius or 0.0
    if not basis.selects:
        # Without a selection the radius is half of the width, and half of that is taken.
        radius = basis.width / 4
    return _UNLIKE * radius * basis.moved


def _are_apart(basis: Basis) -> bool:
    """Returns whether users are mostly in one cell each."""
    return are_apart(basis.users, basis.members)


def hides_far_users(numbers: Estimates) -> bool:
    """Returns whether far users may have moved cells by more than any interval allows for."""
    return _are_far(numbers) or _has_wide_bounds(numbers)


def _are_far(numbers: Estimates) -> bool:
    """Returns whether more users are far than noise explains."""
    found = far_users(numbers)
    return found is not None and found.possible and found.number > found.seen


def _has_wide_bounds(numbers: Estimates) -> bool:
    """Returns whether too many users at the bounds would not be seen, in ten cells or more."""
    found = far_users(numbers)
    return found is not None and len(numbers.basis.planned) >= SPREAD and found.harm > REFUSED


def dominated(plan: Facts | Basis) -> Bools:
    """Returns whether few users dominate each planned cell; counts say so before any draw."""
    if _may_be_unreliable(plan):
        return plan.moved > _MOVED
    return np.zeros(len(plan.planned), dtype=bool)


def judges_reliability(plan: Facts | Basis) -> bool:
    """Returns whether cells may be found too noisy: if users are clipped in ten cells or more.

    With fewer cells there are too few numbers to compare them.
    """
    return _may_be_unreliable(plan) and len(plan.planned) >= SPREAD


def _may_be_unreliable(plan: Facts | Basis) -> bool:
    """Returns whether users are clipped and the request lets cells be called unreliable."""
    return plan.of_vectors and plan.request.uninformative != "keep"


@remembered
def statuses(numbers: Estimates) -> list[str]:
    """Returns whether each planned cell is reliable, or why not.

    A cell is reliable if its error, expected from noise and bias and never from its own number
    alone, is at most 0.8 of the spread between cells. No cell is reliable if more users are far
    than noise explains, or if bounds are so wide that too many would not be seen. Nor is any if
    users are mostly in one cell each and the average bias of a side is above a quarter of a noise
    scale, as a few cells may then have all of that bias.
    """
    basis = numbers.basis
    status = np.where(dominated(basis), "few users dominate", "reliable")
    found: str | NDArray[np.str_] = _far_status(numbers)
    if found == "reliable" and judges_reliability(basis):
        found = _noisy(numbers)
    status = np.where(status == "reliable", found, status)
    texts: list[str] = status.tolist()
    return texts


def _far_status(numbers: Estimates) -> str:
    """Returns the status that far users give all cells: a wrong interval is the worst fault."""
    basis = numbers.basis
    if _are_far(numbers):
        return "outlying users"
    may_be_concentrated = judges_reliability(basis) and _are_apart(basis)
    if may_be_concentrated and max(biases(numbers)) > _LARGEST_APART:
        return "outlying users"
    if _has_wide_bounds(numbers):
        return "wide bounds"
    return "reliable"


def _noisy(numbers: Estimates) -> NDArray[np.str_]:
    """Returns each cell's status, judged by its noise and the average bias of a side."""
    basis = numbers.basis
    scale = numbers.noise_scale
    radius = numbers.radius or 0.0
    bias = sum(biases(numbers)) / 2 + radius * basis.moved / (2 * scale)
    error = scale * basis.law.mean_error(bias)
    return np.where(error > ERROR * spread(numbers), "too noisy", "reliable")


def spread(numbers: Estimates) -> float:
    """Returns the standard deviation between cells: the least that is about as likely as any.

    The model is that cells are normal around a common mean, with noise added. From a grid of
    deviations it takes the least whose log likelihood is within 1/2 of the largest, so that noise
    alone is not taken for spread. With more than 5,000 cells only some are used.
    """
    some = some_cells(len(numbers.steps))
    scale = numbers.noise_scale[some]
    number = numbers.unclamped[some]
    law = numbers.basis.law
    noise_variance = law.variance * scale**2
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
        density = log_density(number - common, scale, np.array(deviation), normal=law.normal)
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


def _within(basis: Basis, low: Floats, high: Floats) -> Ends:
    """Returns the ends, cut to the bounds; an interval outside the bounds becomes all of them."""
    lo = basis.bounds.lo
    hi = basis.highest
    misses = (low > hi) | (high < lo)
    low = np.where(misses, lo, np.maximum(low, lo))
    high = np.where(misses, hi, np.minimum(high, hi))
    return Ends(low, high)
