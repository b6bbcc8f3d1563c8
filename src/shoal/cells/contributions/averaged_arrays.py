"""Averaged arrays: records grouped into arrays of one length, whose means are averaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.cells.contributions.arrays import Arrays, array_weights

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shoal.cells.contributions.base import Parameters
    from shoal.cells.contributions.design import Design
    from shoal.data.occupancy import Counts


@dataclass(frozen=True)
class AveragedArrays(Arrays):
    """Mean of the means of arrays of length m_UB.

    Source: docs/theory/grouping.md#arrays; paper 002, section III-C.

    A user's cell in an array holds copies of the user's own mean, so that w_l is the sum of its
    shares of arrays over their number. The noise fits max_l w_l exactly.

    Attributes:
        cap: `median`, `levy`, `minimax` (paper 002, section V), `surrogate`, or a whole number.
        grouping: `best_fit` or `wrap_around`.
    """

    title = "arrays averaged"

    def design(self, occupancy: Counts, cells: NDArray[np.int64], parameters: Parameters) -> Design:
        """Weights r_l/filled summed over arrays, over the number of arrays."""
        return array_weights(occupancy, cells, parameters["cap"], self.grouping)[0]
