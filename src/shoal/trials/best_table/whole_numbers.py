"""From a solution in floating point to a table of whole numbers that holds exactly."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from shoal.errors import InputError
from shoal.theory.randomised_response import ratio_for
from shoal.trials.best_table.columns import Columns
from shoal.trials.best_table.integer_table import ONE, IntegerTable, above_lowest

# The width has 2^40 steps; what a response says is a whole number of steps.
_STEPS = 40
# Responses about the middle that take what rounding leaves: their distances in steps, and the mass
# of each, of 2^62. The first balances the last; what is left after one is less than the next.
_PLACES = (-1 << 40, 0, 1, 1 << 20, 1 << 40)
_MIDDLE = 1
_FILL = 1 << 35
_FILLED = len(_PLACES) * _FILL
# Columns of less mass are left to the others: floating point says nothing about them.
_LEAST = 1 << 20
# Floating-point numbers hold every whole number of steps up to here.
_MOST_STEPS = 1 << 53


def whole_table(levels: Sequence[float], columns: Columns, epsilon: Fraction) -> IntegerTable:
    """The table of whole numbers nearest to a solution, at most epsilon, without bias.

    Masses are rounded down to whole numbers c of 2^-62 and to floor(r c) on their sets, r the
    largest rational ratio that is seen to cost at most epsilon. Five responses about the middle, of
    a mass of 2^-24 together, take what is missing of 2^62 and then of the mean: steps of 1, 2^20
    and 2^40 are moved among them, as digits of a whole number. The others say a little more, as
    much as these take from the mean.

    Source: docs/theory/best-table.md#in-whole-numbers.

    Args:
        levels: Rising, in the outcome's unit.
        columns: The solution, in widths from the middle of the levels.
        epsilon: The loss of one outcome.

    Returns:
        A table whose loss is at most epsilon.

    Raises:
        InputError: Levels with more digits than 2^62 can weigh, or a solution that does not fit.
    """
    step, above = _step(levels)
    ratio, middle = ratio_for(epsilon), round(above[-1] / step / 2)
    told: dict[int, list[int]] = {}
    stretch = float(above[-1] / step) / (1 - _FILLED / ONE)
    for output, likely, mass in zip(
        columns.output.tolist(), columns.likely.tolist(), columns.mass.tolist(), strict=True
    ):
        number = math.floor(mass * (ONE - _FILLED))
        if number >= _LEAST:
            high = number * ratio.numerator // ratio.denominator
            row = [high if each else number for each in likely]
            _add(told, middle + round(output * stretch), row)
    goals = [each / step * ONE for each in above]
    for place, row in zip(_PLACES, _fill(told, goals, middle), strict=True):
        _add(told, middle + place, row)
    shifts = sorted(told)
    numbers = [told[each] for each in shifts]
    if max(map(abs, shifts)) > _MOST_STEPS or min(map(min, numbers)) < 1:
        raise _unfit()
    table = IntegerTable(
        np.array(levels), np.array([float(each * step) for each in shifts]), np.array(numbers)
    )
    if table.epsilon > epsilon:
        raise _unfit()
    return table


def _step(levels: Sequence[float]) -> tuple[Fraction, tuple[Fraction, ...]]:
    """A power of two of which the width has about 2^40, and exact distances from the lowest."""
    above = above_lowest(levels)
    step = Fraction(2) ** (math.frexp(float(above[-1]))[1] - _STEPS)
    if any((each / step * ONE).denominator != 1 for each in above):
        raise InputError(
            "levels that differ by less than 2^-102 of their width",
            "levels with fewer digits",
            "round the levels, for example to nine digits",
        )
    return step, above


def _add(told: dict[int, list[int]], at: int, row: list[int]) -> None:
    """Responses that say the same are one."""
    told[at] = [a + b for a, b in zip(told.get(at, [0] * len(row)), row, strict=True)]


def _fill(told: dict[int, list[int]], goals: list[Fraction], middle: int) -> list[list[int]]:
    """Numbers of the responses about the middle, which make every sum and mean right."""
    rows = []
    for level, goal in enumerate(goals):
        fill = [_FILL] * len(_PLACES)
        fill[_MIDDLE] += ONE - _FILLED - sum(row[level] for row in told.values())
        mean = sum(at * row[level] for at, row in told.items())
        mean += sum((middle + at) * n for at, n in zip(_PLACES, fill, strict=True))
        left = int(goal) - mean
        for place in range(len(_PLACES) - 1, _MIDDLE, -1):
            # Rounded to the nearest: half of a distance is left for the next smaller one.
            moved = (2 * left + _PLACES[place]) // (2 * _PLACES[place])
            left -= moved * _PLACES[place]
            fill[place] += moved
            fill[_MIDDLE] -= moved
        rows.append(fill)
    return [list(each) for each in zip(*rows, strict=True)]


def _unfit() -> InputError:
    return InputError(
        "a solution that whole numbers cannot hold",
        "an epsilon from 0.01 to 8, and levels that are not all but the same",
        "use UniformPrior",
    )
