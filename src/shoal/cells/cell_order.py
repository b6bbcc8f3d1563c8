"""In which order cells are kept where a largest error is asked for: by counts alone.

The order does not depend on epsilon, delta or the error asked for, so that what these let a plan
release are the first few cells of one order: more of them as the budget grows, never others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.allocation import balanced
from shoal.cells.contributions.design import linear, members
from shoal.cells.plan_facts import weights_of
from shoal.cells.queries import Queries
from shoal.cells.statistics.mean import Mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.request import Request
    from shoal.data.occupancy import Counts

# Of the cells that are left, how many go at a time.
_PART = 8


def keeping_order(occupancy: Counts, request: Request) -> NDArray[np.int64]:
    """All cells of an occupancy, those first that are given up last.

    Again and again an eighth of the cells is given up: those with the most noise where what is left
    is shared fairly (docs/theory/balanced.md). Where users are clipped to a private range each
    counts once, as their records say little of their noise then; else by its records. Cells that
    the public rules leave out are in the order, too, so that these rules do not change it.

    Args:
        occupancy: The counts.
        request: What was asked for; its parts and weights.

    Returns:
        Positions of cells, shape (cells,).

    Example:
        >>> import shoal
        >>> from shoal.cells.request import mean_request
        >>> counts = shoal.Counts.from_counts([1, 1, 2, 3], ["a", "b", "b", "b"], [1, 1, 1, 1])
        >>> keeping_order(counts, mean_request("balanced", 1, {})).tolist()
        [1, 0]
    """
    left, given_up = np.arange(occupancy.n_cells), []
    while len(left) > 1:
        rank = np.argsort(_noise(occupancy, left, request), kind="stable")
        stay = len(left) - max(1, len(left) // _PART)
        given_up.append(left[rank[stay:]])
        left = np.sort(left[rank[:stay]])
    return np.concatenate([left, *reversed(given_up)])


def _noise(occupancy: Counts, cells: NDArray[np.int64], request: Request) -> NDArray[np.float64]:
    member, number = members(occupancy, cells)
    count = occupancy.count[member]
    if request.parts.selects:
        count = np.ones_like(count)
    total = np.bincount(number, count, minlength=len(cells)).astype(np.int64)
    queries = Queries(linear(occupancy, cells, count, total), (Mean(),))
    weight = weights_of(occupancy, cells, request.weights)
    # The last places of logarithms differ between machines, and must not decide the order.
    noise = balanced.solve(queries.problem(weight, np.ones(len(cells)))).noise_scale
    return np.asarray(np.round(np.log2(noise), 6))
