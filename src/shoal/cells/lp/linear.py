"""The optimal plan by HiGHS: the linear program word by word, its answer made exact afterwards.

The reference for the other solvers: it shares nothing with them but the judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from shoal.cells.lp.problem import FREE
from shoal.cells.lp.solution import certify
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.cells.lp.problem import Floats, Packed, TargetProblem
    from shoal.cells.lp.solution import Solution

# HiGHS's interior points: 2 to 3 times as fast as its dual simplex on the paper's occupancies.
# Its crossover costs little there and leaves a vertex, with most weights exactly 0 or v.
_METHOD = "highs-ipm"
_EXACT = 1e-10


def solve(problem: TargetProblem) -> Solution:
    """The least loss by linear programming (docs/theory/optimal.md#the-linear-program).

    With x = 1/b and y = w/b: minimise e subject to (E - 1/2) x_g + (1/2) sum_l y_gl >= 1,
    0 <= y_gl <= v_gl x_g and sum_g cost_gl y_gl <= e. Weights are y/x, dual variables the duals of
    users.

    Args:
        problem: Shares, costs and targets.

    Returns:
        A certified solution: feasible and with a proof, whatever HiGHS rounds.

    Raises:
        InputError: HiGHS gives up, as on very large problems.

    Example:
        >>> from shoal.cells.lp.problem import TargetProblem
        >>> one = TargetProblem(
        ...     np.array([0, 1]), np.array([0, 0]), np.array([0.75, 0.25]), 2, 1, np.array([0.4])
        ... )
        >>> round(solve(one).loss, 9)  # keeping 0.25 of each and b = 0.15, or more with more noise
        1.666666667
    """
    packed = problem.packed
    if not packed.n_cells:
        return certify(problem, np.zeros(len(problem.share)), np.zeros(problem.n_users))
    from scipy.optimize import linprog

    matrix, right = _rows(packed)
    objective = np.zeros(matrix.shape[1])
    objective[-1] = 1.0
    run: Any = linprog
    found = run(
        objective,
        A_ub=matrix,
        b_ub=right,
        bounds=(0, None),
        method=_METHOD,
        options={"primal_feasibility_tolerance": _EXACT, "dual_feasibility_tolerance": _EXACT},
    )
    if found.x is None:
        raise InputError(
            f"a linear program of {len(packed.share)} entries that HiGHS does not solve",
            "problems that fit it, up to some 100,000 entries",
            "use the first-order method",
        )
    inverse, kept = np.split(found.x[:-1], [packed.n_cells])
    weight = kept / np.maximum(inverse, 1e-300)[packed.cell]
    return certify(problem, problem.unpack(weight), -found.ineqlin.marginals[-packed.n_users :])


def _rows(packed: Packed) -> tuple[sp.csc_array, Floats]:
    """All rows as <= : errors of cells, w <= v, losses of users; columns x, y, e."""
    cells, users, entries = packed.n_cells, packed.n_users, len(packed.share)
    each = np.arange(entries)
    in_cell = sp.csr_array((np.ones(entries), (packed.cell, each)), shape=(cells, entries))
    of_user = sp.csr_array((packed.cost, (packed.user, each)), shape=(users, entries))
    of_cell = sp.csr_array((packed.share, (each, packed.cell)), shape=(entries, cells))
    blocks: Any = [
        [sp.diags_array(FREE - packed.target), -0.5 * in_cell, None],
        [-of_cell, sp.eye_array(entries), None],
        [None, of_user, sp.csr_array(-np.ones((users, 1)))],
    ]
    return sp.csc_array(sp.block_array(blocks)), np.repeat([-1.0, 0.0], [cells, entries + users])
