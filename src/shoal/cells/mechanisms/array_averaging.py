"""Array averaging: records grouped into pseudo-users of one length, whose means are averaged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from shoal.cells.bounding import caps, grouping
from shoal.cells.mechanisms.base import MeanMechanism, Parameters, by_cell
from shoal.cells.mechanisms.contributions import SHARE, Design, Groups, add_by, linear, members

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from shoal.data.occupancy import Occupancy

Grouping = Literal["best_fit", "wrap_around"]
_GROUP = {"best_fit": grouping.best_fit, "wrap_around": grouping.wrap_around}


@dataclass(frozen=True)
class ArrayAveraging(MeanMechanism):
    """Mean of the means of arrays of length m_UB.

    Source: docs/theory/grouping.md#arrays; paper 002, section III-C.

    A user's cell in an array holds copies of the user's own mean, so that w_l is the sum of its
    shares of arrays over their number. Nothing is selected; the noise fits max_l w_l exactly.

    Attributes:
        lattice: Bounds and ticks of the values.
        cap: `median`, `levy`, `minimax`, `surrogate`, or a whole number.
        grouping: `best_fit` or `wrap_around`.
    """

    cap: str | int = "median"
    grouping: Grouping = "best_fit"
    name = "array_averaging"
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


@dataclass(frozen=True)
class OptArrayAveraging(ArrayAveraging):
    """Array averaging at the minimax cap (paper 002, section V)."""

    cap: str | int = "minimax"
    name = "opt_array_averaging"


def choose_caps(
    occupancy: Occupancy,
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
    occupancy: Occupancy,
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


def array_clipping(
    occupancy: Occupancy,
    cells: NDArray[np.int64],
    cap: NDArray[np.int64],
    strategy: Grouping,
) -> Design:
    """A design in which the means of arrays are clipped: each array reaches the whole range."""
    plain, groups = array_weights(occupancy, cells, cap, strategy)
    touched = np.bincount(groups.member, minlength=len(plain.member)).astype(np.int64)
    return replace(plain, contribution=touched << SHARE, groups=groups)


def _arrays(
    occupancy: Occupancy,
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
