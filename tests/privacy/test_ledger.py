"""The ledger: its rules in every order of calls, crashes, crowds, damage, and plain errors."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from contextlib import closing
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import BudgetError, InputError, LedgerError
from shoal.privacy import ledger as module
from shoal.privacy.budget import MOST_DENOMINATOR, Budget
from shoal.privacy.ledger import Ledger
from shoal.privacy.unit import Unit
from tests.attacks import kills
from tests.support.ledger_driver import CHARGES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


PERSON, DEVICE = Unit("person", "public"), Unit("device", "public")
ASK: dict[str, Any] = {"privacy_unit": PERSON, "epsilon": "1/4", "document": b"3.1"}


def book_of(folder: Path, epsilon: object = 1, delta: object = 0, name: str = "a.ledger") -> Ledger:
    """A new ledger of persons."""
    return Ledger.create(
        folder / name, epsilon=epsilon, delta=delta, privacy_unit="person", counts="public"
    )  # type: ignore[arg-type]


def test_a_question_is_charged_once_under_a_name(tmp_path: Path) -> None:
    """Asked again it has the recorded bytes, whatever is charged or drawn; names are apart."""
    book = book_of(tmp_path)
    first = book.record("q", name="May", kind="cells", **ASK)
    assert (first.number, first.kind, first.charge) == (1, "cells", Budget.of("1/4"))
    again = Ledger(book.path).record("q", name="May", privacy_unit=DEVICE, epsilon=9, document=b"x")
    assert again == first == book.find("q", "May")
    assert book.find("q") is book.find("p", "May") is None
    book.record("q", **ASK)
    assert book.names("q") == ["", "May"]
    assert [(each.number, each.document) for each in book.entries()] == [(1, b""), (2, b"")]
    assert (book.spent, book.state().left) == (Budget.of("1/2"), Budget.of("1/2"))
    assert book.verify(first.hash) == book.state()


def test_the_budget_is_never_exceeded_and_may_be_spent_to_the_end(tmp_path: Path) -> None:
    """Three charges of 1/3 fill a budget of 1; then nothing fits but a charge of 0."""
    book = book_of(tmp_path, delta="1e-6")
    for name in "abc":
        book.record("q", name=name, privacy_unit=PERSON, epsilon="1/3", document=b"")
    assert book.spent.epsilon == 1
    for charge in ({"epsilon": "1e-300"}, {"epsilon": 0, "delta": "2e-6"}):
        with pytest.raises(BudgetError, match="exceeds what is left, epsilon 0, delta 1e-6"):
            book.record("q", privacy_unit=PERSON, document=b"", **charge)  # type: ignore[arg-type]
    book.record("q", privacy_unit=PERSON, epsilon=0, delta="1e-6", document=b"")
    assert book.state().entries == 4


def test_a_charge_is_checked_before_anything_is_drawn(tmp_path: Path) -> None:
    """As recording decides it; the state never changes by it."""
    book = book_of(tmp_path)
    assert book.state().check(Budget.of("1/3"), PERSON) == Budget.of("1/3")
    with pytest.raises(BudgetError, match="the charge of epsilon 1"):
        book.state().check(Budget.of("1.00000000001"), PERSON)
    with pytest.raises(BudgetError, match="but the ledger allows none"):
        book.state().check(Budget.of(0, "1e-9"), PERSON)
    for unit, step in (
        (Unit("Person", "public"), "if each Person is one person, give privacy_unit='person'"),
        (Unit("each row", "public"), "if each row is one person, give"),
        (Unit("person", "private"), "made with counts='private'"),
        (Unit("person", "public", "month"), "made with period='month'"),
    ):
        for ask in (
            lambda unit=unit: book.state().check(Budget.of(0), unit),
            lambda unit=unit: book.record("q", privacy_unit=unit, epsilon=0, document=b""),
        ):
            with pytest.raises(InputError, match="The ledger protects all values of one") as error:
                ask()
            assert step in str(error.value)
    assert book.state().entries == 0


@given(
    parts=st.lists(
        st.fractions(min_value=0, max_value=10, max_denominator=10**60), min_size=1, max_size=6
    )
)
def test_sums_of_long_charges_are_rounded_up(parts: list[Fraction]) -> None:
    """Never below the exact sum, and hardly above it."""
    spent = Budget(Fraction(0))
    for part in parts:
        spent = spent.plus(Budget(part, part))
    assert spent.epsilon == spent.delta
    assert spent.epsilon.denominator <= MOST_DENOMINATOR
    assert 0 <= spent.epsilon - sum(parts) <= Fraction(len(parts), MOST_DENOMINATOR)


def test_long_sums_stay_short_in_the_file(tmp_path: Path) -> None:
    """Charges whose denominators have nothing in common; the file verifies."""
    book = book_of(tmp_path, epsilon=2)
    for at in range(9):
        part = Fraction(1, 10**20 + 39 + 2 * at)
        book.record(f"{at}", privacy_unit=PERSON, epsilon=part, document=b"")
    assert book.verify().spent.epsilon.denominator <= MOST_DENOMINATOR


@pytest.mark.parametrize(
    ("create", "match"),
    [
        ({"name": "a.db"}, "the ledger is named 'a.db'; end its name in .ledger"),
        ({"name": "a\0.ledger"}, "a path"),
        ({"name": "no/a.ledger"}, "/no'; make it"),
        ({"privacy_unit": ""}, "the privacy unit has no name"),
        ({"privacy_unit": " person"}, "has blanks around it"),
        ({"privacy_unit": "per\0son"}, "printable"),
        ({"privacy_unit": None}, "printable"),
        ({"counts": "secret"}, "counts is 'secret'"),
        ({"epsilon": 0}, "epsilon is 0"),
        ({"delta": 1}, "below 1"),
    ],
)
def test_what_cannot_be_a_ledger_is_refused(
    create: dict[str, Any], match: str, tmp_path: Path
) -> None:
    """In one line, and no file is left."""
    options = {"epsilon": 1, "privacy_unit": "person", **create}
    with pytest.raises((InputError, LedgerError), match=re.escape(match)):
        Ledger.create(tmp_path / options.pop("name", "a.ledger"), **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "record",
    [
        {"name": "a\0"}, {"name": " May"}, {"name": "x" * 201}, {"question": "a\n"},
        {"question": "\ud800"}, {"kind": "a\n"}, {"privacy_unit": "person"}, {"document": "text"},
        {"epsilon": -1}, {"epsilon": float("nan")},
    ],
)  # fmt: skip
def test_what_a_ledger_cannot_keep_is_refused(record: dict[str, Any], tmp_path: Path) -> None:
    """Nothing is recorded."""
    book, given = book_of(tmp_path), {"question": "q", **ASK, **record}
    with pytest.raises(InputError):
        book.record(given.pop("question"), **given)
    assert book.state().entries == 0


def test_a_ledger_is_made_once_and_never_by_opening(tmp_path: Path) -> None:
    """A missing file stays missing, and one that is there is never started afresh."""
    with pytest.raises(LedgerError, match="it is missing or cannot be opened"):
        Ledger(tmp_path / "a.ledger")
    assert not list(tmp_path.iterdir())
    book = book_of(tmp_path)
    with pytest.raises(LedgerError, match=r"another file at .* already; open the ledger"):
        book_of(tmp_path, epsilon=9)
    assert Ledger(book.path).budget == Budget.of(1)
    assert book.privacy_unit == Ledger(book.path).privacy_unit == PERSON


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _text(path: Path) -> None:
    path.write_text("who,speed\n" * 100)


def _database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE a (b)")


def _older(path: Path) -> None:
    Ledger.create(path, epsilon=1, privacy_unit="person", counts="public")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 5")


def _cut(path: Path) -> None:
    Ledger.create(path, epsilon=1, privacy_unit="person", counts="public")
    path.write_bytes(path.read_bytes()[:5000])


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (_empty, "is empty: its creation was interrupted"),
        (_text, "it is not a ledger"),
        (_database, "is not a ledger"),
        (_older, "is of another version of shoal"),
        (_cut, "damaged pages"),
        (os.mkdir, "cannot be opened"),
    ],
)
def test_what_is_no_ledger_is_refused_in_a_sentence(
    make: Callable[[Path], object], match: str, tmp_path: Path
) -> None:
    """Also where it looks like one."""
    path = tmp_path / "a.ledger"
    make(path)
    with pytest.raises(LedgerError, match=match):
        Ledger(path).verify()


def test_a_ledger_that_was_replaced_is_refused(tmp_path: Path) -> None:
    """A handle is one ledger's, whatever takes its path."""
    book = book_of(tmp_path)
    other = book_of(tmp_path, epsilon=9, name="b.ledger")
    other.path.replace(book.path)
    for use in (book.state, lambda: book.record("q", **ASK)):
        with pytest.raises(LedgerError, match="another ledger after it was opened"):
            use()


def test_a_locked_ledger_says_so_and_a_reader_waits_for_no_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process holds the write lock for longer than anybody waits."""
    book = book_of(tmp_path)
    monkeypatch.setattr(module, "_PATIENCE", 0.05)
    with closing(sqlite3.connect(book.path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        assert book.state().entries == 0
        with pytest.raises(LedgerError, match="another process holds it"):
            book.record("q", **ASK)
    assert book.record("q", **ASK).number == 1


@pytest.mark.parametrize(
    ("limit", "match"),
    [("max_page_count = 1", "the disk is full"), ("query_only = 1", "it cannot be written")],
)
def test_what_cannot_be_written_is_not_recorded(
    limit: str, match: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of an entry is left, and what is there can be read."""
    book, connect = book_of(tmp_path), module._connection

    def limited(path: Path) -> sqlite3.Connection:
        connection = connect(path)
        connection.execute(f"PRAGMA {limit}")
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(module, "_connection", limited)
        assert book.state().entries == 0
        with pytest.raises(LedgerError, match=match):
            book.record("q", privacy_unit=PERSON, epsilon=1, document=bytes(10**5))
    assert book.verify().entries == 0


def test_an_interrupt_records_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes after the row was written and before it is committed."""
    book = book_of(tmp_path)

    def interrupt(*_: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "_sha256", interrupt)
        with pytest.raises(KeyboardInterrupt):
            book.record("q", **ASK)
    assert book.record("q", **ASK).number == 1
    assert book.verify().entries == 1


CHANGES = (
    "UPDATE entry SET document = x'00' WHERE number = 2",
    "UPDATE entry SET epsilon = '1/8', spent_epsilon = '3/8' WHERE number = 2",
    "UPDATE entry SET spent_epsilon = '0' WHERE number = 3",
    "UPDATE entry SET name = 'June' WHERE number = 1",
    "UPDATE entry SET number = 4 WHERE number = 3",
    "UPDATE entry SET epsilon = 'x' WHERE number = 2",
    "DELETE FROM entry WHERE number = 2",
    "UPDATE ledger SET epsilon = '9'",
    "UPDATE ledger SET privacy_unit = 'each row'",
    "UPDATE ledger SET counts = 'private'",
    "DELETE FROM ledger",
    "DROP TABLE entry",
)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_by_hand_is_found(change: str, tmp_path: Path) -> None:
    """In an entry, its place, its sum, the budget or the unit."""
    book = book_of(tmp_path)
    for name in "abc":
        book.record("q", name=name, **ASK)
    book.verify()
    with closing(sqlite3.connect(book.path, isolation_level=None)) as connection:
        connection.execute(change)
    with pytest.raises(LedgerError, match="restore the newest backup"):
        book.verify()


def test_an_older_copy_lacks_the_head_that_was_noted(tmp_path: Path) -> None:
    """It verifies by itself: only a head noted elsewhere tells."""
    book = book_of(tmp_path)
    book.record("q", name="a", **ASK)
    shutil.copy(book.path, tmp_path / "old.ledger")
    head = book.record("q", name="b", **ASK).hash
    old = Ledger(tmp_path / "old.ledger")
    old.verify()
    with pytest.raises(LedgerError, match="does not contain the given head"):
        old.verify(head)
    assert book.verify(old.state().head).head == head


def test_a_flipped_byte_changes_nothing_unseen(tmp_path: Path) -> None:
    """It is found, or what the ledger says is what it said."""
    book = book_of(tmp_path)
    for name in "ab":
        book.record("q", name=name, **{**ASK, "document": b"3.1" * 700})
    whole, told = book.path.read_bytes(), (book.state(), book.entries(), book.find("q", "b"))
    used = [at for at, byte in enumerate(whole) if byte or at < 100]
    found = 0
    for at in used[:: max(1, len(used) // 300)]:
        book.path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x15]) + whole[at + 1 :])
        try:
            book.verify()
        except LedgerError:
            found += 1
        else:
            assert (book.state(), book.entries(), book.find("q", "b")) == told
    assert found > 150


def test_a_write_ahead_log_is_set_back_before_a_charge(tmp_path: Path) -> None:
    """The file alone, as a backup copies it, then holds every charge."""
    book = book_of(tmp_path)
    with closing(sqlite3.connect(book.path)) as other:
        assert other.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    book.record("q", **ASK)
    assert [each.name for each in tmp_path.iterdir()] == ["a.ledger"]
    shutil.copy(book.path, tmp_path / "copy.ledger")
    assert Ledger(tmp_path / "copy.ledger").spent == Budget.of("1/4")


def test_a_write_ahead_log_that_another_program_holds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is charged while it is open; afterwards the same call charges once."""
    monkeypatch.setattr(module, "_PATIENCE", 0.1)
    book = book_of(tmp_path)
    with closing(sqlite3.connect(book.path)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("SELECT * FROM entry").fetchall()
        with pytest.raises(LedgerError, match="another process holds it"):
            book.record("q", **ASK)
        assert other.execute("SELECT count(*) FROM entry").fetchone() == (0,)
    assert book.record("q", **ASK).number == 1
    assert book.verify().spent == Budget.of("1/4")


def test_no_charge_is_lost_or_overspent_by_kills(tmp_path: Path) -> None:
    """Takes some seconds: twelve processes are killed while they record."""
    found = kills.seen("kills", tmp_path, 12, seed=1)
    assert [kills.broken(each) for each in found] == [[]] * 12
    assert found[-1]["delivered"] > 0


def test_64_processes_record_exactly_what_the_budget_allows(tmp_path: Path) -> None:
    """Takes some seconds, as every charge reaches the disk; one question has one answer."""
    found = kills.seen("crowd", tmp_path, 64, seed=1)
    assert (found["failed"], found["answers"], found["lost"]) == (0, 1, 0)
    assert (found["entries"], found["delivered"], found["left"]) == (CHARGES, CHARGES, "0")
