"""Plans of questions: judged before any outcome is read, saved, loaded and carried out."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from shoal import documents, files
from shoal.errors import DocumentError
from shoal.privacy.ledger import Ledger
from shoal.privacy.noise import Simulated
from shoal.trials.questions.plan_facts import SCHEMA, QuestionsFacts
from shoal.trials.questions.release import release_questions
from shoal.trials.questions.result import PrivateAnswers


@dataclass(frozen=True, eq=False)
class QuestionsPlan(QuestionsFacts):
    """A plan of questions that can be carried out; see `QuestionsFacts` for its facts.

    Source: docs/theory/questions.md.

    Guarantees: G-LOSS.

    Example:
        >>> import numpy as np
        >>> from shoal.trials import Questions, Space
        >>> found = Questions(np.arange(2000) % 2).effect().plan(Space.binary(), epsilon=1)
        >>> [round(each.widening, 2) for each in found.predicted]
        [1.03]
    """

    def release(
        self,
        outcomes: Any,
        arm: Any,
        cluster: Any = None,
        covariates: Mapping[str, Any] | None = None,
        *,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        name: str = "",
        noise: Simulated | None = None,
        outcome_name: str = "",
        privacy_unit: str = "",
        assigned: Any = None,
    ) -> PrivateAnswers:
        """Read the outcomes once, draw, record result and charge, deliver.

        Public columns are given again, in the rows of the outcomes: the plan keeps no order of
        rows. The same plan and name again delivers the recorded bytes, says so, and costs nothing.

        Args:
            outcomes: One outcome for each unit, shape (units,), moved into the range. Private.
            arm: The arm of each unit, shape (units,). Public.
            cluster: The cluster of each unit, shape (units,), if the plan has clusters. Public.
            covariates: All columns of the plan, each of shape (units,). Public.
            ledger: The data set's ledger, or its path.
            name: What the release is of, such as a period: another name draws, and costs, again.
            noise: `shoal.Simulated(seed)` for studies; the answers are marked and not private.
            outcome_name: What the outcome is called, needed with a ledger: two outcomes of the same
                units are two questions.
            privacy_unit: What a unit is, in a word; each row by itself unless said.
            assigned: The assigned group of each unit, shape (units,), if the plan has groups.
                Public.

        Returns:
            Answers with intervals, regressions, and the manifest.

        Raises:
            InputError: An argument that is not usable, or the outcome in a public role.
            DataError: Columns other than the plan's, or outcomes that are not finite numbers; the
                message says nothing about them.
            BudgetError: The charge does not fit the ledger.
            LedgerError: The ledger cannot be read or written.

        Guarantees: G-LOSS, G-LEDGER, G-AGAIN, G-REFUSE.
        """
        return release_questions(
            self,
            outcomes,
            arm,
            cluster,
            covariates,
            ledger=ledger,
            name=name,
            noise=noise,
            outcome_name=outcome_name,
            privacy_unit=privacy_unit,
            assigned=assigned,
        )

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the plan as JSON.

        Args:
            path: Where to.
            overwrite: Replace a file that is there.

        Raises:
            DocumentError: There is a file already, or the place cannot be written.

        Guarantees: G-REFUSE.
        """
        files.write_bytes(path, documents.canonical_bytes(self.to_document()), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a plan; its loss is computed anew, and its numbers must answer its questions.

        Args:
            path: Where it is.

        Returns:
            The plan.

        Raises:
            DocumentError: Missing, damaged, changed by hand, or of another schema.

        Guarantees: G-REPLAY.
        """
        document = documents.read(path, SCHEMA, "plan")
        try:
            return cls.from_document(document)
        except DocumentError:
            raise
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError):
            raise DocumentError(
                "the plan is damaged, or may have been changed",
                "a document written by shoal",
                "fetch it again, or plan anew",
            ) from None
