"""Every record counts, and the noise fits the heaviest contribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.cells.contributions.base import ContributionRule, Parameters
from shoal.cells.contributions.design import Design, linear, members

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shoal.data.occupancy import Counts


@dataclass(frozen=True)
class EveryRecord(ContributionRule):
    """Mean of all records of each cell: w_l = m_l/n, no bias (docs/theory/sensitivity.md)."""

    title = "every record"

    def design(
        self,
        occupancy: Counts,
        cells: NDArray[np.int64],
        parameters: Parameters,
    ) -> Design:
        """Weights m_l over n."""
        member, _ = members(occupancy, cells)
        return linear(occupancy, cells, occupancy.count[member], occupancy.totals[cells])
