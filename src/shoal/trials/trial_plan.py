"""Plans of trials: public facts that decide a release, as one document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from shoal import documents
from shoal.data.assignment import Assignment
from shoal.data.outcome_space import Space
from shoal.privacy.budget import Budget, from_text
from shoal.release.question import Question

SCHEMA = "shoal.trial-plan/1"
KIND = "trial"
# Parts of a mechanism that were asked for; the others follow.
_ASKED = frozenset({"name", "pooled", "asked"})
_PRIVACY = {
    False: "pure label differential privacy",
    True: "approximate label differential privacy",
}


@dataclass(frozen=True, eq=False)
class TrialPlan:
    """Public facts of a trial's release.

    Attributes:
        space: Levels of the outcome.
        assignment: Who is in which cluster and arm.
        mechanism: The mechanism as a JSON object: name, what was asked for, whole numbers.
        loss: Stated epsilon and delta of one outcome, with what the clusters cost.
        clustering_epsilon: What the clusters cost, within the loss; 0 if they are public.
    """

    space: Space
    assignment: Assignment
    mechanism: documents.Document
    loss: Budget
    clustering_epsilon: Fraction

    def to_document(self) -> documents.Document:
        """The plan as a JSON object.

        Returns:
            A document of the schema `shoal.trial-plan/1`.
        """
        return {
            "schema": SCHEMA,
            "space": self.space.to_document(),
            "assignment": self.assignment.to_document(),
            "mechanism": dict(self.mechanism),
            "clustering_epsilon": str(self.clustering_epsilon),
            "claims": {"epsilon": str(self.loss.epsilon), "delta": str(self.loss.delta)},
        }

    @classmethod
    def from_document(cls, document: documents.Document) -> TrialPlan:
        """The inverse of `to_document`.

        Args:
            document: Of its schema.

        Returns:
            The plan.

        Raises:
            DocumentError: A part is damaged.
            ValueError: A number is none.
        """
        claims = document["claims"]
        return cls(
            Space.from_document(document["space"]),
            Assignment.from_document(document["assignment"]),
            document["mechanism"],
            Budget(from_text(claims["epsilon"]), from_text(claims["delta"])),
            from_text(document["clustering_epsilon"]),
        )

    def question(self, records: Mapping[str, Any], unit: str, name: str = "") -> Question:
        """What a release is asked for.

        Parameters, their loss and the reason for them follow from what was asked. Another version
        may choose or word them otherwise; that does not make a new question.

        Args:
            records: The outcome's name, rules for missing outcomes and single-armed clusters.
            unit: Whose loss it is.
            name: What the release is of.

        Returns:
            The question; its key is the ledger's.
        """
        document = self.to_document()
        mechanism = {part: each for part, each in document["mechanism"].items() if part in _ASKED}
        asked = {part: each for part, each in document.items() if part != "claims"}
        return Question(
            kind=KIND,
            plan=document,
            asked={**asked, "mechanism": mechanism},
            records=records,
            unit=unit,
            loss=self.loss,
            privacy=_PRIVACY[self.loss.delta > 0],
            neighbours="one unit's outcome changes; its cluster and treatment are public",
            name=name,
        )
