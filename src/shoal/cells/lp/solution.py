"""A plan with its certificate, and the checks anybody can repeat.

Nothing here trusts a solver. A solution is made by `certify` from any weights and any dual
variables, and its loss and its lower bound are computed again, with every rounding against us.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.lp.dual_bound import dual_bound
from shoal.cells.lp.problem import FREE

if TYPE_CHECKING:
    from shoal.cells.lp.problem import Floats, TargetProblem

_ULP = 2.0**-52


@dataclass(frozen=True, eq=False)
class Solution:
    """Weights and noise, what they cost, and a proof of how much less any plan could cost.

    Attributes:
        weight: w of each entry, 0 <= w <= v, in the problem's order.
        noise_scale: b over U of each cell; 0 in cells that need nothing.
        loss: max_l sum_g cost w/b, rounded upwards.
        lower_bound: D(dual variables), rounded downwards: no plan of the family costs less.
        duals: Of each user's loss, at least 0: anybody can compute the bound from them.
    """

    weight: Floats
    noise_scale: Floats
    loss: float
    lower_bound: float
    duals: Floats

    @property
    def gap(self) -> float:
        """Loss over lower bound, minus 1: 0.01 means at most 1% above the best possible plan."""
        if self.loss == 0:
            return 0.0
        return self.loss / self.lower_bound - 1 if self.lower_bound > 0 else math.inf


def certify(problem: TargetProblem, weight: Floats, duals: Floats) -> Solution:
    """A feasible solution with these weights, as judged by its own numbers alone.

    Weights are clipped to [0, v]; the noise of each cell is the most that its target allows,
    b = E - (1 - sum w)/2. A cell whose weights leave no room for noise keeps everything.

    Args:
        problem: Shares, costs and targets.
        weight: Any weights, one an entry.
        duals: Any dual variables, one a user; negative ones count as 0.

    Returns:
        The solution with its loss and its bound, roundings against us.

    Example:
        >>> from shoal.cells.lp.problem import TargetProblem
        >>> one = TargetProblem(
        ...     np.array([0, 1]), np.array([0, 0]), np.array([0.75, 0.25]), 2, 1, np.array([0.4])
        ... )
        >>> best = certify(one, np.array([0.25, 0.25]), np.array([0.5, 0.5]))
        >>> round(best.loss, 9), round(best.lower_bound, 9)
        (1.666666667, 1.25)
    """
    kept, noise = adapt(problem, weight)
    duals = np.maximum(duals, 0.0)
    return Solution(
        weight=kept,
        noise_scale=noise,
        loss=loss_of(problem, kept, noise),
        lower_bound=dual_bound(problem, duals),
        duals=duals,
    )


def better(one: Solution, other: Solution) -> Solution:
    """The cheaper plan with the stronger proof, of two solutions of one problem."""
    plan = one if one.loss <= other.loss else other
    proof = one if one.lower_bound >= other.lower_bound else other
    return replace(plan, lower_bound=proof.lower_bound, duals=proof.duals)


def adapt(problem: TargetProblem, weight: Floats) -> tuple[Floats, Floats]:
    """Weights in [0, v] and the most noise that the targets allow with them."""
    free = problem.target >= FREE
    kept = np.clip(weight, 0.0, problem.share)
    capacity = largest_noise(problem, kept)
    short = (capacity <= 0) & ~free
    if short.any():
        kept = np.where(short[problem.cell], problem.share, kept)
        capacity = largest_noise(problem, kept)
    return np.where(free[problem.cell], 0.0, kept), np.where(free, 0.0, capacity)


def largest_noise(problem: TargetProblem, weight: Floats) -> Floats:
    """E - (1 - sum w)/2 of each cell, rounded downwards.

    Source: docs/theory/optimal.md#plans-and-their-errors.
    """
    size = np.bincount(problem.cell, minlength=problem.n_cells)
    total = np.bincount(problem.cell, weight, minlength=problem.n_cells)
    # A sum of k numbers is off by at most k roundings of it.
    surely = total * (1 - (size + 2) * _ULP)
    return np.asarray(problem.target - (1 - surely) / 2 - 4 * _ULP)


def loss_of(problem: TargetProblem, weight: Floats, noise_scale: Floats) -> float:
    """max_l sum_g cost w/b, rounded upwards; a weight without noise costs infinitely much."""
    noise = noise_scale[problem.cell]
    used = weight > 0
    each = np.full(len(weight), math.inf)
    np.divide(problem.cost * weight, noise, out=each, where=noise > 0)
    spent = np.bincount(problem.user, np.where(used, each, 0.0), minlength=problem.n_users)
    size = np.bincount(problem.user, minlength=problem.n_users)
    return float((spent * (1 + (size + 4) * _ULP)).max())


def error_of(problem: TargetProblem, weight: Floats, noise_scale: Floats) -> Floats:
    """The worst-case error of each cell over U: (1 - sum w)/2 + b.

    Source: docs/theory/optimal.md#plans-and-their-errors.
    """
    total = np.bincount(problem.cell, weight, minlength=problem.n_cells)
    return np.asarray((1 - total) / 2 + noise_scale)


def verify(problem: TargetProblem, solution: Solution) -> tuple[str, ...]:
    """What is wrong with a solution, computed from nothing but its own numbers; empty if sound."""
    wrong = []
    weight, noise = solution.weight, solution.noise_scale
    if not ((weight >= 0) & (weight <= problem.share)).all():
        wrong.append("weights outside 0..v")
    needed = problem.target < FREE
    if not (error_of(problem, weight, noise) <= problem.target)[needed].all():
        wrong.append("a cell's error is above its target")
    if not (noise >= 0).all():
        wrong.append("negative noise")
    if not solution.loss >= loss_of(problem, weight, noise):
        wrong.append("the loss is larger than stated")
    if not (solution.duals >= 0).all():
        wrong.append("negative dual variables")
    elif not solution.lower_bound <= dual_bound(problem, solution.duals):
        wrong.append("the lower bound does not follow from the dual variables")
    return tuple(wrong)
