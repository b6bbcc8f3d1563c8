"""Averaged arrays: records grouped into arrays of one length, whose means are averaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from shoal.cells.contributions.arrays import Grouping, array_weights, choose_caps
from shoal.cells.contributions.base import ContributionRule, Parameters

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from shoal.cells.contributions.design import Design
    from shoal.data.occupancy import Occupancy


@dataclass(frozen=True)
class AveragedArrays(ContributionRule):
    """Mean of the means of arrays of length m_UB.

    Source: docs/theory/grouping.md#arrays; paper 002, section III-C.

    A user's cell in an array holds copies of the user's own mean, so that w_l is the sum of its
    shares of arrays over their number. The noise fits max_l w_l exactly.

    Attributes:
        cap: `median`, `levy`, `minimax` (paper 002, section V), `surrogate`, or a whole number.
        grouping: `best_fit` or `wrap_around`.
    """

    cap: str | int = "median"
    grouping: Grouping = "best_fit"

    title = "arrays averaged"
    least: ClassVar[Mapping[str, int]] = {"cap": 1}

    def parameters(
        self, occupancy: Occupancy, cells: NDArray[np.int64], epsilon: NDArray[np.float64]
    ) -> Parameters:
        """The cap of each cell."""
        return {"cap": choose_caps(occupancy, cells, epsilon, self.cap)}

    def design(
        self, occupancy: Occupancy, cells: NDArray[np.int64], parameters: Parameters
    ) -> Design:
        """Weights r_l/filled summed over arrays, over the number of arrays."""
        return array_weights(occupancy, cells, parameters["cap"], self.grouping)[0]
