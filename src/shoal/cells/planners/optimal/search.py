"""Finds the least factor of all errors at a given loss, with a proof from both sides."""

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

# The most programs that are solved.
_ROUNDS = 30
# The search starts at this part of a factor that suffices.
_START = 0.8
# Where nothing better than guessing is known, the search starts by this part below its factor.
_EDGE = 1e-4
# The slope of the line through a single point, in logarithms.
_SLOPE = -2.0
# The slope nearest to 0 of a line through two points on one side of epsilon, in logarithms.
_FLATTEST = -0.5
# A crossing is not looked for below this part of the upper end.
_LEAST = 1e-9
# The least distance of the next factor from the ends of the interval, as a part of the interval in
# logarithms.
_INSIDE = 0.1
# The same distance for the next point of a crossing.
_WITHIN = 0.02


class Factor(NamedTuple):
    """The least factor found, a lower bound on that of any plan, and the plan that has it."""

    factor: float
    lower_bound: float
    solution: Solution


def least_factor(program: Program, epsilon: float, tolerance: float = 0.004) -> Factor:
    """Returns the least factor of all errors that costs at most epsilon.

    The loss is nearly a power of the factor, so the search follows lines in logarithms.
    """
    # At this factor every cell may have the error of guessing, which costs nothing.
    high = MIDPOINT_ERROR / float(program.target.min()) * (1 + 2.0**-50)
    low = 0.0
    weight = np.zeros(len(program.share))
    duals = np.zeros(program.n_users)
    steps = steps_of(program)
    # Crossings are found so precisely that they hardly use up the tolerance.
    fine = tolerance / 32

    def cost(scaled: Program, weight: Floats) -> float:
        return loss_of(scaled, *feasible(scaled, weight))

    def crossing(loss: Callable[[Program, Floats], float], fixed: Floats) -> tuple[float, float]:
        """Returns factors just below and just above that at which the loss is epsilon."""
        return _crossing(lambda s: loss(program.scaled(s), fixed), epsilon, low, high, fine)

    _, suffices = crossing(cost, program.share)
    if suffices < high:
        high = suffices
        weight = program.share
    # If whole shares are no better than guessing, perhaps nothing is.
    factor = (_START if weight.any() else 1 - _EDGE) * high
    line = _Line()
    for _ in range(_ROUNDS):
        solution = solve(program.scaled(factor), tolerance / 4, steps)
        _, suffices = crossing(cost, solution.weight)
        if suffices < high:
            high = suffices
            weight = solution.weight
        excluded, _ = crossing(dual_bound, solution.duals)
        if excluded > low:
            low = excluded
            duals = solution.duals
        no_steps_left = not length_hint(steps)
        if high <= low * (1 + tolerance) or no_steps_left:
            break
        factor = line.next(factor, max(solution.loss, 1e-300) / epsilon)
        room = (high / low) ** _INSIDE if low else 1.0
        factor = min(max(factor, low * room), high / room)
    return Factor(high, low, certify(program.scaled(high), weight, duals))


class _Line:
    """A line through logarithms of factors and losses, on which a loss of epsilon is looked for."""

    def __init__(self) -> None:
        self.last: tuple[float, float] | None = None
        # The latest point whose loss is above epsilon, and the latest whose loss is not.
        self.sides: dict[bool, list[float]] = {}

    def next(self, factor: float, loss: float) -> float:
        """Returns the factor at which the line meets epsilon, once a new point is added.

        `loss` is the loss at the new factor, divided by epsilon.
        """
        x = math.log(factor)
        # The loss is epsilon where y is 0.
        y = math.log(loss)
        above = y > 0
        last_x, last_y = self.last or (x, y)
        self.last = (x, y)
        if len(self.sides) > 1 and (last_y > 0) == above:
            # Without this the far end would never move (the Illinois rule).
            self.sides[not above][1] /= 2
        self.sides[above] = [x, y]
        if len(self.sides) > 1:
            x_above, y_above = self.sides[True]
            x_below, y_below = self.sides[False]
            return math.exp(x_above + (x_below - x_above) * y_above / (y_above - y_below))
        slope = _SLOPE
        if last_x != x:
            slope = min((y - last_y) / (x - last_x), _FLATTEST)
        return math.exp(x - y / slope)


def _crossing(
    loss: Callable[[float], float], epsilon: float, low: float, high: float, fine: float
) -> tuple[float, float]:
    """Returns neighbours in [low, high] between which a falling loss passes epsilon.

    Where it passes outside they are both `high`, or `low` and `high`.
    """
    loss_at_high = loss(high)
    if loss_at_high > epsilon:
        return high, high
    # Without a lower end, halves of the upper end are tried as one.
    tried = low or high / 2
    loss_at_low = loss(tried)
    while not loss_at_low > epsilon:
        if low or tried < high * _LEAST:
            return low, high
        tried /= 2
        loss_at_low = loss(tried)
    low = tried
    turn = 0
    while high > low * (1 + fine):
        # Every other turn follows the line through both ends in logarithms; the rest halve.
        way = 0.5
        turn = turn + 1
        if turn % 2 and 0 < loss_at_high < loss_at_low < math.inf:
            way = math.log(loss_at_low / epsilon) / math.log(loss_at_low / loss_at_high)
        middle = low * (high / low) ** min(max(way, _WITHIN), 1 - _WITHIN)
        loss_at_middle = loss(middle)
        if loss_at_middle > epsilon:
            low = middle
            loss_at_low = loss_at_middle
        else:
            high = middle
            loss_at_high = loss_at_middle
    return low, high
