"""Records grouped into arrays of one length (pseudo-users), and the caps that give the length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from shoal.cells.bounding import caps, grouping
from shoal.cells.contributions.base import ContributionRule, Parameters, by_cell
from shoal.cells.contributions.design import SHARE, Design, Groups, add_by, linear, members

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from shoal.data.occupancy import Counts

Grouping = Literal["best_fit", "wrap_around"]
_GROUP = {"best_fit": grouping.best_fit, "wrap_around": grouping.wrap_around}


@dataclass(frozen=True)
class Arrays(ContributionRule):
    """Rules that group the records of a cell into arrays of one length, its cap.

    Attributes:
        cap: `median`, `levy`, `minimax` (paper 002, section V), `surrogate`, or a whole number.
        grouping: `best_fit` or `wrap_around`.
    """

    cap: str | int = "median"
    grouping: Grouping = "best_fit"

    least: ClassVar[Mapping[str, int]] = {"cap": 1}

    def parameters(
        self, occupancy: Counts, cells: NDArray[np.int64], epsilon: NDArray[np.float64]
    ) -> Parameters:
        """The cap of each cell."""
        return {"cap": choose_caps(occupancy, cells, epsilon, self.cap)}


def choose_caps(
    occupancy: Counts,
    cells: NDArray[np.int64],
    epsilon: NDArray[np.float64],
    cap: str | int,
) -> NDArray[np.int64]:
    """The cap of each cell by its own counts."""
    member, number = members(occupancy, cells)
    counts = occupancy.count[member]
    return np.array(
        [
            caps.choose(cap, counts[inside], float(epsilon[at]))
            for at, inside in enumerate(by_cell(number, len(cells)))
        ],
        dtype=np.int64,
    )


def array_weights(
    occupancy: Counts,
    cells: NDArray[np.int64],
    cap: NDArray[np.int64],
    strategy: Grouping,
) -> tuple[Design, Groups]:
    """The linear design of array averaging, and its arrays."""
    groups, arrays = _arrays(occupancy, cells, cap, strategy)
    piece = (groups.records << SHARE) // groups.filled[groups.group]
    member, _ = members(occupancy, cells)
    weight = add_by(groups.member, piece, len(member))
    return linear(occupancy, cells, weight, arrays << SHARE), groups


def _arrays(
    occupancy: Counts,
    cells: NDArray[np.int64],
    cap: NDArray[np.int64],
    strategy: Grouping,
) -> tuple[Groups, NDArray[np.int64]]:
    member, number = members(occupancy, cells)
    counts, first = occupancy.count[member], 0
    parts: list[tuple[NDArray[np.int64], ...]] = []
    arrays = np.zeros(len(cells), dtype=np.int64)
    for at, inside in enumerate(by_cell(number, len(cells))):
        made = _GROUP[strategy](counts[inside], int(cap[at]))
        parts.append((inside[made.user], made.array + first, made.records))
        arrays[at] = made.n_arrays
        first += made.n_arrays
    who, group, records = (np.concatenate(column) for column in zip(*parts, strict=True))
    of_number = np.repeat(np.arange(len(cells)), arrays)
    return Groups(who, group, records, of_number, add_by(group, records, first)), arrays
