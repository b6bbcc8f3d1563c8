"""The bounding of users with the least worst-case error."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from shoal.cells.contributions.base import ContributionRule, Parameters, by_cell
from shoal.cells.contributions.design import Design, Interval, linear, members
from shoal.theory import limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from shoal.data.occupancy import Counts


@dataclass(frozen=True)
class TruncatedUsers(ContributionRule):
    """Each user's mean is clipped to U/2 -+ T/(2 m_l); T is the ceil(2/epsilon)-th largest U m_l.

    No bounding of users with Laplace noise has a smaller worst-case error
    (docs/theory/worst-case.md#numbers; paper 001, Theorem III.1). At T = 0 everybody is in the
    middle: the cell costs nobody anything, and its error is half the width.
    """

    title = "truncated at a threshold"
    least: ClassVar[Mapping[str, int]] = {"threshold": 0}

    def parameters(
        self, occupancy: Counts, cells: NDArray[np.int64], epsilon: NDArray[np.float64]
    ) -> Parameters:
        """T over U of each cell."""
        member, number = members(occupancy, cells)
        counts = occupancy.count[member]
        threshold = [
            limits.threshold(counts[inside], float(epsilon[at]))
            for at, inside in enumerate(by_cell(number, len(cells)))
        ]
        return {"threshold": np.array(threshold, dtype=np.int64)}

    def design(self, occupancy: Counts, cells: NDArray[np.int64], parameters: Parameters) -> Design:
        """Weights m_l over n; users reach min(m_l, T)."""
        member, number = members(occupancy, cells)
        counts = occupancy.count[member]
        near = np.minimum(counts, parameters["threshold"][number])
        plain = linear(occupancy, cells, counts, occupancy.totals[cells])
        return replace(plain, contribution=near, interval=Interval(near, counts))
