"""Estimates a plan's typical error from simulated releases, before any value is read.

The simulated values are normal and use the plan's own counts: three tenths of the variance lie
between cells, four tenths between users, and the rest between a user's records.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.stats import trim_mean

from shoal.arrays import Floats, Ints
from shoal.cells.estimates.draw import add_noise, exact_numbers
from shoal.cells.estimates.intervals import dominated, far_users, judges_reliability, statuses
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.estimates.posterior import applies, ends_of, values_of
from shoal.cells.facts.facts import Facts
from shoal.cells.facts.remembered import remembered
from shoal.data.aggregate import Aggregate
from shoal.errors import InputError
from shoal.privacy.noise import Simulated
from shoal.release.envelope import CONFIDENCE
from shoal.theory.scale_mixture import some_cells

# The part of the variance that is between cells.
CELLS = 0.3
# The other parts between cells that forecasts try, for cells that are more alike.
ALIKE = (0.1, 0.03)
# The part of the variance that is between users.
USERS = 0.4
# The population's standard deviation, as a part of the width.
SD = 1 / 6
# The population's mean, as a part of the width.
PLACE = 0.4
# The simulated releases have about this many counts of users in cells together.
_MEMBERS = 600_000
# The simulated releases have about this many cells together.
_CELLS = 6_000
# Many counts alone reduce the number of simulated releases to this at most.
_FEWEST = 3
# The most releases that are simulated.
_MOST = 12
# For half widths, which vary more, as many times more releases are simulated.
_TIMES = 3
# The part of the simulated half widths of a cell that is left out on either side: of a private
# radius that is far too large, or too small.
_LEFT_OUT = 1 / 12
# The mean absolute value of a normal variable, divided by its deviation.
_NORMAL = (2 / np.pi) ** 0.5
# When a cell's squared biases are averaged, the average of all cells counts as this many releases.
_COMMON = 3
# The fewest cells to which a curve of half widths is fitted.
_CURVE = 12


class Simulation(NamedTuple):
    """A simulated release, with the planned cells' true means and the errors without noise."""

    numbers: Estimates
    truth: Floats
    bias: Floats


@remembered
def typical_errors(plan: Facts, sd: float = SD) -> Floats:
    """Returns the mean absolute error of each planned cell, divided by the values' deviation.

    The deviation is `sd` times the width, with `sd` at most a half. Each of 1 to 12 simulated
    releases draws its own population. For a cell with noise of mean size b and a bias of deviation
    B, and cells that are normal with deviation T, the error is
    c sqrt(1/(1/b^2 + pi/(2 T^2)) + 2 B^2/pi), with the factor c that gives the mean of the
    simulated errors.
    """
    simulated = list(_simulations(plan, sd, CELLS))
    # Values are computed for all cells, or for some where there are very many.
    some = some_cells(len(plan.planned))
    # Every simulated population has this deviation.
    deviation = plan.width * sd
    errors = []
    scales = []
    for each in simulated:
        values = values_of(each.numbers, CONFIDENCE, some)
        errors.append(np.abs(values.value - each.truth[some]) / deviation)
        scales.append(each.numbers.noise_scale / deviation)
    error = _expected(simulated, np.median(scales, axis=0), deviation)
    # The formula is scaled to the mean error of the simulated releases.
    error *= float(np.mean(errors)) / float(error[some].mean())
    if plan.certified:
        error = np.minimum(error, plan.worst_case_error / deviation)
    return error


@remembered
def typical_half_widths(plan: Facts) -> Floats:
    """Returns half the length of each planned cell's 95% interval, in deviations of the values.

    It is a geometric mean over 3 to 36 simulated releases, without the largest and the smallest
    ones. They say little about one cell: so this is averaged with a curve in the noise scale that
    is fitted to all cells.
    """
    some = some_cells(len(plan.planned))
    deviation = plan.width * SD
    halves = []
    scales = []
    for each in _simulations(plan, SD, CELLS, _TIMES):
        low, high = ends_of(each.numbers, CONFIDENCE)
        halves.append((high - low)[some] / 2 / deviation)
        scales.append(each.numbers.noise_scale / deviation)
    half_width = np.exp(trim_mean(np.log(halves), _LEFT_OUT, axis=0))
    return _steady(half_width, np.median(scales, axis=0), some)


def typical_harm(plan: Facts) -> float:
    """Returns the `FarUsers.harm` to be expected, a median of simulated releases; 0 if unknown."""
    if plan.request.statistics != ("mean",):
        return 0.0
    found = [far_users(each.numbers) for each in _simulations(plan, SD, CELLS)]
    return float(np.median([0.0 if each is None else each.harm for each in found]))


def often_reliable(plan: Facts, between: float) -> Floats:
    """Returns the part of the simulated releases in which each planned cell is reliable.

    `between` is the part of the variance that lies between cells.
    """
    reliable = []
    for each in _simulations(plan, SD, between):
        status = np.array(statuses(each.numbers))
        reliable.append(status == "reliable")
    part: Floats = np.mean(reliable, axis=0)
    return part


def some_reliable(plan: Facts) -> bool:
    """Returns whether any cell is likely to be reliable; one simulated release often suffices."""
    if judges_reliability(plan):
        first = next(_simulations(plan, SD, CELLS))
        # Then the mean number of reliable cells over at most _MOST releases is at least 1.
        if statuses(first.numbers).count("reliable") >= _MOST:
            return True
    return expected_reliable(plan) > 0


def expected_reliable(plan: Facts, between: float = CELLS) -> int:
    """Returns how many cells are likely to be reliable; see `often_reliable` for `between`."""
    if judges_reliability(plan):
        return round(float(often_reliable(plan, between).sum()))
    return int((~dominated(plan)).sum())


def forecast(plan: Facts) -> dict[float, int]:
    """Returns how many cells are likely to be reliable for each part of the variance between."""
    return {between: expected_reliable(plan, between) for between in (CELLS, *ALIKE)}


def _expected(simulated: list[Simulation], scale: Floats, deviation: float) -> Floats:
    """Returns errors by the formula of `typical_errors`, before they are scaled to simulated ones.

    `scale` has the noise scales of cells in deviations of the values.
    """
    numbers = simulated[0].numbers
    # The mean absolute noise, which is the scale itself with Laplace noise.
    noise = scale * float(numbers.basis.law.mean_error(np.zeros(1))[0])
    # One row for each release, one column for each cell.
    biases = np.array([each.bias for each in simulated]) / deviation
    squares = np.mean(biases**2, axis=0)
    # A few releases say little about one cell: squares are drawn towards their sum, shared among
    # cells like squares of the noise.
    weight = noise**2
    common = weight * squares.sum() / weight.sum()
    releases = len(simulated)
    square = (releases * squares + _COMMON * common) / (releases + _COMMON)
    bias = np.sqrt(square)
    # The values of three cells or more are drawn towards each other, which makes the error from
    # noise smaller, but never that from bias.
    between = np.inf
    if applies(numbers):
        between = CELLS**0.5
    noise_error = 1 / np.hypot(1 / noise, 1 / (_NORMAL * between))
    error: Floats = np.hypot(noise_error, _NORMAL * bias)
    return error


def _steady(half_width: Floats, scale: Floats, some: Ints) -> Floats:
    """Returns half lengths of all cells from those of some, by a curve a + b scale + c scale^2.

    For the cells in `some` it is the geometric mean of their own half length and of the curve.
    """
    if len(scale) < _CURVE:
        return half_width
    # The terms of the curve for each cell, (cells, 3).
    terms = np.stack([np.ones_like(scale), scale, scale**2], axis=1)
    # Errors of the fit are relative to noise, as the bounds may cut an interval to nearly nothing.
    some_scale = scale[some]
    some_terms = terms[some] / some_scale[:, None]
    fit, *_ = np.linalg.lstsq(some_terms, half_width / some_scale, rcond=None)
    steady: Floats = np.clip(terms @ fit, half_width.min(), half_width.max())
    steady[some] = np.sqrt(steady[some] * half_width)
    return steady


def _simulations(plan: Facts, sd: float, between: float, times: int = 1) -> Iterator[Simulation]:
    """Yields simulated releases; each is made when it is first asked for."""
    if plan.request.statistics != ("mean",):
        raise InputError(
            "typical errors are known only for plans of the mean",
            'make a plan with statistics=["mean"]',
        )
    # Other parts than CELLS serve only to count reliable cells: one large release suffices.
    fewest = _FEWEST if between == CELLS else 1
    counts = plan.counts
    by_counts = max(_MEMBERS // len(counts.user), fewest)
    by_cells = 1 + _CELLS // counts.n_cells
    for turn in range(times * min(by_counts, by_cells, _MOST)):
        yield _simulated(plan, turn, sd, between)


@remembered
@np.errstate(all="ignore")
def _simulated(plan: Facts, turn: int, sd: float, between: float) -> Simulation:
    """Returns one simulated release of means, seeded by its turn and the number of counts."""
    counts = plan.counts
    count = counts.count
    lattice = plan.lattice
    members = len(counts.user)
    rng = np.random.default_rng([turn, members])
    # Users and records share the rest of the variance in the usual proportion.
    rest = (1 - between) / (1 - CELLS)
    cells = rng.normal(0, between**0.5, counts.n_cells)
    users = rng.normal(0, (rest * USERS) ** 0.5, counts.n_users)
    # The variance of a member's mean over its records.
    within_variance = rest * (1 - CELLS - USERS) * counts.units / count
    within = rng.normal(0, 1, members) * within_variance**0.5
    deviations = cells[counts.cell] + users[counts.user] + within
    mean = np.clip(PLACE + sd * deviations, 0, 1)
    ticks = mean * count * 2.0**lattice.bits
    sums = np.rint(ticks).astype(np.int64)
    centred = sums - (count << (lattice.bits - 1))
    # Means need no squares.
    aggregate = Aggregate(counts.memberships, lattice, centred, np.zeros_like(centred))
    noise = Simulated(turn)
    exact = exact_numbers(plan, aggregate, noise)
    numbers = Estimates.of(plan, *add_noise(plan, exact, noise))
    truth = aggregate.cell_means()[plan.planned]
    added_steps = np.subtract(numbers.steps, exact.steps)
    added_noise = added_steps * 2.0**-plan.decision.bits * numbers.noise_scale
    bias = numbers.unclamped - added_noise - truth
    return Simulation(numbers, truth, bias)


def errors_compared(plan: Facts) -> Floats:
    """Returns the error of every planned cell, as a part of its range, that `max_error` limits."""
    if plan.certified:
        return plan.cell_error
    return typical_errors(plan) * SD
