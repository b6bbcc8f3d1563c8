"""The mechanism whose responses have the least variance: BestTable."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from shoal import documents
from shoal.data.assignment import Assignment
from shoal.data.outcome_space import Space, check_space
from shoal.privacy.budget import Amount
from shoal.privacy.noise import Noise
from shoal.trials.best_table.choice import TableChoice, best_table
from shoal.trials.charge import charge_of
from shoal.trials.choose import check_levels
from shoal.trials.expected import Expected, check_expected
from shoal.trials.mechanisms.base import Mechanism, Prepared
from shoal.trials.request import Units
from shoal.trials.table_release import TableRelease, draw_table


@dataclass(frozen=True, eq=False)
class _Prepared:
    """The table with its whole numbers."""

    name: str
    space: Space
    choice: TableChoice
    asked: Mapping[str, Any]

    @property
    def epsilon(self) -> Fraction:
        """Exact loss of one outcome."""
        return self.choice.table.epsilon

    @property
    def delta(self) -> Fraction:
        """None: every probability is at most e^epsilon times another."""
        return Fraction(0)

    def describe(self) -> documents.Document:
        """Name and whole numbers, as a JSON object."""
        return {
            "name": self.name,
            "asked": dict(self.asked),
            "table": self.choice.to_document(),
            "reason": self.choice.reason(self.space.size),
        }

    def draw(self, units: Units, noise: Noise) -> TableRelease:
        """A response for each unit."""
        return draw_table(units, self.space, self.choice.kept, self.choice.table, noise)


@dataclass(frozen=True)
class BestTable(Mechanism):
    """Outcomes replaced by unbiased responses of the least variance at their privacy loss.

    Every level has its own probabilities of the responses, in whole numbers of 2^-62; no two of one
    response differ by more than e^epsilon. A response says a number whose mean is the outcome,
    exactly. Among all such tables the largest variance over the levels is least, or the mean
    variance over what is expected; a lower bound that nothing unbiased of this loss can beat is
    released with it. For two levels its variance is that of randomised response, which
    `UniformPrior` draws faster.

    Source: docs/theory/best-table.md.

    Attributes:
        epsilon: The loss of one outcome, 0.01 to 8.
        levels: Levels in use, evenly spaced: `auto` for at most 32, `all` up to 64, or a number.
        expected: What is publicly known about outcomes; None to make the largest variance least.

    Raises:
        InputError: An epsilon or levels outside their ranges.

    Guarantees: G-LOSS, G-UNBIASED, G-BOUND, G-COVERAGE.

    Example:
        >>> import numpy as np
        >>> from shoal.trials import BestTable, Space
        >>> rng = np.random.default_rng(1)
        >>> arm = np.arange(8000) % 2
        >>> visits = rng.binomial(4, 0.4 + 0.1 * arm)
        >>> found = BestTable(epsilon=2).privatize(visits, arm, space=Space.counts(0, 4))
        >>> abs(found.estimate().value - 0.4) < 0.4, found.epsilon <= 2
        (True, True)
    """

    epsilon: Amount
    levels: int | str = "auto"
    expected: Expected | None = None

    name: ClassVar[str] = "best_table"

    def __post_init__(self) -> None:
        charge_of(self.epsilon)
        object.__setattr__(self, "levels", check_levels(self.levels))
        check_expected(self.expected)

    def choose(self, space: Space) -> TableChoice:
        """Find the table; neither outcomes nor sizes of groups matter.

        Args:
            space: Levels of the outcome.

        Returns:
            Whole numbers, variances of the levels and the lower bound.

        Raises:
            InputError: An epsilon or levels outside of what tables are made for.
        """
        total = charge_of(self.epsilon)
        return best_table(check_space(space), total.epsilon, self.levels, self.expected)

    def prepare(self, assignment: Assignment, space: Space) -> Prepared:
        """Find the table; no outcome and no size of a group is read."""
        charge = charge_of(self.epsilon)
        asked = {
            "epsilon": str(charge.epsilon),
            "delta": "0",
            "levels": self.levels,
            "expected": None if self.expected is None else self.expected.to_document(),
        }
        return _Prepared(self.name, space, self.choose(space), asked)
