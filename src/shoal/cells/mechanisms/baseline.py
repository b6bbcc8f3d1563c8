"""The baseline mean: every record counts, and the noise fits the heaviest contribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.cells.mechanisms.base import MeanMechanism, Parameters
from shoal.cells.mechanisms.contributions import Design, linear, members

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shoal.data.occupancy import Occupancy


@dataclass(frozen=True)
class Baseline(MeanMechanism):
    """Mean of all records of each cell: w_l = m_l/n, no bias (docs/theory/sensitivity.md)."""

    name = "baseline"

    def parameters(
        self,
        occupancy: Occupancy,  # noqa: ARG002
        cells: NDArray[np.int64],  # noqa: ARG002
        epsilon: NDArray[np.float64],  # noqa: ARG002
    ) -> Parameters:
        """None."""
        return {}

    def design(
        self,
        occupancy: Occupancy,
        cells: NDArray[np.int64],
        parameters: Parameters,  # noqa: ARG002
    ) -> Design:
        """Weights m_l over n."""
        member, _ = members(occupancy, cells)
        return linear(occupancy, cells, occupancy.count[member], occupancy.totals[cells])
