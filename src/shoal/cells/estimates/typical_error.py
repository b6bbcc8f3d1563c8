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
from shoal.cells.facts.facts import PlanFacts
from shoal.data.aggregate import Aggregate
from shoal.errors import InputError
from shoal.privacy.noise import Simulated
from shoal.release.envelope import CONFIDENCE
from shoal.theory.scale_mixture import some_cells

# Parts of the variance between cells, the same of cells that are ever more alike, between users.
CELLS = 0.3
ALIKE = (0.1, 0.03)
USERS = 0.4
# The population's standard deviation and place, as parts of the width.
SD = 1 / 6
PLACE = 0.4
# Releases are simulated until so many counts, or cells, were drawn.
_MEMBERS = 600_000
_CELLS = 6_000
_FEWEST = 3
_MOST = 12
# Of a normal variable: mean absolute value over its deviation.
_NORMAL = (2 / np.pi) ** 0.5
# How many releases what is common to all cells counts for beside a cell's own, when biases are
# averaged; cells to which a curve of half widths is fitted, at least.
_COMMON = 3
_CURVE = 12


class Simulation(NamedTuple):
    """A simulated release, true means of the planned cells, biases, and how far values spread.

    A bias is what a number would err without noise.
    """

    numbers: Estimates
    truth: Floats
    bias: Floats
    deviation: float


def typical_errors(plan: PlanFacts, sd: float = SD) -> Floats:
    """Returns the mean absolute error of each planned cell's value, over values' deviation.

    As a part of the width, up to a half, that is `sd`. Each of 1 to 12 simulated releases draws
    its own population. With noise of mean size b, a bias of deviation B, both known of each cell,
    and cells that are normal with deviation T: c sqrt(1/(1/b^2 + pi/(2 T^2)) + 2 B^2/pi), with a c
    that gives the simulated errors' mean.
    """
    return _typical(plan, sd)[0]


def typical_half_widths(plan: PlanFacts) -> Floats:
    """Returns half of each planned cell's 95% interval, in the median of the same releases.

    Few releases say little of one cell: the geometric mean of that median and of a curve in the
    noise scale that is fitted to all cells.
    """
    return _typical(plan, SD)[1]


def often_reliable(plan: PlanFacts, between: float) -> Floats:
    """Returns in what part of such releases a cell is reliable, with so much variance between."""
    simulated = _simulations(plan, SD, between)
    own = [np.array(statuses(each.numbers)) == "reliable" for each in simulated]
    return np.asarray(np.mean(own, axis=0))


def some_reliable(plan: PlanFacts) -> bool:
    """Returns whether a cell is likely to be reliable; often one simulated release says so."""
    if decides(plan):
        first = next(_simulations(plan, SD, CELLS))
        if statuses(first.numbers).count("reliable") >= _MOST:
            return True
    return expected_reliable(plan) > 0


def expected_reliable(plan: PlanFacts, between: float = CELLS) -> int:
    """Returns how many cells are likely to be reliable, with so much variance between them."""
    if not decides(plan):
        return int((~dominated(plan)).sum())
    return round(float(often_reliable(plan, between).sum()))


def forecast(plan: PlanFacts) -> dict[float, int]:
    """Returns how many cells are likely to be reliable, by parts of the variance between them."""
    return {between: expected_reliable(plan, between) for between in (CELLS, *ALIKE)}


def _typical(plan: PlanFacts, sd: float) -> tuple[Floats, Floats]:
    """Mean absolute errors and half 95% intervals of cells, over the population's deviation."""
    known: dict[float, tuple[Floats, Floats]] = vars(plan).setdefault("typical", {})
    if sd not in known:
        simulated = [*_simulations(plan, sd, CELLS)]
        some = some_cells(len(plan.planned))
        errors = []
        halves = []
        for numbers, truth, _, deviation in simulated:
            found = values_of(numbers, CONFIDENCE, some)
            errors.append(np.abs(found.value - truth[some]) / deviation)
            halves.append((found.high - found.low) / 2 / deviation)
        scale = np.median([each.numbers.noise_scale / each.deviation for each in simulated], axis=0)
        # Not the mean of widths: one private radius in fifty is far too large.
        half_width = _steady(np.median(halves, axis=0), scale, some)
        error = _expected(simulated, scale)
        error *= float(np.mean(errors)) / float(error[some].mean())
        if plan.certified:
            error = np.minimum(error, plan.worst_case_error / (plan.width * sd))
        known[sd] = error, half_width
    return known[sd]


def _expected(simulated: list[Simulation], scale: Floats) -> Floats:
    """Errors by formula, from noise scales over values' deviation and from simulated biases."""
    plan = simulated[0].numbers.plan
    noise = scale * (_NORMAL if plan.gaussian else 1.0)
    squares = np.mean([(each.bias / each.deviation) ** 2 for each in simulated], axis=0)
    common = noise**2 * squares.sum() / (noise**2).sum()
    own = len(simulated)
    bias = np.sqrt((own * squares + _COMMON * common) / (own + _COMMON))
    # Fewer than three cells say nothing of each other; what clipping hides no cell says.
    between = CELLS**0.5 if applies(simulated[0].numbers) else np.inf
    drawn = 1 / np.hypot(1 / noise, 1 / (_NORMAL * between))
    return np.asarray(np.hypot(drawn, _NORMAL * bias))


def _steady(half_width: Floats, scale: Floats, some: Ints) -> Floats:
    """Half widths of all cells, from those of some of them: halfway to a + b scale + c scale^2."""
    if len(scale) < _CURVE:
        return half_width
    terms = np.stack([np.ones_like(scale), scale, scale**2], axis=1)
    # Relative to noise: an interval that bounds cut to nearly nothing is no measure.
    own = scale[some]
    fit = np.linalg.lstsq(terms[some] / own[:, None], half_width / own, rcond=None)[0]
    found = np.clip(terms @ fit, half_width.min(), half_width.max())
    found[some] = np.sqrt(found[some] * half_width)
    return np.asarray(found)


def _simulations(plan: PlanFacts, sd: float, between: float) -> Iterator[Simulation]:
    """Simulated releases, each made when it is first asked for."""
    if plan.request.statistics != ("mean",):
        raise InputError(
            "typical errors are known only for plans of the mean",
            'make a plan with statistics=["mean"]',
        )
    known: dict[tuple[float, float], list[Simulation]] = vars(plan).setdefault("simulated", {})
    made = known.setdefault((sd, between), [])
    # What other variances between cells would tell is one number: one release of many users does.
    fewest = _FEWEST if between == CELLS else 1
    by_counts = max(_MEMBERS // len(plan.counts.user), fewest)
    for turn in range(min(by_counts, 1 + _CELLS // plan.counts.n_cells, _MOST)):
        if turn == len(made):
            made.append(_simulated(plan, turn, sd, between))
        yield made[turn]


@np.errstate(all="ignore")
def _simulated(plan: PlanFacts, turn: int, sd: float, between: float) -> Simulation:
    """Returns one simulated release of means; turn and size of counts are its seed."""
    counts = plan.counts
    lattice = plan.lattice
    rng = np.random.default_rng([turn, len(counts.user)])
    # Users and records share what is left in the same proportion.
    left = (1 - between) / (1 - CELLS)
    cells = rng.normal(0, between**0.5, counts.n_cells)[counts.cell]
    users = rng.normal(0, (left * USERS) ** 0.5, counts.n_users)[counts.user]
    own = left * (1 - CELLS - USERS) / counts.count
    within = rng.normal(0, 1, len(counts.user)) * own**0.5
    mean = np.clip(PLACE + sd * (cells + users + within), 0, 1)
    sums = np.rint(mean * counts.count * 2.0**lattice.bits).astype(np.int64)
    centred = sums - (counts.count << (lattice.bits - 1))
    aggregate = Aggregate(counts, lattice, centred, np.zeros_like(centred))
    noise = Simulated(turn)
    exact = exact_numbers(plan, aggregate, noise)
    numbers = Estimates(plan, *add_noise(plan, exact, noise))
    truth = aggregate.cell_means()[plan.planned]
    added = np.array([noisy - own for noisy, own in zip(numbers.steps, exact[0], strict=True)])
    drawn = added * 2.0**-plan.decision.bits * numbers.noise_scale
    return Simulation(numbers, truth, numbers.unclamped - drawn - truth, plan.width * sd)


def errors_compared(plan: PlanFacts) -> Floats:
    """The error of every planned cell, over its range, that a largest error limits."""
    return plan.cell_error if plan.certified else np.asarray(typical_errors(plan) * SD)
