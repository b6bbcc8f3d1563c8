"""Second moments in whole numbers beside linear questions: free, up to a step a number.

Outcomes are whole ticks t_i from the middle, numbers of linear questions are those of
`integer_strategy`, and S_g = sum t_i^2 over disjoint groups, in steps of one size, with discrete
Laplace noise of the same 2^j steps.

Source: docs/theory/questions.md#second-moments-in-whole-numbers.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal import checks
from shoal.errors import InputError
from shoal.theory.questions.integer_strategy import TICKS, unit_steps

Whole = NDArray[np.int64]

_MOST_UNITS = 1 << 20


def moment_step(rows: Whole, steps: Whole) -> int:
    """The least step of second moments that are free: 2^40/E, rounded upwards.

    E is the most that a unit moves the linear numbers by, in steps.

    Source: docs/theory/questions.md#second-moments-in-whole-numbers.

    Guarantees: G-LOSS.

    `rows`: a, whole numbers of at most 2^40, shape (numbers, units); `steps`: of each number, at
    least 1, shape (numbers,).
    """
    return -(-(TICKS**2) // int(unit_steps(rows, steps).max()))


def loss_with_moments(rows: Whole, steps: Whole, step: int, bits: int) -> Fraction:
    """What no unit loses more than by K linear numbers and second moments: (E + K)/2^j.

    Source: docs/theory/questions.md#second-moments-in-whole-numbers.

    Guarantees: G-LOSS.

    `rows`: a, whole numbers of at most 2^40, shape (numbers, units); `steps`: of each number, at
    least 1, shape (numbers,).
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

    Guarantees: G-LOSS.

    `group`: of each unit, codes from 0, shape (units,); at most 2^20 units; `ticks`: t, private,
    whole numbers from the middle, clipped to -2^19..2^19, same shape; `step`: a whole number of
    squared ticks.
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
