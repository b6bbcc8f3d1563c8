"""Proportional fairness: no cell improves by a percentage that costs the others more in sum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.allocation.base import SharedNoise
from shoal.cells.allocation_problem import Allocation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.allocation_problem import Problem

TARGET_GAP = 1e-4
STEPS = 50_000
# Measured: 80 to 400 steps of own paces where equal ones take 400 to 3,000.
_FAST_STEPS, _FASTER, _SLOWER, _FASTEST = 3_000, 1.2, 0.5, 50.0
_LEAST = 1e-100
# Dual variables below this share of the total prove nothing and are not kept.
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True)
class Balanced(SharedNoise):
    """Proportional fairness among cells, with a proof (docs/theory/balanced.md)."""

    title = "balanced"
    proved = True

    def solve(self, problem: Problem) -> Allocation:
        """See `balanced.solve`."""
        return solve(problem)


def solve(problem: Problem) -> Allocation:
    """Maximise sum_g w_g ln(1/b_g) while no user loses more than 1 (docs/theory/balanced.md).

    At the optimum 1/b_g = w_g / sum_l price_l Delta_gl with dual variables >= 0 that sum to sum_g
    w_g. The step price_l <- price_l * loss_l keeps that sum and converges; dual variables whose
    loss stays on one side of 1 take longer steps at first. It ends when scaling to a loss of 1
    costs at most `TARGET_GAP` per unit of weight. `gap` certifies the result.
    """
    weight = problem.weight
    if problem.most_numbers == 1:
        return _apart(problem)
    duals, rows, columns = _Duals(problem), problem.by_user, problem.by_number
    for step in range(STEPS):
        inverse = weight / (columns @ duals.now)
        loss = rows @ inverse
        if math.log(float(loss.max())) <= TARGET_GAP:
            break
        duals.move(loss, fast=step < _FAST_STEPS)
    dual = duals.now
    kept = np.where(dual > _NEGLIGIBLE * dual.sum(), dual, 0.0).astype(np.float32)
    return Allocation(
        noise_scale=float(loss.max()) / inverse,
        duals=_cover(problem, kept.astype(np.float64), dual),
    )


class _Duals:
    """Dual variables that sum to the weights, each with a pace of its own."""

    def __init__(self, problem: Problem) -> None:
        self.total = float(problem.weight.sum())
        self.now = np.full(problem.n_users, self.total / problem.n_users)
        self.pace = np.ones(problem.n_users)
        self.lead = np.zeros(problem.n_users)

    def move(self, loss: NDArray[np.float64], *, fast: bool) -> None:
        """Times loss^pace: a pace of 1 is the step that surely converges."""
        if not fast:
            self.now = self.now * loss
            return
        lead = np.log(np.maximum(loss, _LEAST))
        longer = np.minimum(self.pace * _FASTER, _FASTEST)
        shorter = np.maximum(self.pace * _SLOWER, 1.0)
        self.pace = np.where(lead * self.lead > 0, longer, shorter)
        self.lead = lead
        dual = self.now * np.exp(np.clip(self.pace * lead, -1.0, 1.0))
        # A dual variable that underflows could never come back.
        dual = np.maximum(dual, _LEAST * self.total)
        self.now = dual * (self.total / dual.sum())


def _apart(problem: Problem) -> Allocation:
    """Nobody is in two numbers: the user with the largest loss of each decides, and proves it."""
    order = np.lexsort((-problem.sensitivity, problem.number))
    first = np.searchsorted(problem.number[order], np.arange(problem.n_numbers))
    duals = np.zeros(problem.n_users)
    duals[problem.user[order[first]]] = problem.weight
    return Allocation(noise_scale=problem.largest, duals=duals)


def gap(
    problem: Problem,
    noise_scale: NDArray[np.float64],
    duals: NDArray[np.float64],
    epsilon: float,
) -> float:
    """Most that the weighted mean of ln b could still fall at a total loss of epsilon.

    For any dual variables >= 0, sum_g w_g ln(1/b_g) <= sum_g w_g ln(w_g / sum_l price_l Delta_gl)
    + W ln(epsilon P / W) with W the sum of weights and P of duals: weak duality. Divided by W,
    the difference to the plan's own value is at most this number; 1e-3 means that no plan without
    suppression has noise smaller by more than 0.1% in (weighted geometric) mean. Infinite if a
    number has no dual variable at all.

    Args:
        problem: Sensitivities and weights.
        noise_scale: b over U of the plan.
        duals: One number a user.
        epsilon: Total loss allowed.
    """
    weight, total = problem.weight, float(problem.weight.sum())
    if (problem.by_number @ duals <= 0).any():
        # A number whose users are all free has no bound: these dual variables prove nothing.
        return math.inf
    best = weight @ np.log(weight / (problem.by_number @ duals))
    slack = total * math.log(epsilon * float(duals.sum()) / total)
    return max(0.0, float(best + weight @ np.log(noise_scale) + slack) / total)


def _cover(
    problem: Problem, kept: NDArray[np.float64], dual: NDArray[np.float64]
) -> NDArray[np.float64]:
    # A bound needs a positive dual variable in every number; give back what thinning took away.
    bare = problem.by_number @ kept <= 0
    if not bare.any():
        return kept
    needed = np.isin(problem.number, np.flatnonzero(bare))
    users = np.unique(problem.user[needed])
    kept[users] = dual[users]
    return kept
