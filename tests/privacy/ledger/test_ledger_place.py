"""A ledger has one name, and nothing of another ledger beside it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

import shoal
from shoal.errors import InputError, LedgerError, ShoalError
from shoal.files import outputs
from shoal.privacy.ledger import journal as journals
from shoal.privacy.ledger import recording
from shoal.privacy.ledger.head import HEAD_PAGE, PAGE_SIZE, mark_of_journal
from shoal.privacy.ledger.ledger import Ledger
from shoal.privacy.ledger.place import place_of
from tests.support import flights

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.audit, pytest.mark.full]

# SQLite writes pages while the charge goes on, as its memory for them is tiny, and is killed.
DIE = """
import os, sys
from shoal.privacy.ledger import recording, file as ledger_file
from shoal.privacy.ledger.ledger import Ledger
connect = ledger_file._connect
def tiny(path):
    connection = connect(path)
    connection.execute("PRAGMA cache_size = 1")
    return connection
ledger_file._connect = tiny
recording._at = lambda point: os._exit(9) if point == "before commit" else None
Ledger.open(sys.argv[1]).record("dead", unit="u", epsilon="0.1", document=b"x" * 99999)
"""


@pytest.fixture
def book(tmp_path: Path) -> Ledger:
    """A ledger with a charge of a tenth."""
    made = Ledger.create(tmp_path / "a.ledger", epsilon=1)
    made.record("first", unit="u", epsilon="0.1", document=b"1")
    return made


def _crash(book: Ledger) -> Path:
    """A writer dies in the middle; what SQLite needs to take it back is left."""
    done = subprocess.run([sys.executable, "-c", DIE, str(book.path)], check=False)
    assert done.returncode == 9
    journal = book.path.with_name(f"{book.path.name}-journal")
    assert journal.stat().st_size > 0
    return journal


_ACTS: dict[str, Callable[[Ledger], object]] = {
    "open": lambda book: Ledger.open(book.path),
    "spent": lambda book: book.spent,
    "find": lambda book: book.find("first"),
    "verify": lambda book: book.verify(),
    "record": lambda book: book.record("b", unit="u", epsilon="0.8", document=b"2"),
}


@pytest.mark.parametrize("act", _ACTS)
def test_a_ledger_with_two_names_is_refused(book: Ledger, act: str) -> None:
    """A crash under one name would be unknown under the other, and undo its charges."""
    other = book.path.with_name("h.ledger")
    os.link(book.path, other)
    for path in (book.path, other):
        named = Ledger(path, book._founding)
        with pytest.raises(LedgerError, match="second name"):
            _ACTS[act](named)
    other.unlink()
    _ACTS[act](book)


def test_a_second_name_after_a_crash_buys_nothing(book: Ledger) -> None:
    """Neither name records, and what the crash left stays until one is removed."""
    journal = _crash(book)
    other = book.path.with_name("h.ledger")
    os.link(book.path, other)
    left = journal.read_bytes()
    for path in (other, book.path):
        with pytest.raises(LedgerError, match="second name"):
            Ledger.open(path)
    assert journal.read_bytes() == left
    other.unlink()
    assert Ledger.open(book.path).spent.epsilon == book.spent.epsilon
    assert not journal.exists()
    book.verify()


def test_a_name_given_while_writing_is_seen_under_the_lock(
    book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look is repeated once nobody else can write."""
    from shoal.privacy.ledger import file as ledger_file

    check = ledger_file._check_durable

    def late(connection: sqlite3.Connection, path: Path) -> None:
        check(connection, path)
        os.link(path, path.with_name("h.ledger"))

    monkeypatch.setattr(ledger_file, "_check_durable", late)
    with pytest.raises(LedgerError, match="second name"):
        book.record("b", unit="u", epsilon="0.8", document=b"2")
    book.path.with_name("h.ledger").unlink()
    assert len(book.entries()) == 1


@pytest.mark.parametrize("what", ["moved", "replaced"])
@pytest.mark.parametrize("point", ["begun", "inserted", "before commit"])
def test_a_ledger_that_is_replaced_while_it_is_charged_delivers_nothing(
    book: Ledger, monkeypatch: pytest.MonkeyPatch, what: str, point: str
) -> None:
    """What was recorded in a file that has lost its name may be lost with it."""
    copy = book.path.read_bytes()

    def at(now: str) -> None:
        if now == point:
            book.path.rename(book.path.with_name("aside"))
            if what == "replaced":
                book.path.write_bytes(copy)

    monkeypatch.setattr(recording, "_at", at)
    with pytest.raises(LedgerError):
        book.record("b", unit="u", epsilon="0.1", document=b"2")


def test_the_name_that_a_killed_maker_left_is_taken_away(book: Ledger) -> None:
    """A ledger is made under another name first."""
    draft = book.path.with_name(".shoal-0123456789abcdef.new")
    os.link(book.path, draft)
    kept = book.path.with_name(".shoal-another.new")
    kept.touch()
    assert len(book.entries()) == 1
    assert not draft.exists()
    assert kept.exists()


@pytest.mark.parametrize("ending", ["-journal", "-wal", "-shm"])
def test_no_ledger_is_made_beside_parts_of_another(tmp_path: Path, ending: str) -> None:
    """SQLite would take them for the new ledger's own and play them into it."""
    beside = tmp_path / f"a.ledger{ending}"
    beside.write_bytes(b"part")
    with pytest.raises(LedgerError, match="a part of a ledger"):
        Ledger.create(tmp_path / "a.ledger", epsilon=5)
    assert [path.name for path in tmp_path.iterdir()] == [beside.name]
    assert beside.read_bytes() == b"part"


@pytest.mark.parametrize("ending", ["-journal", "-wal", "-shm", ".wal", "-Journal", "-\u017fhm"])
def test_no_ledger_is_called_like_a_part_of_another(book: Ledger, ending: str) -> None:
    """SQLite would delete it when the other one is looked at, with all charges."""
    named = book.path.with_name(f"{book.path.name}{ending}")
    with pytest.raises(LedgerError, match="a name that does not end in -journal"):
        Ledger.create(named, epsilon=5)
    assert not named.exists()
    # One that was given such a name by hand is neither opened, read nor written, by a link either.
    other = Ledger.create(book.path.with_name("other.ledger"), epsilon=5)
    other.path.rename(named)
    link = book.path.with_name("link.ledger")
    link.symlink_to(named)
    left = named.read_bytes()
    for path in (named, link):
        for act in _ACTS.values():
            with pytest.raises(LedgerError, match="a name that does not end in -journal"):
                act(Ledger(path, other._founding))
    assert named.read_bytes() == left
    named.rename(other.path)
    other.verify()


def test_what_a_crash_left_is_not_played_into_a_new_ledger(book: Ledger) -> None:
    """The ledger was moved after a crash, and what SQLite keeps beside it was not."""
    journal = _crash(book)
    moved = book.path.rename(book.path.with_name("b.ledger"))
    with pytest.raises(LedgerError, match="a part of a ledger"):
        Ledger.create(book.path, epsilon=5)
    journal.rename(moved.with_name("b.ledger-journal"))
    Ledger.open(moved).verify()
    assert len(Ledger.open(moved).entries()) == 1
    assert Ledger.create(book.path, epsilon=5).budget.epsilon == 5


@pytest.mark.parametrize("act", _ACTS)
@pytest.mark.parametrize("target", ["b.ledger", "sub/a.ledger", "sub/b.ledger"])
def test_a_ledger_moved_after_a_crash_is_refused(book: Ledger, act: str, target: str) -> None:
    """Without what a crash left no charge is read or made; with it, all is as before."""
    journal = _crash(book)
    old = book.path
    (old.parent / "sub").mkdir()
    moved = old.rename(old.parent / target)
    left, torn = journal.read_bytes(), moved.read_bytes()
    with pytest.raises(LedgerError, match="moved after a crash"):
        _ACTS[act](Ledger(moved, book._founding))
    assert (journal.read_bytes(), moved.read_bytes()) == (left, torn)
    journal.rename(f"{moved}-journal")
    _ACTS[act](Ledger(moved, book._founding))
    assert Ledger.open(moved).find("first")
    assert Ledger.open(moved).find("dead") is None
    Ledger.open(moved).verify()


def test_a_ledger_moved_with_its_folder_is_whole(book: Ledger) -> None:
    """What a crash left came along; a rename in the new folder is refused again."""
    _crash(book)
    place = book.path.parent.rename(book.path.parent.with_name(f"{book.path.parent.name}-moved"))
    moved = (place / "a.ledger").rename(place / "b.ledger")
    with pytest.raises(LedgerError, match="moved after a crash"):
        Ledger.open(moved)
    moved.rename(place / "a.ledger")
    assert len(Ledger.open(place / "a.ledger").entries()) == 1


def test_a_moved_ledger_knows_its_new_place_before_it_charges(book: Ledger) -> None:
    """Moved, crashed in the first charge there, and moved again: refused."""
    moved = book.path.rename(book.path.with_name("b.ledger"))
    journal = _crash(Ledger(moved, book._founding))
    again = moved.rename(moved.with_name("c.ledger"))
    with pytest.raises(LedgerError, match=r"b\.ledger-journal"):
        Ledger.open(again)
    journal.rename(f"{again}-journal")
    assert len(Ledger.open(again).entries()) == 1


def test_a_new_place_is_on_the_disk_before_a_charge_goes_on(
    book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever part of a charge a crash leaves, the place of its journal is known."""
    moved = Ledger(book.path.rename(book.path.with_name("b.ledger")), book._founding)
    seen = []

    def look(point: str) -> None:
        if point == "checked":
            with closing(sqlite3.connect(f"{moved.path.as_uri()}?mode=ro", uri=True)) as other:
                seen.append(other.execute("SELECT place FROM head").fetchone()[0])

    monkeypatch.setattr(recording, "_at", look)
    moved.record("b", unit="u", epsilon="0.1", document=b"2")
    assert seen == [place_of(moved.path)]


# The new place is noted: what takes that back is on the disk, the head's page is written, no more.
DIE_NOTING = """
import os, sys
from shoal.privacy.ledger import file as ledger_file
from shoal.privacy.ledger.head import touch_founding
from shoal.privacy.ledger.ledger import Ledger
def noting(connection, chain, here):
    connection.execute("PRAGMA cache_size = 1")
    chain.move(here)
    touch_founding(connection)
    connection.execute("SELECT sum(length(document)) FROM entry").fetchall()
    os._exit(9)
ledger_file._note_place = noting
Ledger.open(sys.argv[1]).record("dead", unit="u", epsilon="0.1", document=b"x")
"""


@pytest.mark.parametrize("size", [1, 200_000])
@pytest.mark.parametrize("written", [False, True])
def test_a_crash_that_notes_a_place_takes_no_later_charge_back(
    book: Ledger, size: int, *, written: bool
) -> None:
    """Moved, crashed before it knew, moved back, charged, and moved again: refused."""
    book.record("long", unit="u", epsilon="0.1", document=b"x" * 50_000)
    old, before = book.path, book.path.read_bytes()
    moved = old.rename(old.with_name("b.ledger"))
    done = subprocess.run([sys.executable, "-c", DIE_NOTING, str(moved)], check=False)
    assert done.returncode == 9
    journal = moved.with_name("b.ledger-journal")
    assert journal.stat().st_size > 0
    assert moved.read_bytes() != before
    if not written:
        moved.write_bytes(before)
    moved.rename(old)
    if written:
        with pytest.raises(LedgerError, match="moved after a crash"):
            Ledger.open(old)
        old.rename(moved)
        Ledger.open(moved).verify()
        return
    Ledger.open(old).record("later", unit="u", epsilon="0.1", document=b"y" * size)
    content, left = old.read_bytes(), journal.read_bytes()
    old.rename(moved)
    for act in _ACTS.values():
        with pytest.raises(LedgerError, match="SQLite would take charges back with it"):
            act(Ledger(moved, book._founding))
    assert (moved.read_bytes(), journal.read_bytes()) == (content, left)
    journal.unlink()
    assert [entry.question for entry in Ledger.open(moved).entries()] == ["first", "long", "later"]
    Ledger.open(moved).verify()


@pytest.mark.parametrize("written", [False, True])
def test_a_crash_that_notes_a_place_moves_with_its_ledger(book: Ledger, *, written: bool) -> None:
    """Both moved together are as they were, wherever they are taken to."""
    book.record("long", unit="u", epsilon="0.1", document=b"x" * 50_000)
    before, folder = book.path.read_bytes(), book.path.with_name("b")
    folder.mkdir()
    moved = book.path.rename(folder / "a.ledger")
    subprocess.run([sys.executable, "-c", DIE_NOTING, str(moved)], check=False)
    if not written:
        moved.write_bytes(before)
    there = folder.rename(folder.with_name("c")) / "a.ledger"
    assert [entry.question for entry in Ledger.open(there).entries()] == ["first", "long"]
    Ledger.open(there).record("next", unit="u", epsilon="0.1", document=b"2")
    Ledger.open(there).verify()


def test_a_crash_elsewhere_is_not_played_at_the_old_place(book: Ledger) -> None:
    """What was left where the place was noted takes no charge back that followed here."""
    book.record("long", unit="u", epsilon="0.1", document=b"x" * 50_000)
    old, before = book.path, book.path.read_bytes()
    moved = old.rename(old.with_name("b.ledger"))
    subprocess.run([sys.executable, "-c", DIE_NOTING, str(moved)], check=False)
    moved.write_bytes(before)
    moved.rename(old)
    Ledger.open(old).record("later", unit="u", epsilon="0.1", document=b"y")
    journal = moved.with_name("b.ledger-journal").rename(old.with_name("a.ledger-journal"))
    with pytest.raises(LedgerError, match="SQLite would take charges back with it"):
        Ledger.open(old)
    journal.unlink()
    Ledger.open(old).verify()
    assert len(Ledger.open(old).entries()) == 3


def test_a_crash_that_notes_a_place_is_taken_back_there(book: Ledger) -> None:
    """Where it happened nothing is lost, and the charge is made when asked again."""
    book.record("long", unit="u", epsilon="0.1", document=b"x" * 50_000)
    moved = book.path.rename(book.path.with_name("b.ledger"))
    subprocess.run([sys.executable, "-c", DIE_NOTING, str(moved)], check=False)
    Ledger.open(moved).record("next", unit="u", epsilon="0.1", document=b"2")
    assert len(Ledger.open(moved).entries()) == 3
    Ledger.open(moved).verify()


def test_a_journal_beside_another_ledger_is_its_own(book: Ledger) -> None:
    """A new ledger under an old name, at work or not, does not stop the old one."""
    moved = book.path.rename(book.path.with_name("b.ledger"))
    _crash(Ledger.create(book.path, epsilon=1))
    assert len(Ledger.open(moved).entries()) == 1
    Ledger.open(moved).record("next", unit="u", epsilon="0.1", document=b"2")
    Ledger.open(moved).verify()


def test_what_another_ledgers_crash_left_stops_nobody(book: Ledger) -> None:
    """It is not this ledger's, which it would damage: nothing says to move it here."""
    moved = book.path.rename(book.path.with_name("b.ledger"))
    other = Ledger.create(book.path, epsilon=5)
    other.record("b1", unit="u", epsilon="0.1", document=b"2")
    journal = _crash(other)
    gone = other.path.rename(other.path.with_name("c.ledger"))
    left = journal.read_bytes()
    Ledger.open(moved).record("next", unit="u", epsilon="0.1", document=b"2")
    Ledger.open(moved).verify()
    with pytest.raises(LedgerError, match=r"move that file to '.*c\.ledger-journal'"):
        Ledger.open(gone)
    assert journal.read_bytes() == left
    journal.rename(f"{gone}-journal")
    assert [entry.question for entry in Ledger.open(gone).entries()] == ["b1"]
    Ledger.open(gone).verify()


def test_a_journal_that_cannot_be_read_is_moved_nowhere(book: Ledger) -> None:
    """Whose it is cannot be told, so the ledger is refused and nothing is advised."""
    moved = book.path.rename(book.path.with_name("b.ledger"))
    book.path.with_name("a.ledger-journal").mkdir()
    with pytest.raises(LedgerError, match="move it nowhere before it is known whose it is"):
        Ledger.open(moved)


@pytest.mark.parametrize("when", ["begun", "inserted", "before commit"])
def test_what_a_crash_left_says_whose_it_is(book: Ledger, when: str) -> None:
    """From the first page on that a charge changes in the file."""
    before = book.path.read_bytes()
    code = DIE.replace('"before commit"', repr(when))
    subprocess.run([sys.executable, "-c", code, str(book.path)], check=False)
    journal = book.path.with_name("a.ledger-journal")
    changed = book.path.read_bytes() != before
    assert changed == (when != "begun")
    assert not changed or book._founding.identity.encode() in journal.read_bytes()


@pytest.mark.parametrize(
    "act",
    [
        lambda: Ledger.open("a.ledger"),
        lambda: Ledger.create("a.ledger", epsilon=1),
        lambda: flights.plan().release(flights.records(), ledger="a.ledger"),
        lambda: outputs.check_outputs({"--output": "a.csv"}, {"DATA": "b.csv"}, overwrite=False),
        lambda: shoal.verify("a.json", ledger="a.ledger"),
        lambda: flights.plan().save("a.json"),
    ],
)
def test_a_folder_that_was_removed_is_told_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]
) -> None:
    """Relative paths need a current folder."""
    flights.plan()
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ShoalError):
        act()


def test_links_that_lead_in_a_circle_are_told_in_words(tmp_path: Path) -> None:
    """Neither made nor opened, and nothing is left beside them."""
    path = tmp_path / "loop.ledger"
    path.symlink_to(path)
    with pytest.raises(LedgerError):
        Ledger.create(path, epsilon=1)
    with pytest.raises(LedgerError):
        Ledger.open(path)
    assert [each.name for each in tmp_path.iterdir()] == ["loop.ledger"]


@pytest.mark.parametrize("left", ["a link", "a file", "a folder", "another ledger"])
def test_whatever_lies_at_the_old_name_a_crash_is_not_forgotten(book: Ledger, left: str) -> None:
    """What took the ledger's old name says nothing of the journal beside it."""
    journal = _crash(book)
    old = book.path
    aside = journal.rename(journal.with_name("aside"))
    moved = old.rename(old.with_name("b.ledger"))
    if left == "a link":
        old.symlink_to(moved)
    elif left == "a file":
        old.write_text("notes")
    elif left == "a folder":
        old.mkdir()
    else:
        Ledger.create(old, epsilon=5)
    aside.rename(journal)
    with pytest.raises(LedgerError, match="moved after a crash"):
        Ledger.open(moved)


@pytest.mark.parametrize("charges", [0, 1, 2, 9])
def test_an_old_journal_takes_no_later_charge_back(book: Ledger, charges: int) -> None:
    """After a crash the folder was renamed, so that nobody found what was left there."""
    journal = _crash(book)
    home = journal.parent
    (home / "new").mkdir()
    moved = book.path.rename(home / "new" / "a.ledger")
    kept = journal.rename(home / "kept")
    _whole(moved, kept)
    for number in range(charges):
        Ledger.open(moved).record(f"n{number}", unit="u", epsilon="0.1", document=b"2")
    back = moved.rename(book.path)
    kept.rename(journal)
    # A ledger that was only looked at is as the journal knows it.
    if charges:
        with pytest.raises(LedgerError, match="left by a crash before the ledger"):
            Ledger.open(back)
        journal.unlink()
    assert len(Ledger.open(back).entries()) == 1 + charges
    Ledger.open(back).verify()


def test_an_old_journal_takes_nothing_back_at_the_old_place(book: Ledger) -> None:
    """Moved there and back between, it lies where it lay when the journal was left."""
    journal = _crash(book)
    kept = journal.rename(journal.with_name("kept"))
    _whole(book.path, kept)
    moved = book.path.rename(book.path.with_name("b.ledger"))
    Ledger.open(moved).record("there", unit="u", epsilon="0.1", document=b"2")
    back = Ledger.open(moved.rename(book.path))
    back.record("back", unit="u", epsilon="0.1", document=b"2")
    kept.rename(journal)
    with pytest.raises(LedgerError, match="left by a crash before the ledger"):
        Ledger.open(book.path)
    journal.unlink()
    assert len(back.entries()) == 3


@pytest.mark.parametrize("name", ["own", "link"])
def test_a_charge_plays_no_old_journal_either(book: Ledger, tmp_path: Path, name: str) -> None:
    """A handle that was made before it lay there, by the ledger's name or by a link."""
    backup = book.path.read_bytes()
    for number in range(2):
        book.record(f"n{number}", unit="u", epsilon="0.1", document=b"2")
    left = _crash(book).read_bytes()
    book.path.write_bytes(backup)
    if name == "link":
        (tmp_path / "links").mkdir()
        (tmp_path / "links" / "l.ledger").symlink_to(book.path)
        book.path = tmp_path / "links" / "l.ledger"
    with pytest.raises(LedgerError, match="left by a crash before the ledger"):
        book.record("more", unit="u", epsilon="0.1", document=b"2")
    journal = book.path.resolve().with_name("a.ledger-journal")
    assert (book.path.read_bytes(), journal.read_bytes()) == (backup, left)


def test_a_journal_is_not_played_into_another_ledger(book: Ledger) -> None:
    """Nor into an older copy of its own."""
    backup = book.path.read_bytes()
    for number in range(2):
        book.record(f"n{number}", unit="u", epsilon="0.1", document=b"2")
    other = Ledger.create(book.path.with_name("b.ledger"), epsilon=5).path.read_bytes()
    journal = _crash(book)
    left = journal.read_bytes()
    for content in (backup, other):
        book.path.write_bytes(content)
        with pytest.raises(LedgerError, match="left by a crash before the ledger"):
            Ledger.open(book.path)
        assert (book.path.read_bytes(), journal.read_bytes()) == (content, left)


def test_an_old_place_where_nobody_may_look_stops_the_ledger(
    book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What may lie there is not taken for nothing."""
    moved = book.path.rename(book.path.with_name("b.ledger"))
    hidden = os.fsencode(book.path) + b"-journal"

    def guarded(act: Callable[..., object]) -> Callable[..., object]:
        def refuse(path: object, *more: object) -> object:
            if path == hidden:
                raise PermissionError
            return act(path, *more)

        return refuse

    monkeypatch.setattr(os, "lstat", guarded(os.lstat))
    monkeypatch.setattr(journals, "mark_of_journal", guarded(mark_of_journal))
    with pytest.raises(LedgerError, match="an old place where one may look"):
        Ledger.open(moved)


def _whole(path: Path, journal: Path) -> None:
    """A ledger as it was before a crash tore it, with what takes the crash back kept elsewhere."""
    left = journal.read_bytes()
    beside = path.with_name(f"{path.name}-journal")
    beside.write_bytes(left)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    assert not beside.exists()


def test_a_write_ahead_log_is_not_played(book: Ledger) -> None:
    """Shoal never leaves one; another program's, of any state, is refused."""
    log = book.path.with_name(f"{book.path.name}-wal")
    kept = book.path.read_bytes()
    with closing(sqlite3.connect(book.path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("UPDATE head SET number = 0")
        left = log.read_bytes()
    book.path.write_bytes(kept)
    book.record("later", unit="u", epsilon="0.9", document=b"2")
    log.write_bytes(left)
    charged = book.path.read_bytes()
    for act in _ACTS.values():
        with pytest.raises(LedgerError, match="which shoal never leaves"):
            act(book)
    assert (book.path.read_bytes(), log.read_bytes()) == (charged, left)
    log.unlink()
    assert len(book.entries()) == 2
    book.verify()


def test_a_journal_of_another_program_is_not_played(book: Ledger) -> None:
    """It has no mark of a ledger, and would write its pages into this one."""
    other = book.path.with_name("other.db")
    code = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('PRAGMA cache_size = 1'); c.execute('CREATE TABLE t (a)');"
        "c.execute('BEGIN'); c.execute('INSERT INTO t VALUES (zeroblob(99999))'); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code, str(other)], check=False)
    journal = other.with_name("other.db-journal")
    assert journal.stat().st_size > 0
    foreign = journal.rename(book.path.with_name(f"{book.path.name}-journal")).read_bytes()
    kept = book.path.read_bytes()
    with pytest.raises(LedgerError, match="or by another ledger"):
        Ledger.open(book.path)
    assert book.path.read_bytes() == kept
    # The header alone would cut the ledger to the other file's length.
    beside = book.path.with_name(f"{book.path.name}-journal")
    beside.write_bytes(foreign[:512])
    with pytest.raises(LedgerError, match="or by another ledger"):
        Ledger.open(book.path)
    assert book.path.read_bytes() == kept
    # Until it is on the disk a journal starts with zeros, and plays nothing.
    beside.write_bytes(bytes(12) + foreign[12:])
    assert len(Ledger.open(book.path).entries()) == 1


def test_no_operation_is_begun_within_another(
    book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal's handler that looks at the ledger would drop the locks of the charge."""
    seen: list[Exception] = []

    def handler(point: str) -> None:
        if point == "inserted":
            for act in (lambda: book.remaining, lambda: shoal.verify(book.path)):
                try:
                    act()
                except ShoalError as error:
                    seen.append(error)

    monkeypatch.setattr(recording, "_at", handler)
    book.record("next", unit="u", epsilon="0.1", document=b"2")
    assert len(seen) == 2
    assert "while another one of this thread goes on" in str(seen[0])
    assert "goes on in this thread" in str(seen[1])
    monkeypatch.setattr(recording, "_at", lambda _: None)
    assert len(book.entries()) == 2
    book.verify()


@pytest.mark.parametrize("letter", ["x", "\u00e9"])
def test_a_ledger_has_a_name_with_room_for_its_journal(tmp_path: Path, letter: str) -> None:
    """A ledger that could be made but never charged is refused before it is made."""
    bytes_each = len(letter.encode())
    longest = tmp_path / (letter * (246 // bytes_each) + "x")
    assert len(os.fsencode(longest.name)) == 247
    book = Ledger.create(longest, epsilon=1)
    book.record("first", unit="u", epsilon="0.1", document=b"1")
    for more in (1, 8, 9):
        named = longest.with_name(longest.name + "x" * more)
        with pytest.raises(LedgerError, match="more than 247 bytes"):
            Ledger.create(named, epsilon=1)
        assert not os.path.lexists(named)
    # One that was renamed by hand says so, too, and works again under its old name.
    named = longest.with_name(longest.name + "x")
    longest.rename(named)
    for act in _ACTS.values():
        with pytest.raises(LedgerError, match="more than 247 bytes"):
            act(Ledger(named, book._founding))
    named.rename(longest)
    book.verify()


def _folder(inside: Path, size: int) -> Path:
    """A new folder whose path has so many bytes."""
    while (rest := size - len(os.fsencode(inside)) - 1) > 200:
        inside /= "f" * 100
    inside /= "f" * rest
    inside.mkdir(parents=True)
    return inside


@pytest.mark.parametrize("rest", [27, 28, 100])
def test_a_ledger_has_a_path_with_room_for_its_journal(tmp_path: Path, rest: int) -> None:
    """SQLite opens no path of more than 512 bytes, links followed."""
    folder = _folder(tmp_path, 504 - rest - 1)
    book = Ledger.create(folder / ("x" * rest), epsilon=1)
    book.record("first", unit="u", epsilon="0.1", document=b"1")
    (tmp_path / "near").symlink_to(folder)
    for more in (1, 8, 9):
        for where in (folder, tmp_path / "near"):
            named = where / ("x" * (rest + more))
            with pytest.raises(LedgerError, match="path has more than 504 bytes"):
                Ledger.create(named, epsilon=1)
            assert [each.name for each in folder.iterdir()] == ["x" * rest]


@pytest.mark.parametrize("name", ["x", "x" * 26])
def test_a_ledger_lies_where_there_is_room_to_make_it(tmp_path: Path, name: str) -> None:
    """It is made under a name of 27 bytes, however short its own is."""
    Ledger.create(_folder(tmp_path, 504 - 28) / name, epsilon=1).verify()
    folder = _folder(tmp_path, 504 - 27)
    with pytest.raises(LedgerError, match="room for a name of 27 bytes"):
        Ledger.create(folder / name, epsilon=1)
    assert not list(folder.iterdir())
    # One that was made elsewhere needs no such name any more.
    made = Ledger.create(tmp_path / "made", epsilon=1)
    moved = Ledger(made.path.rename(folder / name), made._founding)
    moved.record("first", unit="u", epsilon="0.1", document=b"1")
    moved.verify()


class _NoPath:
    """Fails whatever is asked of it."""

    def __fspath__(self) -> str:
        raise RuntimeError("no path")


@pytest.mark.parametrize("given", [_NoPath(), b"a.ledger", "", "a\0b", 5, None])
def test_what_is_no_path_is_refused_in_words(given: Any) -> None:
    """Also an object whose class fails when it is asked for its path."""
    with pytest.raises((InputError, LedgerError), match="path"):
        Ledger.create(given, epsilon=1)
    with pytest.raises((InputError, LedgerError), match="path"):
        Ledger.open(given)
    if given is not None:
        with pytest.raises((InputError, LedgerError), match="path"):
            shoal.verify({}, ledger=given)


_TEXTS = ["question", "name", "kind", "unit", "document"]


def _spelled(part: str) -> dict[str, Any]:
    """A charge of nothing, one part of which looks like a ledger's head of many writes."""
    identity = "0a1b2c3d-0000-4000-8000-123456789abc"
    text = identity + "0" * 64 + identity + ":" + "9" * 20
    asked: dict[str, Any] = {"question": "q", "unit": "u", "epsilon": 0, "document": b"d"}
    return asked | {part: text.encode() if part == "document" else text}


@pytest.mark.parametrize("part", _TEXTS)
def test_no_text_is_taken_for_the_mark_of_a_head(tmp_path: Path, part: str) -> None:
    """With one in it, an old journal is refused, and what a crash left is taken back."""
    asked = _spelled(part)
    book = Ledger.create(tmp_path / "a.ledger", epsilon=1, unit=asked["unit"])
    book.record(**asked)
    kept = book.path.read_bytes()
    die = DIE.replace('"u"', repr(asked["unit"]))
    subprocess.run([sys.executable, "-c", die, str(book.path)], check=False)
    journal = book.path.with_name("a.ledger-journal")
    aside = journal.rename(tmp_path / "aside")
    book.path.write_bytes(kept)
    for number in range(3):
        book.record(**(asked | {"question": f"later {number}", "epsilon": "0.1"}))
    aside.rename(journal)
    with pytest.raises(LedgerError, match="left by a crash before the ledger"):
        Ledger.open(book.path)
    journal.unlink()
    subprocess.run([sys.executable, "-c", die, str(book.path)], check=False)
    assert journal.exists()
    assert len(Ledger.open(book.path).links()) == 4
    book.verify()


def test_a_folder_called_like_a_mark_hides_no_old_journal(tmp_path: Path) -> None:
    """A ledger's place stands on the page of its head."""
    home = tmp_path / _spelled("name")["name"]
    home.mkdir()
    book = Ledger.create(home / "a.ledger", epsilon=1, unit="u")
    book.record("q", unit="u", epsilon="0.1", document=b"x")
    kept, journal = book.path.read_bytes(), _crash(book)
    aside = journal.rename(home / "aside")
    book.path.write_bytes(kept)
    for number in range(3):
        book.record(f"later {number}", unit="u", epsilon="0.1", document=b"x")
    aside.rename(journal)
    with pytest.raises(LedgerError, match="left by a crash before the ledger"):
        Ledger.open(book.path)


def test_the_head_lies_alone_on_its_page(book: Ledger) -> None:
    """Where it is looked for without SQLite."""
    with closing(sqlite3.connect(book.path)) as connection:
        row = "SELECT rootpage FROM sqlite_master WHERE name = 'head'"
        assert connection.execute(row).fetchall() == [(HEAD_PAGE,)]
        assert connection.execute("PRAGMA page_size").fetchall() == [(PAGE_SIZE,)]
