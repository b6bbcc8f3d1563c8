"""Second moments in whole numbers beside linear questions: free, up to a step a number.

Outcomes are whole ticks t_i from the middle, numbers of linear questions are those of
`integer_strategy`, and S_g = sum t_i^2 over disjoint groups, in steps of one size, with discrete
Laplace noise of the same 2^j steps.

Source: docs/theory/questions.md#second-moments-in-whole-numbers.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from shoal import checks
from shoal.errors import InputError
from shoal.theory.questions.integer_strategy import TICKS, unit_steps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Whole = NDArray[np.int64]

_MOST_UNITS = 1 << 20


def moment_step(rows: Whole, steps: Whole) -> int:
    """The least step of second moments that are free: 2^40/E, rounded upwards.

    E is the most that a unit moves the linear numbers by, in steps.

    Source: docs/theory/questions.md#second-moments-in-whole-numbers.

    Args:
        rows: a, whole numbers of at most 2^40, shape (numbers, units).
        steps: Of each number, at least 1, shape (numbers,).

    Returns:
        A whole number of squared ticks.

    Raises:
        InputError: As `unit_steps`.

    Guarantees: G-LOSS.

    Example:
        >>> moment_step(np.array([[3, -1]]), np.array([2**20])) == -(-(2**40) // 3)
        True
    """
    return -(-(TICKS**2) // int(unit_steps(rows, steps).max()))


def loss_with_moments(rows: Whole, steps: Whole, step: int, bits: int) -> Fraction:
    """What no unit loses more than by K linear numbers and second moments: (E + K)/2^j.

    Source: docs/theory/questions.md#second-moments-in-whole-numbers.

    Args:
        rows: a, whole numbers of at most 2^40, shape (numbers, units).
        steps: Of each number, at least 1, shape (numbers,).
        step: Of the second moments, a whole number of squared ticks.
        bits: j: all noise has the scale of 2^j steps.

    Returns:
        A privacy loss.

    Raises:
        InputError: As `unit_steps`, or a step below `moment_step`, so that they are not free.

    Guarantees: G-LOSS.

    Example:
        >>> rows, steps = np.array([[3, -1]]), np.array([2**20])
        >>> loss_with_moments(rows, steps, moment_step(rows, steps), bits=2)
        Fraction(1, 1)
    """
    step = checks.whole(step, "step", least=1)
    bits = checks.whole(bits, "bits", least=1, most=60)
    most = int(unit_steps(rows, steps).max())
    if step * most < TICKS**2:
        raise InputError(
            "a step of second moments that are not free",
            "at least that of moment_step",
            "take that one",
        )
    return Fraction(most + len(rows), 2**bits)


def second_moments(group: Whole, ticks: Whole, step: int) -> list[int]:
    """The second moments before noise, in steps: sum of t_i^2 over step, rounded downwards.

    Source: docs/theory/questions.md#second-moments-in-whole-numbers.

    Args:
        group: Of each unit, codes from 0, shape (units,); at most 2^20 units.
        ticks: t, private, whole numbers from the middle, clipped to -2^19..2^19, same shape.
        step: A whole number of squared ticks.

    Returns:
        Whole numbers, one a group.

    Raises:
        InputError: Numbers outside their ranges.

    Guarantees: G-LOSS.

    Example:
        >>> second_moments(np.array([0, 1, 0]), np.array([1, 2, -3]), 2)
        [5, 2]
    """
    group = np.asarray(group, np.int64)
    step = checks.whole(step, "step", least=1)
    if not 0 < len(group) <= _MOST_UNITS or int(group.min()) < 0:
        raise InputError("groups beyond their range", "codes from 0", "give at most 2^20 units")
    ticks = np.asarray(ticks, np.int64)
    # Clipped without a word: whether an outcome lies outside is private.
    squares = np.clip(ticks, -TICKS // 2, TICKS // 2) ** 2
    sums = np.zeros(int(group.max()) + 1, dtype=np.int64)
    np.add.at(sums, group, squares)
    return [each // step for each in sums.tolist()]
