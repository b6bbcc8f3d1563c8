"""Simulates every method on values from an assumed distribution, before any value is read."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from shoal import checks
from shoal.arrays import Floats
from shoal.cells.comparisons.assumptions import NAIVE, Distribution, usual
from shoal.cells.comparisons.comparison import Choice, Comparison, Row, checked_choice, label
from shoal.cells.estimates.draw import add_noise, exact_numbers
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.estimates.posterior import values_of
from shoal.cells.facts.facts import Facts
from shoal.cells.mechanisms.methods import METHODS
from shoal.cells.planners.planner import plan_means
from shoal.data.aggregate import Aggregate
from shoal.data.columns_in_memory import private_numbers
from shoal.data.counts import Counts
from shoal.data.value_lattice import Bounds, Lattice
from shoal.errors import InputError
from shoal.privacy.budget import Amount, check_epsilon
from shoal.privacy.noise import Simulated
from shoal.progress import Progress, tracked
from shoal.release.envelope import CONFIDENCE
from shoal.theory import laplace

COMPARED = (
    "user_clipped",
    "adaptive",
    "balanced",
    "array_averaging",
    "opt_array_averaging",
    "levy",
    "quantile",
    "akmv",
    "worst_case_optimal",
    "baseline",
    *NAIVE,
)
# Records that are drawn in all, if nobody gives the number of repetitions.
_DRAWN = 3_000_000
# Repetitions at least and at most, if nobody gives their number.
_FEWEST = 3
_MOST = 200
# The distance between the noise seeds of two values of `seed`: more than the repetitions of one.
_STRIDE = 2**32
# Limits of what may be asked for.
_MOST_SEED = 2**64
_MOST_TURNS = 100_000
_MOST_METHODS = 1000


@np.errstate(all="ignore")
def compare(
    counts: Counts,
    *,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount | Sequence[Amount] = 1.0,
    methods: Sequence[str | Choice] = COMPARED,
    assumed: Distribution | None = None,
    repetitions: int | None = None,
    seed: int = 0,
    tick_bits: int = 20,
    progress: Progress | None = None,
) -> Comparison[Facts]:
    """Typical and worst-case errors of every method for these counts, before a value is read.

    Methods are ranked by the typical error, which is the mean absolute error on drawn values; the
    worst case is what the plan certifies. Simple estimators that anybody can write are among the
    methods: guessing the middle, one constant, Laplace noise cell by cell. Each repetition draws
    values, aggregates them, and lets every method select its ranges with simulated randomness. For
    noisy numbers the expectation over the Laplace noise is taken in closed form, so that few
    repetitions are precise; values follow from one draw. No budget is spent.

    Source: docs/theory/privacy.md#lattice-noise; docs/theory/privacy.md#selections.

    Args:
        counts: The public counts.
        bounds: Public range of the values, in their unit; drawn values are clipped to it.
        epsilon: Total privacy loss, or several losses.
        methods: Names, or pairs of a name and its settings; by default all methods but the linear
            programs, which take long.
        assumed: The distribution of the values: a function that draws a value for every record from
            (rng, user, cell); by default `Normal` around 0.4 of the width, with a deviation of a
            sixth of the width, three tenths of its variance between cells and four tenths between
            users. Never fit it to the records: that would cost privacy which nobody accounts for.
        repetitions: Number of data sets to draw; by default as many as have about three million
            records together.
        seed: Seed of the simulation.
        tick_bits: Values are rounded to ticks of the width divided by 2^tick_bits.
        progress: Wraps the plans, then the repetitions, to show how far they are; by default a bar
            on a terminal.

    Returns:
        Mean absolute errors of each method with their standard errors, the smallest first, and the
        plans.

    Raises:
        InputError: An unusable argument, or the distribution does not draw one finite number
            for each record.

    Example:
        >>> import shoal
        >>> counts = shoal.Counts.from_counts(range(40), ["all"] * 40, [1] * 39 + [61])
        >>> found = shoal.compare(counts, bounds=(0, 10), methods=["baseline", "adaptive"])
        >>> found.table()["method"].to_pylist(), found.table()["certified"].to_pylist()
        (['adaptive', 'baseline'], [False, True])
    """
    checks.instance(
        counts,
        Counts,
        "counts",
        "give records.counts() of public counts, or Counts.from_counts(...)",
    )
    lattice = Lattice(Bounds.of(bounds), tick_bits)
    distribution = usual(lattice.bounds) if assumed is None else assumed
    if repetitions is None:
        repetitions = min(max(_DRAWN // int(counts.count.sum()), _FEWEST), _MOST)
    turns = checks.whole(repetitions, "repetitions", least=1, most=_MOST_TURNS)
    start = checks.whole(seed, "seed", most=_MOST_SEED)
    names = tuple(dict.fromkeys((*METHODS, *NAIVE)))
    choices = [
        checked_choice(each, names) for each in checks.items(methods, "methods", most=_MOST_METHODS)
    ]
    several = isinstance(epsilon, list | tuple | np.ndarray)
    losses: Any = checks.items(epsilon, "epsilon", most=_MOST_METHODS) if several else [epsilon]
    rows: list[Row[Facts]] = []
    work = [*product(losses, choices)]
    for loss, (name, settings) in tracked(work, "planning", progress):
        # Simple estimators have no plan.
        plan = None
        if name not in NAIVE:
            plan = plan_means(counts, lattice.bounds, name, loss, settings, tick_bits=tick_bits)
        rows.append(Row(label((name, settings)), check_epsilon(loss), plan))
    simulated = _Simulation(counts, lattice, distribution, turns, start).rows(rows, progress)
    return Comparison(tuple(simulated), assumed=distribution)


@dataclass(frozen=True, eq=False)
class _Simulation:
    """Data sets that a distribution draws for the counts: one for each of the `turns`."""

    counts: Counts
    lattice: Lattice
    distribution: Distribution
    turns: int
    seed: int

    def rows(self, rows: list[Row[Facts]], progress: Progress | None) -> list[Row[Facts]]:
        """Returns the rows with their mean absolute errors on these data sets."""
        counts = self.counts
        user = np.repeat(counts.user, counts.count)
        cell = np.repeat(counts.cell, counts.count)
        # The sums of each row's errors over data sets, (2, cells), of noisy numbers and of values.
        totals: list[Floats] = [np.zeros(1)] * len(rows)
        means = np.zeros((len(rows), self.turns))
        for turn in tracked(range(self.turns), "simulating releases", progress):
            values = self.distribution(np.random.default_rng([self.seed, turn]), user, cell)
            private = made_up(counts, self.lattice, values)
            for at, row in enumerate(rows):
                errors = _errors(row, private, Simulated(self.seed * _STRIDE + turn))
                totals[at] = totals[at] + errors
                _, of_values = errors
                means[at, turn] = of_values.mean()
        measured = []
        for row, total, turn_means in zip(rows, totals, means, strict=True):
            noisy, typical = total / self.turns
            measured.append(Row(row.method, row.epsilon, row.plan, noisy, typical, turn_means))
        return measured


def simulate(
    counts: Counts, distribution: Distribution, *, repetitions: int = 200, **options: Any
) -> Comparison[Facts]:
    """Mean absolute errors of methods on values of a distribution: `compare` with that assumption.

    Args:
        counts: The public counts.
        distribution: Draws a value for every record from (rng, user, cell); see `Normal`.
        repetitions: Number of data sets to draw.
        options: Other arguments of `compare`, `bounds` among them.

    Returns:
        Mean absolute errors with their standard errors, and the plans.

    Raises:
        InputError: As `compare` does.

    Example:
        >>> import shoal
        >>> counts = shoal.Counts.from_counts(range(50), ["all"] * 50, [5] * 50)
        >>> values = shoal.Normal(20, 5)
        >>> found = simulate(counts, values, bounds=(0, 100), methods=["baseline"])
        >>> found.table()["noisy_error"].to_numpy().round(3).tolist()
        [2.0]
    """
    return compare(counts, assumed=distribution, repetitions=repetitions, **options)


def compare_methods(
    plan: Facts,
    methods: Sequence[str | Choice] | None,
    assumed: Distribution | None,
    repetitions: int | None,
    progress: Progress | None,
) -> Comparison[Facts]:
    """Returns typical errors of a plan's method and of all others; see `Plan.compare`."""
    if plan.request.statistics != ("mean",):
        raise InputError("only plans of the mean are simulated", "here use plan.frontier(...)")
    if methods is None:
        of_plan: Choice = (plan.method, plan.decision.method.settings)
        methods = [of_plan, *(each for each in COMPARED if (each, {}) != of_plan)]
    return compare(
        plan.counts,
        bounds=plan.bounds,
        epsilon=plan.request.epsilon or plan.exact_epsilon,
        methods=methods,
        assumed=assumed,
        repetitions=repetitions,
        progress=progress,
    )


def made_up(counts: Counts, lattice: Lattice, values: Floats) -> Aggregate:
    """Returns the sums of made-up values, one for each record in the order of the counts."""
    records = int(counts.count.sum())
    drawn = private_numbers(values)
    if drawn is None or drawn.shape != (records,) or not np.isfinite(drawn).all():
        raise InputError(
            f"the distribution does not draw {records:,} finite numbers, one for each record",
            "draw one number for each entry of `user`",
        )
    # The first record of each membership.
    start = np.cumsum(counts.count) - counts.count
    # Ticks from the middle of the bounds.
    ticks = lattice.ticks(drawn) - (1 << (lattice.bits - 1))
    sums = np.add.reduceat(ticks, start)
    squares = np.add.reduceat(ticks**2, start)
    return Aggregate(counts.memberships, lattice, sums, squares)


def _errors(row: Row[Facts], private: Aggregate, noise: Simulated) -> Floats:
    """Returns two rows: errors of noisy numbers, in expectation over noise, and errors of values.

    A simple estimator has no plan, and its errors are both rows.
    """
    bounds = private.lattice.bounds
    truth = private.cell_means()
    plan = row.plan
    if plan is None:
        mean = private.sums / private.memberships.count / 2.0**private.lattice.bits
        # The length of its name gives each estimator its own noise.
        rng = np.random.default_rng([noise.seed, len(row.method)])
        guess = NAIVE[row.method](private.memberships, mean, float(row.epsilon), rng)
        errors = np.abs(bounds.lo + guess * float(bounds.width) - truth)
        return np.stack([errors, errors])
    truth = truth[plan.planned]
    exact_steps = exact_numbers(plan, private, noise)
    without_noise = Estimates.of(plan, *exact_steps)
    scale = without_noise.noise_scale / plan.width
    numbers = (without_noise.unclamped, truth, *without_noise.range)
    exact, aim, low, high = ((each - bounds.lo) / plan.width for each in numbers)
    expected = laplace.clamped_error(exact, scale, aim, low, high) * plan.width
    noisy = Estimates.of(plan, *add_noise(plan, exact_steps, noise))
    value = values_of(noisy, CONFIDENCE).value
    return np.stack([expected, np.abs(value - truth)])
