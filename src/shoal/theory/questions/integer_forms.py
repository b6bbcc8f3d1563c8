"""Variances as quadratic forms in whole numbers beside linear questions, whose loss is exact.

V = |B t|^2 of whole ticks t_i from the middle, B of whole numbers, in steps of 2^40 q, plus
discrete Laplace noise of 2^j steps. Sums of rows of B may be clipped to public limits first.

Source: docs/theory/questions.md#forms-in-whole-numbers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.theory.questions.integer_strategy import TICKS, unit_steps

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

# Whole numbers of B, and sums of products of them, are exact in 64 bits and in floating point.
_MOST_BITS, _SUM_BITS, _FLOAT_BITS = 20, 62, 53
_FEWEST_BITS = 12
# Products of different columns of B that are computed, and at once.
MOST_PRODUCTS, _AT_ONCE = 1 << 28, 1 << 22
_MOST_STEP = 1 << 60


@dataclass(frozen=True, eq=False)
class IntegerForm:
    """V = sum over rows of (B t)^2, with columns of B that several units share.

    Source: docs/theory/questions.md#forms-in-whole-numbers.

    Attributes:
        factor: Different columns of B, whole numbers, shape (rows, kinds).
        kind: Which of them each unit has, shape (units,).
        limits: Of each row, in 2^20 ticks: sums are clipped to them; empty for none.
        step: q: a step of V is 2^40 q squared ticks.
    """

    factor: Whole
    kind: Whole
    limits: Whole
    step: int

    def __post_init__(self) -> None:
        """Own arrays, within what exact sums allow."""
        for name in ("kind", "limits"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), np.int64))
        shape: tuple[int, ...] = getattr(self.factor, "shape", ())
        if len(shape) != 2 or 0 in shape or self.kind.ndim != 1 or not len(self.kind):
            raise _unusable()
        object.__setattr__(self, "factor", np.asarray(self.factor, np.int64))
        used = np.bincount(self.kind, minlength=shape[1]) if self.kind.min() >= 0 else np.zeros(1)
        bits = bits_for(shape[0], len(self.kind))
        if len(used) != shape[1] or not used.all() or int(np.abs(self.factor).max()) > 1 << bits:
            raise _unusable()
        clipped = len(self.limits) > 0
        if clipped and (
            len(self.limits) != shape[0]
            or int(self.limits.min()) < 1
            or int(self.limits.max()) > 1 << (_SUM_BITS - bits - _log(shape[0]) - 1)
        ):
            raise _unusable()
        if not 1 <= self.step < _MOST_STEP or shape[1] ** 2 > MOST_PRODUCTS:
            raise _unusable()

    @cached_property
    def moves(self) -> Whole:
        """How far one outcome moves V at most, in 2^40 squared ticks, shape (kinds,).

        max(S_i, Q_ii) of Q = B'B and S_i = sum over j != i of |Q_ij|; where sums are clipped, sum
        over rows of h(|B_gi|), h(u) = u (2 R_g - u) for u <= R_g, else R_g^2.

        Source: docs/theory/questions.md#forms-in-whole-numbers.

        Guarantees: G-REACH.
        """
        if len(self.limits):
            moved = np.minimum(np.abs(self.factor), self.limits[:, None])
            return np.asarray((moved * (2 * self.limits[:, None] - moved)).sum(axis=0))
        factor = self.factor.astype(np.float64)
        many = np.bincount(self.kind)
        found = np.empty(factor.shape[1], dtype=np.int64)
        size = max(_AT_ONCE // factor.shape[1], 1)
        for start in range(0, factor.shape[1], size):
            part = slice(start, start + size)
            # Whole numbers below 2^53: products and their sums are exact in any order.
            products = np.abs(factor[:, part].T @ factor).astype(np.int64)
            own = products[np.arange(len(products)), start + np.arange(len(products))]
            found[part] = np.maximum(products @ many - own, own)
        return found

    def unit_steps(self) -> Whole:
        """How many steps each unit moves V by, at most: the next whole number, shape (units,).

        Source: docs/theory/questions.md#forms-in-whole-numbers.

        Guarantees: G-REACH.
        """
        return np.asarray((-(-self.moves // self.step))[self.kind])

    def value(self, ticks: Whole) -> int:
        """V before noise, in steps, rounded downwards: exact.

        Source: docs/theory/questions.md#forms-in-whole-numbers.

        `ticks`: t, private, whole numbers from the middle, clipped to -2^19..2^19, shape (units,).
        """
        # Clipped without a word: whether an outcome lies outside is private.
        ticks = np.clip(ticks, -TICKS // 2, TICKS // 2)
        sums = np.zeros(self.factor.shape[1], dtype=np.int64)
        np.add.at(sums, self.kind, ticks)
        rows = self.factor @ sums
        if len(self.limits):
            ends = self.limits * TICKS
            rows = np.clip(rows, -ends, ends)
        squares: int = sum(each * each for each in rows.tolist())
        return squares // (TICKS * TICKS * self.step)

    @property
    def most_steps(self) -> int:
        """What no V is above, in steps: public."""
        reach = np.abs(self.factor) @ np.bincount(self.kind)
        if len(self.limits):
            reach = np.minimum(reach, 2 * self.limits)
        squares: int = sum(each * each for each in reach.tolist())
        return squares // (4 * self.step)


def bits_for(rows: int, units: int) -> int:
    """The size of the whole numbers of B: with so many bits all sums are exact.

    Source: docs/theory/questions.md#forms-in-whole-numbers.

    `rows`: of B; `units`: columns of B.
    """
    found = min(
        _MOST_BITS, (_SUM_BITS - _log(rows) - _log(units)) // 2, (_FLOAT_BITS - _log(rows)) // 2
    )
    if found < _FEWEST_BITS:
        raise InputError(
            f"{rows} groups of {units} units", "fewer", "merge groups, or take a table of units"
        )
    return found


def integer_form(factor: Floats, limits: Floats | None = None) -> tuple[IntegerForm, float]:
    """A factor in whole numbers, in steps of 2^40 squared ticks, and what 1 of them is worth.

    Source: docs/theory/questions.md#forms-in-whole-numbers.

    `factor`: B, without a unit, shape (rows, units); `limits`: of each row, in parts of the range,
    shape (rows,); None for none.
    """
    most = float(np.abs(factor).max())
    if not most > 0:
        raise InputError("a variance that is always 0", "a factor", "ask another question")
    unit = most / (1 << bits_for(*factor.shape))
    whole = np.rint(factor / unit).astype(np.int64)
    different, kind = np.unique(whole, axis=1, return_inverse=True)
    if different.shape[1] ** 2 > MOST_PRODUCTS:
        raise InputError(
            f"{different.shape[1]} kinds of units in a question with assigned groups",
            f"up to {math.isqrt(MOST_PRODUCTS)}",
            "ask for an effect, or round covariates",
        )
    ends = np.zeros(0, dtype=np.int64)
    if limits is not None:
        ends = np.maximum(np.ceil(limits / unit), 1).astype(np.int64)
    return IntegerForm(different, kind.reshape(-1).astype(np.int64), ends, 1), unit


def loss_with_forms(rows: Whole, steps: Whole, forms: Sequence[IntegerForm], bits: int) -> Fraction:
    """The exact loss of the unit that loses most by linear numbers and forms, over 2^j.

    Source: docs/theory/questions.md#forms-in-whole-numbers.

    Guarantees: G-REACH.

    `rows`: a, whole numbers of at most 2^40, shape (numbers, units); `steps`: of each number, at
    least 1, shape (numbers,).
    """
    moved = [unit_steps(rows, steps), *(each.unit_steps() for each in forms)]
    if any(len(each) != len(moved[0]) for each in moved):
        raise _unusable()
    if sum(float(each.max()) for each in moved) > _MOST_STEP:
        raise InputError("steps beyond 60 bits", "larger steps", "ask for a smaller epsilon")
    return Fraction(int(np.sum(moved, axis=0).max()), 2**bits)


def _log(number: int) -> int:
    return (number - 1).bit_length()


def _unusable() -> InputError:
    return InputError(
        "a form that is none, or too large for exact sums",
        "whole numbers as of integer_form, columns that units have",
        "make it with integer_form",
    )
