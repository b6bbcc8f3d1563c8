"""Public facts of a plan of questions: what is released, what it costs, what it will tell."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from shoal import documents
from shoal.data.outcome_space import Space
from shoal.errors import DocumentError
from shoal.privacy.budget import Budget, from_text, round_up
from shoal.theory.questions.gaussian_strategy import least_covariance
from shoal.theory.questions.integer_strategy import exact_loss
from shoal.theory.questions.weights import scaled, spikiness
from shoal.trials.charge import LEAST_EPSILON, MOST_EPSILON
from shoal.trials.questions.answers import Reading, interval_half
from shoal.trials.questions.asked import Asked, Block, Stated, blocks_of, stacked
from shoal.trials.questions.assigned import expected_variance, forms_agree
from shoal.trials.questions.columns import Columns
from shoal.trials.questions.extremes import extremes
from shoal.trials.questions.groups import candidates, usable
from shoal.trials.questions.numbers import BITS, Numbers
from shoal.trials.questions.predicted import Predicted, Said, plan_text
from shoal.trials.student import quantile

if TYPE_CHECKING:
    import pyarrow as pa

    Floats = NDArray[np.float64]

SCHEMA = "shoal.questions-plan/1"
KIND = "questions"
CONFIDENCE = 0.95
# In parts of the range; and of epsilon, that a plan spends at the least.
LEAST_SPREAD, _SPENT = 1e-6, Fraction(999, 1000)


@dataclass(frozen=True, eq=False)
class QuestionsFacts:
    """Public facts of a release of questions. Make one with `Questions.plan`.

    Attributes:
        space: Its ends are those of the outcome's range.
        columns: All that is public of the units.
        asked: The questions.
        spread: The stated standard deviation of outcomes within arms, in the outcome's unit.
        asked_epsilon: The privacy loss that was asked for.
        numbers: What is released, in whole numbers.
    """

    space: Space
    columns: Columns
    asked: tuple[Asked, ...]
    spread: float
    asked_epsilon: Fraction
    numbers: Numbers

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The questions, entry by entry."""
        return blocks_of(self.columns, self.asked, self.stated)

    @property
    def stated(self) -> Stated:
        """Public numbers that precision weights follow from."""
        return Stated(self.space.width / self.spread, float(self.asked_epsilon))

    @property
    def possible(self) -> bool:
        """Whether epsilon and spread are such as may be asked for."""
        thin = LEAST_SPREAD * self.space.width
        return LEAST_EPSILON <= self.asked_epsilon <= MOST_EPSILON and (
            thin <= self.spread <= self.space.width
        )

    @property
    def spends(self) -> bool:
        """Whether the loss is at most what was asked for, and leaves little of it."""
        return _SPENT * self.asked_epsilon <= self.numbers.loss <= self.asked_epsilon

    @property
    def grouped(self) -> bool:
        """Whether groups of second moments are such as a plan may have."""
        by = self.numbers.by
        known = set(by) <= set(candidates(self.columns, self.asked))
        return not by or (known and usable(self.reading.groups))

    @property
    def known(self) -> bool:
        """Whether variances follow: from forms of the questions, or from means of groups."""
        numbers, relative = self.numbers, self.spread / self.space.width
        if self.columns.assigned is not None:
            alone = numbers.moment_step == 0 and not numbers.by
            return alone and forms_agree(self.columns, self.blocks, numbers.forms, relative)
        fits = (self.reading.fit(each).weights for each in self.asked)
        return not numbers.forms and numbers.moment_step > 0 and all(map(numbers.answer, fits))

    @property
    def follows(self) -> bool:
        """Whether the numbers fit their bits, answer the questions, and tell of their variances."""
        numbers = self.numbers
        return numbers.fits and numbers.answer(self.rows) and self.grouped and self.known

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the questions."""
        return tuple(name for each in self.blocks for name in each.names)

    @cached_property
    def rows(self) -> Floats:
        """Weights, shape (questions, units), without a unit or in 1 over a regressor's."""
        return stacked(self.blocks)

    @cached_property
    def reading(self) -> Reading:
        """How answers follow from released numbers."""
        return Reading(self.columns, self.space, self.numbers, self.rows)

    @property
    def loss(self) -> Budget:
        """The privacy loss of one outcome, as stated: rounded up to twelve digits."""
        return Budget.stated(Budget(self.numbers.loss), self.asked_epsilon)

    @property
    def epsilon(self) -> float:
        """The privacy loss of one outcome, rounded upwards."""
        return round_up(self.loss.epsilon)

    @property
    def variance_share(self) -> float:
        """Part of the loss that tells how assigned groups differ, without a unit; 0 without any."""
        if not self.numbers.forms:
            return 0.0
        linear = exact_loss(self.numbers.rows, self.numbers.steps, BITS)
        return float(1 - linear / self.numbers.loss)

    @cached_property
    def lower_bound_ratio(self) -> float:
        """Total noise variance over a bound that no Laplace noise of these questions is below.

        In units of each question's length, so that all intervals count alike; a factor. The bound
        is that of Gaussian noise, and need not be attained.
        """
        vectors = scaled(self.rows, self.space.width)
        noise = self.reading.noise_deviation(self.rows) / np.linalg.norm(self.rows, axis=1)
        # What some units need, all need.
        least = least_covariance(vectors[:, extremes(vectors)]).lower_bound
        bound = 2 * least / float(self.asked_epsilon) ** 2
        return float((noise**2).sum()) / bound

    @cached_property
    def predicted(self) -> tuple[Predicted, ...]:
        """What the plan says of each question, for the stated spread."""
        if self.numbers.forms:
            return tuple(self._by_group())
        return tuple(one for each in self.blocks for one in self._predicted(each))

    def _by_group(self) -> Iterator[Predicted]:
        """Of all questions, where whole groups were assigned."""
        rows, width = self.rows, self.space.width
        variance = expected_variance(rows, self.columns.groups, self.spread)
        noise = self.reading.noise_deviation(rows)
        spiky = spikiness(rows) * math.sqrt(self.columns.n)
        for at, (name, known) in enumerate(zip(self.names, self.reading.known, strict=True)):
            error = math.sqrt(float(variance[at]))
            told = float(noise[at]) / math.sqrt(2), known.scale * width**2
            half = interval_half(CONFIDENCE, error**2, *told, known.inflation(CONFIDENCE))
            without = quantile(known.degrees, CONFIDENCE) * error
            yield Predicted(name, float(noise[at]), float(spiky[at]), half, error, without)

    def _predicted(self, block: Block) -> Iterator[Predicted]:
        """Of the questions of one entry."""
        reading, rows, width = self.reading, block.rows, self.space.width
        fit = reading.fit(block.asked)
        sums, plain = fit.sums(rows), self.spread * np.linalg.norm(rows, axis=1)
        noise = reading.noise_deviation(rows)
        loose = sums.doubt(
            np.sqrt(reading.coarser(fit.codes, np.full(reading.many, reading.moved**2))),
            # Means of outcomes of this spread are no further from the middle.
            fit.flat * math.sqrt(max(width**2 / 4 - self.spread**2, 0.0)),
            self.numbers.noise(fit.weights, width),
        )
        few = fit.inflation(sums, CONFIDENCE)
        spiky = spikiness(rows) * math.sqrt(self.columns.n)
        for at, name in enumerate(block.names):
            error = float(plain[at])
            known = float(noise[at]) / math.sqrt(2), float(loose[at]), float(few[at])
            half = interval_half(CONFIDENCE, error**2, *known)
            # Satterthwaite's degrees of freedom, for groups whose outcomes differ alike.
            parts = sums.squares[:, at]
            degrees = float(parts.sum() ** 2 / (parts**2 / fit.degrees).sum())
            without = quantile(degrees, CONFIDENCE) * error
            yield Predicted(name, float(noise[at]), float(spiky[at]), half, error, without)

    def table(self) -> pa.Table:
        """What the plan says of each question.

        Returns:
            One row a question: question, noise (a standard deviation), spikiness, standard_error,
            plain_standard_error, half_width, plain_half_width, widening.
        """
        import pyarrow as pa

        every = self.predicted
        return pa.table(
            {
                "question": [each.question for each in every],
                "noise": [each.noise for each in every],
                "spikiness": [each.spikiness for each in every],
                "standard_error": [each.standard_error for each in every],
                "plain_standard_error": [each.plain_error for each in every],
                "half_width": [each.half_width for each in every],
                "plain_half_width": [each.plain_half_width for each in every],
                "widening": [each.widening for each in every],
            }
        )

    def __str__(self) -> str:
        """Head, one row a question, and what the columns mean."""
        said = Said(
            self.columns.n,
            len(self.columns.assignment.clusters),
            len(self.columns.arms),
            self.numbers.by,
            self.spread,
            self.lower_bound_ratio,
            0 if self.columns.assigned is None else int(self.columns.assigned.max()) + 1,
            self.variance_share,
            sum(len(each.limits) > 0 for each in self.numbers.forms),
        )
        return plan_text(self.predicted, self.numbers.loss, said)

    def to_document(self) -> documents.Document:
        """The plan as a JSON object.

        Returns:
            A document of the schema `shoal.questions-plan/1`.
        """
        return {
            "schema": SCHEMA,
            "space": self.space.to_document(),
            "columns": self.columns.to_document(),
            "questions": [each.to_document() for each in self.asked],
            "spread": self.spread,
            "epsilon": str(self.asked_epsilon),
            "numbers": self.numbers.to_document(),
            "claims": {"epsilon": str(self.loss.epsilon), "delta": str(self.loss.delta)},
        }

    @classmethod
    @np.errstate(all="ignore")
    def from_document(cls, document: documents.Document) -> Self:
        """The inverse of `to_document`; the loss is computed anew and compared.

        Args:
            document: The JSON object.

        Returns:
            The plan.

        Raises:
            DocumentError: Damaged, changed by hand, or numbers that do not answer the questions.
        """
        columns = Columns.from_document(document["columns"])
        found = cls(
            Space.from_document(dict(document["space"])),
            columns,
            tuple(Asked.from_document(each) for each in document["questions"]),
            float(document["spread"]),
            from_text(document["epsilon"]),
            Numbers.from_document(document["numbers"], columns.n),
        )
        claims = {"epsilon": str(found.loss.epsilon), "delta": str(found.loss.delta)}
        sound = claims == document["claims"] and found.possible and found.spends and found.follows
        if not sound:
            raise DocumentError(
                "a plan of questions whose numbers are not those of its questions",
                "a document written by shoal",
                "fetch it again, or plan anew",
            )
        return found
