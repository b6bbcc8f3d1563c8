"""Typical errors: every method on values that somebody assumes, before any value is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal import checks
from shoal.cells.assumptions import NAIVE, usual
from shoal.cells.comparison import Comparison, Row, checked_choice, label
from shoal.cells.draw_of_plan import drawing_of
from shoal.cells.estimates import Numbers
from shoal.cells.planner import decide
from shoal.cells.posterior import values_of
from shoal.cells.presets import METHODS
from shoal.cells.request import mean_request
from shoal.cells.statistics.mean import Mean
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

    from shoal.cells.assumptions import Distribution
    from shoal.cells.comparison import Choice, Floats
    from shoal.cells.plan_facts import PlanFacts
    from shoal.privacy.budget import Amount

COMPARED = (
    "user_clipped", "adaptive", "balanced", "array_averaging", "opt_array_averaging", "levy",
    "quantile", "akmv", "worst_case_optimal", "baseline", *NAIVE,
)  # fmt: skip
# Records drawn in all when the number of repetitions is left to us.
_DRAWN, _FEWEST, _MOST = 3_000_000, 3, 200
_STRIDE, _MOST_SEED, _MOST_TURNS, _MOST_METHODS = 2**32, 2**64, 100_000, 1000


@np.errstate(all="ignore")
def simulate(
    occupancy: Counts,
    distribution: Distribution,
    *,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount | Sequence[Amount] = 1.0,
    methods: Sequence[str | Choice] = COMPARED,
    repetitions: int = 200,
    seed: int = 0,
    tick_bits: int = 20,
    progress: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> Comparison[PlanFacts]:
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
        methods: Names, or pairs of a name and its settings; what anybody writes by hand
            (`shoal.cells.assumptions`) is among them.
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
        >>> counts = shoal.Counts.from_counts(range(50), ["all"] * 50, [5] * 50)
        >>> values = shoal.Normal(20, 5)
        >>> found = simulate(counts, values, bounds=(0, 100), methods=["baseline"])
        >>> found.table()["plain_error"].to_numpy().round(3).tolist()
        [2.0]
    """
    _counts(occupancy)
    names = tuple(dict.fromkeys((*METHODS, *NAIVE)))
    asked = checks.items(methods, "methods", most=_MOST_METHODS)
    turns = checks.whole(repetitions, "repetitions", least=1, most=_MOST_TURNS)
    start = checks.whole(seed, "seed", most=_MOST_SEED)
    lattice = Lattice(Bounds.of(bounds), tick_bits)
    rows: list[Row[PlanFacts]] = []
    for loss in _several(epsilon):
        for name, settings in (checked_choice(each, names) for each in asked):
            request = None if name in NAIVE else mean_request(name, loss, settings)
            plan = None if request is None else decide(occupancy, lattice, request)
            rows.append(Row(label((name, settings)), check_epsilon(loss), plan))
    user = np.repeat(occupancy.user, occupancy.count)
    cell = np.repeat(occupancy.cell, occupancy.count)
    errors: list[Floats] = [np.zeros(1)] * len(rows)
    means = np.zeros((len(rows), turns))
    for turn in progress(range(turns)):
        values = distribution(np.random.default_rng([start, turn]), user, cell)
        private = made_up(occupancy, lattice, values)
        for at, row in enumerate(rows):
            found = _measured(row, private, Simulated(start * _STRIDE + turn))
            errors[at] = errors[at] + found
            means[at, turn] = found[1].mean()
    measured = (
        Row(row.method, row.epsilon, row.plan, found[0] / turns, found[1] / turns, each)
        for row, found, each in zip(rows, errors, means, strict=True)
    )
    return Comparison(tuple(measured), assumed=distribution)


def _counts(occupancy: object) -> Counts:
    todo = "call records.counts() or Counts.from_counts(...)"
    return checks.instance(occupancy, Counts, "an occupancy", todo)


def _several(epsilon: Amount | Sequence[Amount]) -> Sequence[Amount]:
    if isinstance(epsilon, list | tuple | np.ndarray):
        return checks.items(epsilon, "epsilon", most=_MOST_METHODS)
    return [epsilon]  # type: ignore[list-item]


def compare(
    occupancy: Counts,
    *,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount = 1.0,
    methods: Sequence[str | Choice] = COMPARED,
    assumed: Distribution | None = None,
    repetitions: int | None = None,
    seed: int = 0,
    progress: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> Comparison[PlanFacts]:
    """Typical and worst-case errors of every method for these counts, before a value is read.

    Methods are ranked by the typical error, the mean absolute error on drawn values; a worst case
    is the plan's certificate (docs/theory/selection.md#scores). What anybody writes by hand is
    among them: guessing the middle, one constant, Laplace noise cell by cell. See `simulate`.

    Args:
        occupancy: The public counts.
        bounds: Public range of the values, in their unit.
        epsilon: Total privacy loss.
        methods: Names, or pairs of a name and its settings; all but linear programs if not given,
            which take long.
        assumed: What values may look like; by default `Normal` around 0.4 of the width, with a
            deviation of a sixth of the width, three tenths of its variance between cells and four
            tenths between users. Never fit it to the records: that would cost privacy which nobody
            accounts.
        repetitions: Data sets to draw; by default as many as give about three million records.
        seed: Of the simulation.
        progress: Wraps the repetitions, to show how far they are.

    Returns:
        Errors of each method, the smallest first.

    Raises:
        InputError: An argument is not usable.

    Example:
        >>> import shoal
        >>> counts = shoal.Counts.from_counts(range(40), ["all"] * 40, [1] * 39 + [61])
        >>> found = shoal.compare(counts, bounds=(0, 10), methods=["baseline", "adaptive"])
        >>> found.table()["method"].to_pylist(), found.table()["certified"].to_pylist()
        (['adaptive', 'baseline'], [False, True])
    """
    records = int(_counts(occupancy).count.sum())
    limits = Bounds.of(bounds)
    values = usual(limits) if assumed is None else assumed
    turns = min(max(_DRAWN // records, _FEWEST), _MOST) if repetitions is None else repetitions
    return simulate(
        occupancy, values, bounds=limits, epsilon=epsilon, methods=methods, repetitions=turns,
        seed=seed, progress=progress,
    )  # fmt: skip


def compare_methods(
    plan: PlanFacts,
    methods: Sequence[str | Choice] | None,
    assumed: Distribution | None,
    repetitions: int | None,
) -> Comparison[PlanFacts]:
    """Returns typical errors of a plan's method and of all others; see `Plan.compare`."""
    if plan.statistics != (Mean(),):
        raise InputError(
            "a comparison of other statistics", "the mean alone", "use plan.frontier(...)"
        )
    own: Choice = (plan.method, plan.request.settings)
    others = [each for each in COMPARED if (each, {}) != own]
    return compare(
        plan.occupancy, bounds=plan.bounds, epsilon=plan.request.epsilon or plan.exact_epsilon,
        methods=[own, *others] if methods is None else methods, assumed=assumed,
        repetitions=repetitions,
    )  # fmt: skip


def made_up(occupancy: Counts, lattice: Lattice, values: NDArray[np.float64]) -> Aggregate:
    """Returns private sums of values that somebody made up, one a record in the counts' order."""
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
    start = np.cumsum(occupancy.count) - occupancy.count
    ticks = lattice.ticks(drawn) - (1 << (lattice.bits - 1))
    sums, squares = np.add.reduceat(ticks, start), np.add.reduceat(ticks**2, start)
    return Aggregate(occupancy, lattice, sums, squares)


def _measured(row: Row[PlanFacts], private: Aggregate, noise: Simulated) -> Floats:
    """Returns expected errors of released numbers over the noise, and errors of values drawn."""
    bounds, truth, plan = private.lattice.bounds, private.cell_means(), row.plan
    if plan is None:
        mean = private.sums / private.occupancy.count / 2.0**private.lattice.bits
        rng = np.random.default_rng([noise.seed, len(row.method)])
        guess = NAIVE[row.method](private.occupancy, mean, float(row.epsilon), rng)
        return np.stack([np.abs(bounds.lo + guess * float(bounds.width) - truth)] * 2)
    truth, drawing = truth[plan.released], drawing_of(plan)
    numbers = Numbers(plan, *drawing.select(private, noise))
    scale = numbers.noise_scale / plan.width
    exact, aim, low, high = (
        (each - bounds.lo) / plan.width for each in (numbers.unclamped, truth, *numbers.range)
    )
    plain = laplace.clamped_error(exact, scale, aim, low, high) * plan.width
    drawn = drawing.draw(private, noise)
    value = values_of(Numbers(plan, drawn.steps, drawn.chosen), CONFIDENCE).value
    return np.stack([plain, np.abs(value - truth)])
