"""Nearly full counts: caps only where noise costs more than heavy users that differ would."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from shoal.cells.contributions.base import ContributionRule, Parameters
from shoal.cells.contributions.design import Design, add_by, linear, members
from shoal.theory import user_clipping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from shoal.data.occupancy import Occupancy


@dataclass(frozen=True)
class NearlyFullCounts(ContributionRule):
    """Weights min(m_l, c) of users' own means (docs/theory/user-clipped.md#weights).

    Heavy users often differ from the others, so that a cap is paid for by the mass that it moves.
    """

    title = "nearly full counts"
    least: ClassVar[Mapping[str, int]] = {"cap": 1}

    def parameters(
        self, occupancy: Occupancy, cells: NDArray[np.int64], epsilon: NDArray[np.float64]
    ) -> Parameters:
        """The cap of each cell; `epsilon` is what its heaviest user loses by the noise."""
        member, number = members(occupancy, cells)
        penalty = user_clipping.ALONE if len(cells) == 1 else user_clipping.TOGETHER
        cap = user_clipping.best_caps(
            number, occupancy.count[member], len(cells), epsilon, penalty=penalty
        )
        return {"cap": cap}

    def design(
        self, occupancy: Occupancy, cells: NDArray[np.int64], parameters: Parameters
    ) -> Design:
        """Weights min(m_l, c) over their sum."""
        member, number = members(occupancy, cells)
        weight = np.minimum(occupancy.count[member], parameters["cap"][number])
        return linear(occupancy, cells, weight, add_by(number, weight, len(cells)))
