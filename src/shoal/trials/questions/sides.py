"""Plans whose answers compare sides: weighted means of an arm, which are ratios or have bounds.

A side is known to lie in an interval and, if outcomes are missing, its value in a part of it. The
difference of two sides has the interval MOVER (Donner and Zou, 2012).
Source: docs/theory/experiments.md#ratios.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.arrays import Floats, Ints
from shoal.errors import InputError, printable
from shoal.files.text_table import TextTable, counted
from shoal.intervals import check_level, student
from shoal.trials.design import ARM, Design
from shoal.trials.effect_estimation import Spread
from shoal.trials.plan import Plan
from shoal.trials.questions.numbers import BITS, TICKS, Numbers, noise
from shoal.trials.questions.variances import Fit, fit_of
from shoal.trials.questions.weights import (
    MEANS,
    PRECISION,
    REGRESSION,
    Block,
    Label,
    QuestionEntry,
    blocks_of,
    lengths,
)
from shoal.trials.results import Answer, Answers

LIFT = "lift"
# The confidence of intervals in plans.
_USUAL = 0.95


class Interval(NamedTuple):
    """An interval, and the part of it in which the value lies if nothing were drawn or sampled."""

    low: float
    bottom: float
    top: float
    high: float

    @property
    def value(self) -> float:
        """The middle of the part, which is all of it if no outcome is missing."""
        return (self.bottom + self.top) / 2

    @property
    def half(self) -> float:
        """Half of the interval's length."""
        return (self.high - self.low) / 2

    def less(self, other: Interval) -> Interval:
        """Returns the difference of two independent estimates, by MOVER."""
        if math.isnan(self.value + other.value):
            return Interval(-math.inf, math.nan, math.nan, math.inf)
        bottom = self.bottom - other.top
        top = self.top - other.bottom
        down = math.hypot(self.bottom - self.low, other.high - other.top)
        up = math.hypot(self.high - self.top, other.bottom - other.low)
        return Interval(bottom - down, bottom, top, top + up)

    def lift(self, other: Interval) -> Interval:
        """Returns self/other - 1: the difference of logarithms, which are unknown below 0."""
        logs = [Interval(*map(_log, each)) for each in (self, other)]
        if not all(math.isfinite(each.value) for each in logs):
            return Interval(-1.0, math.nan, math.nan, math.inf)
        return Interval(*map(math.expm1, logs[0].less(logs[1])))


def _log(number: float) -> float:
    return math.log(number) if number > 0 else -math.inf


class Linear(NamedTuple):
    """The mean of one private column over weighted units, about the middle of its range.

    `noise` is the variance of its noise, a sum of variables the squares of whose variances add up
    to `squares`. `coefficients` are the means of groups within which the column varies, with noise
    of this `covariance`.
    """

    mean: float
    low: float
    high: float
    noise: float
    squares: float
    coefficients: Floats
    covariance: Floats

    @property
    def width(self) -> float:
        """The width of the range."""
        return self.high - self.low

    @property
    def whole(self) -> float:
        """The mean itself."""
        return self.mean + (self.low + self.high) / 2

    def without_noise(self) -> Linear:
        """Returns the mean as if no noise had been added."""
        return self._replace(noise=0.0, squares=0.0, covariance=np.zeros_like(self.covariance))


@dataclass(frozen=True, eq=False)
class Side(ABC):
    """The means of two private columns over the same weighted units of one arm.

    Attributes:
        first: The first mean, x.
        second: The second mean, y.
        fit: How the variance of one row of weights follows from second moments.
        moments: Second moments by group, shape (moments, groups).
        scales: The scales of their noise.
        expected: The variance of the mean, if none is estimated.
    """

    first: Linear
    second: Linear
    fit: Fit
    moments: Floats
    scales: Floats
    expected: float | None

    @abstractmethod
    def parts(self, factor: float) -> Floats:
        """By which factors second moments add up to that of x + factor y."""

    @abstractmethod
    def interval(self, confidence: float) -> Interval:
        """What is known of the side."""

    @property
    @abstractmethod
    def error(self) -> float:
        """The standard error of the side's value, by sampling and noise."""

    def spread(self, factor: float) -> Spread:
        """Returns how far the mean of x + factor y varies by sampling and noise."""
        x = self.first
        y = self.second
        noise = x.noise + factor**2 * y.noise
        squares = x.squares + factor**4 * y.squares
        covariance = x.covariance + factor**2 * y.covariance
        coefficients = x.coefficients + factor * y.coefficients
        parts = self.parts(factor)
        variance = self.expected
        if variance is None:
            moments = parts @ self.moments
            variance = float(self.fit.variances(moments, coefficients, covariance)[0])
        scales = np.sqrt((parts**2) @ self.scales**2)
        loose = float(self.fit.noise_scale(scales, coefficients, covariance)[0])
        terms = noise**2 / squares if squares > 0 else 1.0
        return Spread(variance, float(self.fit.fewest[0]), noise, terms, loose)


class Compared(NamedTuple):
    """A question: the place of an arm's side in its block and, of a difference, of control's."""

    label: Label
    side: int
    control: int | None

    def interval(self, sides: Sequence[Interval]) -> Interval:
        """Returns what is known of the answer."""
        own = sides[self.side]
        if self.control is None:
            return own
        if self.label.statistic == LIFT:
            return own.lift(sides[self.control])
        return own.less(sides[self.control])


class Sides(NamedTuple):
    """The questions of an entry, and the weights of all sides, each of which adds up to 1."""

    questions: tuple[Compared, ...]
    block: Block


class PredictedSide(NamedTuple):
    """What a plan predicts of an answer: its standard error, and half of its interval.

    Half widths, with noise and without, may be infinite.
    """

    question: str
    standard_error: float
    half_width: float
    plain_half_width: float

    @property
    def widening(self) -> float:
        """How much wider the interval is than without noise, as a factor."""
        return self.half_width / self.plain_half_width


@dataclass(frozen=True, eq=False, repr=False)
class SidesPlan(Plan):
    """A plan of questions whose answers compare sides."""

    # A request with `entries`.
    request: Any

    @property
    def with_lift(self) -> bool:
        """Whether relative differences are shown, too."""
        return False

    @property
    def of_mean(self) -> str:
        """The word for the mean of an arm."""
        return "mean"

    def cut(self, interval: Interval, question: Compared) -> Interval:
        """Returns the part of an interval that the range allows."""
        return interval

    @abstractmethod
    def sides(self, block: Block, drawn: Any) -> Iterator[Side]:
        """Yields the sides of a block from drawn numbers, or as expected if nothing is drawn."""

    @abstractmethod
    def meanings(self) -> Iterator[str]:
        """Yields the sentences below a plan's table."""

    @cached_property
    def blocks(self) -> tuple[Sides, ...]:
        """The questions, entry by entry."""
        entries = self.request.entries
        return tuple(sides_of(self.design, entries, self.of_mean, with_lift=self.with_lift))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the questions."""
        return tuple(each.label.question for block in self.blocks for each in block.questions)

    @cached_property
    def groups(self) -> Ints:
        """The group of each kind of units, from 0; second moments are released by group."""
        return self.design.codes([ARM, *self.chosen.by])

    @property
    def effective_units(self) -> Floats:
        """How many units of equal weight each question rests on."""
        found = []
        for block in self.blocks:
            rows = block.block.rows
            units = (rows**2) @ self.design.many / (rows**2).max(axis=1)
            for each in block.questions:
                control = each.side if each.control is None else each.control
                found.append(min(units[each.side], units[control]))
        return np.array(found)

    def read(self, drawn: Any, confidence: float, **_: Any) -> Answers:
        """Returns the answers to all questions."""
        wanted = check_level(confidence)
        found = list[Answer]()
        predicted = iter(self.predicted)
        for block in self.blocks:
            sides = [*self.sides(block.block, drawn)]
            known = [each.interval(wanted) for each in sides]
            usual = [each.interval(_USUAL) for each in sides] if wanted != _USUAL else known
            for question in block.questions:
                interval = self.cut(question.interval(known), question)
                half = self.cut(question.interval(usual), question).half
                error = half / student(math.inf, _USUAL)
                found.append(
                    Answer(
                        **question.label._asdict(),
                        value=interval.value,
                        standard_error=error,
                        predicted=next(predicted).standard_error,
                        interval=(interval.low, interval.high),
                        confidence=wanted,
                    )
                )
        return Answers(tuple(found), self.answers_head(len(found)), ())

    def fits(self, block: Block, moments: Floats) -> tuple[Fit, Floats, Floats, Floats]:
        """Returns a block's fit and weights of its coefficients, and second moments by its groups.

        `moments` have the shape (groups of the plan, moments); the last entry says how many of
        those groups each group of the fit has.
        """
        fit, weights = fit_of(self.design, block, self.chosen.by)
        coarse = np.zeros(len(moments), dtype=np.int64)
        coarse[self.groups] = fit.codes
        found = np.zeros((int(coarse.max()) + 1, moments.shape[1]))
        np.add.at(found, coarse, moments)
        return fit, weights, found.T, np.bincount(coarse).astype(np.float64)

    def lengths_of(self, block: Block) -> list[float]:
        """Returns the squared length of each row: the variance of a mean of variance 1."""
        return [float(each) ** 2 for each in lengths(block.rows, self.design.many)]

    @cached_property
    def predicted(self) -> tuple[PredictedSide, ...]:
        """The predicted errors of each answer."""
        return tuple(each for block in self.blocks for each in self._predicted(block))

    def _predicted(self, block: Sides) -> Iterator[PredictedSide]:
        """Yields the predicted errors of the questions of a block."""
        sides = [*self.sides(block.block, None)]
        noisy = [each.interval(_USUAL) for each in sides]
        plain = [each.interval(_USUAL) for each in self.without_noise(sides)]
        for question in block.questions:
            places = [question.side]
            if question.control is not None:
                places.append(question.control)
            errors = [sides[at].error for at in places]
            if question.label.statistic == LIFT:
                errors = [
                    error / noisy[at].value if noisy[at].value else math.inf
                    for error, at in zip(errors, places, strict=True)
                ]
            halves = [self.cut(question.interval(each), question).half for each in (noisy, plain)]
            yield PredictedSide(question.label.question, math.hypot(*errors), *halves)

    @staticmethod
    def without_noise(sides: Sequence[Side]) -> Iterator[Side]:
        """Yields sides as if no noise had been added."""
        for each in sides:
            yield replace(
                each,
                first=each.first.without_noise(),
                second=each.second.without_noise(),
                scales=np.zeros_like(each.scales),
            )

    def table(self, drawn: Any, confidence: float) -> pa.Table:
        """The answers with their intervals."""
        return self.read(drawn, confidence).table()

    def predictions(self) -> pa.Table:
        """The predicted errors of each answer.

        Returns:
            One row a question, with the columns of `PredictedSide` and `widening`.
        """
        rows = [each._asdict() | {"widening": each.widening} for each in self.predicted]
        return pa.Table.from_pylist(rows)

    def _text(self) -> TextTable:
        """The plan with a row for each question, and the meaning of the columns."""
        rows = []
        for each in self.predicted:
            halves = [f"±{half:.3g}" for half in (each.half_width, each.plain_half_width)]
            error = f"{each.standard_error:.3g}"
            rows.append([printable(each.question), error, *halves, f"{each.widening:.3g}"])
        columns = ["question", "predicted SE", "95% interval", "without noise", "times"]
        meanings = [
            *self.meanings(),
            "times: how many times as wide as without noise; assumed: units assigned one by one",
            "arms, clusters and covariates are public and are published with the release",
        ]
        head = self._head(counted(len(rows), "question"))
        return TextTable(head, columns, rows, meanings, self.warnings())


def linear(
    numbers: Numbers,
    drawn: Floats | None,
    rows: Floats,
    weights: Floats,
    ends: tuple[float, float],
    expected: float,
) -> Iterator[Linear]:
    """Yields the mean of a private column by each row of weights, as drawn or as expected."""
    low, high = ends
    width = high - low
    recovered = numbers.recover(weights)
    covariance = noise(recovered, width)
    total, terms = numbers.noise_parts(rows, width)
    if drawn is None:
        middle = expected - (low + high) / 2
        means = np.full(len(rows), middle)
        coefficients = np.full(len(weights), middle)
    else:
        means = numbers.recover(rows) @ drawn * width / TICKS
        coefficients = recovered @ drawn * width / TICKS
    every = zip(means.tolist(), total.tolist(), (total**2 / terms).tolist(), strict=True)
    for mean, variance, squares in every:
        yield Linear(mean, low, high, variance, squares, coefficients, covariance)


def noise_of_moments(groups: Floats, values: Floats) -> Floats:
    """Returns scales of the noise of second moments, shape (moments, groups).

    `values` is what a step of each is worth, and `groups` how many are added up.
    """
    scales: Floats = values[:, None] * np.sqrt(groups) * 2.0**BITS
    return scales


def check_entries(design: Design, entries: Sequence[QuestionEntry], what: str) -> None:
    """Refuse questions that do not compare sides."""
    unlike = any(each.kind == REGRESSION or each.weights == PRECISION for each in entries)
    if unlike or design.group is not None:
        raise InputError(
            f"{what} takes effects and means of units that were assigned one by one",
            "leave regressions, precision weights and assigned= out, or plan a complete outcome",
        )


def sides_of(
    design: Design, entries: Sequence[QuestionEntry], of_mean: str, *, with_lift: bool
) -> Iterator[Sides]:
    """Yields the questions of each entry with the sides that they compare."""
    for block in blocks_of(design, entries, 1.0):
        rows = list[Floats]()
        questions = []
        for label, row in zip(block.labels, block.rows, strict=True):
            side = _place(rows, np.maximum(row, 0.0))
            if block.entry.kind == MEANS:
                own = _renamed(label, of_mean)
                questions.append(Compared(own, side, None))
                continue
            control = _place(rows, np.maximum(-row, 0.0))
            questions.append(Compared(label, side, control))
            if with_lift:
                questions.append(Compared(_renamed(label, LIFT), side, control))
        sides = tuple(Label(f"side {at}", of_mean) for at in range(len(rows)))
        yield Sides(tuple(questions), Block(block.entry, sides, np.array(rows)))


def _renamed(label: Label, statistic: str) -> Label:
    """Returns a label of another statistic, with which its name begins."""
    rest = label.question.removeprefix(label.statistic)
    return label._replace(question=f"{statistic}{rest}", statistic=statistic)


def _place(rows: list[Floats], row: Floats) -> int:
    """Returns the place of a row among rows, where it is added if it is new."""
    for at, each in enumerate(rows):
        if np.array_equal(each, row):
            return at
    rows.append(row)
    return len(rows) - 1


def distinct(blocks: Sequence[Sides]) -> list[Block]:
    """Returns the sides of blocks without those that an earlier block has."""
    seen = list[Floats]()
    found = []
    for each in blocks:
        block = each.block
        new = []
        for at, row in enumerate(block.rows):
            before = len(seen)
            if _place(seen, row) == before:
                new.append(at)
        labels = tuple(block.labels[at] for at in new)
        if new:
            found.append(Block(block.entry, labels, block.rows[new]))
    return found
