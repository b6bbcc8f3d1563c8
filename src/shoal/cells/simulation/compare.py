"""Every method side by side, before any value is read: typical errors and certificates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from shoal.cells.cell_statistics import Mean
from shoal.cells.simulation.distributions import Normal
from shoal.cells.simulation.simulate import METHODS, check_occupancy, simulate
from shoal.cells.typical_error import CELLS, SPREAD, USERS
from shoal.data.value_lattice import Bounds
from shoal.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from shoal.cells.frontier.explore import Choice
    from shoal.cells.plan_facts import PlanFacts
    from shoal.cells.simulation.distributions import Distribution
    from shoal.cells.simulation.simulate import Settings, Simulation
    from shoal.data.occupancy import Counts
    from shoal.privacy.budget import Amount

# Records drawn in all when the number of repetitions is left to us.
_DRAWN = 3_000_000
_FEWEST, _MOST = 3, 200
# What is assumed of the values by default, as in typical errors: a sixth of the width in all, of
# which three tenths of the variance lie between cells and four between users.
_PLACE = 0.4


@dataclass(frozen=True, eq=False)
class Comparison:
    """Errors of several methods on the same counts, as `compare` found them.

    Attributes:
        assumed: The distribution that typical errors are for.
        simulation: Plans and errors, one row a method.
    """

    assumed: Distribution
    simulation: Simulation = field(repr=False)

    def table(self) -> pa.Table:
        """One row a method, that with the smallest typical error first.

        Columns: `typical_error` with its `standard_error`, of values, and `plain_error`, of
        released numbers, are means over cells; `worst_case_error` is the median over cells of what
        is certified, the width where a range is selected, and no number for what anybody writes by
        hand; `certified` says whether anything is.

        Returns:
            One row a method, errors in the value's unit.
        """
        rows = sorted(self.simulation.rows, key=lambda row: row.typical_error)
        return pa.table(
            {
                "method": [row.method for row in rows],
                "epsilon": [row.epsilon for row in rows],
                "typical_error": [row.typical_error for row in rows],
                "standard_error": [row.standard_error for row in rows],
                "plain_error": [row.mean_error for row in rows],
                "worst_case_error": [row.worst_case_error for row in rows],
                "certified": [row.plan is not None and row.plan.certified for row in rows],
            }
        )

    def __str__(self) -> str:
        """The table as text, with what was assumed."""
        head = f"{'method':<25}{'typical':>10}{'+-':>9}{'plain':>10}{'worst case':>12}"
        lines = [
            f"{row['method']:<25}{row['typical_error']:>10.4g}{row['standard_error']:>9.2g}"
            f"{row['plain_error']:>10.4g}"
            + (f"{row['worst_case_error']:>12.4g}" if row["certified"] else f"{'-':>12}")
            for row in self.table().to_pylist()
        ]
        # Of a function its name says more than where it lies in memory.
        assumed = getattr(self.assumed, "__name__", str(self.assumed))
        notes = [
            f"typical: mean absolute error of values under {assumed}; plain: of released",
            "numbers. worst case: certified for every data set, the median cell; -: nothing but",
            "the width is. Names with blanks are what anybody writes by hand, with the bounds as",
            "given: clipping tighter needs knowledge of the values. Other values than these have",
            "other errors (long tails, two kinds of users): give assumed= a function that draws.",
        ]
        return "\n".join([head, *lines, *notes])


def usual(bounds: Bounds) -> Normal:
    """What is assumed of values if nobody says more: the population of typical errors.

    Args:
        bounds: Of the values.
    """
    wide, own = float(bounds.width) * SPREAD, 1 - CELLS
    return Normal(
        bounds.lo + _PLACE * float(bounds.width), wide * own**0.5, USERS / own, wide * CELLS**0.5
    )


@np.errstate(all="ignore")
def compare(
    occupancy: Counts,
    *,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount = 1.0,
    methods: Sequence[str | tuple[str, Settings]] = METHODS,
    assumed: Distribution | None = None,
    repetitions: int | None = None,
    seed: int = 0,
    progress: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> Comparison:
    """Typical and worst-case errors of every method for these counts, before a value is read.

    Methods are ranked by the typical error, the mean absolute error on drawn values; a worst case
    is the plan's certificate (docs/theory/selection.md#scores). What anybody writes by hand is
    among them: guessing the middle, one constant, Laplace noise cell by cell.

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
    check_occupancy(occupancy)
    limits = Bounds.of(bounds)
    float(limits.width)
    values = usual(limits) if assumed is None else assumed
    records = int(occupancy.count.sum())
    few = min(max(_DRAWN // records, _FEWEST), _MOST)
    turns = few if repetitions is None else repetitions
    simulation = simulate(
        occupancy,
        values,
        bounds=limits,
        epsilon=epsilon,
        methods=methods,
        repetitions=turns,
        seed=seed,
        progress=progress,
    )
    return Comparison(values, simulation)


def compare_methods(
    plan: PlanFacts,
    methods: Sequence[str | Choice] | None,
    assumed: Distribution | None,
    repetitions: int | None,
) -> Comparison:
    """See `Plan.compare`."""
    if plan.statistics != (Mean(),):
        raise InputError(
            "a comparison of other statistics", "the mean alone", "use plan.frontier(...)"
        )
    own = (plan.method, dict(plan.decision.method.settings))
    others = [each for each in METHODS if (each, {}) != own]
    return compare(
        plan.counts,
        bounds=plan.bounds,
        epsilon=plan.request.epsilon or plan.exact_epsilon,
        methods=[own, *others] if methods is None else methods,  # type: ignore[arg-type]
        assumed=assumed,
        repetitions=repetitions,
    )
