"""Suppressed users and capped counts: what Clip-User and the capping step leave of each cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from shoal.cells.contributions.base import ContributionRule, Parameters, largest_counts
from shoal.cells.contributions.design import Design, add_by, linear, members

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from shoal.data.occupancy import Counts


@dataclass(frozen=True)
class CellsLeftOut(ContributionRule):
    """A user that is kept in a cell weighs min(m_l, cap); its own mean stands for its records.

    Which users are kept, and the caps, are planned for all cells at once (`clip_user_plan`);
    without a plan everybody is kept (docs/theory/clip-user.md; paper 000, section V).

    Attributes:
        spare: Whether the cell with the smallest error is spared (`best`), or `none`.
    """

    spare: str = "none"

    title = "cells left out"
    least: ClassVar[Mapping[str, int]] = {"cap": 1, "kept": 0}
    per_member: ClassVar[tuple[str, ...]] = ("kept",)
    together = True

    def parameters(
        self,
        occupancy: Counts,
        cells: NDArray[np.int64],
        epsilon: NDArray[np.float64],
    ) -> Parameters:
        """Nobody is suppressed, nothing is capped."""
        member, _ = members(occupancy, cells)
        cap = largest_counts(occupancy, cells)
        return {"cap": cap, "kept": np.ones(len(member), dtype=np.int64)}

    def design(self, occupancy: Counts, cells: NDArray[np.int64], parameters: Parameters) -> Design:
        """Weights min(m_l, cap) of the kept, over their sum K."""
        member, number = members(occupancy, cells)
        weight = np.minimum(occupancy.count[member], parameters["cap"][number])
        weight = np.where(parameters["kept"] > 0, weight, 0)
        return linear(occupancy, cells, weight, add_by(number, weight, len(cells)))

    def check(self, parameters: Parameters, occupancy: Counts, cells: NDArray[np.int64]) -> bool:
        """A cap for each cell, and 0 or 1 for each member, somebody in every cell."""
        member, number = members(occupancy, cells)
        cap, kept = parameters["cap"], parameters["kept"]
        return bool(
            cap.shape == cells.shape
            and kept.shape == member.shape
            and cap.min() >= 1
            and (cap <= largest_counts(occupancy, cells)).all()
            and kept.min() >= 0
            and kept.max() <= 1
            and add_by(number, kept, len(cells)).min() >= 1
        )
