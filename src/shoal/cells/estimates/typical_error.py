"""The error that a plan will typically make, before any value is read: simulated releases.

The population is made up on the plan's own counts: three tenths of the variance between cells, four
tenths between users, the rest between a user's records, normal. No record is read.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from shoal.arrays import Floats, Ints
from shoal.cells.estimates.draw import add_noise, exact_numbers
from shoal.cells.estimates.intervals import decides, dominated, statuses
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.estimates.posterior import applies, values_of
from shoal.cells.facts.facts import Facts
from shoal.cells.facts.remembered import remembered
from shoal.data.aggregate import Aggregate
from shoal.errors import InputError
from shoal.privacy.noise import Simulated
from shoal.release.envelope import CONFIDENCE
from shoal.theory.scale_mixture import some_cells

# The part of the variance that is between cells.
CELLS = 0.3
# The same part where cells are ever more alike.
ALIKE = (0.1, 0.03)
# The part of the variance that is between users.
USERS = 0.4
# The population's standard deviation, as a part of the width.
SD = 1 / 6
# The population's mean, as a part of the width.
PLACE = 0.4
# Releases are simulated until so many counts were drawn.
_MEMBERS = 600_000
# Releases are simulated until so many cells were drawn.
_CELLS = 6_000
# So many releases are simulated at least if counts are many.
_FEWEST = 3
# So many releases are simulated at most.
_MOST = 12
# The mean absolute value of a normal variable over its deviation.
_NORMAL = (2 / np.pi) ** 0.5
# So many releases is the average of all cells worth, beside a cell's own, when biases are averaged.
_COMMON = 3
# The fewest cells to which a curve of half widths is fitted.
_CURVE = 12


class Simulation(NamedTuple):
    """A simulated release, true means of the planned cells, and biases.

    A bias is what a number would err without noise.
    """

    numbers: Estimates
    truth: Floats
    bias: Floats


def typical_errors(plan: Facts, sd: float = SD) -> Floats:
    """Returns the mean absolute error of each planned cell's value, over values' deviation.

    As a part of the width, up to a half, that is `sd`. Each of 1 to 12 simulated releases draws
    its own population. With noise of mean size b, a bias of deviation B, both known of each cell,
    and cells that are normal with deviation T: c sqrt(1/(1/b^2 + pi/(2 T^2)) + 2 B^2/pi), with a c
    that gives the simulated errors' mean.
    """
    return _typical(plan, sd)[0]


def typical_half_widths(plan: Facts) -> Floats:
    """Returns half of each planned cell's 95% interval, in the median of the same releases.

    Few releases say little of one cell: the geometric mean of that median and of a curve in the
    noise scale that is fitted to all cells.
    """
    return _typical(plan, SD)[1]


def often_reliable(plan: Facts, between: float) -> Floats:
    """Returns in what part of such releases a cell is reliable, with so much variance between."""
    reliable = []
    for each in _simulations(plan, SD, between):
        status = np.array(statuses(each.numbers))
        reliable.append(status == "reliable")
    part: Floats = np.mean(reliable, axis=0)
    return part


def some_reliable(plan: Facts) -> bool:
    """Returns whether a cell is likely to be reliable; often one simulated release says so."""
    if decides(plan):
        first = next(_simulations(plan, SD, CELLS))
        if statuses(first.numbers).count("reliable") >= _MOST:
            return True
    return expected_reliable(plan) > 0


def expected_reliable(plan: Facts, between: float = CELLS) -> int:
    """Returns how many cells are likely to be reliable, with so much variance between them."""
    if decides(plan):
        return round(float(often_reliable(plan, between).sum()))
    return int((~dominated(plan)).sum())


def forecast(plan: Facts) -> dict[float, int]:
    """Returns how many cells are likely to be reliable, by parts of the variance between them."""
    return {between: expected_reliable(plan, between) for between in (CELLS, *ALIKE)}


@remembered
def _typical(plan: Facts, sd: float) -> tuple[Floats, Floats]:
    """Returns mean absolute errors and half 95% intervals of cells, over values' deviation."""
    simulated = list(_simulations(plan, sd, CELLS))
    some = some_cells(len(plan.planned))
    # Every simulated population has this deviation.
    deviation = plan.width * sd
    errors = []
    halves = []
    scales = []
    for each in simulated:
        found = values_of(each.numbers, CONFIDENCE, some)
        error = np.abs(found.value - each.truth[some])
        errors.append(error / deviation)
        halves.append((found.high - found.low) / 2 / deviation)
        scales.append(each.numbers.noise_scale / deviation)
    scale = np.median(scales, axis=0)
    # The mean of widths would follow the one private radius in fifty that is far too large.
    half_width = _steady(np.median(halves, axis=0), scale, some)
    error = _expected(simulated, scale, deviation)
    # The formula is scaled to the mean error of the simulated releases.
    error *= float(np.mean(errors)) / float(error[some].mean())
    if plan.certified:
        error = np.minimum(error, plan.worst_case_error / deviation)
    return error, half_width


def _expected(simulated: list[Simulation], scale: Floats, deviation: float) -> Floats:
    """Returns errors by formula, from noise scales over the deviation and simulated biases."""
    numbers = simulated[0].numbers
    noise = scale
    if numbers.plan.gaussian:
        noise = scale * _NORMAL
    biases = np.array([each.bias for each in simulated]) / deviation
    squares = np.mean(biases**2, axis=0)
    weight = noise**2
    common = weight * squares.sum() / weight.sum()
    releases = len(simulated)
    square = (releases * squares + _COMMON * common) / (releases + _COMMON)
    bias = np.sqrt(square)
    # Fewer than three cells say nothing of each other; what clipping hides no cell says.
    between = np.inf
    if applies(numbers):
        between = CELLS**0.5
    drawn = 1 / np.hypot(1 / noise, 1 / (_NORMAL * between))
    error: Floats = np.hypot(drawn, _NORMAL * bias)
    return error


def _steady(half_width: Floats, scale: Floats, some: Ints) -> Floats:
    """Returns half widths of all cells, from some: halfway to a + b scale + c scale^2."""
    if len(scale) < _CURVE:
        return half_width
    ones = np.ones_like(scale)
    terms = np.stack([ones, scale, scale**2], axis=1)
    # The fit is relative to noise: an interval that bounds cut to nearly nothing is no measure.
    own = scale[some]
    known = terms[some] / own[:, None]
    fit, *_ = np.linalg.lstsq(known, half_width / own, rcond=None)
    curve = terms @ fit
    found: Floats = np.clip(curve, half_width.min(), half_width.max())
    found[some] = np.sqrt(found[some] * half_width)
    return found


def _simulations(plan: Facts, sd: float, between: float) -> Iterator[Simulation]:
    """Yields simulated releases, each made when it is first asked for."""
    if plan.request.statistics != ("mean",):
        raise InputError(
            "typical errors are known only for plans of the mean",
            'make a plan with statistics=["mean"]',
        )
    # What other variances between cells would tell is one number: one release of many users does.
    fewest = _FEWEST if between == CELLS else 1
    counts = plan.counts
    by_counts = max(_MEMBERS // len(counts.user), fewest)
    by_cells = 1 + _CELLS // counts.n_cells
    for turn in range(min(by_counts, by_cells, _MOST)):
        yield _simulated(plan, turn, sd, between)


@remembered
@np.errstate(all="ignore")
def _simulated(plan: Facts, turn: int, sd: float, between: float) -> Simulation:
    """Returns one simulated release of means; turn and size of counts are its seed."""
    counts = plan.counts
    count = counts.count
    lattice = plan.lattice
    members = len(counts.user)
    rng = np.random.default_rng([turn, members])
    # Users and records share what is left in the same proportion.
    left = (1 - between) / (1 - CELLS)
    cells = rng.normal(0, between**0.5, counts.n_cells)
    users = rng.normal(0, (left * USERS) ** 0.5, counts.n_users)
    records = left * (1 - CELLS - USERS) / count
    within = rng.normal(0, 1, members) * records**0.5
    off = cells[counts.cell] + users[counts.user] + within
    mean = np.clip(PLACE + sd * off, 0, 1)
    ticks = mean * count * 2.0**lattice.bits
    sums = np.rint(ticks).astype(np.int64)
    centred = sums - (count << (lattice.bits - 1))
    aggregate = Aggregate(counts.memberships, lattice, centred, np.zeros_like(centred))
    noise = Simulated(turn)
    exact = exact_numbers(plan, aggregate, noise)
    numbers = Estimates(plan, *add_noise(plan, exact, noise))
    truth = aggregate.cell_means()[plan.planned]
    added = np.subtract(numbers.steps, exact[0])
    drawn = added * 2.0**-plan.decision.bits * numbers.noise_scale
    bias = numbers.unclamped - drawn - truth
    return Simulation(numbers, truth, bias)


def errors_compared(plan: Facts) -> Floats:
    """Returns the error of every planned cell, over its range, that a largest error limits."""
    if plan.certified:
        return plan.cell_error
    return typical_errors(plan) * SD
