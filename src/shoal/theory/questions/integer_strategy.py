"""A Laplace strategy in whole numbers, whose loss is exact.

Outcomes are whole ticks t_i from the middle of the range, number k is sum a_ki t_i in steps of its
own, plus discrete Laplace noise of scale 2^j steps. Floating point decides nothing about privacy.

Source: docs/theory/questions.md#in-whole-numbers.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal import checks
from shoal.errors import InputError
from shoal.theory.questions.weights import check_rows

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

# The range of an outcome is this many ticks wide: outcomes lie within half of it of the middle.
TICKS = 1 << 20
# The largest weight of a row: with the ticks of a whole range it stays below 2^60.
_ROW_BITS, _MOST_STEP = 40, 1 << 60
# Halves of weights and of ticks keep sums of up to 2^20 units within 64 bits.
_LIMB_BITS, _MOST_UNITS = 20, 1 << 20
_ROUNDS = 60


@dataclass(frozen=True)
class IntegerStrategy:
    """Whole-number weights and steps of a release, and what it costs.

    Source: docs/theory/questions.md#in-whole-numbers.

    Attributes:
        rows: a, whole numbers, shape (numbers, units).
        steps: Of each number, in weights times ticks, shape (numbers,).
        bits: j: the noise has scale 2^j steps.
        loss: The exact privacy loss of the unit that loses most.
        values: What one step of each number is worth, in the unit of the rows times the outcome's,
            shape (numbers,).
    """

    rows: Whole
    steps: Whole
    bits: int
    loss: Fraction
    values: Floats


def integer_strategy(
    rows: Floats, width: float, epsilon: Fraction, *, bits: int = 30
) -> IntegerStrategy:
    """Whole-number rows and steps for a release of rows with an exact loss of at most epsilon.

    a_ki is 2^40 A_ki/max_i|A_ki|, rounded; number k has Laplace noise of scale U max_i sum_k|A_ki|/
    epsilon in the unit of A y, widened by the least that brings the exact loss under epsilon.

    Source: docs/theory/questions.md#in-whole-numbers.

    Guarantees: G-LOSS.

    `rows`: A, in 1 over the unit of what is released, shape (numbers, units); `width`: U, in the
    outcome's unit; `bits`: j, from 20 to 36: rounding to steps costs each number at most 2^-j of
    loss.
    """
    rows = check_rows(rows)
    width = checks.number(width, "width", above=0)
    bits = checks.whole(bits, "bits", least=20, most=36)
    if not isinstance(epsilon, Fraction) or epsilon <= 0:
        raise InputError("an epsilon of another kind", "a Fraction above 0", "give Fraction(1)")
    most = np.abs(rows).max(axis=1)
    whole = np.rint(rows / most[:, None] * 2.0**_ROW_BITS).astype(np.int64)
    # Every row has the same scale in its own unit: one step of row k is that scale over 2^j.
    together = float(np.abs(rows).sum(axis=0).max())
    wanted = together / most * 2.0 ** (_ROW_BITS - bits) * TICKS / float(epsilon)
    for _ in range(_ROUNDS):
        if not bool((wanted < _MOST_STEP).all()):
            break
        steps = np.maximum(np.ceil(wanted), 1).astype(np.int64)
        loss = exact_loss(whole, steps, bits)
        if loss <= epsilon:
            values = steps * most * (width / TICKS / 2.0**_ROW_BITS)
            return IntegerStrategy(whole, steps, bits, loss, values)
        wanted = np.maximum(wanted * float(loss / epsilon), steps * (1 + 2.0**-40))
    raise InputError(
        f"noise that does not fit a lattice of {bits} bits",
        "a moderate epsilon, and rows of like sizes",
        "ask for a larger epsilon, or fewer questions",
    )


def unit_steps(rows: Whole, steps: Whole) -> Whole:
    """How many steps each unit moves all numbers by, at most: sum_k ceil(|a_ki| 2^20/step_k).

    Source: docs/theory/questions.md#in-whole-numbers.

    Guarantees: G-LOSS.

    `rows`: a, whole numbers of at most 2^40, shape (numbers, units); `steps`: of each number, at
    least 1, shape (numbers,).
    """
    rows, steps = _whole(rows, steps)
    moved = -((-np.abs(rows) * TICKS) // steps[:, None])
    if float(moved.sum(axis=0, dtype=np.float64).max()) > _MOST_STEP:
        raise InputError("steps beyond 60 bits", "larger steps", "ask for a smaller epsilon")
    return np.asarray(moved.sum(axis=0))


def exact_loss(rows: Whole, steps: Whole, bits: int) -> Fraction:
    """The exact loss of the unit that loses most: max_i of its steps over 2^j.

    Source: docs/theory/questions.md#in-whole-numbers.

    Guarantees: G-LOSS.

    `rows`: a, whole numbers, shape (numbers, units); `steps`: of each number, shape (numbers,).
    """
    return Fraction(int(unit_steps(rows, steps).max()), 2**bits)


def answers(rows: Whole, steps: Whole, ticks: Whole) -> list[int]:
    """The numbers before noise, in steps: sum_i a_ki t_i over step_k, rounded downwards, exact.

    Source: docs/theory/questions.md#in-whole-numbers.

    Guarantees: G-LOSS.

    `rows`: a, whole numbers of at most 2^40, shape (numbers, units); at most 2^20 units; `steps`:
    of each number, shape (numbers,); `ticks`: t, private, whole numbers from the middle, clipped to
    -2^19..2^19, shape (units,).
    """
    rows, steps = _whole(rows, steps)
    ticks = np.asarray(ticks, np.int64)
    # Clipped without a word: whether an outcome lies outside is private.
    ticks = np.clip(ticks, -TICKS // 2, TICKS // 2)
    upper, lower = (rows >> _LIMB_BITS) @ ticks, (rows & ((1 << _LIMB_BITS) - 1)) @ ticks
    return [
        ((high << _LIMB_BITS) + low) // step
        for high, low, step in zip(upper.tolist(), lower.tolist(), steps.tolist(), strict=True)
    ]


def _whole(rows: Whole, steps: Whole) -> tuple[Whole, Whole]:
    shape: tuple[int, ...] = getattr(rows, "shape", ())
    if len(shape) != 2 or 0 in shape or shape[1] > _MOST_UNITS:
        raise InputError(f"rows of shape {shape}", "numbers by units", "give at most 2^20 units")
    rows = np.asarray(rows, np.int64)
    steps = np.asarray(steps, np.int64)
    if max(int(rows.max()), -int(rows.min())) > 1 << _ROW_BITS or int(steps.min()) < 1:
        raise InputError(
            "weights beyond 2^40, or steps below 1",
            "whole numbers within these",
            "make them with integer_strategy",
        )
    return rows, steps
