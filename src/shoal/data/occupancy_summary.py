"""The public counts at a glance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Summary:
    """Public facts of an occupancy at a glance.

    Attributes:
        users: L, how many users there are.
        cells: G, how many cells there are.
        records: How many records there are.
        memberships: Pairs of a user and a cell with a record.
        cells_per_user: G_1, the most cells of one user.
        count_quantiles: Of the records of a membership: minimum, quartiles, maximum.
        users_per_cell: Of the users of a cell: minimum, quartiles, maximum.
    """

    users: int
    cells: int
    records: int
    memberships: int
    cells_per_user: int
    count_quantiles: tuple[int, int, int, int, int]
    users_per_cell: tuple[int, int, int, int, int]


def summarise(
    count: NDArray[np.int64], cells_per_user: NDArray[np.int64], users_per_cell: NDArray[np.int64]
) -> Summary:
    """Users, cells, records, the most cells of one user and quantiles of the counts.

    Args:
        count: Records of each membership, shape (memberships,).
        cells_per_user: Shape (users,).
        users_per_cell: Shape (cells,).
    """
    return Summary(
        users=len(cells_per_user),
        cells=len(users_per_cell),
        records=int(count.sum()),
        memberships=len(count),
        cells_per_user=int(cells_per_user.max()),
        count_quantiles=_quartiles(count),
        users_per_cell=_quartiles(users_per_cell),
    )


def _quartiles(values: NDArray[np.int64]) -> tuple[int, int, int, int, int]:
    found = np.quantile(values, [0, 0.25, 0.5, 0.75, 1], method="inverted_cdf")
    low, first, middle, third, high = (int(value) for value in found)
    return low, first, middle, third, high
