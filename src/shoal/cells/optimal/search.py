"""The least factor of all errors at a given loss, with a proof from both sides."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.optimal.interior import solve
from shoal.cells.optimal.program import FREE, certify, dual_bound, feasible, loss_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from shoal.cells.optimal.program import Program, Solution
    from shoal.cells.weights import Floats

_ROUNDS, _SECANTS = 30, 5
_LEAST, _INSIDE = 1e-9, 1e-4


@dataclass(frozen=True, eq=False)
class Factor:
    """The least s at which a plan costs what it may, what no plan can beat, and the plan.

    No plan has errors of at most s E_g for any s below `lower_bound`, as the solution's dual
    variables prove.
    """

    factor: float
    lower_bound: float
    solution: Solution


def least_factor(
    program: Program, epsilon: float, tolerance: float = 0.004, seconds: float = math.inf
) -> Factor:
    """Returns the least s at which errors of s E_g cost at most epsilon.

    L(s), the least loss at errors s E_g, is nearly a power of s, so that a secant in logarithms
    meets epsilon after a few programs. Weights prove an s that suffices, dual variables one that
    does not.
    """
    # Every cell is free here.
    high, low = FREE / float(program.target.min()) * (1 + 2.0**-50), 0.0
    weight, duals = np.zeros(len(program.share)), np.zeros(program.n_users)
    end, fine = time.monotonic() + seconds, tolerance / 64

    def cost(kept: Floats) -> Callable[[float], float]:
        return lambda s: loss_of(at := program.scaled(s), *feasible(at, kept))

    if (found := _crossing(cost(program.share), epsilon, low, high, fine)[1]) < high:
        high, weight = found, program.share
    at, last, slope = 0.8 * high, None, -1.0
    for turn in range(_ROUNDS):
        solution = solve(program.scaled(at), tolerance / 4, max(end - time.monotonic(), 0.0))
        if (found := _crossing(cost(solution.weight), epsilon, low, high, fine)[1]) < high:
            high, weight = found, solution.weight
        proof = lambda s: dual_bound(program.scaled(s), solution.duals)  # noqa: B023, E731
        if (found := _crossing(proof, epsilon, low, high, fine)[0]) > low:
            low, duals = found, solution.duals
        if high <= low * (1 + tolerance) or time.monotonic() > end:
            break
        point = math.log(at), math.log(max(solution.loss, 1e-300) / epsilon)
        if last is not None and last[0] != point[0]:
            slope = (point[1] - last[1]) / (point[0] - last[0])
        last = point
        middle = (turn >= _SECANTS and turn % 2) or slope >= 0
        at = math.sqrt(low * high) if middle else math.exp(point[0] - point[1] / slope)
        at = min(max(at, low * (1 + _INSIDE)), high / (1 + _INSIDE))
    return Factor(high, low, certify(program.scaled(high), weight, duals))


def _crossing(
    loss: Callable[[float], float], epsilon: float, low: float, high: float, fine: float
) -> tuple[float, float]:
    """Returns neighbours in [low, high] between which a falling loss passes epsilon."""
    if loss(high) > epsilon:
        return high, high
    below = low or high / 2
    while not loss(below) > epsilon:
        if low or below < high * _LEAST:
            return low, high
        below /= 2
    low = below
    while high > low * (1 + fine):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if loss(middle) > epsilon else (low, middle)
    return low, high
