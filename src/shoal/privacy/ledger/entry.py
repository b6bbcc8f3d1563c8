"""What stands in a ledger: its creation record, and entries whose hashes form a chain.

Each hash covers the one before it and the sum of all charges so far, so a change of the budget,
of an entry, of a sum or of a document, and a missing or moved entry, breaks the chain. The chain
has no key: it shows damage and careless edits; against someone who rewrites the whole file, note
the head elsewhere.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from shoal.privacy.budget import NOTHING, Budget
from shoal.privacy.charge_rounding import added

if TYPE_CHECKING:
    from fractions import Fraction

    from shoal.privacy.privacy_unit import PrivacyUnit

SCHEMA_VERSION = 5


@dataclass(frozen=True)
class Founding:
    """The creation record of a ledger.

    Attributes:
        identity: A random name, different for every ledger.
        budget: All that may ever be spent.
        unit: Whose losses are added up; None until the first entry says it.
        created_at: UTC, ISO 8601.
    """

    identity: str
    budget: Budget
    unit: PrivacyUnit | None
    created_at: str

    @property
    def hash(self) -> str:
        """SHA-256 of the record: the first link of the chain."""
        return self.row[-1]

    @cached_property
    def row(self) -> tuple[str, ...]:
        """The record as it is stored: identity, budget, unit and time as texts, and its hash."""
        epsilon, delta = self.budget.texts()
        unit = self.unit.to_text() if self.unit else ""
        found = _digest(
            schema=SCHEMA_VERSION,
            ledger=self.identity,
            epsilon=epsilon,
            delta=delta,
            unit=unit,
            created_at=self.created_at,
        )
        return self.identity, epsilon, delta, unit, self.created_at, found


@dataclass(frozen=True)
class Link:
    """An entry without its document: all that its hash covers.

    Attributes:
        number: 1 for the first, without gaps.
        question: What was asked: a digest of everything public that decides the release.
        name: What the release is of, such as a period; a question and a name are charged once.
        kind: What was released: `cells`, `trial` or `mean`; empty if the caller does not say.
        unit: Whose loss the charge is.
        epsilon: Charged privacy loss.
        delta: Charged delta.
        spent: Sum of all charges up to this one.
        recorded_at: UTC, ISO 8601.
        document_sha256: Hash of the document, in hexadecimal.
        previous: Hash of the entry before, or of the ledger's creation record.
        hash: SHA-256 over all of the above.
    """

    number: int
    question: str
    name: str
    kind: str
    unit: PrivacyUnit
    epsilon: Fraction
    delta: Fraction
    spent: Budget
    recorded_at: str
    document_sha256: str
    previous: str
    hash: str

    @property
    def charge(self) -> Budget:
        """Epsilon and delta as a pair."""
        return Budget(self.epsilon, self.delta)

    @property
    def holds(self) -> bool:
        """Whether the hash is that of the contents."""
        return self.hash == self.expected_hash()

    def expected_hash(self) -> str:
        """SHA-256 over everything but the hash itself.

        Returns:
            In hexadecimal.
        """
        epsilon, delta = self.charge.texts()
        spent_epsilon, spent_delta = self.spent.texts()
        return _digest(
            previous=self.previous,
            number=self.number,
            question=self.question,
            name=self.name,
            kind=self.kind,
            unit=self.unit.to_text(),
            epsilon=epsilon,
            delta=delta,
            spent_epsilon=spent_epsilon,
            spent_delta=spent_delta,
            document_sha256=self.document_sha256,
            recorded_at=self.recorded_at,
        )


@dataclass(frozen=True)
class Entry(Link):
    """One recorded release: its charge and its result.

    Attributes:
        document: The result, byte for byte as delivered.
    """

    document: bytes = field(repr=False)

    @property
    def holds(self) -> bool:
        """Whether the hashes are those of the contents."""
        return super().holds and self.document_sha256 == digest_of(self.document)


@dataclass(frozen=True)
class Draft:
    """What is to be recorded, before its place in the chain is known.

    Attributes:
        question: See `Link`.
        name: See `Link`.
        kind: See `Link`.
        unit: See `Link`.
        charge: What is booked, rounded against us.
        document: The result.
        document_sha256: Its hash.
    """

    question: str
    name: str
    kind: str
    unit: PrivacyUnit
    charge: Budget
    document: bytes = field(repr=False)
    document_sha256: str

    def after(self, last: Link | None, founding: Founding, recorded_at: str) -> Entry:
        """The entry that follows the last one."""
        facts: dict[str, Any] = {
            "number": last.number + 1 if last else 1,
            "question": self.question,
            "name": self.name,
            "kind": self.kind,
            "unit": self.unit,
            "epsilon": self.charge.epsilon,
            "delta": self.charge.delta,
            "spent": added(last.spent if last else NOTHING, self.charge),
            "recorded_at": recorded_at,
            "document_sha256": self.document_sha256,
            "previous": last.hash if last else founding.hash,
            "document": self.document,
        }
        return Entry(**facts, hash=Entry(**facts, hash="").expected_hash())


def digest_of(document: bytes) -> str:
    """SHA-256 of a document, in hexadecimal."""
    return hashlib.sha256(document).hexdigest()


def _digest(**facts: str | int) -> str:
    canonical = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
