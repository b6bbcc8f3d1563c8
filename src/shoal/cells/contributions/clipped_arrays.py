"""Clipped arrays: records grouped into arrays, whose means are clipped one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.contributions.arrays import Arrays, array_weights
from shoal.cells.contributions.design import SHARE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.contributions.base import Parameters
    from shoal.cells.contributions.design import Design
    from shoal.data.occupancy import Counts


@dataclass(frozen=True)
class ClippedArrays(Arrays):
    """Mean of the clipped means of arrays of length m_UB: each array reaches the whole range.

    With `wrap_around` a user may be in two arrays, and reaches twice as far (errata 7 and 8).

    Attributes:
        cap: `levy`, `median`, `minimax`, `surrogate`, or a whole number.
        grouping: `best_fit` or `wrap_around`.
    """

    cap: str | int = "levy"

    title = "arrays clipped"

    def design(self, occupancy: Counts, cells: NDArray[np.int64], parameters: Parameters) -> Design:
        """Array means, each of which reaches the whole range."""
        plain, groups = array_weights(occupancy, cells, parameters["cap"], self.grouping)
        touched = np.bincount(groups.member, minlength=len(plain.member)).astype(np.int64)
        return replace(plain, contribution=touched << SHARE, groups=groups)
