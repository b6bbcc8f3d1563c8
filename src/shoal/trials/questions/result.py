"""A delivered release of questions: answers, regressions in their span, manifest."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shoal import checks, documents
from shoal.errors import InputError
from shoal.files import tables
from shoal.privacy.budget import Budget, show
from shoal.release import release
from shoal.release.manifest import CONFIDENCE
from shoal.release.release import damaged
from shoal.trials.questions.answers import Answers, check_interval, check_stated_numbers
from shoal.trials.questions.asked import (
    REGRESSION,
    Asked,
    Block,
    check_regressors,
    coefficients,
    design_of,
)
from shoal.trials.questions.numbers import Released
from shoal.trials.questions.plan_facts import KIND, QuestionsFacts

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class PrivateAnswers(release.Release[QuestionsFacts, Released]):
    """Private answers to questions of an experiment, as delivered; everything in it is public.

    Source: docs/theory/questions.md.

    Guarantees: G-LOSS, G-COVERAGE.

    Example:
        >>> import numpy as np
        >>> from shoal.trials import Questions, Space
        >>> arm, bought = np.arange(4000) % 2, np.arange(4000) % 3 == 0
        >>> plan = Questions(arm).effect().plan(Space.binary(), epsilon=1)
        >>> found = plan.release(bought, arm)
        >>> answer = found.estimate()["effect"]
        >>> abs(answer.value) < 0.05, answer.confidence
        (True, 0.95)
    """

    kinds = (KIND,)

    def _plan_of(self, document: documents.Document) -> QuestionsFacts:
        """A plan, from its document; its loss is computed anew."""
        return QuestionsFacts.from_document(document)

    @staticmethod
    def _loss_of(plan: QuestionsFacts) -> Budget:
        """The exact privacy loss of a plan."""
        return Budget(plan.numbers.loss)

    @staticmethod
    def _drawn_of(plan: QuestionsFacts, results: Any) -> Released:
        """What was drawn, from a manifest's results, all of which must follow from it."""
        return from_results(plan, results)

    def estimate(self, confidence: float = CONFIDENCE) -> Answers:
        """Answers to all questions, with intervals that know how noisy their variance is.

        Source: docs/theory/questions.md#variances-of-groups;
        docs/theory/questions.md#an-honest-interval.

        Args:
            confidence: Of each interval on its own, from 0.8 to 0.995; changing it costs nothing.

        Returns:
            One answer a question, in the order in which they were asked.

        Raises:
            InputError: Another confidence.

        Guarantees: G-COVERAGE.
        """
        wanted, plan = check_interval(confidence), self.plan
        return plan.reading.answers(self.released, plan.blocks, wanted)

    def regression(self, columns: Sequence[str], confidence: float = CONFIDENCE) -> Answers:
        """A least squares regression on some of the columns that were asked for: free.

        Its coefficients are sums of what was released; nothing is read, drawn or charged.

        Source: docs/theory/questions.md#rows-of-weights.

        Args:
            columns: Names of covariates, `arm` or `cluster`; a constant is always there.
            confidence: Of each interval on its own, from 0.8 to 0.995.

        Returns:
            One answer a coefficient.

        Raises:
            InputError: No such column, one twice, or a regression that does not follow from what
                was asked.

        Guarantees: G-LOSS.
        """
        wanted, plan = check_interval(confidence), self.plan
        names = check_regressors(plan.columns, columns)
        if plan.numbers.forms:
            return self._asked_regression(names, wanted)
        labels, design = design_of(plan.columns, names)
        rows = coefficients(labels, design)
        if not plan.numbers.answer(rows):
            raise InputError(
                f"a regression on {checks.shown(' + '.join(names))} that does not follow from what "
                "was released",
                "columns of one regression of the plan",
                "it would need a second release, which is a second charge",
            )
        named = tuple(f"{each} in {' + '.join(names)}" for each in labels)
        block = Block(Asked(REGRESSION, columns=names), named, rows)
        return plan.reading.answers(self.released, [block], wanted)

    def _asked_regression(self, names: tuple[str, ...], confidence: float) -> Answers:
        """A regression that was asked for: where groups were assigned, variances are its own."""
        plan = self.plan
        every = iter(plan.reading.answers(self.released, plan.blocks, confidence))
        for block in plan.blocks:
            own = tuple(next(every) for _ in block.names)
            if block.asked.kind == REGRESSION and block.asked.columns == names:
                return Answers(own)
        raise InputError(
            f"a regression on {checks.shown(' + '.join(names))} whose variance by assigned group "
            "was not released",
            "a regression of the plan",
            "ask for it in the plan; for any regression later, take a table of units",
        )

    def table(self) -> pa.Table:
        """The answers with 95% intervals, as a table.

        Returns:
            One row a question: question, value, standard_error, low, high.
        """
        return self.estimate().table()

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the table as CSV, Parquet or JSON, by the path's ending.

        Args:
            path: Where to.
            overwrite: Replace a file that is there.

        Raises:
            InputError: Another ending.
            DocumentError: There is a file already, the place cannot be written, or it is that of
                the manifest that was loaded, which is never replaced.

        Guarantees: G-REFUSE.
        """
        tables.write(self.table(), path, self.inputs, overwrite=overwrite)

    def __repr__(self) -> str:
        """One line."""
        kind = "simulated answers" if self.simulated else "answers"
        origin = f", {self.origin}" if self.origin else ""
        return (
            f"<{kind} to {len(self.plan.names)} questions of {self.plan.columns.n} units, "
            f"epsilon {show(self.epsilon)}{origin}>"
        )


def to_results(plan: QuestionsFacts, drawn: Released) -> documents.Document:
    """What was drawn, and the answers."""
    found = plan.reading.answers(drawn, plan.blocks, CONFIDENCE)
    return {
        "numbers": list(drawn.numbers),
        "moments": list(drawn.moments),
        "answers": [each.to_document() for each in found],
    } | ({"forms": list(drawn.forms)} if plan.numbers.forms else {})


def from_results(plan: QuestionsFacts, results: documents.Document) -> Released:
    """The inverse of `to_results`, from what was drawn; `shoal.verify` compares the answers.

    Raises:
        DocumentError: Too few or too many numbers.
    """
    drawn = Released(
        check_stated_numbers(results["numbers"]),
        check_stated_numbers(results["moments"]),
        check_stated_numbers(results.get("forms", ())),
    )
    many = len(plan.numbers.steps), 0 if plan.numbers.forms else plan.reading.many
    lengths = len(drawn.numbers), len(drawn.moments), len(drawn.forms)
    if lengths != (*many, len(plan.numbers.forms)):
        raise damaged()
    return drawn
