"""What a ledger records: budgets, entries, and the chain of hashes that ties them together."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction

from shoal import documents


@dataclass(frozen=True)
class Budget:
    """Privacy loss as exact rationals."""

    epsilon: Fraction
    delta: Fraction

    def __add__(self, other: Budget) -> Budget:
        """Losses add up (basic composition), also when chosen adaptively."""
        return Budget(self.epsilon + other.epsilon, self.delta + other.delta)

    def __sub__(self, other: Budget) -> Budget:
        """What is left."""
        return Budget(self.epsilon - other.epsilon, self.delta - other.delta)

    def covers(self, other: Budget) -> bool:
        """Whether both parts of the other fit."""
        return other.epsilon <= self.epsilon and other.delta <= self.delta


@dataclass(frozen=True)
class Entry:
    """One recorded release: its charge and its bytes, committed together.

    Attributes:
        number: Position in the ledger, from 1.
        request: What was asked for; the same request is never charged twice.
        label: A public name.
        epsilon: Charge, exactly.
        delta: Charge, exactly.
        document: The delivered bytes.
        document_sha256: Their hash.
        previous: Hash of the entry before, or of the ledger's head record.
        hash: Hash of this entry, which covers all of the above.
        recorded_at: UTC, ISO 8601.
    """

    number: int
    request: str
    label: str
    epsilon: Fraction
    delta: Fraction
    document: bytes
    document_sha256: str
    previous: str
    hash: str
    recorded_at: str

    @property
    def charge(self) -> Budget:
        """Epsilon and delta together."""
        return Budget(self.epsilon, self.delta)

    def holds(self) -> bool:
        """Whether the hashes are those of the contents."""
        return (
            hashlib.sha256(self.document).hexdigest() == self.document_sha256
            and self.hash == _chained(self)
        )


def make_entry(
    previous: str,
    number: int,
    request: str,
    label: str,
    charge: Budget,
    document: bytes,
    recorded_at: str,
) -> Entry:
    """A new entry, chained to the one before."""
    entry = Entry(
        number=number,
        request=request,
        label=label,
        epsilon=charge.epsilon,
        delta=charge.delta,
        document=document,
        document_sha256=hashlib.sha256(document).hexdigest(),
        previous=previous,
        hash="",
        recorded_at=recorded_at,
    )
    return Entry(**{**entry.__dict__, "hash": _chained(entry)})


def _chained(entry: Entry) -> str:
    return documents.digest(
        {
            "previous": entry.previous,
            "number": entry.number,
            "request": entry.request,
            "label": entry.label,
            "epsilon": str(entry.epsilon),
            "delta": str(entry.delta),
            "document_sha256": entry.document_sha256,
            "recorded_at": entry.recorded_at,
        }
    )


def genesis(identity: str, budget: Budget, schema: str) -> str:
    """Hash that the first entry is chained to: it covers the budget."""
    return documents.digest(
        {
            "ledger": identity,
            "schema": schema,
            "epsilon": str(budget.epsilon),
            "delta": str(budget.delta),
        }
    )
