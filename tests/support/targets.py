"""Target problems for tests, and their exact answers by enumeration in fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import strategies as st
from shoal.cells.lp.problem import TargetProblem

if TYPE_CHECKING:
    from collections.abc import Callable

    from shoal.cells.lp.problem import Floats, Ints

    from shoal.data.occupancy import Counts


def of_counts(
    user: Ints, cell: Ints, count: Ints, target: Floats, cost: Floats | None = None
) -> TargetProblem:
    """Shares are counts over the totals of their cells."""
    user, cell = np.asarray(user, dtype=np.int64), np.asarray(cell, dtype=np.int64)
    return TargetProblem(
        user,
        cell,
        count / np.bincount(cell, count)[cell],
        int(np.max(user)) + 1,
        int(np.max(cell)) + 1,
        np.asarray(target, dtype=np.float64),
        np.ones(1) if cost is None else np.asarray(cost, dtype=np.float64),
    )


def of_occupancy(occupancy: Counts, target: Floats, cost: Floats | None = None) -> TargetProblem:
    """All cells of an occupancy."""
    return of_counts(occupancy.user, occupancy.cell, occupancy.count, target, cost)


@st.composite
def small(draw: Callable[[st.SearchStrategy[object]], object]) -> TargetProblem:
    """Up to five users in up to three cells, some of them free, with costs."""
    pairs = st.dictionaries(
        st.tuples(st.integers(0, 4), st.integers(0, 2)), st.integers(1, 50), min_size=1
    )
    counts: dict[tuple[int, int], int] = draw(pairs)  # type: ignore[assignment]
    user, cell = np.array(list(counts)).T
    # Cells without users are not cells.
    cell = np.unique(cell, return_inverse=True)[1]
    n_cells, size = int(cell.max()) + 1, len(counts)
    targets = st.lists(st.floats(0.01, 0.6), min_size=n_cells, max_size=n_cells)
    costs = st.lists(st.floats(0.1, 10), min_size=size, max_size=size)
    return of_counts(
        user,
        cell,
        np.array(list(counts.values())),
        np.array(draw(targets)),
        np.array(draw(costs)),
    )


def exact_loss(problem: TargetProblem, weight: Floats, noise_scale: Floats) -> Fraction:
    """The largest loss of a user, in fractions."""
    spent = [Fraction(0)] * problem.n_users
    for user, cell, cost, kept in zip(
        problem.user, problem.cell, problem.cost, weight, strict=True
    ):
        if kept > 0:
            spent[user] += Fraction(cost) * Fraction(kept) / Fraction(noise_scale[cell])
    return max(spent)


def exact_errors(problem: TargetProblem, weight: Floats, noise_scale: Floats) -> list[Fraction]:
    """(1 - sum w)/2 + b of each cell, in fractions."""
    kept = [Fraction(0)] * problem.n_cells
    for cell, one in zip(problem.cell, weight, strict=True):
        kept[cell] += Fraction(one)
    return [
        (1 - total) / 2 + Fraction(noise) for total, noise in zip(kept, noise_scale, strict=True)
    ]


def exact_bound(problem: TargetProblem, prices: Floats) -> Fraction:
    """Least cost at these prices over all vertices of all cells: any subset keeps everything."""
    total = Fraction(0)
    for cell, target in enumerate(problem.target.tolist()):
        if target >= 1 / 2:
            continue
        entries = np.flatnonzero(problem.cell == cell)
        paid = {
            i: Fraction(prices[problem.user[i]])
            * Fraction(problem.cost[i])
            * Fraction(problem.share[i])
            for i in entries
        }
        best = None
        for many in range(1, len(entries) + 1):
            for chosen in combinations(entries, many):
                capacity = Fraction(target) - Fraction(1, 2)
                capacity += sum((Fraction(problem.share[i]) for i in chosen), Fraction(0)) / 2
                if capacity > 0:
                    cost = sum((paid[i] for i in chosen), Fraction(0)) / capacity
                    best = cost if best is None else min(best, cost)
        assert best is not None
        total += best
    return total / sum(Fraction(price) for price in prices)
