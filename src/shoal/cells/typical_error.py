"""The error that a plan will typically make, before any value is read: simulated releases.

The population is made up on the plan's own counts: three tenths of the variance between cells, four
tenths between users, the rest between a user's records, normal. No record is read.
"""

from typing import NamedTuple

import numpy as np

from shoal.cells.draw import draw
from shoal.cells.estimates import Estimates
from shoal.cells.plan_facts import PlanFacts
from shoal.cells.posterior import values_of
from shoal.cells.told import decides, planned, statuses
from shoal.cells.weights import Floats
from shoal.data.aggregate import Aggregate
from shoal.errors import InputError
from shoal.privacy.noise import Simulated
from shoal.release.manifest import CONFIDENCE

# Parts of the variance between cells, the same of cells that are ever more alike, between users.
CELLS, ALIKE, USERS = 0.3, (0.1, 0.03), 0.4
# The population's standard deviation and place, as parts of the width.
SPREAD, PLACE = 1 / 6, 0.4
# Releases are simulated until so many counts, or cells, were drawn.
_MEMBERS, _CELLS, _FEWEST, _MOST = 100_000, 4_000, 3, 12
# Errors are averaged over cells with about the same noise until so many make a figure.
_TOGETHER = 36


class Simulation(NamedTuple):
    """A simulated release, the true means of the released cells, and how far values spread."""

    numbers: Estimates
    truth: Floats
    deviation: float


def typical_errors(plan: PlanFacts, spread: float = SPREAD) -> Floats:
    """Returns the mean absolute error of each released cell's value, over values' deviation.

    As a part of the width, up to a half, that is `spread`. Each of 3 to 12 simulated releases draws
    its own population; errors of cells with about the same noise are averaged.
    """
    return _typical(plan, spread)[0]


def typical_half_widths(plan: PlanFacts) -> Floats:
    """Returns half of each released cell's 95% interval, in the median of the same releases."""
    return _typical(plan, SPREAD)[1]


def often_told(plan: PlanFacts, between: float) -> Floats:
    """Returns in what part of such releases each cell is told, with so much variance between."""
    simulated = _simulations(plan, SPREAD, between)
    own = [np.array(statuses(each.numbers)) == "released" for each in simulated]
    return np.asarray(np.mean(own, axis=0))


def expected_told(plan: PlanFacts) -> int:
    """Returns how many cells are likely to be told: the number in a plan's first line."""
    if not decides(plan):
        return planned(plan).count("released")
    return round(float(often_told(plan, CELLS).sum()))


def _typical(plan: PlanFacts, spread: float) -> tuple[Floats, Floats]:
    """Mean absolute errors and half 95% intervals of cells, over the population's deviation."""
    known: dict[float, tuple[Floats, Floats]] = vars(plan).setdefault("typical", {})
    if spread not in known:
        errors, halves = [], []
        for numbers, truth, deviation in _simulations(plan, spread, CELLS):
            found = values_of(numbers, CONFIDENCE)
            errors.append(np.abs(found.value - truth) / deviation)
            halves.append((found.high - found.low) / 2 / deviation)
        error = np.mean(errors, axis=0)
        together = min(-(-_TOGETHER // len(errors)), len(error))
        # Not the mean of widths: one private radius in fifty is far too large.
        half_width = np.median(halves, axis=0)
        error = _smooth(error, plan.noise_scale, together)
        if plan.certified:
            error = np.minimum(error, plan.worst_case_error / (plan.width * spread))
        known[spread] = error, half_width
    return known[spread]


@np.errstate(all="ignore")
def _simulations(plan: PlanFacts, spread: float, between: float) -> list[Simulation]:
    if plan.request.statistics != ("mean",):
        raise InputError(
            "typical errors are known only for plans of the mean",
            'make a plan with statistics=["mean"]',
        )
    known: dict[tuple[float, float], list[Simulation]] = vars(plan).setdefault("simulated", {})
    if (spread, between) not in known:
        enough = min(_MEMBERS // len(plan.counts.user), _CELLS // plan.counts.n_cells)
        turns = range(min(max(enough, _FEWEST), _MOST))
        known[spread, between] = [_simulated(plan, each, spread, between) for each in turns]
    return known[spread, between]


def _smooth(error: Floats, noise_scale: Floats, together: int) -> Floats:
    """Returns means over cells that are next to one another by their noise."""
    order, ranks = np.argsort(noise_scale, kind="stable"), np.arange(len(error))
    half = together // 2
    total = np.append(0.0, np.cumsum(error[order]))
    low, high = np.maximum(ranks - half, 0), np.minimum(ranks + half + 1, len(error))
    smooth = np.empty(len(error))
    smooth[order] = (total[high] - total[low]) / (high - low)
    return smooth


def _simulated(plan: PlanFacts, turn: int, spread: float, between: float) -> Simulation:
    """Returns one simulated release of means; turn and size of counts are its seed."""
    counts, lattice = plan.counts, plan.lattice
    rng = np.random.default_rng([turn, len(counts.user)])
    # Users and records share what is left in the same proportion.
    left = (1 - between) / (1 - CELLS)
    cells = rng.normal(0, between**0.5, counts.n_cells)[counts.cell]
    users = rng.normal(0, (left * USERS) ** 0.5, counts.n_users)[counts.user]
    own = left * (1 - CELLS - USERS) / counts.count
    within = rng.normal(0, 1, len(counts.user)) * own**0.5
    mean = np.clip(PLACE + spread * (cells + users + within), 0, 1)
    sums = np.rint(mean * counts.count * 2.0**lattice.bits).astype(np.int64)
    centred = sums - (counts.count << (lattice.bits - 1))
    aggregate = Aggregate(counts, lattice, centred, np.zeros_like(centred))
    numbers = Estimates(plan, *draw(plan, aggregate, Simulated(turn)))
    return Simulation(numbers, aggregate.cell_means()[plan.released], plan.width * spread)
