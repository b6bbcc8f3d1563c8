"""Nearly full counts: caps only where noise costs more than heavy users that differ would."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from shoal.cells.contributions.base import ContributionRule, Parameters
from shoal.cells.contributions.design import Design, capped

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from shoal.data.occupancy import Counts


@dataclass(frozen=True)
class NearlyFullCounts(ContributionRule):
    """Weights min(m_l, c) of users' own means (docs/theory/user-clipped.md#weights).

    Heavy users often differ from the others, so that a cap is paid for by the mass that it moves.
    Caps and noise are planned together (`user_clipped_plan`).
    """

    title = "nearly full counts"
    least: ClassVar[Mapping[str, int]] = {"cap": 1}

    def design(self, occupancy: Counts, cells: NDArray[np.int64], parameters: Parameters) -> Design:
        """Weights min(m_l, c) over their sum."""
        return capped(occupancy, cells, parameters["cap"])
