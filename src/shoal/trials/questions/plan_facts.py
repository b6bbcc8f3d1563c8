"""Public facts of a plan of questions: what is released, what it costs, what it will tell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from shoal.checks.frozen import Frozen, cached_property, thaw
from shoal.data.outcome_space import Space
from shoal.errors import DocumentError
from shoal.privacy.budget import Budget, from_text, text
from shoal.privacy.displayed_loss import round_up, show
from shoal.release.question import Question
from shoal.theory.questions.gaussian_strategy import least_covariance
from shoal.theory.questions.weights import scaled, spikiness
from shoal.trials.questions.answers import Reading, aligned, interval_half
from shoal.trials.questions.asked import Asked, Stated, rows_of
from shoal.trials.questions.columns import Columns
from shoal.trials.questions.numbers import Numbers
from shoal.trials.questions.strategy import answered
from shoal.trials.student import quantile

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    import pyarrow as pa
    from numpy.typing import NDArray

    from shoal import documents
    from shoal.privacy.privacy_unit import Whose

    Floats = NDArray[np.float64]

SCHEMA = "shoal.questions-plan/1"
KIND = "questions"
PRIVACY = "pure label differential privacy"
NEIGHBOURS = "one unit's outcome changes; its cluster, treatment and covariates are public"
CONFIDENCE = 0.95
# What follows from the rest of a plan.
_FOLLOWS = ("numbers", "claims")


@dataclass(frozen=True)
class Predicted:
    """What a plan says of one question, before any outcome is read.

    Attributes:
        question: Its name.
        noise: Standard deviation of the noise, in the answer's unit.
        spikiness: max|w|/|w|_2 times the root of the units: 1 is the least, and a factor.
        half_width: Of the 95% interval with noise, for the stated spread, in the answer's unit.
        plain_half_width: Of the interval without noise, in the same unit.
    """

    question: str
    noise: float
    spikiness: float
    half_width: float
    plain_half_width: float

    @property
    def widening(self) -> float:
        """How much wider the interval is than without noise, as a factor."""
        return self.half_width / self.plain_half_width


@dataclass(frozen=True, eq=False)
class QuestionsFacts(Frozen):
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
    def _named_rows(self) -> tuple[tuple[str, ...], Floats]:
        return rows_of(self.columns, self.asked, self.stated)

    @property
    def stated(self) -> Stated:
        """Public numbers that precision weights follow from."""
        return Stated(self.space.width / self.spread, float(self.asked_epsilon))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the questions."""
        return self._named_rows[0]

    @property
    def rows(self) -> Floats:
        """Weights, shape (questions, units), without a unit or in 1 over a regressor's."""
        return self._named_rows[1]

    @property
    def reading(self) -> Reading:
        """How answers follow from released numbers."""
        return Reading(self.columns, self.space, self.numbers)

    @property
    def loss(self) -> Budget:
        """The exact privacy loss of one outcome."""
        return Budget(self.numbers.loss)

    @property
    def epsilon(self) -> float:
        """The privacy loss of one outcome, rounded upwards."""
        return round_up(self.numbers.loss)

    @cached_property
    def lower_bound_ratio(self) -> float:
        """Total noise variance over a bound that no Laplace noise of these questions is below.

        In units of each question's length, so that all intervals count alike; a factor. The bound
        is that of Gaussian noise, and need not be attained.
        """
        vectors = scaled(self.rows, self.space.width)
        noise = self.reading.noise_deviation(self.rows) / np.linalg.norm(self.rows, axis=1)
        bound = 2 * least_covariance(vectors).lower_bound / float(self.asked_epsilon) ** 2
        return float((noise**2).sum()) / bound

    @cached_property
    def predicted(self) -> tuple[Predicted, ...]:
        """What the plan says of each question, for the stated spread."""
        norm = np.linalg.norm(self.rows, axis=1)
        noise = self.reading.noise_deviation(self.rows)
        spiky = spikiness(self.rows) * math.sqrt(self.columns.n)
        loose = self._loose()
        plain = quantile(math.inf, CONFIDENCE) * self.spread
        return tuple(
            Predicted(
                name,
                float(noise[at]),
                float(spiky[at]),
                interval_half(
                    CONFIDENCE,
                    float(self.spread * norm[at]) ** 2,
                    float(noise[at]) / math.sqrt(2),
                    loose * float(norm[at]) ** 2,
                    1.0,
                ),
                float(plain * norm[at]),
            )
            for at, name in enumerate(self.names)
        )

    def _loose(self) -> float:
        """The scale of the noise of the arms' variances, at most, for the stated spread."""
        from shoal.theory.questions.weights import arm_means

        width, sizes = self.space.width, np.bincount(self.columns.arm)
        off = self.reading.noise_deviation(arm_means(self.columns.arm)) ** 2
        away = max(width**2 / 4 - self.spread**2, 0.0)
        moved = width**2 / float(self.asked_epsilon) / sizes
        return float(np.sqrt(moved**2 + 2 * away * off + 2.5 * off**2).max())

    def table(self) -> pa.Table:
        """What the plan says of each question.

        Returns:
            One row a question: question, noise (a standard deviation), spikiness, half_width,
            plain_half_width, widening.
        """
        import pyarrow as pa

        return pa.table(
            {
                "question": [each.question for each in self.predicted],
                "noise": [each.noise for each in self.predicted],
                "spikiness": [each.spikiness for each in self.predicted],
                "half_width": [each.half_width for each in self.predicted],
                "plain_half_width": [each.plain_half_width for each in self.predicted],
                "widening": [each.widening for each in self.predicted],
            }
        )

    def __str__(self) -> str:
        """Head, one row a question, and what the columns mean."""
        rows = [("question", "noise", "spikiness", "95% interval", "without noise", "times")]
        for each in self.predicted:
            widths = f"+-{each.half_width:.3g}", f"+-{each.plain_half_width:.3g}"
            numbers = f"{each.noise:.3g}", f"{each.spikiness:.3g}", *widths
            rows.append((each.question, *numbers, f"{each.widening:.3g}"))
        clusters = len(self.columns.assignment.clusters)
        groups = "1 cluster" if clusters == 1 else f"{clusters} clusters"
        many = "1 question" if len(self.names) == 1 else f"{len(self.names)} questions"
        return "\n".join(
            [
                (
                    f"{many} of {self.columns.n} units in {groups}, {len(self.columns.arms)} arms, "
                    f"epsilon {show(self.numbers.loss)} for one outcome"
                ),
                aligned(rows),
                (
                    "noise: standard deviation of the Laplace noise; no Laplace noise of these "
                    f"questions has a total variance below 1/{self.lower_bound_ratio:.3g} of this one"
                ),
                (
                    "spikiness: 1 if all units weigh alike; the square of it times fewer units would "
                    "have the same noise"
                ),
                (
                    f"intervals: for outcomes of standard deviation {self.spread:.4g} within arms "
                    "(spread), units assigned one by one"
                ),
                "arms, clusters and covariates are public and are published with the release",
            ]
        )

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
            "epsilon": text(self.asked_epsilon),
            "numbers": self.numbers.to_document(),
            "claims": {"epsilon": text(self.loss.epsilon), "delta": text(self.loss.delta)},
        }

    @classmethod
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
            Space.from_document(thaw(document["space"])),
            columns,
            tuple(Asked.from_document(each) for each in document["questions"]),
            float(document["spread"]),
            from_text(document["epsilon"]),
            Numbers.from_document(document["numbers"], columns.n),
        )
        claims = {"epsilon": text(found.loss.epsilon), "delta": text(found.loss.delta)}
        sound = (
            claims == document["claims"]
            and found.numbers.loss <= found.asked_epsilon
            and found.numbers.fits
            and answered(found.numbers.weights(), found.rows)
        )
        if not sound:
            raise DocumentError(
                "a plan of questions whose numbers are not those of its questions",
                "a document written by shoal",
                "fetch it again, or plan anew",
            )
        return found

    def question(self, records: Mapping[str, Any], whose: Whose, name: str = "") -> Question:
        """What a release is asked for; numbers and their loss follow from what was asked.

        Args:
            records: The outcome's name.
            whose: Whose loss it is.
            name: What the release is of.

        Returns:
            The question; its key is the ledger's.
        """
        document = self.to_document()
        return Question(
            kind=KIND,
            plan=document,
            asked={part: each for part, each in document.items() if part not in _FOLLOWS},
            records=records,
            whose=whose,
            loss=self.loss,
            privacy=PRIVACY,
            neighbours=NEIGHBOURS,
            name=name,
        )
