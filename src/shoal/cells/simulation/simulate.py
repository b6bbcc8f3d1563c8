"""Measured errors of mechanisms on distributions that somebody assumes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from shoal import checks
from shoal.cells.draw import draw, exact_numbers
from shoal.cells.estimates import Estimates
from shoal.cells.planner import make_plan
from shoal.cells.posterior import values_of
from shoal.cells.request import Request
from shoal.cells.simulation.naive import NAIVE
from shoal.data.aggregate import Aggregate
from shoal.data.occupancy import Counts
from shoal.data.value_lattice import Bounds, Lattice
from shoal.errors import InputError
from shoal.privacy.budget import check_epsilon
from shoal.privacy.noise import Simulated
from shoal.release.manifest import CONFIDENCE
from shoal.theory import laplace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from shoal.cells.plan_facts import PlanFacts
    from shoal.cells.simulation.distributions import Distribution
    from shoal.privacy.budget import Amount

METHODS = (
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
Settings = dict[str, str | int | float]
_STRIDE = 2**32
_MOST_SEED, _MOST_TURNS, _MOST_METHODS = 2**64, 100_000, 1000


@dataclass(frozen=True, eq=False)
class Measured:
    """The error of one method at one loss.

    Attributes:
        method: Its name.
        epsilon: Total privacy loss asked for.
        plan: Every public fact of it; None of what anybody writes by hand.
        error: Mean absolute error of each cell's released number, in the value's unit.
        value_error: The same of each cell's value, the best estimate.
        standard_error: Of the mean over cells of the errors of values, from the repetitions.
    """

    method: str
    epsilon: float
    plan: PlanFacts | None
    error: NDArray[np.float64]
    value_error: NDArray[np.float64]
    standard_error: float

    @property
    def mean_error(self) -> float:
        """Mean over cells, of released numbers."""
        return float(self.error.mean())

    @property
    def typical_error(self) -> float:
        """Mean over cells, of values."""
        return float(self.value_error.mean())

    @property
    def worst_case_error(self) -> float | None:
        """Median over cells of what is certified in every data set; None if nothing is."""
        return None if self.plan is None else float(np.median(self.plan.worst_case_error))


@dataclass(frozen=True, eq=False)
class Simulation:
    """Measured errors of several methods at several losses, as `simulate` found them.

    Attributes:
        rows: One a method and loss.
        repetitions: Data sets that were drawn for each.
    """

    rows: tuple[Measured, ...] = field(repr=False)
    repetitions: int

    def table(self) -> pa.Table:
        """Method, epsilon, mean absolute errors with a standard error, worst-case error.

        Returns:
            One row a method and loss, errors in the value's unit and means over cells: of values
            (`typical_error`, with `standard_error`) and of released numbers (`plain_error`).
        """
        return pa.table(
            {
                "method": [row.method for row in self.rows],
                "epsilon": [row.epsilon for row in self.rows],
                "typical_error": [row.typical_error for row in self.rows],
                "standard_error": [row.standard_error for row in self.rows],
                "plain_error": [row.mean_error for row in self.rows],
                "worst_case_error": [row.worst_case_error for row in self.rows],
            }
        )

    def __str__(self) -> str:
        """The table as text."""
        head = (
            f"{'method':<25}{'epsilon':>9}{'typical':>11}{'+-':>9}{'plain':>11}{'worst case':>12}"
        )
        lines = [
            f"{row['method']:<25}{row['epsilon']:>9g}{row['typical_error']:>11.4g}"
            f"{row['standard_error']:>9.2g}{row['plain_error']:>11.4g}"
            + ("-" if (worst := row["worst_case_error"]) is None else f"{worst:.4g}").rjust(12)
            for row in self.table().to_pylist()
        ]
        return "\n".join([head, *lines])


@np.errstate(all="ignore")
def simulate(
    occupancy: Counts,
    distribution: Distribution,
    *,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount | Sequence[Amount] = 1.0,
    methods: Sequence[str | tuple[str, Settings]] = METHODS,
    repetitions: int = 200,
    seed: int = 0,
    tick_bits: int = 20,
    progress: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> Simulation:
    """Mean absolute errors on made-up values, with every other step as in a real release.

    Each repetition draws values, aggregates them, and lets every method select its ranges with
    simulated randomness. For released numbers the expectation over the Laplace noise is taken in
    closed form, so that few repetitions say much; values follow from one draw. No record is read
    and no budget is spent.

    Source: docs/theory/lattice.md; docs/theory/selection.md#scores.

    Args:
        occupancy: The public counts.
        distribution: Draws a value for every record from (rng, user, cell); see `Normal`.
        bounds: Public range of the values, in their unit; what is drawn is clipped to it.
        epsilon: Total privacy loss, or several.
        methods: Names, or pairs of a name and its settings; or what anybody writes by hand
            (`shoal.cells.simulation.naive`), by name.
        repetitions: How many data sets are drawn.
        seed: Of the simulation.
        tick_bits: Values are rounded to the width over 2^tick_bits.
        progress: Wraps the repetitions, to show how far they are.

    Returns:
        Mean absolute errors with their standard errors, and the plans.

    Raises:
        InputError: An unusable argument, or a distribution that does not draw one finite number
            for each record.



    Example:
        >>> import shoal
        >>> from shoal.cells.simulation.distributions import Normal
        >>> counts = shoal.Counts.from_counts(range(50), ["all"] * 50, [5] * 50)
        >>> found = simulate(counts, Normal(20, 5), bounds=(0, 100), methods=["baseline"])
        >>> [round(row.mean_error, 3) for row in found.rows]
        [2.0]
    """
    check_occupancy(occupancy)
    choices = [_choice(each) for each in checks.items(methods, "methods", most=_MOST_METHODS)]
    turns = checks.whole(repetitions, "repetitions", least=1, most=_MOST_TURNS)
    start = checks.whole(seed, "seed", most=_MOST_SEED)
    lattice = Lattice(Bounds.of(bounds), tick_bits)
    trials = [
        _trial(occupancy, lattice, method, each, settings)
        for each in _several(epsilon)
        for method, settings in choices
    ]
    user = np.repeat(occupancy.user, occupancy.count)
    cell = np.repeat(occupancy.cell, occupancy.count)
    for turn in progress(range(turns)):
        values = distribution(np.random.default_rng([start, turn]), user, cell)
        aggregate = made_up(occupancy, lattice, values)
        for trial in trials:
            trial.run(aggregate, Simulated(start * _STRIDE + turn))
    return Simulation(tuple(trial.measured() for trial in trials), turns)


def _several(epsilon: Amount | Sequence[Amount]) -> Sequence[Amount]:
    if isinstance(epsilon, list | tuple | np.ndarray):
        return checks.items(epsilon, "epsilon", most=_MOST_METHODS)
    return [epsilon]  # type: ignore[list-item]


def check_occupancy(occupancy: object) -> None:
    """Refuse what is no occupancy.

    Raises:
        InputError: It is not.
    """
    todo = "call records.counts() or Counts.from_counts(...)"
    checks.instance(occupancy, Counts, "an occupancy", todo)


def _choice(method: object) -> tuple[str, Settings]:
    """A name with its settings, from a name alone or a pair."""
    if isinstance(method, str):
        return method, {}
    match method:
        case (str() as name, Mapping() as settings):
            return name, dict(settings)
    raise InputError(
        f"a method {checks.shown(method)}",
        "a name, or a pair of a name and its settings",
        f"leave methods out for {len(METHODS)} of them",
    )


def _trial(
    occupancy: Counts,
    lattice: Lattice,
    method: str,
    epsilon: Amount,
    settings: Mapping[str, str | int | float],
) -> _Trial:
    asked = float(check_epsilon(epsilon))
    if method in NAIVE and not settings:
        return _Trial(method, asked, None)
    return _Trial(method, asked, _plan(occupancy, lattice, method, epsilon, settings))


@dataclass(eq=False)
class _Trial:
    """One method at one loss, with running sums of what it erred."""

    method: str
    epsilon: float
    plan: PlanFacts | None
    sums: list[NDArray[np.float64]] = field(default_factory=list)
    turns: list[float] = field(default_factory=list)

    def run(self, aggregate: Aggregate, noise: Simulated) -> None:
        """Add the errors on one data set: expected ones of numbers, and those of values."""
        if self.plan is None:
            error = value = self._by_hand(aggregate, noise)
        else:
            error = expected_errors(self.plan, aggregate, noise)
            value = _of_values(self.plan, aggregate, noise)
        self.sums = [self.sums[0] + error, self.sums[1] + value] if self.sums else [error, value]
        self.turns.append(float(value.mean()))

    def measured(self) -> Measured:
        """Means over the turns."""
        size = len(self.turns)
        spread = float(np.std(self.turns, ddof=1)) if size > 1 else nan
        error, value = (each / size for each in self.sums)
        return Measured(self.method, self.epsilon, self.plan, error, value, spread / size**0.5)

    def _by_hand(self, aggregate: Aggregate, noise: Simulated) -> NDArray[np.float64]:
        occupancy, bounds = aggregate.occupancy, aggregate.lattice.bounds
        mean = aggregate.sums / occupancy.count / 2.0**aggregate.lattice.bits
        rng = np.random.default_rng([noise.seed, len(self.method)])
        found = NAIVE[self.method](occupancy, mean, self.epsilon, rng)
        return np.abs(bounds.lo + found * float(bounds.width) - aggregate.cell_means())


def _of_values(plan: PlanFacts, aggregate: Aggregate, noise: Simulated) -> NDArray[np.float64]:
    """Absolute error of the value of each released cell, for one draw."""
    value = values_of(Estimates(plan, *draw(plan, aggregate, noise)), CONFIDENCE).value
    return np.abs(value - aggregate.cell_means()[plan.released])


def expected_errors(plan: PlanFacts, aggregate: Aggregate, noise: Simulated) -> NDArray[np.float64]:
    """Mean absolute error of each released cell over the Laplace noise, for one selection.

    Args:
        plan: What would be carried out.
        aggregate: Made-up sums.
        noise: Of the selection.
    """
    numbers = Estimates(plan, *exact_numbers(plan, aggregate, noise))
    truth = aggregate.cell_means()[plan.released]
    exact, truth, low, high = (
        (each - plan.bounds.lo) / plan.width for each in (numbers.unclamped, truth, *numbers.range)
    )
    return laplace.clamped_error(exact, numbers.noise_scale / plan.width, truth, low, high) * (
        plan.width
    )


def _plan(
    occupancy: Counts,
    lattice: Lattice,
    method: str,
    epsilon: Amount,
    settings: Mapping[str, str | int | float],
) -> PlanFacts:
    asked = {"epsilon": epsilon, "method": method, "settings": settings, "uninformative": "keep"}
    bounds = lattice.bounds.lo, lattice.bounds.hi
    return make_plan(occupancy, Request.of(bounds=bounds, tick_bits=lattice.bits, **asked))


def made_up(occupancy: Counts, lattice: Lattice, values: NDArray[np.float64]) -> Aggregate:
    """The aggregate of values that somebody made up, one a record in the occupancy's order.

    Raises:
        InputError: Not one finite number for each record.
    """
    records = int(occupancy.count.sum())
    try:
        drawn = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        drawn = np.zeros(0)
    if drawn.shape != (records,) or not np.isfinite(drawn).all():
        raise InputError(
            f"a distribution that draws an array of shape {drawn.shape} or numbers not finite",
            f"{records:,} finite numbers, one a record",
            "draw one for each entry of `user`",
        )
    ends = np.cumsum(occupancy.count)
    ticks, start = lattice.ticks(drawn) - (1 << (lattice.bits - 1)), ends - occupancy.count
    centred, squares = np.add.reduceat(ticks, start), np.add.reduceat(ticks**2, start)
    return Aggregate(occupancy, lattice, centred, squares)
