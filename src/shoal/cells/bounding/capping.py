"""After suppression: a cap on the kept counts of each cell, for the least worst-case error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.bounding.statistics import cell_errors
from shoal.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from shoal.cells.bounding.statistics import Statistic


@dataclass(frozen=True, eq=False)
class Capped:
    """Caps of cells, what they leave, and at which error.

    Attributes:
        cap: m of each cell, shape (cells,).
        count: Records left of each membership, 0 where it was suppressed, shape (memberships,).
        cell_error: Worst-case error of each cell, against all its records, shape (cells,).
    """

    cap: NDArray[np.int64]
    count: NDArray[np.int64]
    cell_error: NDArray[np.float64]

    @property
    def error(self) -> float:
        """The worst-case error of the worst cell."""
        return float(self.cell_error.max())


def cap_kept(
    cell: NDArray[np.int64],
    count: NDArray[np.int64],
    kept: NDArray[np.bool_],
    n_cells: int,
    statistics: Sequence[Statistic],
    epsilon_per_cell: float | Sequence[float],
    *,
    width: float = 1.0,
) -> Capped:
    """In each cell the cap m, from the smallest to the largest kept count, of least error.

    A user keeps min(count, m) records; K(m) is their sum. The bias is against the ORIGINAL counts
    (paper 000, section V-B3; docs/theory/clip-user.md#the-capping-step). Of caps with the same
    error, the smallest.

    Not all whole numbers need to be tried. Between two neighbouring kept counts K(m) = A + r m,
    with r users above m. The bias of the mean is linear there, its noise m/(A + r m) concave: the
    least sum is at a kept count. The variance's bias q (n - q)/n^2, then constant, is concave in
    q = n - K(m); its noise s (1 - s), s = m/K(m), is concave as long as s < 1/2. Only the heaviest
    user alone (r = 1) can have half of the records or more, at m >= A: the noise is then 1/4, or
    1/4 - 1/(4 K^2) if K is odd, concave on either parity. So besides the kept counts only the ends
    of these stretches, at most five caps between the two largest counts, can be best. A third
    statistic whose error is concave on the same stretches needs no others.

    Args:
        cell: Cell of each membership, 0..n_cells-1, shape (memberships,).
        count: Original records of each membership, at least 1, same shape.
        kept: Whether it was kept, same shape; in every cell at least one.
        n_cells: G.
        statistics: What is released of every cell.
        epsilon_per_cell: Privacy loss of a cell, split evenly, or of each of its statistics.
        width: U; 1 gives errors relative to it, if the statistics are of one unit.

    Raises:
        InputError: A cell without a kept membership, or a share not above 0.

    Example:
        >>> from shoal.cells.bounding.statistics import MEAN
        >>> cell, kept = np.zeros(4, dtype=int), np.array([True, True, True, False])
        >>> found = cap_kept(cell, np.array([2, 2, 9, 1]), kept, 1, [MEAN], 0.5)
        >>> found.cap.tolist(), found.count.tolist()
        ([2], [2, 2, 2, 0])
    """
    inside, left = cell[kept], count[kept]
    if np.bincount(inside, minlength=n_cells).min() < 1:
        raise InputError(
            "a cell without a kept membership",
            "at least one in every cell",
            "leave empty cells out",
        )
    where, cap, records = _candidates(inside, left, n_cells)
    totals = np.zeros(n_cells, dtype=np.int64)
    np.add.at(totals, cell, count)
    error = cell_errors(statistics, epsilon_per_cell, cap, records, totals[where], width=width)
    order = np.lexsort((cap, error, where))
    best = order[np.searchsorted(where[order], np.arange(n_cells))]
    return Capped(
        cap=cap[best],
        count=np.where(kept, np.minimum(count, cap[best][cell]), 0),
        cell_error=error[best],
    )


def _candidates(
    cell: NDArray[np.int64], count: NDArray[np.int64], n_cells: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Cell, cap and records left K of every cap worth trying, of kept memberships."""
    order = np.lexsort((count, cell))
    where, value = cell[order], count[order]
    ends = np.searchsorted(where, np.arange(n_cells), side="right")
    starts = np.append(0, ends[:-1])
    place = np.arange(len(value))
    below = np.cumsum(value) - value
    below -= below[starts][where]
    records = below + value * (ends[where] - place)
    # Between the two largest counts: A records of the others, and m of the heaviest user.
    last = ends - 1
    highest, others = value[last], below[last]
    lowest = np.where(last > starts, value[np.maximum(last - 1, 0)], highest)
    tried = np.stack([lowest + 1, others - 1, others, others + 1, highest - 1])
    between = np.clip(tried, lowest, highest)
    return (
        np.concatenate((where, np.tile(np.arange(n_cells), len(tried)))),
        np.concatenate((value, between.ravel())),
        np.concatenate((records, (others + between).ravel())),
    )
