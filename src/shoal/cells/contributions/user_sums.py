"""One sum a user: clipped sums of records instead of clipped means."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.contributions.base import ContributionRule, Parameters
from shoal.cells.contributions.design import Design, add_by, linear, members

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.data.occupancy import Counts


@dataclass(frozen=True)
class UserSums(ContributionRule):
    """Each user gives one sum to a cell, over all of the cell's records (paper 001, section IV)."""

    title = "one sum a user"

    def design(
        self,
        occupancy: Counts,
        cells: NDArray[np.int64],
        parameters: Parameters,
    ) -> Design:
        """Every user's sum reaches the whole range T."""
        member, number = members(occupancy, cells)
        one = np.ones(len(member), dtype=np.int64)
        total = add_by(number, occupancy.count[member], len(cells))
        return replace(linear(occupancy, cells, one, total), sums=True)
