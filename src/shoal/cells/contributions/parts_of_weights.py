"""Parts of users: each counts in a cell with a part of its share, down to nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from shoal.cells.contributions.base import ContributionRule, Parameters
from shoal.cells.contributions.design import Design, Interval, linear, members
from shoal.theory import exchangeable_users

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from shoal.data.occupancy import Counts

# Parts are whole numbers of 2^-PART.
PART = 16


@dataclass(frozen=True)
class PartsOfWeights(ContributionRule):
    """Each user's mean is clipped to U/2 -+ U w/(2v): it reaches as far as a weight w <= v would.

    The weights are planned for all cells at once (`optimal`); without a plan everybody counts in
    full (docs/theory/optimal.md). Statistics other than the mean weigh users by w, with the missing
    mass in the middle. Within a selected range, weights, noise and targets are relative to it, so
    that the plan is made before the range is known
    (docs/theory/optimal.md#within-a-selected-range).
    """

    title = "parts of weights"
    least: ClassVar[Mapping[str, int]] = {"part": 0}
    per_member: ClassVar[tuple[str, ...]] = ("part",)
    together = True

    def parameters(
        self,
        occupancy: Counts,
        cells: NDArray[np.int64],
        epsilon: NDArray[np.float64],
    ) -> Parameters:
        """Everybody in full."""
        member, _ = members(occupancy, cells)
        return {"part": np.full(len(member), 1 << PART, dtype=np.int64)}

    def design(self, occupancy: Counts, cells: NDArray[np.int64], parameters: Parameters) -> Design:
        """Weights m_l over n, of which a part reaches."""
        member, _ = members(occupancy, cells)
        count, part = occupancy.count[member], parameters["part"]
        plain = linear(occupancy, cells, count << PART, occupancy.totals[cells] << PART)
        return replace(
            plain, contribution=count * part, interval=Interval(part, np.array([1 << PART]))
        )

    def check(self, parameters: Parameters, occupancy: Counts, cells: NDArray[np.int64]) -> bool:
        """A part of at most 1 for each member."""
        member, _ = members(occupancy, cells)
        part = parameters["part"]
        return bool(part.shape == member.shape and part.min() >= 0 and part.max() <= 1 << PART)


def capped_parts(
    occupancy: Counts, cells: NDArray[np.int64], epsilon: NDArray[np.float64]
) -> NDArray[np.int64]:
    """The parts that caps leave of users' weights where users are exchangeable.

    What a selection may cost is decided with these, before the program weighs users: in full a
    heavy user would make everybody else's say so small that no range could be found.

    Args:
        occupancy: The counts.
        cells: The cells to be released.
        epsilon: Loss of each of them.
    """
    member, number = members(occupancy, cells)
    count = occupancy.count[member]
    cap = exchangeable_users.best_caps(number, count, len(cells), epsilon)[number]
    return np.asarray((np.minimum(cap, count) << PART) // count)
