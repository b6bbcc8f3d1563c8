"""Dual variables of the users' losses prove a lower bound: the least cost of each cell.

At dual variables p = dual variable cost of its entries a cell's cheapest plan costs 2 tau, tau the
largest root of

    sum_l v (tau - p)^+ = tau (1 - 2E),

a convex function less a line: users below tau keep all, users above nothing. Any tau with "<=" is
a feasible point of the dual linear program, so that a proof needs no sorting and no search.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from shoal.cells.lp.problem import Floats, Packed, TargetProblem

_ULP = 2.0**-52
_SAME = 2.0**-50
_STEPS = 200


def dual_bound(problem: TargetProblem, duals: Floats) -> float:
    """D(dual variables): no plan with error <= E in every cell costs less.

    Source: docs/theory/optimal.md#the-dual-bound.

    D = (1/P) sum_g min over prefixes of the users by rising dual variable of (sum dual variable
    cost v) / (E - 1/2 + (1/2) sum v) with positive denominator, P the sum of the dual variables.

    Args:
        problem: Shares, costs and targets.
        duals: At least 0, one a user, in any unit.

    Returns:
        A lower bound on the loss of any plan, whatever the dual variables, rounded downwards; 0 if
        all are 0.

    Example:
        >>> from shoal.cells.lp.problem import TargetProblem
        >>> one = TargetProblem(
        ...     np.array([0, 1]), np.array([0, 0]), np.array([0.75, 0.25]), 2, 1, np.array([0.4])
        ... )
        >>> round(dual_bound(one, np.array([3.0, 1.0])), 9)
        1.5625
    """
    packed, largest = problem.packed, float(duals.max(initial=0.0))
    if not packed.n_cells or not 0 < largest < np.inf:
        return 0.0
    relative = duals / largest
    total = float(relative.sum()) * (1 + (len(duals) + 2) * _ULP)
    half = surely(packed, relative[packed.user] * packed.cost)
    return 2 * float(half.sum()) / total * (1 - (len(half) + 8) * _ULP)


def surely(packed: Packed, dual: Floats) -> Floats:
    """A tau of each cell that is proved in floating point: rounded downwards, 0 if nothing else.

    Args:
        packed: Cells and entries.
        dual: dual variable cost of each entry, at least 0.
    """
    # Sums of k terms v (tau - p) with sum v = 1 are off by at most k + 6 roundings of tau.
    slack = (packed.size + 8) * _ULP
    need = 1 - 2 * packed.target
    tau, _, _ = cheapest(packed, dual, need - 2 * slack)
    paid = packed.by_cell(packed.share * np.maximum(tau[packed.cell] - dual, 0.0))
    return np.where(paid + slack * tau <= tau * need, tau, 0.0)


def cheapest(
    packed: Packed, dual: Floats, need: Floats, guess: Floats | None = None
) -> tuple[Floats, Floats, Floats]:
    """The cheapest plan of each cell at these dual variables, by Newton's method from above.

    Args:
        packed: Cells and entries.
        dual: dual variable cost of each entry, at least 0.
        need: 1 - 2E of each cell, below 1.
        guess: tau of each cell, roughly; None if unknown.

    Returns:
        tau of each cell; what each entry keeps (v or 0); 2b = sum kept - (1 - 2E) of each cell.
    """
    share, cell = packed.share, packed.cell
    full = packed.by_cell(share) - need
    highest = packed.by_cell(share * dual) / full
    tau = highest if guess is None else np.minimum(guess, highest)
    kept, capacity = share, full
    for _ in range(_STEPS):
        kept = np.where(dual <= tau[cell], share, 0.0)
        capacity = packed.by_cell(kept) - need
        # Left of the root the line through the kept ones falls: start again from above.
        low = capacity <= 0
        root = np.where(low, highest, packed.by_cell(kept * dual) / np.where(low, 1.0, capacity))
        settled = not low.any() and bool((np.abs(root - tau) <= _SAME * tau).all())
        tau = root
        if settled:
            break
    return tau, kept, capacity
