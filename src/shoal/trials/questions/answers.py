"""Answers to questions with honest intervals, from what was released alone."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from shoal import documents
from shoal.errors import printable
from shoal.files.text_table import Shown, TextTable
from shoal.trials.effects import Listed


@dataclass(frozen=True)
class Answer:
    """The answer to one question, in the outcome's unit (over the regressor's, if it has one).

    Attributes:
        question: Its name.
        value: Unbiased for the weighed sum of outcomes.
        standard_error: As estimated: half the 95% interval over 1.96, of sampling and noise
            together, with what is allowed for a variance that is known with noise.
        predicted: The standard error that the plan predicted, for the stated spread.
        interval: Lowest and highest value, in the same unit.
        confidence: Of the interval, on its own: many intervals do not all cover at once.
    """

    question: str
    value: float
    standard_error: float
    predicted: float
    interval: tuple[float, float]
    confidence: float

    def to_document(self) -> documents.Document:
        """The answer as a JSON object.

        Returns:
            Name and numbers.
        """
        names = "question", "value", "standard_error", "interval"
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Answers(Shown, Listed[Answer]):
    """Answers to several questions, in the order in which they were asked.

    Attributes:
        every: All of them.
        head: What they are of, in a line.
        warnings: Sentences on intervals that may be too short.
    """

    every: tuple[Answer, ...]
    head: str = ""
    warnings: tuple[str, ...] = ()

    _name = "question"

    def table(self) -> pa.Table:
        """All answers as a table.

        Returns:
            One row a question: question, value, standard_error (estimated),
            predicted_standard_error, low, high.
        """
        return pa.table(
            {
                "question": [each.question for each in self.every],
                "value": [each.value for each in self.every],
                "standard_error": [each.standard_error for each in self.every],
                "predicted_standard_error": [each.predicted for each in self.every],
                "low": [each.interval[0] for each in self.every],
                "high": [each.interval[1] for each in self.every],
            }
        )

    def _text(self) -> TextTable:
        rows = []
        for each in self.every:
            low, high = each.interval
            errors = f"{each.standard_error:.3g}", f"{each.predicted:.3g}"
            ends = f"{low:.4g}", f"{high:.4g}"
            rows.append([printable(each.question), f"{each.value:.5g}", *errors, *ends])
        level = f"{100 * self.every[0].confidence:.4g}%"
        columns = "question", "value", "estimated SE", "predicted SE", f"{level} low", "high"
        notes = ["estimated SE: half of the 95% interval over 1.96"]
        return TextTable(self.head, columns, rows, notes, self.warnings)
