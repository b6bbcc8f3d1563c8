"""The least loss at given targets: the method that fits the size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from shoal.errors import InputError
from shoal.planning.optimal import first_order, interior, linear

if TYPE_CHECKING:
    from shoal.planning.optimal.problem import Floats, TargetProblem
    from shoal.planning.optimal.solution import Solution

Method = Literal["auto", "linear", "interior", "first_order"]
_METHODS = ("auto", "linear", "interior", "first_order")
# A dense system twice as large, and pairs of cells that share a user: a few seconds a step.
_MOST_CELLS, _MOST_PAIRS, _MOST_ENTRIES = 2_000, 100_000_000, 5_000_000


def solve(
    problem: TargetProblem,
    tolerance: float = 0.01,
    *,
    method: Method = "auto",
    seconds: float = 600.0,
    start_prices: Floats | None = None,
) -> Solution:
    """The least loss at these targets, with a proof of how close it is.

    Args:
        problem: Shares, costs and targets.
        tolerance: Gap to stop at.
        method: "linear" (HiGHS; up to some 30,000 entries in a minute), "interior" (own interior
            points; up to some 2,000 cells), "first_order" (any size), or the one that fits.
        seconds: The last two stop then, with the gap they have.
        start_prices: Where they start: the prices of a similar problem, one a user.

    Returns:
        A certified solution. `gap` may be above the tolerance if time ran out.

    Raises:
        InputError: An unknown method, or a tolerance that is not above 0.

    Example:
        >>> from shoal.planning.optimal.problem import TargetProblem
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
    inside = method == "interior" or (method == "auto" and _dense_enough(problem))
    run = interior.solve if inside else first_order.solve
    return run(problem, tolerance, seconds=seconds, start_prices=start_prices)


def _dense_enough(problem: TargetProblem) -> bool:
    packed = problem.packed
    if packed.n_cells > _MOST_CELLS or len(packed.share) > _MOST_ENTRIES:
        return False
    of_user = np.bincount(packed.user, minlength=1).astype(np.float64)
    return float(of_user @ of_user) <= _MOST_PAIRS
