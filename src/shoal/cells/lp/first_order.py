"""The first-order method, for any size: dual variables for the bound, and a plan.

Dual variables with steps of their own, longer while a user's loss stays on one side and shorter
when it changes, climb fast but visit wild plans. Dual variables with small equal steps climb
slowly, but the average of their plans is good early. Both need only sums over cells and users.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.lp.problem import FREE
from shoal.cells.lp.solution import better, certify

if TYPE_CHECKING:
    from shoal.cells.lp.problem import Floats, Packed, TargetProblem
    from shoal.cells.lp.solution import Solution

# Measured on occupancies with up to 10^7 counts and on the flights.
_SOFT, _SOFTENED = 0.02, 100.0
_NEWTON_STEPS = 2
_CHECK = 10
_PACE, _SLOWER_FROM = 0.1, 300.0
_FIRST_PACE, _FASTER, _SLOWER, _FASTEST = 0.3, 1.2, 0.5, 5.0
_LEAST_DUAL = 1e-30


def solve(
    problem: TargetProblem,
    tolerance: float = 0.05,
    *,
    seconds: float = 600.0,
    start_duals: Floats | None = None,
) -> Solution:
    """The least loss within `tolerance`, or the best found in so many seconds, with its proof.

    Both sequences start from what users lose without bounding, and multiply dual variables by
    exp(pace (loss/D - 1)). The plan is the average of the cells' answers with weights 1, 2, 3, ...

    Args:
        problem: Shares, costs and targets.
        tolerance: Stop at this gap.
        seconds: Stop after so many.
        start_duals: Dual variables to start the bound from, one a user.

    Returns:
        A certified solution; `gap` says how good it is.

    Example:
        >>> from shoal.cells.lp.problem import TargetProblem
        >>> one = TargetProblem(
        ...     np.array([0, 1]), np.array([0, 0]), np.array([0.75, 0.25]), 2, 1, np.array([0.4])
        ... )
        >>> solve(one).gap <= 0.05
        True
    """
    end, packed = time.monotonic() + seconds, problem.packed
    if not packed.n_cells:
        return certify(problem, np.zeros(len(problem.share)), np.zeros(problem.n_users))
    spent = packed.by_user(packed.cost * packed.share / packed.target[packed.cell])
    plan, bound = (
        _Plan(packed, spent),
        _Bound(packed, spent if start_duals is None else start_duals),
    )
    found = certify(problem, problem.share, spent)
    step = 0
    while found.gap > tolerance and time.monotonic() < end:
        step += 1
        plan.step(step)
        bound.step(step)
        if step % _CHECK == 0:
            plan.judge()
            proof = max(plan.proof, bound.proof, key=lambda one: one[0])
            if plan.loss <= proof[0] * (1 + tolerance):
                found = better(found, certify(problem, problem.unpack(plan.weight), proof[1]))
    proof = max(plan.proof, bound.proof, key=lambda one: one[0])
    return better(found, certify(problem, problem.unpack(plan.weight), proof[1]))


class _Cells:
    """Each cell's cheapest plan at given dual variables, softened: near tau users keep a part.

    With u = 1 - p/tau, a user keeps v clip(1/2 + u/(2 soft), 0, 1); kappa = 1/tau is the root of
    sum_l v s(1 - p kappa) = 1 - 2E, s the convex function with that slope. As s >= u^+, tau proves
    a bound all the same.
    """

    def __init__(self, packed: Packed) -> None:
        self.packed = packed
        self.need = 1 - 2 * packed.target
        self.kappa = np.zeros(packed.n_cells)

    def ask(self, dual: Floats, soft: float) -> tuple[float, Floats, Floats]:
        """D, y of each entry, 1/b of each cell; from the last kappa, a few steps of Newton."""
        packed, share, cell = self.packed, self.packed.share, self.packed.cell
        each = dual[packed.user] * packed.cost
        lowest = (1 - self.need) / packed.by_cell(share * each)
        kappa = np.maximum(self.kappa, lowest)
        for _ in range(_NEWTON_STEPS):
            lead = 1 - each * kappa[cell]
            part = np.clip(0.5 + lead / (2 * soft), 0.0, 1.0)
            above = packed.by_cell(share * (soft * part * part + np.maximum(lead - soft, 0.0)))
            kept = share * part
            slope = np.maximum(packed.by_cell(kept * each), 1e-300)
            kappa = np.maximum(kappa + (above - self.need) / slope, lowest)
        inverse = 2 / (slope * kappa)
        self.kappa = kappa
        return 2 * float((1 / kappa).sum()), kept * inverse[cell], inverse

    def rescale(self, dual: Floats) -> Floats:
        """Dual variables that sum to 1, and kappa with them."""
        dual = np.maximum(dual, _LEAST_DUAL)
        total = float(dual.sum())
        self.kappa *= 0.9 * total
        return np.asarray(dual / total)


class _Bound:
    """Dual variables, each with a pace of its own: the best of them prove the bound."""

    def __init__(self, packed: Packed, start: Floats) -> None:
        self.packed, self.cells = packed, _Cells(packed)
        self.dual = self.cells.rescale(start / start.sum() + 1e-9 / len(start))
        self.pace = np.full(len(start), _FIRST_PACE)
        self.lead = np.zeros(len(start))
        self.proof = 0.0, self.dual

    def step(self, step: int) -> None:
        """Users whose loss stays too high or too low move faster."""
        packed = self.packed
        bound, kept, _ = self.cells.ask(self.dual, _SOFT / (1 + step / _SOFTENED))
        if bound > self.proof[0]:
            self.proof = bound, self.dual
        lead = packed.by_user(packed.cost * kept) / bound - 1
        same = lead * self.lead
        self.pace = np.where(
            same > 0, np.minimum(self.pace * _FASTER, _FASTEST), self.pace * _SLOWER
        )
        self.lead = lead
        self.dual = self.cells.rescale(self.dual * np.exp(np.clip(self.pace * lead, -1, 1)))


class _Plan:
    """Dual variables of one small pace, and the average of the plans on their way."""

    def __init__(self, packed: Packed, start: Floats) -> None:
        self.packed, self.cells = packed, _Cells(packed)
        self.dual = self.cells.rescale(start / start.sum() + 1e-9 / len(start))
        self.mean = np.zeros(len(packed.share))
        self.mean_inverse = np.zeros(packed.n_cells)
        self.loss, self.weight = math.inf, packed.share
        self.proof = 0.0, self.dual

    def step(self, step: int) -> None:
        """Ask, average, move."""
        packed = self.packed
        bound, kept, inverse = self.cells.ask(self.dual, _SOFT)
        if bound > self.proof[0]:
            self.proof = bound, self.dual
        part = 2 / (step + 1)
        self.mean += part * (kept - self.mean)
        self.mean_inverse += part * (inverse - self.mean_inverse)
        lead = packed.by_user(packed.cost * kept) / bound - 1
        pace = _PACE * min(1.0, math.sqrt(_SLOWER_FROM / step))
        self.dual = self.cells.rescale(self.dual * np.exp(np.clip(pace * lead, -1, 1)))

    def judge(self) -> None:
        """What the average plan costs; the best one is kept."""
        packed = self.packed
        weight = np.minimum(self.mean / self.mean_inverse[packed.cell], packed.share)
        capacity = packed.target - FREE + packed.by_cell(weight) / 2
        if (capacity <= 0).any():
            return
        loss = float(packed.by_user(packed.cost * weight / capacity[packed.cell]).max())
        if loss < self.loss:
            self.loss, self.weight = loss, weight
