"""Everything public that decides a release, before anything is drawn."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from shoal import documents
from shoal.privacy.budget import Budget
from shoal.privacy.unit import document_of


@dataclass(frozen=True, eq=False)
class Question:
    """What a release of any family is asked for. It and its name decide what a ledger delivers.

    Attributes:
        kind: The family, or of trials the kind of plan.
        plan: The plan as a document, with its claims.
        asked: The parts of that document that were asked for: claims and proofs follow from them,
            and another version may word or choose these otherwise.
        records: Public description of the private data.
        unit: Whose loss it is: a column's name, or `each row`.
        loss: The privacy loss that the plan states, which is charged.
        privacy: The kind of differential privacy, in words.
        neighbours: What neighbouring data sets differ in, in words.
        read: Refuses bytes that are no manifest of the family.
        name: What the release is of, such as a period.
    """

    kind: str
    plan: documents.Document
    asked: documents.Document
    records: Mapping[str, Any]
    unit: str
    loss: Budget
    privacy: str
    neighbours: str
    read: Callable[[bytes], object]
    name: str = ""

    @cached_property
    def key(self) -> str:
        """SHA-256 of all but the name: what a ledger knows the release by."""
        return documents.digest(
            {
                "plan": self.asked,
                "records": dict(self.records),
                "unit": document_of(self.unit),
            }
        )

    @property
    def guarantee(self) -> documents.Document:
        """Of what a release of it guarantees, what is the same whatever is drawn."""
        return {
            "privacy": self.privacy,
            "unit": document_of(self.unit),
            "neighbours": self.neighbours,
            **self.loss.to_document(),
        }

    @property
    def request(self) -> str:
        """SHA-256 of key and name together, as manifests hold it."""
        return documents.digest({"question": self.key, "name": self.name})
