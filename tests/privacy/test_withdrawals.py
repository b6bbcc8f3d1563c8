"""A release that was taken back is not delivered, and its charge stays spent."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

import shoal
from shoal.errors import BudgetError, InputError, LedgerError
from shoal.privacy.budget import Budget
from shoal.privacy.ledger import Ledger
from tests.support.noisy_count import PERSON, Plan, Request

if TYPE_CHECKING:
    from pathlib import Path

ASK: dict[str, Any] = {"privacy_unit": PERSON, "epsilon": "1/4", "document": b"3.1"}
VALUES = [1.0, 2.0, 3.0]


def book_of(folder: Path) -> Ledger:
    """A ledger of persons."""
    return Ledger.create(folder / "a.ledger", epsilon=1, privacy_unit="person", counts="public")


def test_it_is_in_the_chain_and_costs_nothing(tmp_path: Path) -> None:
    """The release is refused under its name alone, and shown all the same where it is wanted."""
    book = book_of(tmp_path)
    for name in ("May", "June"):
        book.record("q", name=name, **ASK)
    done = book.withdraw(name="May", reason="wrong file")
    assert (done.number, done.withdraws, done.charge, done.spent) == (
        3, 1, Budget.of(0), Budget.of("1/2")
    )  # fmt: skip
    said = f"withdrawn on {done.recorded_at[:10]}: wrong file"
    for ask in (
        lambda: book.find("q", "May"),
        lambda: book.record("q", name="May", **ASK),
        lambda: book.withdraw(number=1, reason="again"),
    ):
        with pytest.raises(
            LedgerError, match=rf"the release 'May' \(entry 1\) was {said}; release"
        ):
            ask()
    found = book.find("q", "May", withdrawn=True)
    assert found is not None
    assert (found.document, found.withdrawn) == (b"3.1", said)
    june = book.find("q", "June")
    assert june is not None
    assert june.withdrawn == ""
    assert [each.withdrawn for each in book.entries()] == [said, "", ""]
    assert [each.name for each in book.releases()] == ["May", "June"]
    assert "of entry 1: wrong file" in str(book)
    assert str(book).startswith("2 releases: epsilon 0.5 spent")
    assert book.record("q", name="May-v2", **ASK).spent == Budget.of("3/4")
    assert book.verify(done.hash).entries == 4


@pytest.mark.parametrize(
    ("withdrawal", "match"),
    [
        ({"name": "May", "reason": ""}, "without a reason"),
        ({"name": "May", "reason": "a\n"}, "printable"),
        ({"name": "July", "reason": "late"}, r"0 entries .* its entries are 1 \(May\), 2 \(May\)"),
        ({"name": "May", "reason": "late"}, "2 entries of the ledger match, not one"),
        ({"number": 3, "reason": "late"}, "choose one entry"),
    ],
)
def test_what_is_withdrawn_is_one_release_for_a_reason(
    withdrawal: dict[str, Any], match: str, tmp_path: Path
) -> None:
    """Nothing is recorded otherwise."""
    book = book_of(tmp_path)
    for question in "ab":
        book.record(question, name="May", **ASK)
    with pytest.raises(InputError, match=match):
        book.withdraw(**withdrawal)
    assert book.verify().entries == 2


def test_a_withdrawal_cannot_be_undone_by_hand(tmp_path: Path) -> None:
    """Its number and its reason are in the chain."""
    book = book_of(tmp_path)
    book.record("q", name="May", **ASK)
    book.withdraw(name="May", reason="wrong file")
    for change in ("withdraws = NULL", "withdraws = 7", "reason = 'none'", "kind = 'cells'"):
        before = book.path.read_bytes()
        with closing(sqlite3.connect(book.path, isolation_level=None)) as connection:
            connection.execute(f"UPDATE entry SET {change} WHERE number = 2")
        with pytest.raises(LedgerError, match="restore the newest backup"):
            book.verify()
        book.path.write_bytes(before)


def test_a_repeated_request_is_refused_and_a_verdict_says_why(tmp_path: Path) -> None:
    """Nothing is drawn or charged; the correction has a name and a charge of its own."""
    book = book_of(tmp_path)
    plan = Plan(Request(limit=1.5, bits=1))
    plan.release(VALUES, book, "May").write_record(tmp_path / "may.json")
    assert "withdrawn" not in str(shoal.verify(tmp_path / "may.json", ledger=book))
    book.withdraw(name="May", reason="wrong file")
    drawn = Plan(Request(limit=1.5, bits=1), meanwhile=pytest.fail)
    with pytest.raises(LedgerError, match="wrong file; release the correction under a new name"):
        drawn.release(VALUES, book, "May")
    verdict = shoal.verify(tmp_path / "may.json", ledger=book)
    assert verdict
    assert "wrong file" in str(verdict)
    unproved = "whether it was withdrawn since: the ledger knows"
    assert unproved in shoal.verify(tmp_path / "may.json").unverified
    assert unproved not in verdict.unverified
    assert plan.release(VALUES, book, "May-v2").from_ledger is False
    with pytest.raises(BudgetError):
        plan.release(VALUES, book, "May-v3")
    assert book.verify().spent == Budget.of(1)
