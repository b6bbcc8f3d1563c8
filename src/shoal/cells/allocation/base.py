"""How noise is allocated among cells, as a part of what is asked of a plan."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from shoal.cells.allocation_problem import Allocation, Problem


@dataclass(frozen=True)
class AllocationRule(ABC):
    """One way to allocate noise among cells.

    Class attributes: `title`, what it is called in tables; `proved`, whether dual variables prove
    the noise; `levels`, whether the largest error is what should be small, instead of the mean of
    the errors' logarithms; `weighs`, whether some cells may matter more than others; `by_cell`,
    whether it gives a loss to each cell, of which a mean mechanism makes the best.
    """

    title: ClassVar[str]
    proved: ClassVar[bool] = False
    levels: ClassVar[bool] = False
    weighs: ClassVar[bool] = True
    by_cell: ClassVar[bool] = False


@dataclass(frozen=True)
class SharedNoise(AllocationRule):
    """Noise scales of all cells at once, for contributions that are given."""

    @abstractmethod
    def solve(self, problem: Problem) -> Allocation:
        """Noise scales at a loss of 1.

        Args:
            problem: Sensitivities, one column a cell.
        """


@dataclass(frozen=True)
class BalancedLosses(AllocationRule):
    """Losses of the cells are balanced; parameters, selections and noise follow cell by cell.

    What a mechanism costs a user in a cell is linear in the loss that it may use there, so that
    losses are balanced as noise scales are (docs/theory/balanced.md).
    """

    title = "balanced losses"
    by_cell = True


@dataclass(frozen=True)
class LinearProgram(AllocationRule):
    """Weights and noise together, by linear programming (docs/theory/optimal.md).

    Attributes:
        targets: Errors of the cells in proportion to 1/weight (`equal`) or to those of the
            balanced plan (`balanced`).
    """

    targets: str = "equal"

    title = "linear program"
    proved = True
    levels = True
