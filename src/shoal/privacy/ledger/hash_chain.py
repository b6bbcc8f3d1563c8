"""The rows of a ledger, read strictly: what does not fit its hash or its place is an error.

Recording reads the newest entry, the one before it and the head alone, so a charge costs the same
in a ledger of a million entries as in an empty one. The newest entry carries the sum of all
charges within its hash; the head, kept in a table of its own, tells when the newest is gone. An
entry is looked up in two equal indexes: one damaged place hides it from one of them at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from shoal.errors import raise_alone
from shoal.privacy.budget import NOTHING, Budget
from shoal.privacy.charge_rounding import added, booked
from shoal.privacy.ledger.entry import Entry, Founding, Link
from shoal.privacy.ledger.head import insert_head, move_head, read_head
from shoal.privacy.ledger.place import damaged
from shoal.privacy.privacy_unit import PrivacyUnit

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

APPLICATION_ID = 0x53686F61  # "Shoa"
_STRAY = "an index that does not fit its entries"
AnyLink = TypeVar("AnyLink", bound=Link)
# The document comes last: what does not ask for it never reads its pages.
TABLES = (
    """CREATE TABLE ledger (
    id TEXT NOT NULL PRIMARY KEY, epsilon TEXT NOT NULL, delta TEXT NOT NULL, unit TEXT NOT NULL,
    created_at TEXT NOT NULL, hash TEXT NOT NULL)""",
    """CREATE TABLE head (
    ledger TEXT NOT NULL, number INTEGER NOT NULL, hash TEXT NOT NULL, mark TEXT NOT NULL,
    place BLOB NOT NULL, seal TEXT NOT NULL)""",
    """CREATE TABLE entry (
    number INTEGER PRIMARY KEY, question TEXT NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL,
    unit TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL, spent_epsilon TEXT NOT NULL,
    spent_delta TEXT NOT NULL, recorded_at TEXT NOT NULL, document_sha256 TEXT NOT NULL,
    previous TEXT NOT NULL, hash TEXT NOT NULL, document BLOB NOT NULL)""",
    "CREATE UNIQUE INDEX one ON entry (question, name)",
    "CREATE UNIQUE INDEX two ON entry (question, name)",
)
_LINKS = (
    "SELECT number, question, name, kind, unit, epsilon, delta, spent_epsilon, spent_delta, "
    "recorded_at, document_sha256, previous, hash FROM entry "
)
_ENTRIES = _LINKS.replace(" FROM ", ", document FROM ")
_INSERT = "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_HASH = "SELECT hash FROM entry WHERE number = ?"
_PREVIOUS = "SELECT previous FROM entry WHERE number = ?"
# Each is answered by an index alone, without a look at the entries.
_NUMBER = "SELECT number FROM entry INDEXED BY {} WHERE question = ? AND name = ?"
_NAMES = "SELECT name, number FROM entry INDEXED BY {} WHERE question = ? ORDER BY name LIMIT ?"
_LINK_TYPES = (int, *[str] * 12)


class State(NamedTuple):
    """Where a ledger stands.

    Attributes:
        last: The newest entry, without its document; None in an empty ledger.
        spent: Sum of all charges.
        head: Hash of the newest entry, or of the creation record.
        unit: Whose losses are added up, once that is known.
    """

    last: Link | None
    spent: Budget
    head: str
    unit: PrivacyUnit | None

    @property
    def entries(self) -> int:
        """How many there are."""
        return self.last.number if self.last else 0


class Chain:
    """The entries of one ledger within one transaction.

    Attributes:
        founding: The creation record, checked against its hash.
        place: Where the ledger lay when it was last written, checked against its own.

    Raises:
        LedgerError: Record, place or head are missing, several, or changed.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path, known: Founding | None) -> None:
        self._connection, self._path = connection, path
        self._moved = False
        self.founding = _read_founding(connection, path, known)
        self.place, self._mark = read_head(connection, path, self.founding)

    def state(self) -> State:
        """Where the ledger stands, from its newest two entries and its head.

        Raises:
            LedgerError: They do not hold together, or exceed the budget.
        """
        last, founding = self._last(), self.founding
        head = last.hash if last else founding.hash
        if self._execute("SELECT number, hash FROM head").fetchall() != [
            (last.number if last else 0, head)
        ]:
            raise damaged(self._path, "another head than its newest entry")
        if last is None:
            return State(None, NOTHING, head, founding.unit)
        self._check_place(last)
        if self._number(last.question, last.name) != last.number:
            raise damaged(self._path, _STRAY)
        if not last.spent.within(founding.budget):
            raise damaged(self._path, "charges beyond its budget")
        if founding.unit not in (None, last.unit):
            raise damaged(self._path, "another privacy unit than it was made for")
        return State(last, last.spent, head, last.unit)

    def find(self, question: str, name: str) -> Entry | None:
        """The entry of a question and name, checked against its hashes and its place.

        Raises:
            LedgerError: Its two indexes, its place or its hashes do not hold together.
        """
        number = self._number(question, name)
        if number is None:
            return None
        row = self._execute(_ENTRIES + "WHERE number = ?", (number,)).fetchone()
        entry = None if row is None else _entry(row, self._path)
        if entry is None or (entry.question, entry.name) != (question, name):
            raise damaged(self._path, _STRAY)
        self._check_place(entry)
        return entry

    def names(self, question: str, most: int) -> list[str]:
        """The first names that a question was recorded under, in their order."""
        rows = self._indexed(_NAMES, (question, most))
        return [_text(name, self._path) for name, _ in rows]

    def entries(self) -> Iterator[Entry]:
        """All entries in order, each checked against its own hash, one in memory at a time."""
        for row in self._execute(_ENTRIES + "ORDER BY number"):
            yield _entry(row, self._path)

    def links(self) -> Iterator[Link]:
        """All entries in order without documents, each checked against its own hash."""
        for row in self._execute(_LINKS + "ORDER BY number"):
            yield _link(row, self._path)

    def verify(self) -> set[str]:
        """Recompute every hash and every sum; return all hashes of the chain.

        Raises:
            LedgerError: A link is broken, a unit differs, or a sum is wrong or beyond the budget.
        """
        state, founding = self.state(), self.founding
        hashes, previous, spent = {founding.hash}, founding.hash, NOTHING
        number = 0
        for number, entry in enumerate(self.entries(), start=1):
            if entry.number != number or entry.previous != previous:
                raise damaged(self._path, f"a broken chain at entry {number}")
            spent, previous = added(spent, entry.charge), entry.hash
            if entry.spent != spent or booked(entry.charge) != entry.charge:
                raise damaged(self._path, f"a wrong sum of charges at entry {number}")
            if entry.unit != state.unit:
                raise damaged(self._path, f"another privacy unit at entry {number}")
            hashes.add(previous)
        if number != state.entries:
            raise damaged(self._path, "missing entries")
        return hashes

    def move(self, place: bytes) -> None:
        """Begin to write: note that, and where the ledger lies."""
        self._mark = move_head(self._connection, self._mark, place)
        self.place = place

    def append(self, entry: Entry) -> None:
        """Write an entry and move the head to it."""
        facts = (
            *(entry.number, entry.question, entry.name, entry.kind, entry.unit.to_text()),
            *(*entry.charge.texts(), *entry.spent.texts()),
            *(entry.recorded_at, entry.document_sha256, entry.previous, entry.hash),
        )
        # The head first: what SQLite keeps to take this back then says at its start whose it is.
        if not self._moved:
            self.move(self.place)
            self._moved = True
        self._execute("UPDATE head SET number = ?, hash = ?", (entry.number, entry.hash))
        self._execute(_INSERT, (*facts, entry.document))

    def _check_place(self, link: Link) -> None:
        """Neighbours point where they should; the hashes of both ends are stored twice."""
        before = self.founding.hash
        if link.number > 1:
            before = self._stored(_HASH, link.number - 1)
        after = self._stored(_PREVIOUS, link.number + 1)
        if after is None:
            [after] = self._execute("SELECT hash FROM head").fetchone() or [None]
        if link.previous != before or link.hash != after:
            raise damaged(self._path, f"a broken chain at entry {link.number}")

    def _number(self, question: str, name: str) -> Any:
        rows = self._indexed(_NUMBER, (question, name))
        return rows[0][0] if rows else None

    def _indexed(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """What both indexes say."""
        one, two = (self._execute(statement.format(i), values).fetchall() for i in ("one", "two"))
        if one != two:
            raise damaged(self._path, _STRAY)
        return one

    def _stored(self, statement: str, number: int) -> Any:
        row = self._execute(statement, (number,)).fetchone()
        return None if row is None else row[0]

    def _last(self) -> Link | None:
        row = self._execute(_LINKS + "ORDER BY number DESC LIMIT 1").fetchone()
        return None if row is None else _link(row, self._path)

    def _execute(self, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        return self._connection.execute(statement, values)


def insert_founding(connection: sqlite3.Connection, founding: Founding, place: bytes) -> None:
    """Write the creation record into an empty ledger, and where the ledger will lie."""
    row = founding.row
    connection.execute("INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?)", row)
    insert_head(connection, founding, place)


def _read_founding(connection: sqlite3.Connection, path: Path, known: Founding | None) -> Founding:
    """The creation record, checked against its hash, or to be what is known to the letter."""
    rows = connection.execute(
        "SELECT id, epsilon, delta, unit, created_at, hash FROM ledger"
    ).fetchall()
    if known is not None and rows == [known.row]:
        return known
    if len(rows) != 1 or not all(isinstance(part, str) for part in rows[0]):
        raise damaged(path, "not exactly one creation record")
    identity, epsilon, delta, unit, created_at, stored = rows[0]
    budget = _budget(epsilon, delta, path)
    founding = Founding(identity, budget, _unit(unit, path) if unit else None, created_at)
    if founding.hash != stored:
        raise damaged(path, "a creation record that does not fit its hash")
    return founding


def _entry(row: tuple[Any, ...], path: Path) -> Entry:
    *parts, document = row
    if not isinstance(document, bytes):
        raise damaged(path, "an entry with parts of the wrong type")
    entry = Entry(**_parts(tuple(parts), path), document=document)
    return _whole(entry, path)


def _link(row: tuple[Any, ...], path: Path) -> Link:
    return _whole(Link(**_parts(row, path)), path)


def _whole(link: AnyLink, path: Path) -> AnyLink:
    if not link.holds:
        raise damaged(path, f"an entry {link.number} that does not fit its hash")
    return link


def _parts(row: tuple[Any, ...], path: Path) -> dict[str, Any]:
    if not all(isinstance(part, kind) for part, kind in zip(row, _LINK_TYPES, strict=True)):
        raise damaged(path, "an entry with parts of the wrong type")
    number, question, name, kind, unit, epsilon, delta, spent_epsilon, spent_delta, *rest = row
    charge, spent = _budget(epsilon, delta, path), _budget(spent_epsilon, spent_delta, path)
    recorded_at, document_sha256, previous, stored = rest
    return {
        "number": number,
        "question": question,
        "name": name,
        "kind": kind,
        "unit": _unit(unit, path),
        "epsilon": charge.epsilon,
        "delta": charge.delta,
        "spent": spent,
        "recorded_at": recorded_at,
        "document_sha256": document_sha256,
        "previous": previous,
        "hash": stored,
    }


def _text(value: object, path: Path) -> str:
    if not isinstance(value, str):
        raise damaged(path, "an entry with parts of the wrong type")
    return value


def _unit(stored: str, path: Path) -> PrivacyUnit:
    try:
        return PrivacyUnit.from_text(stored)
    except (ValueError, TypeError, RecursionError):
        raise_alone(damaged(path, "a privacy unit that is none"))


def _budget(epsilon: str, delta: str, path: Path) -> Budget:
    try:
        found = Budget.from_texts(epsilon, delta)
    except ValueError:
        raise_alone(damaged(path, "a charge or budget that is no fraction"))
    if found.epsilon.numerator < 0 or found.delta.numerator < 0:
        raise damaged(path, "a charge below zero")
    return found
