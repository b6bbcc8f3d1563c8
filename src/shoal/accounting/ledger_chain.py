"""The rows of a ledger and the chain of hashes that holds them together.

Each hash covers the one before it, so a change of the budget, of an entry or of a document, and
a missing or moved entry, breaks the chain from there on. The chain has no key: it shows damage
and careless edits; against someone who rewrites the whole file, note the head elsewhere.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shoal.accounting.budget import Budget, from_text, text
from shoal.errors import LedgerError, raise_alone

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from fractions import Fraction
    from pathlib import Path

SCHEMA_VERSION = 1
APPLICATION_ID = 0x53686F61  # "Shoa"
# The document comes last: sums and searches then never read its pages.
TABLES = (
    """CREATE TABLE ledger (
    id TEXT NOT NULL PRIMARY KEY, epsilon TEXT NOT NULL, delta TEXT NOT NULL,
    created_at TEXT NOT NULL, hash TEXT NOT NULL)""",
    """CREATE TABLE entry (
    number INTEGER PRIMARY KEY, request TEXT NOT NULL UNIQUE, label TEXT NOT NULL,
    epsilon TEXT NOT NULL, delta TEXT NOT NULL, recorded_at TEXT NOT NULL,
    document_sha256 TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL,
    document BLOB NOT NULL)""",
)
_SELECT = (
    "SELECT number, request, label, epsilon, delta, recorded_at, document_sha256, previous, "
    "hash, document FROM entry "
)
_ENTRY_TYPES = (int, str, str, str, str, str, str, str, str, bytes)


@dataclass(frozen=True)
class Founding:
    """The creation record of a ledger.

    Attributes:
        identity: A random name, different for every ledger.
        budget: All that may ever be spent.
        created_at: UTC, ISO 8601.
    """

    identity: str
    budget: Budget
    created_at: str

    @property
    def hash(self) -> str:
        """SHA-256 of the record: the first link of the chain."""
        return _digest(
            schema=SCHEMA_VERSION,
            ledger=self.identity,
            epsilon=text(self.budget.epsilon),
            delta=text(self.budget.delta),
            created_at=self.created_at,
        )

    def insert(self, connection: sqlite3.Connection) -> None:
        """Write the record into an empty ledger."""
        epsilon, delta = text(self.budget.epsilon), text(self.budget.delta)
        row = (self.identity, epsilon, delta, self.created_at, self.hash)
        connection.execute("INSERT INTO ledger VALUES (?, ?, ?, ?, ?)", row)


@dataclass(frozen=True)
class Entry:
    """One recorded release: its charge and its result.

    Attributes:
        number: 1 for the first, without gaps.
        request: What the release is known by; unique in a ledger.
        label: A name for people.
        epsilon: Charged privacy loss.
        delta: Charged delta.
        document: The result, byte for byte as delivered.
        document_sha256: Hash of the document, in hexadecimal.
        previous: Hash of the entry before, or of the ledger's creation record.
        hash: SHA-256 over all of the above.
        recorded_at: UTC, ISO 8601.
    """

    number: int
    request: str
    label: str
    epsilon: Fraction
    delta: Fraction
    document: bytes = field(repr=False)
    document_sha256: str
    previous: str
    hash: str
    recorded_at: str

    @property
    def charge(self) -> Budget:
        """Epsilon and delta as a pair."""
        return Budget(self.epsilon, self.delta)

    @property
    def holds(self) -> bool:
        """Whether the hashes are those of the contents."""
        return (
            self.document_sha256 == hashlib.sha256(self.document).hexdigest()
            and self.hash == self.expected_hash()
        )

    def expected_hash(self) -> str:
        """SHA-256 over everything but the hash itself."""
        return _digest(
            previous=self.previous,
            number=self.number,
            request=self.request,
            label=self.label,
            epsilon=text(self.epsilon),
            delta=text(self.delta),
            document_sha256=self.document_sha256,
            recorded_at=self.recorded_at,
        )

    @classmethod
    def make(
        cls,
        previous: str,
        number: int,
        request: str,
        label: str,
        charge: Budget,
        document: bytes,
        recorded_at: str,
    ) -> Entry:
        """An entry with its hashes."""
        facts: dict[str, Any] = {
            "number": number,
            "request": request,
            "label": label,
            "epsilon": charge.epsilon,
            "delta": charge.delta,
            "document": document,
            "document_sha256": hashlib.sha256(document).hexdigest(),
            "previous": previous,
            "recorded_at": recorded_at,
        }
        return cls(**facts, hash=cls(**facts, hash="").expected_hash())

    def insert(self, connection: sqlite3.Connection) -> None:
        """Append the entry."""
        connection.execute(
            "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                self.number,
                self.request,
                self.label,
                text(self.epsilon),
                text(self.delta),
                self.recorded_at,
                self.document_sha256,
                self.previous,
                self.hash,
                self.document,
            ),
        )


def read_founding(connection: sqlite3.Connection, path: Path) -> Founding:
    """The creation record, checked against its hash.

    Raises:
        LedgerError: Missing, several, or changed.
    """
    rows = connection.execute("SELECT id, epsilon, delta, created_at, hash FROM ledger").fetchall()
    if len(rows) != 1 or not all(isinstance(part, str) for part in rows[0]):
        raise damaged(path, "not exactly one creation record")
    identity, epsilon, delta, created_at, stored = rows[0]
    try:
        founding = Founding(identity, Budget(from_text(epsilon), from_text(delta)), created_at)
    except ValueError:
        raise_alone(damaged(path, "a budget that is no fraction"))
    if founding.hash != stored:
        raise damaged(path, "a creation record that does not fit its hash")
    return founding


def read_entries(connection: sqlite3.Connection, path: Path) -> Iterator[Entry]:
    """All entries in order, each checked against its own hash, one in memory at a time."""
    for row in connection.execute(_SELECT + "ORDER BY number"):
        yield _entry(row, path)


def read_request(connection: sqlite3.Connection, request: str, path: Path) -> Entry | None:
    """The entry of a request, checked against its own hash."""
    row = connection.execute(_SELECT + "WHERE request = ?", (request,)).fetchone()
    return None if row is None else _entry(row, path)


def read_last(connection: sqlite3.Connection, path: Path) -> Entry | None:
    """The newest entry, checked against its own hash."""
    row = connection.execute(_SELECT + "ORDER BY number DESC LIMIT 1").fetchone()
    return None if row is None else _entry(row, path)


def read_spent(connection: sqlite3.Connection, path: Path) -> tuple[int, Budget]:
    """How many entries there are and their exact sum."""
    # Equal charges are counted by SQLite, so that a long ledger of like releases sums fast.
    rows = connection.execute("SELECT epsilon, delta, count(*) FROM entry GROUP BY epsilon, delta")
    count, spent = 0, Budget.of(0)
    for epsilon, delta, times in rows:
        spent += _charge(epsilon, delta, path).times(times)
        count += times
    return count, spent


def check_chain(connection: sqlite3.Connection, founding: Founding, path: Path) -> set[str]:
    """Recompute every hash and the sum of the charges; return all hashes of the chain.

    Raises:
        LedgerError: A link is broken or the sum exceeds the budget.
    """
    hashes, previous, spent = {founding.hash}, founding.hash, Budget.of(0)
    for number, entry in enumerate(read_entries(connection, path), start=1):
        if entry.number != number or entry.previous != previous:
            raise damaged(path, f"a broken chain at entry {number}")
        spent, previous = spent + entry.charge, entry.hash
        hashes.add(previous)
    if not spent.within(founding.budget):
        raise damaged(path, "charges beyond its budget")
    return hashes


def damaged(path: Path, what: str) -> LedgerError:
    """The error of a ledger whose contents do not hold together."""
    return LedgerError(
        f"the ledger {str(path)!r} has {what}: it is damaged or was changed by hand",
        "a ledger that only shoal has written",
        "restore the newest copy from a backup and run `shoal ledger verify` on it",
    )


def _entry(row: tuple[Any, ...], path: Path) -> Entry:
    if not all(isinstance(part, kind) for part, kind in zip(row, _ENTRY_TYPES, strict=True)):
        raise damaged(path, "an entry with parts of the wrong type")
    number, request, label, epsilon, delta, recorded_at, sha256, previous, stored, document = row
    charge = _charge(epsilon, delta, path)
    entry = Entry(
        number,
        request,
        label,
        charge.epsilon,
        charge.delta,
        document,
        sha256,
        previous,
        stored,
        recorded_at,
    )
    if not entry.holds:
        raise damaged(path, f"an entry {number} that does not fit its hash")
    return entry


def _charge(epsilon: object, delta: object, path: Path) -> Budget:
    try:
        charge = Budget(from_text(str(epsilon)), from_text(str(delta)))
    except ValueError:
        raise_alone(damaged(path, "a charge that is no fraction"))
    if not Budget.of(0).within(charge):
        raise damaged(path, "a charge below zero")
    return charge


def _digest(**facts: str | int) -> str:
    canonical = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
