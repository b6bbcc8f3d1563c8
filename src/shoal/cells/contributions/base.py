"""What every rule of contributions answers: public parameters, designs, and checks of parameters.

A rule says how much of every user counts in every cell. It knows nothing of the range that values
are clipped to: its design is relative to the range, whatever that is (`shoal.cells.ranges`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from shoal.cells.contributions.design import Design
    from shoal.data.occupancy import Counts

# Public whole numbers of a rule by name.
Parameters = dict[str, "NDArray[np.int64]"]


@dataclass(frozen=True)
class ContributionRule(ABC):
    """One way in which users contribute to the released cells.

    Class attributes: `title`, what it is called in tables; `least`, the smallest value of each of
    its parameters; `per_member`, parameters of which every member has one; `together`, whether its
    parameters are planned for all cells at once.
    """

    title: ClassVar[str]
    least: ClassVar[Mapping[str, int]] = {}
    per_member: ClassVar[tuple[str, ...]] = ()
    together: ClassVar[bool] = False

    def parameters(
        self,
        occupancy: Counts,
        cells: NDArray[np.int64],
        epsilon: NDArray[np.float64],
    ) -> Parameters:
        """Public whole numbers that follow from the counts and the loss of each cell.

        Args:
            occupancy: The counts.
            cells: The cells to be released.
            epsilon: Loss that may be used in each of them.
        """
        return {}

    @abstractmethod
    def design(self, occupancy: Counts, cells: NDArray[np.int64], parameters: Parameters) -> Design:
        """Weights and contributions that follow from the parameters."""

    def check(self, parameters: Parameters, occupancy: Counts, cells: NDArray[np.int64]) -> bool:
        """Whether these, which have the names in `least`, could be parameters for these cells."""
        largest = largest_counts(occupancy, cells)
        return all(
            values.shape == largest.shape
            and int(values.min()) >= self.least[name]
            and bool((values <= largest).all())
            for name, values in parameters.items()
        )


def largest_counts(occupancy: Counts, cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Records of the heaviest user of each of some cells."""
    largest = np.zeros(occupancy.n_cells, dtype=np.int64)
    np.maximum.at(largest, occupancy.cell, occupancy.count)
    return np.asarray(largest[cells])


def by_cell(design_number: NDArray[np.int64], n_numbers: int) -> list[NDArray[np.int64]]:
    """Positions of the members (or groups) of each number."""
    order = np.argsort(design_number, kind="stable")
    ends = np.cumsum(np.bincount(design_number, minlength=n_numbers))
    return np.split(order, ends[:-1])
