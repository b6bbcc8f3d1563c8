"""Single changes of a ledger's file: seen, or harmless; never more budget, never a traceback."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import pytest

from shoal.errors import BudgetError, InputError, LedgerError
from shoal.privacy.ledger.ledger import Ledger

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.audit, pytest.mark.full]

FLIPS = 500
_INDEX_LEAF = 0x0A


@pytest.fixture
def spent(tmp_path: Path) -> Ledger:
    """A ledger whose budget is spent to the last: eight charges."""
    book = Ledger.create(tmp_path / "a.ledger", epsilon=1, unit="person")
    for number in range(8):
        book.record(str(number), name="Flüge", unit="person", epsilon="1/8", document=b"x" * 99)
    return book


def test_no_flipped_bit_buys_a_charge(spent: Ledger, tmp_path: Path) -> None:
    """After any flip a charge is refused; `verify` sees it or it is harmless."""
    whole, entries, rng = spent.path.read_bytes(), spent.entries(), np.random.default_rng(1)
    copy, seen = tmp_path / "flipped.ledger", 0
    for _ in range(FLIPS):
        at = int(rng.integers(8 * len(whole)))
        broken = bytearray(whole)
        broken[at // 8] ^= 1 << at % 8
        copy.write_bytes(broken)
        with pytest.raises((BudgetError, LedgerError)):
            Ledger.open(copy).record("new", unit="person", epsilon="1/8", document=b"y")
        try:
            book = Ledger.open(copy)
            book.verify()
            assert book.entries() == entries
        except LedgerError:
            seen += 1
        copy.unlink()
    assert seen > FLIPS // 8


def test_no_flipped_bit_hides_a_recorded_release(tmp_path: Path) -> None:
    """After a flip in an index a known question is answered or refused, never charged."""
    book = Ledger.create(tmp_path / "a.ledger", epsilon=9, unit="person")
    known = [f"question {number % 7}" for number in range(30)]
    for number, question in enumerate(known):
        book.record(question, name=f"{number}", unit="person", epsilon="1/8", document=b"x" * 99)
    whole, entries, rng = book.path.read_bytes(), book.entries(), np.random.default_rng(2)
    names = {question: book.names(question) for question in known}
    bits = _index_bits(whole)
    copy, refused = tmp_path / "flipped.ledger", 0
    for at in rng.choice(bits, FLIPS, replace=False).tolist():
        broken = bytearray(whole)
        broken[at // 8] ^= 1 << at % 8
        copy.write_bytes(broken)
        entry = entries[int(rng.integers(len(entries)))]
        try:
            flipped = Ledger.open(copy)
            assert flipped.find(entry.question, entry.name) == entry
            assert flipped.names(entry.question) == names[entry.question]
            again = flipped.record(
                entry.question, name=entry.name, unit="person", epsilon="1/8", document=b"y"
            )
            assert again == entry
        except LedgerError:
            refused += 1
        copy.unlink()
    assert FLIPS // 20 < refused < FLIPS


def _index_bits(whole: bytes) -> list[int]:
    """All bits of the used parts of pages that hold an index."""
    size = int.from_bytes(whole[16:18], "big")
    found: list[int] = []
    for page in range(size, len(whole), size):
        if whole[page] == _INDEX_LEAF:
            contents = page + int.from_bytes(whole[page + 5 : page + 7], "big")
            pointers = page + 8 + 2 * int.from_bytes(whole[page + 3 : page + 5], "big")
            found += range(8 * page, 8 * pointers)
            found += range(8 * contents, 8 * (page + size))
    return found


@pytest.mark.parametrize("index", ["one", "two"])
@pytest.mark.parametrize("number", [1, 4, 8])
def test_an_index_that_lost_an_entry_is_seen(spent: Ledger, index: str, number: int) -> None:
    """What one index no longer holds the other one does, and nothing is charged."""
    with closing(sqlite3.connect(spent.path, isolation_level=None)) as connection:
        # As if the entry had never been written to this index: SQLite forgets to update it.
        connection.execute("PRAGMA writable_schema = ON")
        sql = f"CREATE UNIQUE INDEX {index} ON entry (question, name)"
        partial = f"{sql} WHERE number <> {number}"
        change = "UPDATE sqlite_master SET sql = ? WHERE name = ?"
        connection.execute(change, (partial, index))
        connection.execute(f"PRAGMA schema_version = {1000 + number}")
        connection.execute(f"REINDEX {index}")
    with closing(sqlite3.connect(spent.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(change, (sql, index))
    question = str(number - 1)
    for act in (
        lambda: spent.find(question, "Flüge"),
        lambda: spent.names(question),
        lambda: spent.record(question, name="Flüge", unit="person", epsilon="1/8", document=b"y"),
        spent.verify,
    ):
        with pytest.raises(LedgerError, match=r"an index that does not fit|damaged"):
            act()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entry SET epsilon = '0/1' WHERE number = {}",
        "UPDATE entry SET spent_epsilon = '0/1' WHERE number = {}",
        "UPDATE entry SET hash = previous WHERE number = {}",
        "UPDATE entry SET number = 99 WHERE number = {}",
        "DELETE FROM entry WHERE number = {}",
        "DELETE FROM entry WHERE number >= {}",
        "DELETE FROM entry",
        "UPDATE head SET number = 0",
        "UPDATE ledger SET epsilon = '9/1'",
    ],
)
@pytest.mark.parametrize("number", [1, 4, 8])
def test_no_single_statement_buys_a_charge(spent: Ledger, statement: str, number: int) -> None:
    """Whatever one row says of its charge or sum, nothing more can be spent."""
    with closing(sqlite3.connect(spent.path, isolation_level=None)) as connection:
        connection.execute(statement.format(number))
    for book in (spent, None):
        with pytest.raises((BudgetError, LedgerError)):
            (book or Ledger.open(spent.path)).record(
                "new", unit="person", epsilon="1/8", document=b"y"
            )
    with pytest.raises(LedgerError):
        Ledger.open(spent.path).verify()


def test_an_entry_moved_to_another_name_is_not_delivered(spent: Ledger) -> None:
    """An index or a row that says otherwise than its hash is damage."""
    with closing(sqlite3.connect(spent.path, isolation_level=None)) as connection:
        connection.execute("UPDATE entry SET name = 'June' WHERE number = 3")
    with pytest.raises(LedgerError, match="does not fit its hash"):
        spent.find("2", "June")
    assert spent.find("2", "Flüge") is None


def test_a_history_copied_from_another_ledger_is_refused(spent: Ledger, tmp_path: Path) -> None:
    """Rows belong to their ledger's creation record."""
    other = Ledger.create(tmp_path / "b.ledger", epsilon=1, unit="person")
    other.record("0", unit="person", epsilon="1/1000", document=b"x")
    mixed = shutil.copy(spent.path, tmp_path / "mixed.ledger")
    with closing(sqlite3.connect(mixed, isolation_level=None)) as connection:
        connection.execute("ATTACH ? AS other", (str(other.path),))
        connection.execute("DELETE FROM entry")
        connection.execute("INSERT INTO entry SELECT * FROM other.entry")
        connection.execute("UPDATE head SET number = 1, hash = (SELECT hash FROM entry)")
    with pytest.raises(LedgerError, match="broken chain"):
        Ledger.open(mixed).record("new", unit="person", epsilon="1/8", document=b"y")


@pytest.mark.parametrize("head", [[], 3, b"", "", True, object()])
def test_a_head_is_text(spent: Ledger, head: object) -> None:
    """Anything else is refused in words."""
    with pytest.raises(InputError, match="head is"):
        spent.verify(head=head)  # type: ignore[arg-type]
