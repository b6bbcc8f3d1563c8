"""Errors to expect when users are exchangeable: which of them is heavy says nothing of its values.

A user's mean has the variance s_l = between + (1 - between)/m_l in units of the variance of one
record, where `between` is the part of it that lies between users. The estimator
sum_l w_l mean_l with w_l = min(m_l, c)/sum min(m, c), clipped to a range of `SPAN` standard
deviations, then has an error of about

    E(c) = max w SPAN sqrt(sum w s)/epsilon + sqrt(2/pi) sqrt(sum (w - v)^2 s).

Everything scales with the unknown spread, so that the best cap c follows from the counts alone.

Source: docs/theory/adaptive.md#the-cap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The range that the adaptive mean finds is about this many standard deviations of user means.
SPAN = 6.0
# Parts of a record's variance that may lie between users: none, little, a third, most.
BETWEEN = (0.0, 0.1, 0.3, 0.6)


@dataclass(frozen=True, eq=False)
class Ranked:
    """Memberships by cell and rising count, with running sums: every cap is tried at once."""

    cell: NDArray[np.int64]
    count: NDArray[np.float64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]

    @classmethod
    def of(cls, cell: NDArray[np.int64], counts: NDArray[np.int64], n_cells: int) -> Ranked:
        """Sort memberships; `start` and `stop` are those of the cell of each."""
        most = int(counts.max()) + 1
        where, rising = np.divmod(np.sort(cell * most + counts), most)
        size = np.bincount(where, minlength=n_cells)
        end = np.cumsum(size)
        return cls(where, rising.astype(np.float64), (end - size)[where], end[where])

    def up_to(self, amount: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum over the users of the cell with counts no larger in rank."""
        total = np.append(0.0, np.cumsum(amount))
        return np.asarray(total[np.arange(1, len(amount) + 1)] - total[self.start])

    def beyond(self, amount: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum over the users of the cell with counts larger in rank."""
        total = np.append(0.0, np.cumsum(amount))
        return np.asarray(total[self.stop] - total[np.arange(1, len(amount) + 1)])


def capped_errors(
    ranked: Ranked, epsilon: NDArray[np.float64], between: float
) -> NDArray[np.float64]:
    """The expected error E(c) of each cell, with c the count of each membership.

    Args:
        ranked: The memberships.
        epsilon: Privacy loss that each cell's noise may use, shape (cells,).
        between: Part of the variance between users.

    Returns:
        Errors in units of a record's standard deviation, shape (memberships,).

    Example:
        >>> ranked = Ranked.of(np.zeros(3, np.int64), np.array([1, 1, 8]), 1)
        >>> capped_errors(ranked, np.array([10.0]), 0.5).round(2).tolist()
        [0.57, 0.57, 0.39]
    """
    m = ranked.count
    spread = between + (1 - between) / m
    weight = ranked.up_to(m) + m * ranked.beyond(np.ones_like(m))
    records = ranked.up_to(m) + ranked.beyond(m)
    of_means = (ranked.up_to(m * spread) + m * ranked.beyond(spread)) / weight
    squares = ranked.up_to(m**2 * spread) + m**2 * ranked.beyond(spread)
    mixed = ranked.up_to(m**2 * spread) + m * ranked.beyond(m * spread)
    whole = ranked.up_to(m**2 * spread) + ranked.beyond(m**2 * spread)
    apart = squares / weight**2 - 2 * mixed / (weight * records) + whole / records**2
    noise = m / weight * SPAN * np.sqrt(of_means) / epsilon[ranked.cell]
    return np.asarray(noise + math.sqrt(2 / math.pi) * np.sqrt(np.maximum(apart, 0.0)))


def best_caps(
    cell: NDArray[np.int64],
    counts: NDArray[np.int64],
    n_cells: int,
    epsilon: NDArray[np.float64],
) -> NDArray[np.int64]:
    """The cap of each cell with the least regret over how much users may differ.

    Regret is E(c) over the least E of the same `between`; the largest over `BETWEEN` is minimised.

    Args:
        cell: Cell of each membership, shape (memberships,).
        counts: Records of each membership, same shape.
        n_cells: Number of cells, none of them empty.
        epsilon: Privacy loss that each cell's noise may use, shape (cells,).

    Returns:
        One of the cell's own counts for each cell, shape (cells,).

    Example:
        >>> best_caps(np.zeros(3, np.int64), np.array([1, 1, 8]), 1, np.array([0.1])).tolist()
        [1]
    """
    ranked = Ranked.of(cell, counts, n_cells)
    regret = np.zeros(len(counts))
    for between in BETWEEN:
        error = capped_errors(ranked, epsilon, between)
        least = np.full(n_cells, np.inf)
        np.minimum.at(least, ranked.cell, error)
        # Users who all have one record and one cap can leave no error at all.
        regret = np.maximum(regret, error / np.maximum(least, 1e-300)[ranked.cell])
    order = np.lexsort((ranked.count, regret, ranked.cell))
    first = np.searchsorted(ranked.cell[order], np.arange(n_cells))
    return np.asarray(ranked.count[order[first]]).astype(np.int64)
