"""Errors of plans on populations: the default beside presets, two rounds, sparse cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Annotated, NamedTuple, TypeAlias

import numpy as np

from shoal.cells.comparisons.assumptions import NAIVE
from shoal.cells.comparisons.simulation import made_up
from shoal.cells.estimates.draw import draw
from shoal.cells.estimates.intervals import statuses
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.estimates.posterior import values_of
from shoal.cells.estimates.typical_error import typical_errors
from shoal.cells.facts.facts import Facts
from shoal.cells.facts.request import Request
from shoal.cells.planners.planner import make_plan, plan_means
from shoal.cells.shown.plan_warnings import plan_warnings
from shoal.data.aggregate import Aggregate
from shoal.data.counts import Counts
from shoal.data.value_lattice import Bounds, Lattice
from shoal.errors import InputError
from shoal.privacy.noise import Simulated
from shoal.theory.user_clipping import rounds
from shoal_studies.data import BOUNDS, sparse_cells
from shoal_studies.populations import Floats, Population, memberships, populations
from shoal_studies.registry import Losses, Repetitions, bench, option

Preset: TypeAlias = tuple[str, dict[str, str | int | float]]

EPSILONS = [0.5, 1.0, 4.0]
_CONFIDENCE = 0.95
# Linear programs of more memberships take minutes, and arrays of them a long time to fill.
_MOST_OF_PROGRAM = 10_000
_MOST_OF_ARRAYS = 100_000
PRESETS: dict[str, tuple[Preset, float]] = {
    **{name: ((name, {}), np.inf)
       for name in ("balanced", "adaptive", "worst_case_optimal", "akmv")},
    **{name: ((name, {}), _MOST_OF_ARRAYS) for name in ("opt_array_averaging", "levy", "quantile")},
    "optimal, balanced": (("optimal", {"targets": "balanced"}), _MOST_OF_PROGRAM),
    "optimal, selected": (
        ("optimal", {"targets": "balanced", "range": "selected"}), _MOST_OF_PROGRAM,
    ),
}  # fmt: skip
_SPARSE: dict[str, Preset] = {
    **{name: (name, {}) for name in ("balanced", "array_averaging", "user_clipped", "adaptive")},
    "optimal_in_range": ("optimal", {"range": "selected"}),
}
# Place and deviation of most values of `counts`, over the width of the bounds.
_PLACE = 0.4
_SPREAD = 1 / 6


class Figures(NamedTuple):
    """Figures of each cell in each release, shape (releases, cells), in the value's unit.

    Absolute errors are of the noisy number, of the value, and of one number for all cells, the mean
    of all numbers by their noise. A value that is reliable may be at an end at a bound alone.
    """

    plain: Floats
    error: Floats
    common: Floats
    half_width: Floats
    covered: Floats
    reliable: Floats
    outside: Floats

    def of_reliable(self, figures: Floats) -> float:
        """The mean of figures of reliable cells; not a number if there are none."""
        return float(figures[self.reliable].mean()) if self.reliable.any() else float("nan")


def releases_of(plan: Facts, data: Population | Sequence[Aggregate], releases: int) -> Figures:
    """So many simulated releases, of a population's draws, or of some sums, in turn."""
    if isinstance(data, Population):
        data = [data.draw(turn) for turn in range(min(releases, len(data.means)))]
    found = (_release(plan, data[turn % len(data)], turn) for turn in range(releases))
    return Figures(*map(np.array, zip(*found, strict=True)))


def _release(plan: Facts, private: Aggregate, turn: int) -> Figures:
    """Of one release."""
    numbers = Estimates.of(plan, *draw(plan, private, Simulated(turn)))
    truth = private.cell_means()[plan.planned]
    value, low, high = values_of(numbers, _CONFIDENCE)
    reliable = np.array(statuses(numbers)) == "reliable"
    common = np.average(numbers.value, weights=numbers.noise_scale**-2.0)
    # The truth at a bound may miss an end there in rounding.
    almost = 1e-9 * plan.width
    covered = (low - almost <= truth) & (truth <= high + almost)
    at_bound = np.isin(value, (plan.bounds.lo, plan.bounds.hi))
    inside = np.where(reliable, (low < value) & (value < high), (low <= value) & (value <= high))
    outside = ~(inside | (at_bound & (low <= value) & (value <= high)))
    plain, error, off = (np.abs(each - truth) for each in (numbers.value, value, common))
    return Figures(plain, error, off, (high - low) / 2, covered, reliable, outside)


@bench("sparse")
def sparse(
    repetitions: Repetitions = 100,
    epsilon: Annotated[float, option("Total privacy loss of any user.", 0.001, 100)] = 1.0,
) -> Iterator[str]:
    """Err on fifty sparse cells: plain numbers, values, and guessing the midpoint, in km/h.

    Example: shoal bench sparse --repetitions 100
    """
    counts, centre = sparse_cells()
    lattice = Lattice(Bounds.of(BOUNDS))
    cell = np.repeat(counts.cell, counts.count)
    data = []
    for turn in range(repetitions):
        rng = np.random.default_rng([50223, turn])
        # Cells are sorted by key: cell g of the counts has the g-th centre.
        data.append(made_up(counts, lattice, rng.normal(centre[cell], 10.73)))
    truth = np.array([private.cell_means() for private in data])
    yield f"{repetitions} data sets of 50 cells and 223 users, epsilon {epsilon:g} in total"
    yield f"guessing the midpoint {np.abs(truth - 32.5).mean():>12.2f}"
    yield f"{'method':<18}{'hopeless':>9}{'plain':>9}{'value':>10}{'+-':>7}{'covered':>9}"
    for name, (method, settings) in _SPARSE.items():
        plan = plan_means(counts, lattice.bounds, method, epsilon, settings)
        found = releases_of(plan, data, repetitions)
        error = float(np.std(found.error.mean(axis=1))) / repetitions**0.5
        yield (
            f"{name:<18}{(plan.relative_error >= 1 / 2).sum():>9}{found.plain.mean():>9.2f}"
            f"{found.error.mean():>10.2f}{error:>7.2f}{found.covered.mean():>9.1%}"
        )


def default_plan(population: Population, epsilon: float, delta: str) -> Facts:
    """The plan that nobody chose anything of."""
    return make_plan(
        population.counts, Request.of(bounds=population.bounds, epsilon=epsilon, delta=delta)
    )


@bench("typical")
def typical(
    repetitions: Repetitions = 20,
    epsilon: Losses = EPSILONS,
    population: Annotated[str, option("A part of the name of the populations to take.")] = "",
    delta: Annotated[str, option("Of (epsilon, delta)-DP, for the default plan alone.")] = "0",
) -> Iterator[str]:
    """Err by default, beside every preset and what anybody writes by hand, on 20 populations.

    Example: shoal bench typical --repetitions 20 --epsilon 1
    """
    yield (
        f"mean absolute error over cells, {repetitions} simulated releases a figure; plain: the "
        "noisy number, value: with what other cells tell; covered: its 95% intervals; reliable: "
        "cells that are, and the same figures of them alone"
    )
    yield (
        f"{'population':<33}{'eps':>5}{'plain':>9}{'value':>9}{'covered':>8}{'reliable':>9}{'value':>9}"
        f"{'covered':>8}{'+-':>9}{'stated':>8}{'best other':>11} {'which':<25}{'ratio':>6}"
    )
    ratios: list[float] = []
    for each in populations():
        for loss in epsilon if population in each.name else ():
            line, ratio = _compared(each, loss, repetitions, delta)
            ratios.append(ratio)
            yield line
    if not ratios:
        raise InputError(f"no population with {population!r}", "a part of a name", "leave it out")
    mean = math.exp(float(np.log(ratios).mean()))
    yield f"geometric mean of the ratios: {mean:.3f}, the largest {max(ratios):.2f}"


def _compared(
    population: Population, epsilon: float, repetitions: int, delta: str
) -> tuple[str, float]:
    plan = default_plan(population, epsilon, delta)
    own = releases_of(plan, population, repetitions)
    value = float(own.error.mean())
    others = naive(population, epsilon, repetitions)
    for name, ((method, settings), most) in PRESETS.items():
        if len(population.counts.user) <= most:
            preset = plan_means(population.counts, population.bounds, method, epsilon, settings)
            found = releases_of(preset, population, repetitions)
            others[name] = float(min(found.plain.mean(), found.error.mean()))
    best = min(others, key=lambda name: others[name])
    spread = float(np.mean([np.std(each) for each in population.means]))
    stated = float(typical_errors(plan, spread / plan.width).mean()) * spread
    ratio = value / others[best]
    warned = "!" if plan_warnings(plan) else " "
    return (
        f"{population.name:<32}{warned}{float(epsilon):>5g}{own.plain.mean():>9.3g}{value:>9.3g}"
        f"{own.covered.mean():>8.0%}{own.reliable.mean():>9.0%}{own.of_reliable(own.error):>9.3g}"
        f"{own.of_reliable(own.covered):>8.0%}{own.of_reliable(own.half_width):>9.3g}"
        f"{stated / value:>8.2f}{others[best]:>11.3g} {best:<25}{ratio:>6.2f}"
    ), ratio


def naive(population: Population, epsilon: float, repetitions: int) -> dict[str, float]:
    """What the naive estimators err."""
    low, high = population.bounds
    errors = dict.fromkeys(NAIVE, 0.0)
    for turn in range(repetitions):
        mean = np.clip(population.means[turn % len(population.means)], low, high)
        share = (mean - low) / (high - low)
        truth = population.draw(turn).cell_means()
        for name, estimate in NAIVE.items():
            rng = np.random.default_rng([turn, len(name)])
            value = low + estimate(population.counts, share, epsilon, rng) * (high - low)
            errors[name] += float(np.abs(value - truth).mean()) / repetitions
    return errors


# Users, cells, and cells of a user, about.
SHAPES = (
    (500, 12, 10), (2000, 12, 3), (2000, 40, 3), (2000, 40, 10), (2000, 40, 30), (2000, 150, 25),
    (2000, 300, 40), (2000, 600, 40), (4000, 900, 40),
)  # fmt: skip


@bench("counts")
def counts(
    repetitions: Repetitions = 4,
    epsilon: Losses = EPSILONS,
    users: Annotated[
        int | None, option("Shapes of so many users alone; all of them if not given.")
    ] = None,
    delta: Annotated[str, option("Of (epsilon, delta)-DP.")] = "1e-9",
) -> Iterator[str]:
    """Err in two rounds over what one round errs, on made-up counts with values of six kinds.

    From these follows where the default with a delta has two rounds: where they do not lose with
    any kind of values. Counts are public, kinds of values are not.

    Example: shoal bench counts --repetitions 4 --users 2000
    """
    if users not in (None, *(shape[0] for shape in SHAPES)):
        allowed = ", ".join(map(str, sorted({shape[0] for shape in SHAPES})))
        raise InputError(f"shapes of {users} users", allowed, "leave users out")
    yield (
        f"error of two rounds over that of one, delta {delta}, {repetitions} simulated releases "
        "a figure"
    )
    yield (
        f"{'users':>6}{'cells':>6}{'each':>5}{'eps':>5}{'default':>8}  {'noise':<19}"
        + "".join(f"{name:>11}" for name in KINDS)
    )
    for many, cells, each in SHAPES:
        if users in (None, many):
            members = memberships([6, many, cells, each], many, cells, each, poisson=True)
            made = Counts.from_counts(*(column.tolist() for column in members))
            for loss in epsilon:
                found = _two_rounds(made, loss, delta, repetitions)
                yield f"{many:>6}{cells:>6}{each:>5}{loss:>5g}{found}"


def _two_rounds(counts: Counts, epsilon: float, delta: str, repetitions: int) -> str:
    one, two = (
        plan_means(counts, (0.0, 1.0), "user_clipped", epsilon, {"rounds": each}, delta=delta)
        for each in (1, 2)
    )
    ratios = []
    for name, kind in KINDS.items():
        means = [kind(np.random.default_rng([5, turn]), counts) for turn in range(repetitions)]
        population = Population(name, counts, means, (0.0, 1.0))
        before, after = (releases_of(plan, population, repetitions).error for plan in (one, two))
        ratios.append(after.mean() / before.mean())
    default = rounds(epsilon, float(delta), counts.n_users, len(counts.user), counts.n_cells)
    noise = " then ".join("Gaussian" if plan.gaussian else "Laplace" for plan in (one, two))
    return f"{default:>8}  {noise:<19}" + "".join(f"{ratio:>11.2f}" for ratio in ratios)


def _normal(between: float, rng: np.random.Generator, counts: Counts) -> Floats:
    """Normal values; this part of the variance between cells, four sevenths of the rest by user."""
    cells = rng.normal(0, between**0.5, counts.n_cells)[counts.cell]
    users = rng.normal(0, ((1 - between) * 4 / 7) ** 0.5, counts.n_users)[counts.user]
    rest = ((1 - between) * 3 / 7 / counts.count) ** 0.5
    return _PLACE + _SPREAD * (cells + users + rest * rng.normal(0, 1, len(counts.user)))


KINDS: dict[str, Callable[[np.random.Generator, Counts], Floats]] = {
    "alike": partial(_normal, 0.05),
    "normal": partial(_normal, 0.3),
    "apart": partial(_normal, 0.9),
    "two kinds": lambda rng, counts: (
        rng.choice([0.2, 0.75], counts.n_users)[counts.user] + rng.normal(0, 0.05, len(counts.user))
    ),
    "long tails": lambda rng, counts: np.exp(
        rng.normal(-5, 1.2, counts.n_users)[counts.user] + rng.normal(0, 0.5, len(counts.user))
    ),
    "zeros": lambda rng, counts: (
        rng.binomial(1, 0.4, counts.n_users)[counts.user] * rng.exponential(0.15, len(counts.user))
    ),
}
