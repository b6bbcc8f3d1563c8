"""What a person looks at before anything is spent: a plan as text, table, errors and comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal import checks
from shoal.cells.plan_facts import PlanFacts
from shoal.cells.simulation import compare_methods
from shoal.cells.table import plan_table
from shoal.cells.text import describe, summary
from shoal.cells.typical_error import typical_errors
from shoal.errors import InputError
from shoal.files import tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

    from shoal.cells.assumptions import Distribution
    from shoal.cells.comparison import Choice, Comparison


@dataclass(frozen=True, eq=False)
class PlanViews(PlanFacts):
    """A plan as a person looks at it; see `PlanFacts` for its facts."""

    def __str__(self) -> str:
        """The plan in words and columns."""
        return str(describe(self))

    def __repr__(self) -> str:
        """One line."""
        return f"<Plan {summary(self)}>"

    def _repr_html_(self) -> str:
        """The plan for notebooks."""
        return describe(self).to_html()

    def table(self) -> pa.Table:
        """One row a cell and statistic: keys, status, counts, and both errors.

        Returns:
            `typical_error` in parts of the standard deviation of the values, those of all cells
            together, for means; `certified`, the worst-case error, and `lower_bound` in the unit of
            the statistic. Nulls in the rows of cells left out.
        """
        return plan_table(self)

    def to_pandas(self) -> pd.DataFrame:
        """The table for pandas.

        Returns:
            One row a cell and statistic, as in `table`.

        Raises:
            MissingPartError: pandas is not installed.
        """
        return tables.to_pandas(self.table())

    def typical_error(self, spread: float | None = None) -> NDArray[np.float64]:
        """The mean absolute error that each released cell will typically have: no value is read.

        Simulated releases on the plan's own counts with normal users about alike
        (`shoal.cells.typical_error`). It is no certificate: users who are unlike all others, long
        tails or values at both bounds have larger errors.

        Args:
            spread: Standard deviation of the values, those of all cells together, in their unit, if
                somebody may say it without a look at them: half of the width at most, as no values
                have a larger one.

        Returns:
            Errors of values with this standard deviation, in their unit; else parts of it, where it
            is a sixth of the width; shape (released cells,).

        Raises:
            InputError: The plan releases other statistics than the mean, or an unusable spread.



        Example:
            >>> import shoal
            >>> counts = shoal.Counts.from_counts(range(90), [0, 1, 2] * 30, [4] * 90)
            >>> plan = shoal.plan(counts, bounds=(0, 10), epsilon=4)
            >>> plan.typical_error().shape, bool((plan.typical_error() < 1).all())
            ((3,), True)
        """
        wide = checks.optional(spread, checks.number, "spread", above=0, example=10)
        if wide is None:
            return typical_errors(self)
        if wide > self.width / 2:
            raise InputError(
                f"a spread of {wide:g}, and bounds that are {self.width:g} apart",
                f"a standard deviation of at most half of that, {self.width / 2:g}",
                "give the values' standard deviation, or leave it out",
            )
        return typical_errors(self, wide / self.width) * wide

    def compare(
        self,
        methods: Sequence[str | Choice] | None = None,
        *,
        assumed: Distribution | None = None,
        repetitions: int | None = None,
    ) -> Comparison[PlanFacts]:
        """This plan's method, all others and what anybody writes by hand, by their typical errors.

        See `shoal.compare`: on this plan's counts, bounds and epsilon, for means of all cells. No
        value is read.

        Args:
            methods: Names, or names with settings; all but linear programs if not given.
            assumed: What values may look like.
            repetitions: Data sets to draw.

        Returns:
            Errors of each method, the smallest first.

        Raises:
            InputError: The plan releases other statistics than the mean, or an unusable argument.

        Example:
            >>> import shoal
            >>> counts = shoal.Counts.from_counts(range(90), [0, 1, 2] * 30, [4] * 90)
            >>> plan = shoal.plan(counts, bounds=(0, 10), epsilon=4)
            >>> found = plan.compare(["balanced", "midpoint"], repetitions=20)
            >>> found.table()["method"].to_pylist()
            ['balanced', 'midpoint']
        """
        return compare_methods(self, methods, assumed, repetitions)
