"""Files that are no whole ledger: missing, foreign, damaged, changed, full, locked."""

from __future__ import annotations

import secrets
import shutil
import sqlite3
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from shoal.errors import LedgerError
from shoal.privacy.ledger import file as ledger_file
from shoal.privacy.ledger.entry import SCHEMA_VERSION
from shoal.privacy.ledger.hash_chain import APPLICATION_ID
from shoal.privacy.ledger.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.unit


@pytest.fixture
def book(tmp_path: Path) -> Ledger:
    """A ledger with five entries."""
    made = Ledger.create(tmp_path / "a.ledger", epsilon=1, delta="1e-5")
    for number in range(5):
        made.record(
            str(number), unit="person", epsilon="0.1", document=b"PRIVATE %d " % number * 900
        )
    return made


def refuse(act: Callable[[], object], words: str) -> None:
    """The act fails with a ledger error in words, without contents or SQLite's own text."""
    with pytest.raises(LedgerError, match=words) as caught:
        act()
    assert "PRIVATE" not in str(caught.value)
    assert "; allowed: " in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def change(path: Path, *statements: str) -> None:
    """Change the file by hand."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_paths_that_are_no_ledger(tmp_path: Path) -> None:
    """Missing, a folder, a missing folder, empty, a broken path, a file in the way."""
    (tmp_path / "empty").touch()
    (tmp_path / "file").write_bytes(b"text")
    for path, words in (
        (tmp_path / "none", "No such file"),
        (tmp_path, "is a directory"),
        (tmp_path / "no" / "book", "No such file"),
        (tmp_path / "file" / "book", "Not a directory"),
        (tmp_path / "empty", "an empty file"),
        (tmp_path / "a\0b", "not a path"),
        (tmp_path / ("a" * 300), "more than 247 bytes"),
    ):
        refuse(partial(Ledger.open, path), words)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file"]


def test_places_where_none_can_be_made(tmp_path: Path, book: Ledger) -> None:
    """An existing path of any kind, and folders that are not there; no drafts are left."""
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for path, words in (
        (book.path, "already a file"),
        (tmp_path, "already a file"),
        (tmp_path / "empty", "already a file"),
        (tmp_path / "link", "already a file"),
        (tmp_path / "no" / "book", "No such file"),
        (tmp_path / "empty" / "book", "Not a directory"),
        (tmp_path / "a\0b", "not a path"),
        (tmp_path / ("a" * 300), "more than 247 bytes"),
    ):
        refuse(partial(Ledger.create, path, epsilon=1), words)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.ledger", "empty", "link"]
    assert len(book.entries()) == 5


def test_other_files_are_refused(tmp_path: Path, book: Ledger) -> None:
    """Random bytes, another application's database, another version, other tables."""
    path = tmp_path / "other"
    path.write_bytes(secrets.token_bytes(5000))
    refuse(lambda: Ledger.open(path), "another kind of file")
    path.unlink()
    change(path, "CREATE TABLE ledger (id)")
    refuse(lambda: Ledger.open(path), "another application")
    change(path, f"PRAGMA application_id = {APPLICATION_ID}")
    refuse(lambda: Ledger.open(path), "schema version 0")
    change(path, f"PRAGMA user_version = {SCHEMA_VERSION}")
    refuse(lambda: Ledger.open(path), "other tables")
    change(
        book.path,
        "CREATE TRIGGER sly AFTER INSERT ON entry BEGIN DELETE FROM entry WHERE number = 1; END",
    )
    refuse(lambda: book.record("a", unit="person", epsilon=0, document=b"x"), "other tables")


@pytest.mark.parametrize("part", [1, 50, 99, 100, 2000, 4096, 9000, -1])
def test_truncated_files_are_refused(book: Ledger, part: int) -> None:
    """Whatever is cut off, reading, recording and verifying fail in words."""
    book.path.write_bytes(book.path.read_bytes()[:part])
    refuse(lambda: Ledger.open(book.path).verify(), "kind of file|damaged|application")
    refuse(
        lambda: book.record("a", unit="person", epsilon=0, document=b"x"),
        "kind of file|damaged|application",
    )


def test_any_changed_page_is_an_error_in_words_or_harmless(book: Ledger) -> None:
    """Overwritten stretches: a ledger error, or every entry is still what it was."""
    whole, before = book.path.read_bytes(), book.entries()
    messages = []
    for start in range(0, len(whole), 512):
        broken = whole[:start] + secrets.token_bytes(512) + whole[start + 512 :]
        book.path.write_bytes(broken)
        try:
            book.verify()
            assert book.entries() == before
        except LedgerError as error:
            messages.append(str(error))
    assert len(messages) > len(whole) // 1024
    assert not any("PRIVATE" in message for message in messages)


TAMPERINGS = {
    "budget": ("UPDATE ledger SET epsilon = '2/1'",),
    "delta budget": ("UPDATE ledger SET delta = '1/2'",),
    "budget gone": ("DELETE FROM ledger",),
    "two budgets": (
        "INSERT INTO ledger SELECT 'b', epsilon, delta, unit, created_at, hash FROM ledger",
    ),
    "budget no fraction": ("UPDATE ledger SET epsilon = 'PRIVATE'",),
    "budget of a type": ("UPDATE ledger SET epsilon = x'00'",),
    "charge": ("UPDATE entry SET epsilon = '1/11' WHERE number = 2",),
    "charge no fraction": ("UPDATE entry SET epsilon = 'PRIVATE' WHERE number = 2",),
    "charge by zero": ("UPDATE entry SET epsilon = '1/0' WHERE number = 2",),
    "charge below zero": ("UPDATE entry SET epsilon = '-1/10' WHERE number = 2",),
    "delta": ("UPDATE entry SET delta = '1/1000000' WHERE number = 5",),
    "name": ("UPDATE entry SET name = 'PRIVATE' WHERE number = 3",),
    "question": ("UPDATE entry SET question = 'other' WHERE number = 3",),
    "time": ("UPDATE entry SET recorded_at = '' WHERE number = 1",),
    "document": ("UPDATE entry SET document = x'00' WHERE number = 4",),
    "document and hash": (
        "CREATE TEMP TABLE one AS SELECT * FROM entry WHERE number = 1",
        "UPDATE entry SET document = (SELECT document FROM one) WHERE number = 4",
        "UPDATE entry SET document_sha256 = (SELECT document_sha256 FROM one) WHERE number = 4",
    ),
    "document of a type": ("UPDATE entry SET document = 'PRIVATE' WHERE number = 4",),
    "last gone": ("DELETE FROM entry WHERE number = 5",),
    "before the last gone": ("DELETE FROM entry WHERE number = 4",),
    "head": ("UPDATE head SET hash = (SELECT hash FROM entry WHERE number = 4)",),
    "no head": ("DELETE FROM head",),
    "two heads": ("INSERT INTO head SELECT * FROM head",),
    "sum": ("UPDATE entry SET spent_epsilon = '1/10' WHERE number = 5",),
    "old sum": ("UPDATE entry SET spent_epsilon = '1/11' WHERE number = 2",),
    "unit": ("UPDATE entry SET unit = replace(unit, 'person', 'row') WHERE number = 2",),
    "no unit": ("UPDATE entry SET unit = '' WHERE number = 5",),
    "a fraction written otherwise": ("UPDATE entry SET epsilon = '2/20' WHERE number = 2",),
    "first gone": ("DELETE FROM entry WHERE number = 1",),
    "middle gone": ("DELETE FROM entry WHERE number = 3",),
    "gap closed": (
        "DELETE FROM entry WHERE number = 3",
        "UPDATE entry SET number = number - 1 WHERE number > 3",
    ),
    "reordered": (
        "UPDATE entry SET number = 9 WHERE number = 2",
        "UPDATE entry SET number = 2 WHERE number = 3",
        "UPDATE entry SET number = 3 WHERE number = 9",
    ),
    "not unicode": ("UPDATE entry SET name = CAST(x'ff' AS TEXT) WHERE number = 2",),
}


@pytest.mark.parametrize("statements", TAMPERINGS.values(), ids=TAMPERINGS)
def test_tampering_is_found(book: Ledger, statements: tuple[str, ...]) -> None:
    """Through the handle that was open and through a new one."""
    change(book.path, *statements)
    refuse(book.verify, "damaged|not the ledger")
    refuse(lambda: Ledger.open(book.path).verify(), "damaged")


@pytest.mark.parametrize("name", ["delta", "last gone", "head", "sum", "before the last gone"])
def test_record_refuses_a_tampered_ledger(book: Ledger, name: str) -> None:
    """What can be seen at the newest entries and the head is seen before a charge."""
    change(book.path, *TAMPERINGS[name])
    refuse(lambda: book.record("new", unit="person", epsilon=0, document=b"x"), "damaged")


def test_a_changed_document_is_never_delivered(book: Ledger) -> None:
    """Neither found, nor delivered again, nor listed."""
    change(book.path, "UPDATE entry SET document = x'00' WHERE number = 2")
    refuse(lambda: book.find("1"), "damaged")
    refuse(lambda: book.record("1", unit="person", epsilon=0, document=b"x"), "damaged")
    refuse(book.entries, "damaged")


def test_newest_entries_cut_off_need_a_noted_head(book: Ledger, tmp_path: Path) -> None:
    """An old copy holds together; the head noted elsewhere is not in it."""
    old = shutil.copy(book.path, tmp_path / "old")
    book.record("new", unit="person", epsilon="0.1", document=b"x")
    earlier = Ledger.open(old)
    earlier.verify()
    earlier.verify(head=earlier.head)
    book.verify(head=earlier.head)
    refuse(lambda: earlier.verify(head=book.head), "does not contain the head")


def test_charges_beyond_the_budget_are_found(book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain that a faulty writer made too expensive does not verify."""
    from shoal.privacy.ledger import recording as module

    monkeypatch.setattr(module, "refuse_beyond", lambda *_: None)
    refuse(lambda: book.record("big", unit="person", epsilon=9, document=b"x"), "beyond its budget")
    small = book.budget
    monkeypatch.setattr(type(small), "within", lambda *_: True)
    book.record("big", unit="person", epsilon=9, document=b"x")
    monkeypatch.undo()
    refuse(book.verify, "beyond its budget")


def test_a_ledger_replaced_under_a_handle_is_refused(book: Ledger) -> None:
    """A fresh budget at the same path is another ledger; so is a missing file."""
    book.path.unlink()
    refuse(lambda: book.check(1), "No such file")
    Ledger.create(book.path, epsilon=1, delta="1e-5")
    refuse(
        lambda: book.record("a", unit="person", epsilon=1, document=b"x"),
        "not the ledger that was opened",
    )


def test_a_full_disk_is_told_in_words(book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's own full error; nothing is recorded and room helps."""
    connect, pages = ledger_file._connect, book.path.stat().st_size // 4096

    def small(path: Path) -> sqlite3.Connection:
        connection = connect(path)
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    monkeypatch.setattr(ledger_file, "_connect", small)
    refuse(
        lambda: book.record("a", unit="person", epsilon=0, document=b"PRIVATE" * 9000),
        "the disk is full",
    )
    monkeypatch.undo()
    assert len(book.entries()) == 5
    book.record("a", unit="person", epsilon=0, document=b"PRIVATE" * 9000)
    book.verify()


def test_a_lock_that_stays_is_told_in_words(book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers go on beside a writer; another writer gives up after its patience."""
    monkeypatch.setattr(ledger_file, "_PATIENCE", 0)
    with closing(sqlite3.connect(book.path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        assert len(book.entries()) == 5
        refuse(lambda: book.record("a", unit="person", epsilon=0, document=b"x"), "kept it locked")
        connection.execute("ROLLBACK")
        connection.execute("BEGIN EXCLUSIVE")
        refuse(book.entries, "kept it locked")
    book.record("a", unit="person", epsilon=0, document=b"x")


def test_a_single_file_carries_every_charge(book: Ledger, tmp_path: Path) -> None:
    """No second file is left beside it, also after somebody switched it to WAL."""
    change(book.path, "PRAGMA journal_mode = WAL")
    book.record("a", unit="person", epsilon="0.1", document=b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["a.ledger"]
    copy = Ledger.open(shutil.copy(book.path, tmp_path / "copy"))
    assert copy.entries() == book.entries()


def test_charges_are_written_durably(book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rollback journal and synchronous EXTRA in the very connection that commits."""
    from shoal.privacy.ledger import recording as module

    connect, made = ledger_file._connect, list[sqlite3.Connection]()
    seen: list[Any] = []

    def noted(path: Path) -> sqlite3.Connection:
        made.append(connect(path))
        return made[-1]

    monkeypatch.setattr(ledger_file, "_connect", noted)
    monkeypatch.setattr(
        module,
        "_at",
        lambda _: seen.extend(
            made[-1].execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous")
        ),
    )
    book.record("a", unit="person", epsilon=0, document=b"x")
    assert seen == ["delete", 3] * 5


def test_a_sqlite_that_is_not_durable_is_refused(
    book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the journal cannot be what it must be, nothing is recorded."""
    connect = ledger_file._connect

    class Forgetful:
        def __init__(self, path: Path) -> None:
            self.real = connect(path)
            self.in_transaction, self.close = False, self.real.close

        def execute(self, text: str) -> sqlite3.Cursor:
            return self.real.execute("SELECT 1" if text == "PRAGMA synchronous" else text)

    monkeypatch.setattr(ledger_file, "_connect", Forgetful)
    refuse(lambda: book.record("a", unit="person", epsilon=0, document=b"x"), "durably")
