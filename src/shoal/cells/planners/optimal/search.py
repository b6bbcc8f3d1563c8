"""The least factor of all errors at a given loss, with a proof from both sides."""

import math
from collections.abc import Callable
from operator import length_hint
from typing import NamedTuple

import numpy as np

from shoal.arrays import Floats
from shoal.cells.facts.program import (
    Program,
    Solution,
    certify,
    dual_bound,
    feasible,
    loss_of,
)
from shoal.cells.mechanisms.cell_statistics import MIDPOINT_ERROR
from shoal.cells.planners.optimal.interior import solve, steps_of

_ROUNDS = 30
# Where the search starts, below what suffices, and slopes of lines to one side.
_START = 0.8
_EDGE = 1e-4
_SLOPE = -2.0
_FLATTEST = -0.5
# How far a search and a crossing stay inside what is known, as a part of it.
_LEAST = 1e-9
_INSIDE = 0.1
_WITHIN = 0.02


class Factor(NamedTuple):
    """The least s at which a plan costs what it may, the proved least of any plan, and the plan."""

    factor: float
    lower_bound: float
    solution: Solution


def least_factor(program: Program, epsilon: float, tolerance: float = 0.004) -> Factor:
    """The least s at which errors of s E_g cost at most epsilon: L(s) is nearly a power of s."""
    # Every cell is free here.
    high, low = MIDPOINT_ERROR / float(program.target.min()) * (1 + 2.0**-50), 0.0
    weight = np.zeros(len(program.share))
    duals = np.zeros(program.n_users)
    steps = steps_of(program)
    fine = tolerance / 32

    def cost(at: Program, kept: Floats) -> float:
        return loss_of(at, *feasible(at, kept))

    def crossing(loss: Callable[[Program, Floats], float], of: Floats) -> tuple[float, float]:
        return _crossing(lambda s: loss(program.scaled(s), of), epsilon, low, high, fine)

    if (factor := crossing(cost, program.share)[1]) < high:
        high = factor
        weight = program.share
    # Where not even the shares do better than guessing, perhaps nothing does.
    at = (_START if weight.any() else 1 - _EDGE) * high
    line = _Line()
    for _ in range(_ROUNDS):
        solution = solve(program.scaled(at), tolerance / 4, steps)
        if (factor := crossing(cost, solution.weight)[1]) < high:
            high = factor
            weight = solution.weight
        if (factor := crossing(dual_bound, solution.duals)[0]) > low:
            low = factor
            duals = solution.duals
        if high <= low * (1 + tolerance) or not length_hint(steps):
            break
        at = line.next(at, max(solution.loss, 1e-300) / epsilon)
        room = (high / low) ** _INSIDE if low else 1.0
        at = min(max(at, low * room), high / room)
    return Factor(high, low, certify(program.scaled(high), weight, duals))


class _Line:
    """A line through logarithms of factors and losses, which an epsilon of 1 is looked for on."""

    def __init__(self) -> None:
        self.last: tuple[float, float] | None = None
        # The nearest points whose loss is above epsilon, and not.
        self.sides: dict[bool, list[float]] = {}

    def next(self, factor: float, loss: float) -> float:
        """Returns where the line meets epsilon, after what a program lost at a factor."""
        x, y = math.log(factor), math.log(loss)
        last, self.last, above = self.last, (x, y), y > 0
        if len(self.sides) > 1 and last and (last[1] > 0) == above:
            # The other end would hold the line for ever (the Illinois rule).
            self.sides[not above][1] /= 2
        self.sides[above] = [x, y]
        if len(self.sides) > 1:
            (x, y), (right, low) = self.sides[True], self.sides[False]
            return math.exp(x + (right - x) * y / (y - low))
        slope = _SLOPE
        if last and last[0] != x:
            slope = min((y - last[1]) / (x - last[0]), _FLATTEST)
        return math.exp(x - y / slope)


def _crossing(
    loss: Callable[[float], float], epsilon: float, low: float, high: float, fine: float
) -> tuple[float, float]:
    """Neighbours in [low, high] between which a falling loss passes epsilon."""
    of_high = loss(high)
    if of_high > epsilon:
        return high, high
    below = low or high / 2
    of_low = 0.0
    while not (of_low := loss(below)) > epsilon:
        if low or below < high * _LEAST:
            return low, high
        below /= 2
    low = below
    turn = 0
    while high > low * (1 + fine):
        part = 0.5
        turn = turn + 1
        if turn % 2 and 0 < of_high < of_low < math.inf:
            part = math.log(of_low / epsilon) / math.log(of_low / of_high)
        middle = low * (high / low) ** min(max(part, _WITHIN), 1 - _WITHIN)
        if (of_middle := loss(middle)) > epsilon:
            low = middle
            of_low = of_middle
        else:
            high = middle
            of_high = of_middle
    return low, high
