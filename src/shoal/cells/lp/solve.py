"""The least loss at given targets: the method that fits the size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from shoal.cells.lp import first_order, interior, linear
from shoal.cells.lp.solution import better
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.cells.lp.problem import Floats, TargetProblem
    from shoal.cells.lp.solution import Solution

Method = Literal["auto", "linear", "interior", "first_order"]
_METHODS = ("auto", "linear", "interior", "first_order")
# Interior points solve a dense system twice as large as the cells, from pairs of cells that share
# a user: some seconds up to the first limits, some minutes up to the second ones.
_QUICK = (700, 20_000_000, 1_000_000)
_SLOW = (2_000, 100_000_000, 5_000_000)
_PATIENCE = 30.0


def solve(
    problem: TargetProblem,
    tolerance: float = 0.01,
    *,
    method: Method = "auto",
    seconds: float = 600.0,
    start_duals: Floats | None = None,
) -> Solution:
    """The least loss at these targets, with a proof of how close it is.

    Args:
        problem: Shares, costs and targets.
        tolerance: Gap to stop at.
        method: "linear" (HiGHS; some 30,000 entries in a minute), "interior" (own interior points;
            up to some 2,000 cells), "first_order" (any size, gaps of some percent), or what fits.
        seconds: The last two stop then, with the gap they have.
        start_duals: Where they start: the dual variables of a similar problem, one a user.

    Returns:
        A certified solution. `gap` may be above the tolerance if time ran out.

    Raises:
        InputError: An unknown method, or a tolerance that is not above 0.

    Example:
        >>> from shoal.cells.lp.problem import TargetProblem
        >>> one = TargetProblem(
        ...     np.array([0, 1]), np.array([0, 0]), np.array([0.75, 0.25]), 2, 1, np.array([0.4])
        ... )
        >>> round(solve(one, tolerance=1e-6).loss, 5)
        1.66667
    """
    if not tolerance > 0:
        raise InputError(
            f"a tolerance of {tolerance!r}", "a number above 0", "give for example tolerance=0.01"
        )
    if method not in _METHODS:
        raise InputError(f"the method {method!r}", ", ".join(_METHODS), "leave it out")
    if method == "linear":
        return linear.solve(problem)
    if method == "interior" or (method == "auto" and _within(problem, _QUICK)):
        return interior.solve(problem, tolerance, seconds=seconds, start_duals=start_duals)
    slow = method == "auto" and _within(problem, _SLOW)
    first = min(seconds, _PATIENCE) if slow else seconds
    found = first_order.solve(problem, tolerance, seconds=first, start_duals=start_duals)
    if found.gap <= tolerance or not slow or first == seconds:
        return found
    return better(found, interior.solve(problem, tolerance, seconds=seconds - first))


def _within(problem: TargetProblem, limits: tuple[int, int, int]) -> bool:
    packed = problem.packed
    cells, pairs, entries = limits
    if packed.n_cells > cells or len(packed.share) > entries:
        return False
    of_user = np.bincount(packed.user, minlength=1).astype(np.float64)
    return float(of_user @ of_user) <= pairs
