"""The least factor of all targets at a given loss, with a proof from both sides."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.lp.dual_bound import dual_bound
from shoal.cells.lp.problem import FREE
from shoal.cells.lp.solution import adapt, certify, loss_of
from shoal.cells.lp.solve import Method, solve
from shoal.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from shoal.cells.lp.problem import Floats, TargetProblem
    from shoal.cells.lp.solution import Solution

_ROUNDS = 30
_TINY, _INSIDE = 1e-9, 0.02
_COARSEST, _COARSE = 0.1, 1e-3


@dataclass(frozen=True, eq=False)
class Factor:
    """The least s such that targets s e_g can be met at the loss, and what no plan can beat.

    Attributes:
        factor: s of the solution.
        lower_bound: No plan of the family meets s e_g at the loss for any s below this.
        solution: Weights, noise and loss at targets s e_g; its loss is at most the one asked for.
            Its own lower bound is one on the loss at s.
        duals: Dual variables that prove the bound on s: D(dual variables; s e) is above the loss
            for all s below.
    """

    factor: float
    lower_bound: float
    solution: Solution
    duals: Floats

    @property
    def gap(self) -> float:
        """Factor over lower bound, minus 1: 0.01 means at most 1% more error than possible."""
        return self.factor / self.lower_bound - 1 if self.lower_bound > 0 else math.inf


def least_factor(
    problem: TargetProblem,
    epsilon: float,
    tolerance: float = 0.01,
    *,
    method: Method = "auto",
    seconds: float = 600.0,
    start_duals: Floats | None = None,
) -> Factor:
    """The least s such that the least loss at targets s e_g is at most epsilon.

    The loss L(s) falls as s grows, with a jump where a cell reaches s e_g = 1/2 and needs nothing.
    Each round solves for the loss at one s. Its plan proves an s that suffices: the least one at
    which that plan costs at most epsilon. Its dual variables prove one that does not: D(dual
    variables; s e) falls with s and is at most L(s).

    Args:
        problem: Shares, costs, and e_g as `target`.
        epsilon: Loss allowed, above 0.
        tolerance: Gap of s to stop at.
        method: As for `solve`.
        seconds: Stop after so many, with the gap there is.
        start_duals: Dual variables of a similar problem.

    Returns:
        The factor, its bound, and the plan.

    Raises:
        InputError: A loss or a tolerance that is not above 0.

    Example:
        >>> from shoal.cells.lp.problem import TargetProblem
        >>> one = TargetProblem(
        ...     np.array([0, 1]), np.array([0, 0]), np.array([0.75, 0.25]), 2, 1, np.array([0.1])
        ... )
        >>> found = least_factor(one, 5 / 3, tolerance=1e-6)
        >>> round(found.factor, 5), round(found.lower_bound, 5)
        (4.0, 4.0)
    """
    if not 0 < epsilon < math.inf:
        raise InputError(
            f"epsilon is {epsilon!r}", "a number above 0", "give for example epsilon=1"
        )
    if not tolerance > 0:
        raise InputError(
            f"a tolerance of {tolerance!r}", "a number above 0", "give for example tolerance=0.01"
        )
    search = _Search(problem, epsilon, min(_COARSE, tolerance / 10))
    search.try_plan(problem.share)
    duals, end = start_duals, time.monotonic() + seconds
    for turn in range(_ROUNDS):
        left = end - time.monotonic()
        if search.high <= search.low * (1 + tolerance) or left <= 0:
            break
        found = solve(
            problem.scaled(search.next(turn)),
            search.precision(tolerance),
            method=method,
            seconds=left,
            start_duals=duals,
        )
        duals = found.duals
        search.try_plan(found.weight)
        search.try_duals(duals)
    return search.found(duals)


class _Search:
    """What is proved so far: s above `high` suffices, s below `low` does not."""

    def __init__(self, problem: TargetProblem, epsilon: float, exact: float) -> None:
        self.problem, self.epsilon, self.exact = problem, epsilon, exact
        # Every cell is free here; a plan may be better.
        self.high = FREE / float(problem.target.min()) * (1 + 2.0**-50)
        self.low = 0.0
        self.weight = np.zeros(len(problem.share))
        self.duals = np.zeros(problem.n_users)

    def next(self, turn: int) -> float:
        """Where to solve: the bound from below is Newton's step, the middle never stalls."""
        if self.low == 0:
            # At `high` every cell may be free, and nothing to learn from.
            return self.high * (1 - self.exact)
        return self.low if turn % 2 else math.sqrt(self.low * self.high)

    def precision(self, tolerance: float) -> float:
        """Gap to solve to: no finer than what is still open."""
        open_ = self.high / self.low - 1 if self.low > 0 else math.inf
        return min(_COARSEST, max(tolerance / 4, open_ / 10))

    def try_plan(self, weight: Floats) -> None:
        """The least s at which these weights cost at most epsilon."""
        if self._cost(weight, self.high) > self.epsilon:
            return
        self.weight = weight
        low = self.low or self._below(lambda s: self._cost(weight, s))
        _, self.high = self._between(lambda s: self._cost(weight, s), low)

    def try_duals(self, duals: Floats) -> None:
        """The largest s at which these dual variables prove a loss above epsilon."""
        low = self.low or self._below(lambda s: self._bound(duals, s))
        if not self._bound(duals, low) > self.epsilon:
            return
        self.duals = duals
        self.low, _ = self._between(lambda s: self._bound(duals, s), low)

    def _below(self, loss: Callable[[float], float]) -> float:
        low = self.high / 2
        while low > _TINY * self.high and not loss(low) > self.epsilon:
            low /= 2
        return low

    def _between(self, loss: Callable[[float], float], low: float) -> tuple[float, float]:
        """Neighbours between which a falling loss passes epsilon.

        By turns the middle, which never stalls, and a straight line between logarithms.
        """
        high, steps = self.high, 0
        of_low, of_high = loss(low), loss(high)
        while high - low > self.exact * high:
            steps += 1
            part = 0.5
            if steps % 2 and 0 < of_high < of_low < math.inf:
                part = math.log(of_low / self.epsilon) / math.log(of_low / of_high)
            middle = low + (high - low) * min(max(part, _INSIDE), 1 - _INSIDE)
            found = loss(middle)
            if found > self.epsilon:
                low, of_low = middle, found
            else:
                high, of_high = middle, found
        return low, high

    def _cost(self, weight: Floats, factor: float) -> float:
        problem = self.problem.scaled(factor)
        return loss_of(problem, *adapt(problem, weight))

    def _bound(self, duals: Floats, factor: float) -> float:
        return dual_bound(self.problem.scaled(factor), duals)

    def found(self, duals: Floats | None) -> Factor:
        """The best of all rounds; the loss gets the better proof of two."""
        problem = self.problem.scaled(self.high)
        solution = certify(problem, self.weight, self.duals)
        if duals is not None:
            other = certify(problem, self.weight, duals)
            solution = max(solution, other, key=lambda one: one.lower_bound)
        return Factor(factor=self.high, lower_bound=self.low, solution=solution, duals=self.duals)
