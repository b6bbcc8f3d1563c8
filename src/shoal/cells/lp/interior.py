"""The optimal plan by interior points: everything but two numbers a cell is eliminated."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.lp.dual_bound import cheapest
from shoal.cells.lp.kkt import Point, Products, System
from shoal.cells.lp.solution import certify

if TYPE_CHECKING:
    from shoal.cells.lp.problem import Floats, Packed, TargetProblem
    from shoal.cells.lp.solution import Solution

_STEPS = 200
# Steps end this far on the way to the nearest bound.
_BACK = 0.995
_LOSS_ABOVE, _EQUAL_DUALS, _SMOOTHED, _LEAST = 1.1, 10.0, 0.5, 0.1
# Gondzio's corrections: how many, how much further they look, and what is out of balance.
_CORRECTIONS, _FURTHER, _BALANCE = 2, 0.08, 10.0
_PROGRESS = 1e-8


def solve(
    problem: TargetProblem,
    tolerance: float = 1e-6,
    *,
    seconds: float = 600.0,
    start_duals: Floats | None = None,
) -> Solution:
    """The least loss by primal and dual interior points.

    Source: docs/theory/optimal.md#the-linear-program.

    Mehrotra's predictor and corrector with Gondzio's corrections. Any point on the way is a plan
    and has dual variables, so that any number of steps gives a certified solution.

    Args:
        problem: Shares, costs and targets.
        tolerance: Stop at this gap.
        seconds: Stop after so many.
        start_duals: Dual variables of a similar problem, one a user.

    Returns:
        A certified solution; its gap is larger than the tolerance only if time or rounding
        stopped it.

    Example:
        >>> from shoal.cells.lp.problem import TargetProblem
        >>> one = TargetProblem(
        ...     np.array([0, 1]), np.array([0, 0]), np.array([0.75, 0.25]), 2, 1, np.array([0.4])
        ... )
        >>> round(solve(one).loss, 5)
        1.66667
    """
    packed = problem.packed
    if not packed.n_cells:
        return certify(problem, np.zeros(len(problem.share)), np.zeros(problem.n_users))
    end = time.monotonic() + seconds
    path = _Path(packed, start_duals)
    for _ in range(_STEPS):
        if path.loss <= path.bound * (1 + tolerance / 2) or time.monotonic() > end:
            break
        try:
            if not path.advance():
                break
        except RuntimeError:
            # SuperLU's word for a singular system: rounding has eaten it up.
            break
    return certify(problem, problem.unpack(path.weight), path.duals)


class _Path:
    """The point, and the best plan and the best dual variables passed so far."""

    def __init__(self, packed: Packed, start_duals: Floats | None) -> None:
        self.packed = packed
        # Users without entries have no part in it.
        self.users, user = np.unique(packed.user, return_inverse=True)
        self.user, self.need = user, 1 - 2 * packed.target
        self.loss, self.bound = math.inf, 0.0
        self.weight = packed.share
        self.duals = np.zeros(packed.n_users)
        self.point = self._start(None if start_duals is None else start_duals[self.users])
        self._record()

    def _start(self, start_duals: Floats | None) -> Point:
        """Well inside: every cell keeps a part 1 - E, dual variables are nearly equal."""
        packed, cell = self.packed, self.packed.cell
        inverse = 2 / packed.target
        full = packed.share * inverse[cell]
        y = (1 - packed.target)[cell] * full
        spent = np.bincount(self.user, packed.cost * y).astype(np.float64)
        lead = spent if start_duals is None else start_duals
        dual = lead + _EQUAL_DUALS * lead.max() if start_duals is None else lead + lead.mean()
        dual = np.asarray(dual / dual.sum(), dtype=np.float64)
        each = dual[self.user] * packed.cost
        tau, _, _ = cheapest(packed, each, self.need)
        above = tau[cell] - each
        loss = _LOSS_ABOVE * float(spent.max())
        z, r = full - y, loss - spent
        # No product far below the others: they would hold back every step.
        least = _LEAST * float((r * dual).mean())
        mu = (above + np.sqrt(above**2 + (2 * _SMOOTHED * tau[cell]) ** 2)) / 2
        mu = np.maximum(mu, np.maximum(least / z, above + least / y))
        return Point(inverse, loss, y, z, r, 2 * tau, dual, mu, mu - above)

    def _record(self) -> None:
        point, packed = self.point, self.packed
        loss = float(np.bincount(self.user, packed.cost * point.y).max())
        if loss < self.loss:
            self.loss, self.weight = loss, point.y / point.x[packed.cell]
        dual = point.dual / point.dual.sum()
        each = dual[self.user] * packed.cost
        guess = np.maximum(point.alpha / 2, 0)
        bound = 2 * float(cheapest(packed, each, self.need, guess)[0].sum())
        if bound > self.bound:
            self.bound = bound
            self.duals = np.zeros(packed.n_users)
            self.duals[self.users] = dual

    def advance(self) -> bool:
        """One step; False where rounding leaves none."""
        point = self.point
        system = System(self.packed, self.user, point)
        now = point.products()
        direction = system.direction(now.scaled(-1.0))
        primal, dual = point.lengths(direction)
        average = now.mean()
        after = point.moved(direction, min(1.0, primal), min(1.0, dual)).products().mean()
        aim = average * min(0.9, (after / average) ** 3)
        second = direction.products().clipped(-_BALANCE * average, _BALANCE * average)
        wanted = second.minus(now, aim)
        direction, primal, dual = self._corrected(system, wanted, aim)
        if not math.isfinite(primal + dual) or primal + dual < _PROGRESS:
            return False
        self.point = point.moved(direction, primal, dual)
        self._record()
        return True

    def _corrected(
        self, system: System, wanted: Products, aim: float
    ) -> tuple[Point, float, float]:
        """Steps that keep the products in balance go further."""
        point = self.point
        best = system.direction(wanted)
        primal, dual = (min(1.0, _BACK * most) for most in point.lengths(best))
        for _ in range(_CORRECTIONS):
            ahead = [min(1.0, (1 + _FURTHER) * most + _FURTHER) for most in (primal, dual)]
            wanted = point.moved(best, *ahead).products().rebalanced(wanted, aim, _BALANCE)
            other = system.direction(wanted)
            longer = [min(1.0, _BACK * most) for most in point.lengths(other)]
            if not sum(longer) > 1.01 * (primal + dual):
                break
            best, (primal, dual) = other, longer
        return best, primal, dual
