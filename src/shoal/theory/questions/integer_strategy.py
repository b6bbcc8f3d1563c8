"""Questions in whole numbers, whose loss is exact: linear ones, second moments, variances.

Outcomes are whole ticks t_i from the middle of the range. Number k is sum a_ki t_i in steps of its
own, plus discrete Laplace noise of scale 2^j steps. Beside them second moments S_g = sum t_i^2 over
disjoint groups are free, up to a step a number, and variances are quadratic forms V = |B t|^2, B of
whole numbers, in steps of 2^40 q; sums of rows of B may be clipped to public limits first. Floating
point decides nothing about privacy. Source: docs/theory/questions.md#in-whole-numbers,
#second-moments-in-whole-numbers and #forms-in-whole-numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

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
# Whole numbers of B, and sums of products of them, are exact in 64 bits and in floating point.
_MOST_BITS, _SUM_BITS, _FLOAT_BITS = 20, 62, 53
_FEWEST_BITS = 12
# Products of different columns of B that are computed, and at once.
MOST_PRODUCTS, _AT_ONCE = 1 << 28, 1 << 22


@dataclass(frozen=True)
class IntegerStrategy:
    """Whole-number weights and steps of a release, and what it costs.

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
    """
    rows = check_rows(rows)
    width = checks.number(width, "width", above=0)
    bits = checks.whole(bits, "bits", least=20, most=36)
    if not isinstance(epsilon, Fraction) or epsilon <= 0:
        raise InputError("an epsilon of another kind", "give Fraction(1)")
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
        "ask for a larger epsilon, or fewer questions",
    )


def unit_steps(rows: Whole, steps: Whole) -> Whole:
    """How many steps each unit moves all numbers by, at most: sum_k ceil(|a_ki| 2^20/step_k)."""
    rows, steps = _whole(rows, steps)
    moved = -((-np.abs(rows) * TICKS) // steps[:, None])
    if float(moved.sum(axis=0, dtype=np.float64).max()) > _MOST_STEP:
        raise InputError("steps beyond 60 bits", "ask for a smaller epsilon")
    return np.asarray(moved.sum(axis=0))


def exact_loss(rows: Whole, steps: Whole, bits: int) -> Fraction:
    """The exact loss of the unit that loses most: max_i of its steps over 2^j."""
    return Fraction(int(unit_steps(rows, steps).max()), 2**bits)


def answers(rows: Whole, steps: Whole, ticks: Whole) -> list[int]:
    """The numbers before noise, in steps: sum_i a_ki t_i over step_k, rounded downwards, exact."""
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
        raise InputError(f"rows of shape {shape}", "give at most 2^20 units")
    rows = np.asarray(rows, np.int64)
    steps = np.asarray(steps, np.int64)
    if max(int(rows.max()), -int(rows.min())) > 1 << _ROW_BITS or int(steps.min()) < 1:
        raise InputError("weights beyond 2^40, or steps below 1", "make them with integer_strategy")
    return rows, steps


def moment_step(rows: Whole, steps: Whole) -> int:
    """The least step of second moments that are free: 2^40/E, rounded upwards.

    E is the most that a unit moves the linear numbers by, in steps.
    """
    return -(-(TICKS**2) // int(unit_steps(rows, steps).max()))


def loss_with_moments(rows: Whole, steps: Whole, step: int, bits: int) -> Fraction:
    """What no unit loses more than by K linear numbers and second moments: (E + K)/2^j."""
    step = checks.whole(step, "step", least=1)
    bits = checks.whole(bits, "bits", least=1, most=60)
    most = int(unit_steps(rows, steps).max())
    if step * most < TICKS**2:
        raise InputError("a step of second moments that are not free", "take that of moment_step")
    return Fraction(most + len(rows), 2**bits)


def second_moments(group: Whole, ticks: Whole, step: int) -> list[int]:
    """The second moments before noise, in steps: sum of t_i^2 over step, rounded downwards."""
    group = np.asarray(group, np.int64)
    step = checks.whole(step, "step", least=1)
    if not 0 < len(group) <= _MOST_UNITS or int(group.min()) < 0:
        raise InputError("groups beyond their range", "give codes from 0 of 2^20 units")
    ticks = np.asarray(ticks, np.int64)
    # Clipped without a word: whether an outcome lies outside is private.
    squares = np.clip(ticks, -TICKS // 2, TICKS // 2) ** 2
    sums = np.zeros(int(group.max()) + 1, dtype=np.int64)
    np.add.at(sums, group, squares)
    return [each // step for each in sums.tolist()]


@dataclass(frozen=True, eq=False)
class IntegerForm:
    """V = sum over rows of (B t)^2, with columns of B that several units share.

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
        """How many steps each unit moves V by, at most: the next whole number, shape (units,)."""
        return np.asarray((-(-self.moves // self.step))[self.kind])

    def value(self, ticks: Whole) -> int:
        """V before noise, in steps, rounded downwards: exact."""
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
    """The size of the whole numbers of B: with so many bits all sums are exact."""
    found = min(
        _MOST_BITS, (_SUM_BITS - _log(rows) - _log(units)) // 2, (_FLOAT_BITS - _log(rows)) // 2
    )
    if found < _FEWEST_BITS:
        raise InputError(
            f"{rows} groups of {units} units", "merge groups, or take a table of units"
        )
    return found


def integer_form(factor: Floats, limits: Floats | None = None) -> tuple[IntegerForm, float]:
    """A factor in whole numbers, in steps of 2^40 squared ticks, and what 1 of them is worth."""
    most = float(np.abs(factor).max())
    if not most > 0:
        raise InputError("a variance that is always 0", "ask another question")
    unit = most / (1 << bits_for(*factor.shape))
    whole = np.rint(factor / unit).astype(np.int64)
    different, kind = np.unique(whole, axis=1, return_inverse=True)
    if different.shape[1] ** 2 > MOST_PRODUCTS:
        raise InputError(
            f"{different.shape[1]} kinds of units in a question with assigned groups",
            "ask for an effect, or round covariates",
        )
    ends = np.zeros(0, dtype=np.int64)
    if limits is not None:
        ends = np.maximum(np.ceil(limits / unit), 1).astype(np.int64)
    return IntegerForm(different, kind.reshape(-1).astype(np.int64), ends, 1), unit


def loss_with_forms(rows: Whole, steps: Whole, forms: Sequence[IntegerForm], bits: int) -> Fraction:
    """The exact loss of the unit that loses most by linear numbers and forms, over 2^j."""
    moved = [unit_steps(rows, steps), *(each.unit_steps() for each in forms)]
    if any(len(each) != len(moved[0]) for each in moved):
        raise _unusable()
    if sum(float(each.max()) for each in moved) > _MOST_STEP:
        raise InputError("steps beyond 60 bits", "ask for a smaller epsilon")
    return Fraction(int(np.sum(moved, axis=0).max()), 2**bits)


def _log(number: int) -> int:
    return (number - 1).bit_length()


def _unusable() -> InputError:
    return InputError(
        "a form that is none, or too large for exact sums", "make it with integer_form"
    )
