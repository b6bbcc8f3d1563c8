"""Draws the numbers of a release of questions as whole numbers whose loss is exact.

Outcomes are whole ticks t_i from the middle of the range. Number k is sum a_ki t_i, in steps of its
own size, plus discrete Laplace noise of scale 2^32 steps. Second moments S_g = sum t_i^2 of
disjoint groups are drawn beside them, and cost at most a step for each number. Floating point
decides nothing about privacy.
Source: docs/theory/experiments.md#questions-in-whole-numbers and #second-moments-are-free.
"""

import math
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from shoal.arrays import Floats, Ints
from shoal.documents.model import Integers, Model
from shoal.errors import InputError
from shoal.privacy.accounting import NoisyVector, account
from shoal.privacy.noise import LARGEST_STEPS, Noise
from shoal.trials.domain import Domain

# Noise has a scale of 2^32 steps.
BITS = 32
# The range of an outcome is this many ticks wide: outcomes lie within half of it of the middle.
TICKS = 1 << 20
# The largest weight of a row.
_ROW: int = 1 << 40
# Steps, and the steps that a unit moves numbers by, stay below this.
_MOST_STEP = 1 << 60
# The largest number of units: their sums of squared ticks fit 64 bits.
MOST_UNITS = 1 << 24
# Steps are made larger at most this many times until the loss fits.
_ROUNDS = 60
# The loss is at least this many times what rounding to steps costs.
ROUNDING = 1000
# A question that is off by less than this part of its length is answered.
_ANSWERED = 1e-9
# The draws of noise of a release.
NUMBERS = 0
MOMENTS = 1
# Weights are multiplied in parts of this many bits. The products fit 64 bits: sums of 2^24 units
# times 2^20 ticks leave room for 19.
_PART = 14

# The standard deviation of the noise of a number, in steps.
DEVIATION = math.sqrt(0.5) / math.sinh(2.0 ** (-BITS - 1))


class Choice(Model):
    """The weights of kinds or the sum that each is in, steps, and groups of second moments.

    `rows` holds a_ki + 2^40, at most 2^41, shape (numbers x kinds,). It is None if each kind is in
    one sum: then `sums` holds the sum of each kind, and all units of a sum weigh 2^40. `steps` are
    in weights times ticks. `moment_step` is in squared ticks, and 0 for no second moments. `by`
    names the columns that make groups of second moments besides arms.
    """

    rows: Integers | None
    sums: Integers | None
    steps: Integers
    moment_step: int
    by: tuple[str, ...]


class QuestionsDrawn(Model):
    """Drawn numbers and second moments, in steps."""

    numbers: tuple[int, ...]
    moments: tuple[int, ...]


class Numbers:
    """The numbers of a choice for `many` units of each kind.

    `rows` holds the weights a_ki, shape (numbers, kinds), or None.
    """

    def __init__(self, many: Ints, choice: Choice) -> None:
        self.many = many
        self.steps = choice.steps
        self.moment_step = choice.moment_step
        self.sums = np.zeros(0, dtype=np.int64) if choice.sums is None else choice.sums
        self.rows: Ints | None = None
        if choice.rows is not None:
            self.rows = choice.rows.reshape(len(self.steps), len(many)) - _ROW
            # Products with ticks must fit 64 bits.
            if int(self.rows.max()) > _ROW or int(self.rows.min()) < -_ROW:
                raise LookupError
        elif len(self.sums) != len(many) or len(np.unique(self.sums)) != len(self.steps):
            raise LookupError

    @cached_property
    def most_steps(self) -> int:
        """The most steps that an outcome moves linear numbers by: sum_k ceil(|a_ki| 2^20/step)."""
        if self.rows is None:
            return int(-((-_ROW * TICKS) // int(self.steps.min())))
        moved = -((-np.abs(self.rows) * TICKS) // self.steps[:, None])
        # Sums of 64 bits could overflow, those in floating point cannot.
        if float(moved.sum(axis=0, dtype=np.float64).max()) > _MOST_STEP:
            raise InputError("steps do not fit 60 bits", "ask for a smaller epsilon")
        return int(moved.sum(axis=0).max())

    @cached_property
    def step(self) -> NoisyVector:
        """The noisy vector, with the most steps that a unit moves it by: E, or E + K with moments.

        E is `most_steps`, and K is the number of linear numbers that a unit may move. Second
        moments cost no more than K steps if their step is 2^40/E or more.
        """
        most = self.most_steps
        if not self.moment_step:
            return NoisyVector("laplace", BITS, np.array([most]))
        if self.moment_step * most < TICKS**2:
            raise LookupError
        rounding = 1 if self.rows is None else len(self.rows)
        return NoisyVector("laplace", BITS, np.array([most + rounding]))

    def check(self) -> None:
        """Refuse numbers that do not fit 60 bits."""
        if self.rows is None:
            units = np.bincount(self.sums, self.many).astype(np.int64).tolist()
            weights = [each * _ROW for each in units]
        else:
            weights = [_product(np.abs(row), self.many) for row in self.rows]
        largest = [
            2 * (weight * (TICKS // 2) // step + 1)
            for weight, step in zip(weights, self.steps.tolist(), strict=True)
        ]
        if self.moment_step:
            largest.append(int(self.many.sum()) * (TICKS // 2) ** 2 // self.moment_step)
        within = max(int(self.steps.max()), self.moment_step) <= LARGEST_STEPS
        if not within or int(self.steps.min()) < 1 or max(largest) >= LARGEST_STEPS:
            raise InputError(
                f"the numbers of {int(self.many.sum())} units do not fit 60 bits",
                "ask for an epsilon nearer to 1",
            )

    def sums_of(self, clipped: Ints, kind: Ints) -> list[int]:
        """Returns all numbers without noise, in steps, from private ticks and kinds of units."""
        by_kind = np.zeros(len(self.many), dtype=np.int64)
        np.add.at(by_kind, kind, clipped)
        if self.rows is None:
            by_sum = np.zeros(len(self.steps), dtype=np.int64)
            np.add.at(by_sum, self.sums, by_kind)
            plain = [int(each) * _ROW for each in by_sum.tolist()]
        else:
            plain = [_product(row, by_kind) for row in self.rows]
        return [each // step for each, step in zip(plain, self.steps.tolist(), strict=True)]

    def draw(self, ticks: Ints, kind: Ints, groups: Ints, noise: Noise) -> QuestionsDrawn:
        """Draws all numbers, from private ticks and the kinds of units and groups of kinds."""
        clipped = np.clip(ticks, -TICKS // 2, TICKS // 2)
        numbers = tuple(noise.add_laplace(self.sums_of(clipped, kind), BITS, NUMBERS))
        if not self.moment_step:
            return QuestionsDrawn(numbers=numbers, moments=())
        squares = sums_by(groups[kind], clipped**2)
        steps = [each // self.moment_step for each in squares]
        return QuestionsDrawn(
            numbers=numbers, moments=tuple(noise.add_laplace(steps, BITS, MOMENTS))
        )

    def recover(self, rows: Floats) -> Floats:
        """Returns by which coefficients released rows add up to `rows`, by question and number."""
        if self.rows is None:
            # All units of a sum have one weight, the mean of their weights in a row.
            units = np.bincount(self.sums, self.many)
            mean = np.stack([np.bincount(self.sums, row * self.many) for row in rows]) / units
            return mean * self.steps / _ROW
        return (rows * np.sqrt(self.many)) @ self._inverse

    @cached_property
    def _inverse(self) -> Floats:
        weighed = self._weights * np.sqrt(self.many)
        return np.asarray(np.linalg.pinv(weighed, rcond=1e-12))

    @cached_property
    def _weights(self) -> Floats:
        """The released rows of weights, in steps for each tick, shape (numbers, kinds)."""
        rows: Any = self.rows
        return np.asarray(rows / self.steps[:, None])

    def answer(self, rows: Floats) -> bool:
        """Whether rows are sums of multiples of released ones, to 1e-9 of their length."""
        miss = self._added_up(self.recover(rows)) - rows
        length = np.sqrt((miss**2 * self.many).sum(axis=1))
        return bool((length <= _ANSWERED * np.sqrt((rows**2 * self.many).sum(axis=1))).all())

    def _added_up(self, coefficients: Floats) -> Floats:
        """Returns the rows that coefficients of released rows add up to: inverts `recover`."""
        if self.rows is None:
            found: Floats = (coefficients * _ROW / self.steps)[:, self.sums]
            return found
        return np.asarray(coefficients @ self._weights)

    def noise_parts(self, rows: Floats, width: float) -> tuple[Floats, Floats]:
        """Returns the variance M = sum v of each row's noise, and the number M^2/sum v^2 of terms.

        The sums are over the released numbers, whose Laplace noise has the variances v in the row.
        """
        parts = (self.recover(rows) * (width / TICKS * DEVIATION)) ** 2
        total = parts.sum(axis=1)
        return total, total**2 / (parts**2).sum(axis=1)

    def moment_value(self, width: float) -> float:
        """The value of one step of a second moment, in the outcome's squared unit."""
        return self.moment_step * (width / TICKS) ** 2


def sums_by(group: Ints, numbers: Ints) -> list[int]:
    """Returns exact sums of private numbers by group."""
    found = np.zeros(int(group.max()) + 1, dtype=np.int64)
    np.add.at(found, group, numbers)
    return [int(each) for each in found]


def _product(row: Ints, sums: Ints) -> int:
    """Returns the exact sum of products of a row and sums of kinds, by parts that fit 64 bits."""
    rest = row & (4**_PART - 1)
    high = int((row >> 2 * _PART) @ sums)
    middle = int((rest >> _PART) @ sums)
    low = int((rest & (2**_PART - 1)) @ sums)
    return (((high << _PART) + middle) << _PART) + low


def noise(recovered: Floats, width: float) -> Floats:
    """Returns the covariance of the noise of sums of released numbers, in squared outcome units."""
    weighed = recovered * (width / TICKS * DEVIATION)
    return weighed @ weighed.T


def fitted_rows(rows: Floats, many: Ints, epsilon: Fraction, by: tuple[str, ...]) -> Choice:
    """Returns the choice that releases these rows with noise of one scale for at most epsilon."""
    rounding = Fraction(len(rows), 2**BITS)
    if epsilon < ROUNDING * rounding:
        raise InputError(
            f"epsilon {float(epsilon):.3g} is too small for {len(rows)} numbers",
            f"ask for an epsilon of {float(ROUNDING * rounding):.3g} or more, or fewer questions",
        )
    largest = np.abs(rows).max(axis=1)
    # Documents hold numbers of 0 and more, so that `_ROW` is added.
    weights = np.rint(rows / largest[:, None] * _ROW).astype(np.int64) + _ROW
    most_moved = float(np.abs(rows).sum(axis=0).max())
    # Every row has the same scale in its own unit: one step of row k is that scale, divided by
    # 2^32.
    wanted = most_moved / largest * 2.0 ** (40 - BITS) * TICKS / float(epsilon - rounding)
    parts: dict[str, Any] = {"rows": weights.ravel(), "sums": None, "by": by}
    return fitted(parts, many, wanted, epsilon)


def fitted_sums(sums: Ints, many: Ints, epsilon: Fraction, by: tuple[str, ...] | None) -> Choice:
    """Returns the choice that releases sums of disjoint sets of kinds for at most epsilon.

    Second moments of groups are released too, unless `by` is None.
    """
    wanted = np.full(int(sums.max()) + 1, 2.0 ** (40 - BITS) * TICKS / float(epsilon))
    parts: dict[str, Any] = {"rows": None, "sums": sums, "by": by or ()}
    return fitted(parts, many, wanted, epsilon, moments=by is not None)


def fitted(
    parts: dict[str, Any], many: Ints, wanted: Floats, epsilon: Fraction, *, moments: bool = True
) -> Choice:
    """Returns a choice with steps so large that its loss is at most epsilon."""
    for _ in range(_ROUNDS):
        if not bool((wanted < _MOST_STEP).all()):
            break
        steps = np.maximum(np.ceil(wanted), 1).astype(np.int64)
        numbers = Numbers(many, Choice(**parts, steps=steps, moment_step=0))
        if moments:
            # This is the smallest step that costs no more, rounded upwards.
            numbers.moment_step = -(-(TICKS**2) // numbers.most_steps)
        loss = account([numbers.step]).epsilon
        if loss <= epsilon:
            numbers.check()
            return Choice(**parts, steps=steps, moment_step=numbers.moment_step)
        wanted = np.maximum(wanted * float(loss / epsilon), steps * (1 + 2.0**-40))
    raise InputError(
        f"the noise does not fit a lattice of {BITS} bits",
        "ask for a larger epsilon, or fewer questions",
    )


def ticks_of(outcomes: Floats, domain: Domain) -> Ints:
    """Returns clipped outcomes as whole ticks from the middle of the range. Private."""
    low, high = domain.levels[0], domain.levels[-1]
    part = (np.clip(outcomes, low, high) - low) / (high - low)
    return np.rint(part * TICKS).astype(np.int64) - TICKS // 2
