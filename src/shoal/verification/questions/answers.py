"""Loss, values, standard errors and intervals of questions, again.

Nothing is imported from other packages, as in `verify`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.documents import Document
from shoal.verification.questions.facts import BITS, Facts
from shoal.verification.questions.forms import Told
from shoal.verification.questions.weights import Entry
from shoal.verification.strict import real
from shoal.verification.trials.spread import normal_laplace, student

Floats = NDArray[np.float64]
TICKS: int = 2**20
CONFIDENCE = 0.95
# What a noisy variance is raised by, in parts of its noise, at 95%: by b2/b1^2.
_KNOTS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_RAISED = (0.03, 0.07, 0.18, 0.43, 0.65, 0.75, 0.78, 0.80)
# Of half an interval, by which numbers may be off; of a row, by which it may miss its question.
_CLOSE, _MISSED = 1e-6, 1e-8
_LARGEST = 2.0**60
# With fewer degrees of freedom in a group, all units of a regression are one group.
FEWEST_DEGREES = 9.9
# Of a row's sum of squares: a group whose weights are 0 in truth may have so much of it.
_LEFT_BY_ROUNDING = 1e-12


def exact_loss(facts: Facts) -> Fraction | None:
    """What no unit loses more than, or None where second moments are not free.

    A unit moves number k by at most the whole steps above |a| 2^20/step; all K of them and the
    second moments of the middle cost K steps of rounding more than E, the most of the former.
    """
    size = np.abs(facts.rows)
    quotient, rest = np.divmod(size * TICKS, facts.steps[:, None])
    moved = quotient + (rest > 0)
    if float(moved.astype(np.float64).sum(axis=0).max()) > _LARGEST:
        raise ValueError
    if facts.forms:
        return Fraction(_most(moved.sum(axis=0), facts), 2**BITS)
    most = int(moved.sum(axis=0).max())
    if most * facts.moment_step < TICKS * TICKS:
        return None
    return Fraction(most + len(facts.steps), 2**BITS)


def _most(moved: NDArray[np.int64], facts: Facts) -> int:
    """The most that one unit moves all numbers and variances of assigned groups by, in steps."""
    every = [moved, *(each.steps() for each in facts.forms)]
    if sum(float(each.max()) for each in every) > _LARGEST:
        raise ValueError
    return max(map(sum, zip(*(each.tolist() for each in every), strict=True)))


@dataclass(frozen=True, eq=False)
class Found:
    """What a question's numbers tell.

    Attributes:
        value: The answer.
        error: Its standard error.
        half: Half its interval.
    """

    value: float
    error: float
    half: float


def recovered(facts: Facts, rows: Floats) -> tuple[Floats, bool]:
    """Questions as sums of released numbers, and whether they are such sums."""
    released = facts.rows / facts.steps[:, None]
    found: Floats = np.asarray(np.linalg.lstsq(released.T, rows.T, rcond=1e-12)[0].T, np.float64)
    off = np.sqrt(((found @ released - rows) ** 2).sum(axis=1))
    return found, bool((off <= _MISSED * np.sqrt((rows**2).sum(axis=1))).all())


def answers(facts: Facts, results: Document, entries: list[Entry]) -> list[Found]:
    """Values and intervals of all questions."""
    tick = facts.width / TICKS
    numbers = np.array([float(each) for each in results["numbers"]]) * tick
    # Discrete Laplace noise of scale t has the variance 2 r/(1 - r)^2, r = exp(-1/t).
    rate = 2.0**-BITS
    noise = np.full(len(numbers), tick**2 * 2 * math.exp(-rate) / math.expm1(-rate) ** 2)
    found = []
    for entry in entries:
        spread = _Spread.of(facts, entry, results["moments"], numbers, noise)
        sums, _ = recovered(facts, entry.rows)
        for row, own in zip(entry.rows, sums, strict=True):
            told, doubt, degrees = spread.variance(row)
            value = float(own @ numbers) + facts.middle * _whole_sum(row)
            half = _half(told, float(own**2 @ noise), doubt, degrees)
            found.append(Found(value, half / student(math.inf, CONFIDENCE), half))
    return found


def answers_by_group(
    facts: Facts, results: Document, entries: list[Entry], every: list[Told]
) -> list[Found]:
    """Values and intervals of all questions, where whole groups were assigned."""
    tick, rate = facts.width / TICKS, 2.0**-BITS
    numbers = np.array([float(each) for each in results["numbers"]]) * tick
    noise = tick**2 * 2 * math.exp(-rate) / math.expm1(-rate) ** 2
    rows = np.concatenate([each.rows for each in entries])
    sums, found = recovered(facts, rows)[0], []
    for row, own, told, drawn in zip(rows, sums, every, results["forms"], strict=True):
        worth = told.worth * facts.width**2
        value = float(own @ numbers) + facts.middle * _whole_sum(row)
        added = noise * float(own @ own)
        half = _half(drawn * worth, added, worth * 2.0**BITS, told.degrees)
        found.append(Found(value, half / student(math.inf, CONFIDENCE), half))
    return found


def _whole_sum(row: Floats) -> int:
    """The sum of a question's weights: 1 of means and constants, 0 of all other questions."""
    return round(math.fsum(row))


def inverse_of(entry: Entry) -> Floats:
    """Weights of the coefficients of an entry's prediction."""
    length = np.sqrt((entry.design**2).sum(axis=0))
    return np.asarray(np.linalg.pinv(entry.design / length) / length[:, None], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Spread:
    """What is known of residuals of an entry, unit by unit.

    Attributes:
        codes: Group of each unit.
        degrees: Of each group.
        squares: Noisy second moments of each group, in the outcome's squared unit.
        moved: Scales of their noise.
        fit: Predicted outcome of each unit less the middle.
        moves: How predictions follow noise of standard deviation 1 in each released number.
    """

    codes: NDArray[np.int64]
    degrees: Floats
    squares: list[float]
    moved: list[float]
    fit: Floats
    moves: Floats

    @classmethod
    def of(
        cls, facts: Facts, entry: Entry, moments: list[int], numbers: Floats, noise: Floats
    ) -> _Spread:
        """From what was released."""
        fine = facts.groups(facts.by, arms=True)
        inverse = inverse_of(entry)
        leverage = np.einsum("ij,ji->i", entry.design, inverse)
        codes = facts.groups(entry.within, arms=entry.arms)
        degrees = _degrees(codes, leverage)
        if entry.regression and float(degrees.min()) < FEWEST_DEGREES:
            codes = np.zeros_like(codes)
            degrees = _degrees(codes, leverage)
        if float(degrees.min()) < 1 - _MISSED:
            raise ValueError
        squares, parts = [0.0] * len(degrees), [0] * len(degrees)
        unit = facts.moment_step * (facts.width / TICKS) ** 2
        for at, number in enumerate(moments):
            home = int(codes[fine == at][0])
            squares[home] += number * unit
            parts[home] += 1
        told, _ = recovered(facts, inverse)
        hat = entry.design @ told
        scale = 2.0**BITS * unit
        moved = [scale * math.sqrt(each) for each in parts]
        return cls(codes, degrees, squares, moved, hat @ numbers, hat * np.sqrt(noise))

    def variance(self, row: Floats) -> tuple[float, float, float]:
        """The sampling variance of a sum, the scale of its noise, and degrees of freedom."""
        own = np.bincount(self.codes, row**2)
        part, least = own / self.degrees, _LEFT_BY_ROUNDING * float(own.sum())
        weight = part[self.codes]
        square = (self.moves * weight[:, None]).T @ self.moves
        told = math.fsum(p * s for p, s in zip(part, self.squares, strict=True))
        told += -float(weight @ self.fit**2) + float(np.trace(square))
        linear = (weight * self.fit) @ self.moves
        parts = [(p * b) ** 2 for p, b in zip(part, self.moved, strict=True)]
        parts += [2 * float(linear @ linear), 2.5 * float((square**2).sum())]
        few = min(float(d) for d, each in zip(self.degrees, own, strict=True) if each > least)
        return told, math.sqrt(math.fsum(parts)), few


def _degrees(codes: NDArray[np.int64], leverage: Floats) -> Floats:
    """Units less leverages of each group."""
    return np.asarray(np.bincount(codes) - np.bincount(codes, leverage), dtype=np.float64)


def raised_by(ratio: float) -> float:
    """What a noisy variance is raised by at 95%, in parts of its noise.

    Args:
        ratio: Scale of its noise over the squared scale of the estimate's noise.

    Example:
        >>> raised_by(1.0), raised_by(1e9)
        (0.43, 0.8)
    """
    return float(np.interp(math.log(max(ratio, _KNOTS[0])), np.log(_KNOTS), _RAISED))


def _half(told: float, added: float, doubt: float, degrees: float) -> float:
    """Half an interval: the wider of those for one Laplace variable and for normal noise."""
    raise_by = raised_by(doubt / (added / 2))
    few = max((student(degrees, CONFIDENCE) / student(math.inf, CONFIDENCE)) ** 2, 1.0)
    sampling = few * (max(told, 0.0) + raise_by * doubt)
    normal = student(math.inf, CONFIDENCE) * math.sqrt(sampling + added)
    return max(normal, normal_laplace(CONFIDENCE, sampling, added, 1.0))


def hold(names: list[str], found: list[Found], stated: list[Document]) -> list[tuple[bool, str]]:
    """Whether questions, values, standard errors and intervals are those that follow."""
    if [each["question"] for each in stated] != names:
        return [(False, "other questions")] * 3
    values = errors = spans = True
    for each, told in zip(found, stated, strict=True):
        slack = _CLOSE * each.half + 1e-12 * abs(each.value)
        low, high = told["interval"]
        values &= abs(real(told["value"]) - each.value) <= slack
        errors &= abs(real(told["standard_error"]) - each.error) <= slack
        spans &= abs(real(low) - (each.value - each.half)) <= slack
        spans &= abs(real(high) - (each.value + each.half)) <= slack
    shown = ", ".join(f"{each.value:.6g}" for each in found[:3])
    worst = max(each.error for each in found)
    return [
        (values, f"{len(found)} answers: {shown}{', ...' if len(found) > 3 else ''}"),
        (errors, f"at most {worst:.6g}"),
        (spans, f"at confidence {CONFIDENCE:g}"),
    ]
