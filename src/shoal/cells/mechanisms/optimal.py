"""Parts of users: each counts in a cell with a part of its share, down to nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from shoal.cells.mechanisms.adaptive import Adaptive, are_rewards
from shoal.cells.mechanisms.base import MeanMechanism, Parameters
from shoal.cells.mechanisms.contributions import Design, Interval, linear, members
from shoal.theory import exchangeable_users as typical

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from shoal.data.occupancy import Occupancy

# Parts are whole numbers of 2^-PART.
PART = 16


@dataclass(frozen=True)
class Optimal(MeanMechanism):
    """Each user's mean is clipped to U/2 -+ U w/(2v): it reaches as far as a weight w <= v would.

    The weights are planned for all cells at once (`planning.optimal`); without a plan everybody
    counts in full (docs/theory/optimal.md). Statistics other than the mean weigh users by w, with
    the missing mass in the middle.

    Attributes:
        targets: Errors of the cells in proportion to 1/weight (`equal`) or to those of the
            balanced plan (`balanced`).
        range: The `whole` width; `selected` is `OptimalInRange`.
    """

    targets: str = "equal"
    range: str = "whole"

    name = "optimal"
    least: ClassVar[Mapping[str, int]] = {"part": 0}
    per_member: ClassVar[tuple[str, ...]] = ("part",)

    def parameters(
        self,
        occupancy: Occupancy,
        cells: NDArray[np.int64],
        epsilon: NDArray[np.float64],  # noqa: ARG002
    ) -> Parameters:
        """Everybody in full."""
        member, _ = members(occupancy, cells)
        return {"part": np.full(len(member), 1 << PART, dtype=np.int64)}

    def design(
        self, occupancy: Occupancy, cells: NDArray[np.int64], parameters: Parameters
    ) -> Design:
        """Weights m_l over n, of which a part reaches."""
        return in_parts(occupancy, cells, parameters["part"])

    def check(self, parameters: Parameters, occupancy: Occupancy, cells: NDArray[np.int64]) -> bool:
        """A part of at most 1 for each member."""
        if parameters.keys() != self.least.keys():
            return False
        return are_parts(parameters["part"], occupancy, cells)


@dataclass(frozen=True)
class OptimalInRange(Adaptive):
    """The same within one private range for all cells, found as by the adaptive mean.

    Weights, noise and targets are relative to the range's range, so the plan is made before the
    range is known: errors are the range times the planned ones, if the range holds the means of the
    users (docs/theory/optimal.md#within-a-selected-range).
    """

    targets: str = "equal"
    range: str = "selected"

    name = "optimal_in_range"
    per_member: ClassVar[tuple[str, ...]] = ("part",)

    def parameters(
        self,
        occupancy: Occupancy,
        cells: NDArray[np.int64],
        epsilon: NDArray[np.float64],
    ) -> Parameters:
        """The parts that caps leave where users are exchangeable; no reward for a range yet.

        What the selection may cost is decided before the program weighs users: in full a heavy user
        would make everybody else's say so small that no range could be found.
        """
        member, number = members(occupancy, cells)
        count = occupancy.count[member]
        cap = typical.best_caps(number, count, len(cells), epsilon)[number]
        part = (np.minimum(cap, count) << PART) // count
        return {"part": part, "reward": np.zeros(1, dtype=np.int64)}

    def design(
        self, occupancy: Occupancy, cells: NDArray[np.int64], parameters: Parameters
    ) -> Design:
        """Weights m_l over n, of which a part reaches."""
        return in_parts(occupancy, cells, parameters["part"])

    def check(self, parameters: Parameters, occupancy: Occupancy, cells: NDArray[np.int64]) -> bool:
        """A part of at most 1 for each member, and rewards that do not fall."""
        return (
            parameters.keys() == {"part", "reward"}
            and are_rewards(parameters["reward"])
            and are_parts(parameters["part"], occupancy, cells)
        )


def in_parts(occupancy: Occupancy, cells: NDArray[np.int64], part: NDArray[np.int64]) -> Design:
    """Means weighed by m_l/n, each clipped to its part, in 2^-PART, of the range."""
    member, _ = members(occupancy, cells)
    count = occupancy.count[member]
    plain = linear(occupancy, cells, count << PART, occupancy.totals[cells] << PART)
    return replace(plain, contribution=count * part, interval=Interval(part, np.array([1 << PART])))


def are_parts(part: NDArray[np.int64], occupancy: Occupancy, cells: NDArray[np.int64]) -> bool:
    """Whether these are parts of at most 1, one a member of these cells."""
    member, _ = members(occupancy, cells)
    return bool(part.shape == member.shape and part.min() >= 0 and part.max() <= 1 << PART)
