"""Capped counts: nobody weighs more than a cap, where exchangeable users lose least."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from shoal.cells.contributions.base import ContributionRule, Parameters, largest_counts
from shoal.cells.contributions.design import Design, capped, members
from shoal.theory import exchangeable_users

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from shoal.data.occupancy import Counts


@dataclass(frozen=True)
class CappedCounts(ContributionRule):
    """Weights min(m_l, c) of users' own means (docs/theory/adaptive.md).

    If every user is in one cell only, lighter users get wider ranges, so that all reach equally
    far; else each user reaches as far as it weighs, and pays less where it weighs less.

    Attributes:
        widens: Whether ranges may be widened; of a public range nothing is left to widen.
    """

    widens: bool = True

    title = "capped counts"
    least: ClassVar[Mapping[str, int]] = {"cap": 1, "widened": 0}

    def parameters(
        self, occupancy: Counts, cells: NDArray[np.int64], epsilon: NDArray[np.float64]
    ) -> Parameters:
        """The cap of each cell, and whether ranges are widened."""
        member, number = members(occupancy, cells)
        alone = self.widens and np.bincount(occupancy.user[member]).max() == 1
        counts = occupancy.count[member]
        cap = exchangeable_users.best_caps(number, counts, len(cells), epsilon)
        return {"cap": cap, "widened": np.array([int(alone)], dtype=np.int64)}

    def design(self, occupancy: Counts, cells: NDArray[np.int64], parameters: Parameters) -> Design:
        """Weights min(m_l, c) over their sum."""
        made = capped(occupancy, cells, parameters["cap"])
        if not parameters["widened"][0]:
            return made
        return replace(made, widened=True, contribution=made.heaviest[made.number])

    def check(self, parameters: Parameters, occupancy: Counts, cells: NDArray[np.int64]) -> bool:
        """A cap for each cell, and one choice of widening."""
        cap, widened = parameters["cap"], parameters["widened"]
        largest = largest_counts(occupancy, cells)
        return bool(
            cap.shape == largest.shape
            and cap.min() >= 1
            and (cap <= largest).all()
            and widened.tolist() in ([0], [1])
            and (self.widens or not widened[0])
        )
