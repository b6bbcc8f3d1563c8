"""Everything public that decides a release, before anything is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from shoal import documents

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shoal.privacy.budget import Budget
    from shoal.privacy.privacy_unit import Whose


@dataclass(frozen=True, eq=False)
class Question:
    """What a release of any family is asked for. It and its name decide what a ledger delivers.

    Attributes:
        kind: The family: `cells`, `trial` or `mean`.
        plan: The plan as a document, with its claims.
        asked: The parts of that document that were asked for: claims and proofs follow from them,
            and another version may word or choose these otherwise.
        records: Public description of the private data.
        whose: Whose loss it is, and whether anybody said so.
        loss: The exact privacy loss.
        privacy: The kind of differential privacy, in words.
        neighbours: What neighbouring data sets differ in, in words.
        name: What the release is of, such as a period.
    """

    kind: str
    plan: documents.Document
    asked: documents.Document
    records: Mapping[str, Any]
    whose: Whose
    loss: Budget
    privacy: str
    neighbours: str
    name: str = ""

    @cached_property
    def key(self) -> str:
        """SHA-256 of all but the name: what a ledger knows the release by."""
        return documents.digest(
            {
                "plan": self.asked,
                "records": dict(self.records),
                "unit": self.whose.unit.to_document(),
            }
        )

    @cached_property
    def guarantee(self) -> documents.Document:
        """Of what a release of it guarantees, what is the same whatever is drawn."""
        return {
            "privacy": self.privacy,
            "unit": self.whose.unit.to_document(),
            "neighbours": self.neighbours,
            **self.loss.to_document(),
        }

    @cached_property
    def request(self) -> str:
        """SHA-256 of key and name together, as manifests hold it."""
        return request_of(self.key, self.name)


def request_of(question: str, name: str) -> str:
    """SHA-256 of a question's key and a name together, as manifests hold it.

    Example:
        >>> request_of("a", "May") == request_of("a", "June")
        False
    """
    return documents.digest({"question": question, "name": name})
