"""Answers to questions with honest intervals, from what was released alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal import checks, documents
from shoal.data.outcome_space import Space
from shoal.errors import InputError, printable
from shoal.files.text_table import aligned
from shoal.theory.questions.noisy_variance import added_noise, half_width
from shoal.trials.questions.asked import Asked, Block
from shoal.trials.questions.assigned import Known
from shoal.trials.questions.columns import ARM, Columns
from shoal.trials.questions.groups import codes_of
from shoal.trials.questions.numbers import BITS, Numbers, Released, step_deviation
from shoal.trials.questions.variances import Fit, fit_of
from shoal.trials.student import quantile

if TYPE_CHECKING:
    import pyarrow as pa

    Floats = NDArray[np.float64]
    Whole = NDArray[np.int64]

LEAST_CONFIDENCE, MOST_CONFIDENCE, _USUAL = 0.8, 0.995, 0.95
COLUMNS = ("question", "value", "standard error", "interval")


@dataclass(frozen=True)
class Answer:
    """The answer to one question, in the outcome's unit (over the regressor's, if it has one).

    Attributes:
        question: Its name.
        value: Unbiased for the weighed sum of outcomes.
        standard_error: Half the 95% interval over 1.96: of sampling and noise together, with what
            is allowed for a variance that is known with noise; in the value's unit.
        interval: Lowest and highest value, in the same unit.
        confidence: Of the interval, on its own: many intervals do not all cover at once.
    """

    question: str
    value: float
    standard_error: float
    interval: tuple[float, float]
    confidence: float

    def to_document(self) -> documents.Document:
        """The answer as a JSON object.

        Returns:
            Name and numbers.
        """
        return {
            "question": self.question,
            "value": self.value,
            "standard_error": self.standard_error,
            "interval": list(self.interval),
        }


@dataclass(frozen=True)
class Answers:
    """Answers to several questions, in the order in which they were asked.

    Attributes:
        every: All of them.
    """

    every: tuple[Answer, ...]

    def __iter__(self) -> Iterator[Answer]:
        """One after the other."""
        return iter(self.every)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.every)

    def __getitem__(self, question: str | int) -> Answer:
        """An answer by the name of its question, or by its place."""
        if isinstance(question, int) and not isinstance(question, bool):
            return self.every[question]
        for each in self.every:
            if isinstance(question, str) and each.question == question:
                return each
        raise InputError(
            f"a question {checks.shown(question)}",
            f"one of {', '.join(repr(each.question) for each in self.every[:10])}",
            "take a name of the plan",
        )

    def table(self) -> pa.Table:
        """All answers as a table.

        Returns:
            One row a question: question, value, standard_error, low, high.
        """
        import pyarrow as pa

        return pa.table(
            {
                "question": [each.question for each in self.every],
                "value": [each.value for each in self.every],
                "standard_error": [each.standard_error for each in self.every],
                "low": [each.interval[0] for each in self.every],
                "high": [each.interval[1] for each in self.every],
            }
        )

    def __str__(self) -> str:
        """One aligned row a question."""
        rows = [(*COLUMNS[:-1], f"{100 * self.every[0].confidence:.4g}% interval")]
        for each in self.every:
            low, high = each.interval
            numbers = f"{each.value:.5g}", f"{each.standard_error:.3g}", f"[{low:.4g}, {high:.4g}]"
            rows.append((printable(each.question), *numbers))
        return "\n".join(aligned(rows))


@dataclass(frozen=True, eq=False)
class Reading:
    """How answers follow from released numbers: public facts alone.

    Attributes:
        columns: Of the units.
        space: Of the outcome.
        numbers: What is released.
        rows: Weights of all questions, shape (questions, units).
    """

    columns: Columns
    space: Space
    numbers: Numbers
    rows: Floats

    @cached_property
    def groups(self) -> Whole:
        """The group of each unit whose second moments are released, from 0, shape (units,)."""
        return codes_of(self.columns, [ARM, *self.numbers.by])

    @cached_property
    def many(self) -> int:
        """How many groups there are."""
        return int(self.groups.max()) + 1

    @property
    def middle(self) -> float:
        """Of the range, in the outcome's unit."""
        return self.space.levels[0] + self.space.width / 2

    @property
    def moved(self) -> float:
        """The scale of the noise of a second moment, in the outcome's squared unit."""
        return self.numbers.moment_value(self.space.width) * 2.0**BITS

    def noise_deviation(self, rows: Floats) -> Floats:
        """Standard deviation of the noise of each answer, shape (questions,).

        Args:
            rows: Weights, shape (questions, units).
        """
        weighed = self.numbers.recover(rows) * self.numbers.worth(self.space.width)
        return np.asarray(np.linalg.norm(weighed, axis=1) * step_deviation())

    def fit(self, asked: Asked) -> Fit:
        """The prediction by which the variance of an entry's questions is known."""
        return fit_of(self.columns, asked, self.numbers.by)

    def coarser(self, codes: Whole, moments: Floats) -> Floats:
        """Sums over coarser groups, of what is known of the groups; the same scales in squares."""
        home = np.zeros(self.many, dtype=np.int64)
        home[self.groups] = codes
        return np.asarray(np.bincount(home, moments), dtype=np.float64)

    @cached_property
    def known(self) -> tuple[Known, ...]:
        """What the forms tell of variances of questions, where whole groups were assigned."""
        lengths = (self.rows**2).sum(axis=1).tolist()
        return tuple(Known(*each) for each in zip(self.numbers.forms, lengths, strict=True))

    def answers(self, released: Released, blocks: Sequence[Block], confidence: float) -> Answers:
        """Answers to questions that follow from what was released.

        Args:
            released: What was drawn.
            blocks: The questions, entry by entry: all that were asked, where groups were assigned.
            confidence: Of each interval, from 0.8 to 0.995.

        Raises:
            InputError: Another confidence.
        """
        if self.numbers.forms:
            return Answers(tuple(self._by_group(released, blocks, confidence)))
        found = [one for each in blocks for one in self._block(released, each, confidence)]
        return Answers(tuple(found))

    def _by_group(
        self, released: Released, blocks: Sequence[Block], confidence: float
    ) -> Iterator[Answer]:
        """Answers whose variances were released, one form a question."""
        width = self.space.width
        worth = self.numbers.worth(width) * np.array(released.numbers, dtype=float)
        # Weights add up to 1 for means and constants, and to 0 for all other questions.
        value = self.numbers.recover(self.rows) @ worth + self.middle * np.rint(
            self.rows.sum(axis=1)
        )
        scale = self.noise_deviation(self.rows) / math.sqrt(2)
        names = [name for each in blocks for name in each.names]
        every = zip(names, value, scale, self.known, released.forms, strict=True)
        for name, middle, own, known, told in every:
            variance, loose = told * known.worth * width**2, known.scale * width**2
            halves = [
                interval_half(each, variance, float(own), loose, known.inflation(each))
                for each in dict.fromkeys((confidence, _USUAL))
            ]
            yield _answer(name, float(middle), halves[0], halves[-1], confidence)

    def _block(self, released: Released, block: Block, confidence: float) -> Iterator[Answer]:
        """Answers to the questions of one entry."""
        rows, width = block.rows, self.space.width
        worth = self.numbers.worth(width) * np.array(released.numbers, dtype=float)
        value = self.numbers.recover(rows) @ worth + self.middle * np.rint(rows.sum(axis=1))
        scale = self.noise_deviation(rows) / math.sqrt(2)
        fit = self.fit(block.asked)
        sums, noise = fit.sums(rows), self.numbers.noise(fit.weights, width)
        coefficients = self.numbers.recover(fit.weights) @ worth
        squares = np.array(released.moments, dtype=float) * self.numbers.moment_value(width)
        moved = np.sqrt(self.coarser(fit.codes, np.full(self.many, self.moved**2)))
        variance = sums.variances(self.coarser(fit.codes, squares), coefficients, noise)
        loose = sums.doubt(moved, coefficients, noise)
        few = {each: fit.inflation(sums, each) for each in dict.fromkeys((confidence, _USUAL))}
        for at, name in enumerate(block.names):
            known = float(variance[at]), float(scale[at]), float(loose[at])
            halves = [interval_half(each, *known, float(own[at])) for each, own in few.items()]
            yield _answer(name, float(value[at]), halves[0], halves[-1], confidence)


def _answer(name: str, value: float, half: float, usual: float, confidence: float) -> Answer:
    """With half its interval, and half the one of 95%."""
    error = usual / quantile(math.inf, _USUAL)
    return Answer(name, value, error, (value - half, value + half), confidence)


def interval_half(
    confidence: float, variance: float, scale: float, loose: float, inflation: float
) -> float:
    """Half the width of an interval whose variance is known with noise.

    The noise of the answer is a sum of Laplace variables of variance 2 scale^2: the wider of the
    intervals for one such variable and for their normal limit is taken.

    Args:
        confidence: From 0.8 to 0.995.
        variance: As released, in the answer's squared unit.
        scale: In the answer's unit.
        loose: Of the variance's noise, in its squared unit.
        inflation: Of the variance, for few units.

    Raises:
        InputError: Another confidence.

    Example:
        >>> round(interval_half(0.95, 1.0, 0.0, 0.0, 1.0), 3)
        1.96
    """
    one = half_width(confidence, np.array([variance]), scale, loose, inflation=inflation)
    ratio = math.inf if loose > 0 == scale else (loose / scale**2 if loose > 0 else 0.0)
    raised = max(variance, 0.0) + added_noise(confidence, ratio) * loose
    normal = quantile(math.inf, confidence) * math.sqrt(inflation * raised + 2 * scale**2)
    return max(float(one[0]), normal)


def check_interval(confidence: object) -> float:
    """A confidence for which it is known how much wider a noisy variance makes intervals.

    Raises:
        InputError: Another.
    """
    return checks.number(
        confidence, "confidence", least=LEAST_CONFIDENCE, most=MOST_CONFIDENCE, example=0.95
    )


def check_stated_numbers(values: Any) -> tuple[int, ...]:
    """Drawn numbers of a manifest.

    Raises:
        ValueError: They are none.
    """
    if not all(type(each) is int for each in values):
        raise ValueError
    return tuple(values)
