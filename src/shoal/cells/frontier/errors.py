"""Errors of the cells of a plan in a few numbers, and what bounds them from below."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from shoal.cells.plan_facts import PlanFacts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


P = TypeVar("P", bound=PlanFacts)
GUESS, GOOD = 1 / 2, 1 / 4
# What counts as spent.
_UNSPENT = Fraction(1, 100)
# More than floating point loses.
_FLOATS = 1e-6


@dataclass(frozen=True)
class Figures:
    """Errors of all cells in a few numbers, over the range of the statistic.

    Attributes:
        worst: Of the worst cell, as a part of the range.
        median: Of the median cell, as a part of the range.
        geometric_mean: Of all cells, as a part of the range.
        below_quarter: How many cells are below 1/4.
        better_than_guessing: How many cells are below 1/2.
    """

    worst: float
    median: float
    geometric_mean: float
    below_quarter: int
    better_than_guessing: int

    @classmethod
    def of(cls, error: NDArray[np.float64]) -> Figures:
        """Figures of one error a cell.

        Example:
            >>> Figures.of(np.array([0.1, 0.4, 0.1]))
            Figures(worst=0.4, median=0.1, geometric_mean=0.158..., below_quarter=2, ...=3)
        """
        return cls(
            worst=float(error.max()),
            median=float(np.median(error)),
            geometric_mean=float(np.exp(np.log(error).mean())),
            below_quarter=int((error < GOOD).sum()),
            better_than_guessing=int((error < GUESS).sum()),
        )


@dataclass(frozen=True, eq=False)
class Point(Generic[P]):
    """The plan of one method at one loss, with its errors.

    Attributes:
        method: The method's name, with its settings.
        epsilon: The loss that methods are compared at; the plan never spends more.
        plan: The plan, which can be saved and released.
    """

    method: str
    epsilon: Fraction
    plan: P

    @cached_property
    def error(self) -> NDArray[np.float64]:
        """Worst-case error of each cell, shape (cells,), as a part of the range: the largest one.

        Where a private range is selected there is no certificate, and it is 1: the whole range.
        """
        return _per_cell(self.plan, self.plan.worst_case_error)

    @cached_property
    def noise(self) -> NDArray[np.float64] | None:
        """Mean noise, shape (cells,), as a part of a range selected in private; else None."""
        return None if self.plan.certified else self.plan.relative_error

    @cached_property
    def figures(self) -> Figures:
        """The worst-case errors in a few numbers."""
        return Figures.of(self.error)

    @cached_property
    def noise_figures(self) -> Figures | None:
        """The mean noise in a few numbers, where a private range is selected; else None."""
        return None if self.noise is None else Figures.of(self.noise)

    @property
    def unspent(self) -> bool:
        """Whether more than a hundredth of the loss is left, by exact accounting."""
        return self.plan.exact_epsilon < self.epsilon * (1 - _UNSPENT)


@dataclass(frozen=True)
class Bound:
    """Errors that no plan beats: of every cell what it could have if it were alone.

    Every plan has at least its own bound as error in every cell, so worst, median and geometric
    mean are bounds too; no plan reaches those of all cells at once.

    Attributes:
        epsilon: The loss that methods are compared at.
        spent: The loss that the bound is for: the most that a plan of this row spends.
        error: One number a cell, over the range.
    """

    epsilon: Fraction
    spent: Fraction
    error: NDArray[np.float64] = field(repr=False, compare=False)

    @cached_property
    def figures(self) -> Figures:
        """Of these bounds; the counts are the most that any plan could have."""
        return Figures.of(self.error)


@dataclass(frozen=True)
class JointBound:
    """What no plan that weighs users and adds Laplace noise beats in its worst cell.

    Proved by an `optimal` plan with equal targets: no plan of its loss e has all errors below its
    own over 1 + gap. A plan of loss epsilon > e becomes one of loss e with epsilon/e times the
    noise, and then has an error of at most epsilon/e times as much: at epsilon, e/epsilon of the
    bound holds.

    Attributes:
        epsilon: The loss that methods are compared at.
        worst: The bound, over the range.
    """

    epsilon: Fraction
    worst: float


@dataclass(frozen=True)
class LeftOut:
    """A method that has no plan at a loss, and why."""

    method: str
    epsilon: Fraction
    reason: str


def _per_cell(plan: PlanFacts, number: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest of each cell's statistics, over their ranges."""
    rows = (number / plan.statistic_range).reshape(-1, len(plan.released))
    return np.asarray(rows.max(axis=0))


def bound_of(row: Sequence[Point[P]]) -> Bound | None:
    """The bound of the plan that spends most; bounds fall with the loss, so it holds for all.

    Args:
        row: The points of one loss.

    Returns:
        The bound, or None where one of the plans has none, or none spends anything.
    """
    largest_loss = max(row, key=lambda each: each.plan.exact_epsilon)
    spending = [each for each in row if each.plan.exact_epsilon > 0]
    # Where one plan has no bound, that of another plan need not hold for it.
    if not spending or any(np.isnan(each.plan.lower_bound).any() for each in spending):
        return None
    error = _per_cell(largest_loss.plan, largest_loss.plan.lower_bound)
    return Bound(largest_loss.epsilon, largest_loss.plan.exact_epsilon, error)


def jointly(point: Point[P]) -> float:
    """What a plan proves of any worst cell at the loss of its point; 0 if nothing.

    Args:
        point: With an optimal plan of means or shares with equal targets, to prove anything.
    """
    plan = point.plan
    targets, gap = plan.decision.targets, plan.gap
    if targets is None or gap is None or targets.min() < targets.max():
        return 0.0
    if plan.request.statistics != ("mean",):
        return 0.0
    # The proof is about errors without roundings.
    own = float((plan.relative_error - 2 * plan.rounding).max())
    spent = float(plan.exact_epsilon / point.epsilon)
    return max(0.0, own / (1 + gap) * spent * (1 - _FLOATS))
