"""The order of every release: find, check, draw, record, deliver; and what a ledger adds up."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import BudgetError, InputError, LedgerError
from shoal.privacy.budget import Budget
from shoal.privacy.charge_rounding import LONGEST_CHARGE, added, booked
from shoal.privacy.ledger.ledger import Ledger
from shoal.privacy.privacy_unit import PrivacyUnit, Whose
from shoal.release.booking import deliver
from shoal.release.question import Question

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.unit

PERSON = Whose(PrivacyUnit("person"), said=True)
CHARGE = Budget.of("1/2", "1e-9")


def asked(
    name: str = "", of: str = "q", charge: Budget = CHARGE, whose: Whose = PERSON
) -> Question:
    """One question of a person's values."""
    return Question("cells", {}, {"of": of}, {}, whose, charge, "pure", "values", name)


def book_of(folder: Path, epsilon: object = 1, delta: object = "1e-8") -> Ledger:
    """A ledger of persons."""
    return Ledger.create(folder / "a.ledger", epsilon=epsilon, delta=delta, unit="person")  # type: ignore[arg-type]


def never() -> bytes:
    """A draw that must not take place."""
    raise AssertionError


def drawing(text: bytes) -> Callable[[], bytes]:
    """A draw that gives these bytes."""
    return lambda: text


def test_a_release_is_drawn_recorded_and_delivered_once(tmp_path: Path) -> None:
    """Both parts of the charge are booked; asked again nothing is drawn or charged."""
    book = book_of(tmp_path)
    first = deliver(book, asked("may"), drawing(b"3.1"))
    assert (first.document, first.from_ledger) == (b"3.1", False)
    assert book.spent == CHARGE == first.entry.charge
    looked: list[int] = []
    again = deliver(book, asked("may"), never, check_shape=lambda: looked.append(1))
    assert (again.document, again.from_ledger, looked) == (b"3.1", True, [1])
    assert book.spent == CHARGE
    assert len(book.entries()) == 1


def test_a_question_without_a_name_is_not_answered_silently(tmp_path: Path) -> None:
    """Next month's question is not this month's: a name, or a request to repeat it."""
    book = book_of(tmp_path)
    deliver(book, asked(), drawing(b"3.1"))
    with pytest.raises(InputError, match="name"):
        deliver(book, asked(), never)
    assert deliver(book, asked(), never, again=True).document == b"3.1"
    assert book.spent == CHARGE


def test_a_ledger_without_delta_says_so(tmp_path: Path) -> None:
    """A release with delta is refused in words that name delta; nothing is drawn."""
    book = book_of(tmp_path, delta=0)
    with pytest.raises(BudgetError, match="made without delta; allowed: releases with delta 0"):
        deliver(book, asked("may"), never)
    assert book.entries() == []


def test_a_unit_that_nobody_said_is_never_a_ledgers(tmp_path: Path) -> None:
    """No guess fixes the unit of a ledger; where it is the ledger's it is none."""
    book = Ledger.create(tmp_path / "a.ledger", epsilon=1, delta="1e-8")
    guess = asked("may", whose=Whose(PrivacyUnit("each row"), said=False))
    before = book.path.read_bytes()
    with pytest.raises(InputError, match='privacy_unit="each row"'):
        deliver(book, guess, never)
    assert book.path.read_bytes() == before
    deliver(book, replace(guess, whose=guess.whose._replace(said=True)), drawing(b"3.1"))
    assert not deliver(book, replace(guess, name="june"), drawing(b"2.7")).from_ledger


def test_what_does_not_fit_is_never_drawn(tmp_path: Path) -> None:
    """Neither in epsilon nor in delta; nothing is read, written or charged."""
    book = book_of(tmp_path)
    deliver(book, asked("may"), drawing(b"3.1"))
    for charge in (Budget.of("501/1000"), Budget.of(0, "91e-10"), Budget.of(2)):
        with pytest.raises(BudgetError):
            deliver(book, asked("june", charge=charge), never)
    with pytest.raises(InputError, match="protects"):
        deliver(book, asked("june", whose=Whose(PrivacyUnit("device"), said=True)), never)
    assert book.spent == CHARGE
    assert deliver(book, asked("june"), drawing(b"2.7")).document == b"2.7"
    assert book.spent == Budget.of(1, "2e-9")


def test_of_two_draws_at_once_the_recorded_one_is_delivered(tmp_path: Path) -> None:
    """Another process records the same question while this one draws."""
    book = book_of(tmp_path)

    def slow() -> bytes:
        deliver(Ledger.open(book.path), asked("may"), drawing(b"theirs"))
        return b"ours"

    found = deliver(book, asked("may"), slow)
    assert (found.document, found.from_ledger) == (b"theirs", True)
    assert book.spent == CHARGE


def test_a_budget_that_is_used_up_while_drawing_refuses(tmp_path: Path) -> None:
    """Only the write lock decides: the draw is thrown away, nothing is overspent."""
    book = book_of(tmp_path)

    def slow() -> bytes:
        other = Ledger.open(book.path)
        for name in ("one", "two"):
            deliver(other, asked(name, "another"), drawing(b"theirs"))
        return b"ours"

    with pytest.raises(BudgetError):
        deliver(book, asked("may"), slow)
    assert book.spent == Budget.of(1, "2e-9")
    assert len(book.entries()) == 2
    book.verify()


def test_a_unit_fixed_while_drawing_refuses(tmp_path: Path) -> None:
    """The first entry says whose losses are added up; another unit is refused."""
    book = Ledger.create(tmp_path / "a.ledger", epsilon=1, delta="1e-8")

    def slow() -> bytes:
        row = asked("one", whose=Whose(PrivacyUnit("row"), said=True))
        deliver(Ledger.open(book.path), row, drawing(b"theirs"))
        return b"ours"

    with pytest.raises(InputError, match="protects"):
        deliver(book, asked("may"), slow)
    assert book.spent == CHARGE


@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_entry_rewritten_with_a_hash_of_its_own_breaks_the_chain(
    number: int, tmp_path: Path
) -> None:
    """What comes after an entry holds its hash: nobody rewrites the past unseen."""
    book = book_of(tmp_path, epsilon=9, delta="1e-7")
    for name in ("one", "two", "three"):
        deliver(book, asked(name), drawing(name.encode()))
    book.verify()
    old = book.entries()[number - 1]
    other = replace(old, recorded_at="2000-01-01T00:00:00+00:00")
    with closing(sqlite3.connect(book.path)) as connection:
        connection.execute(
            "UPDATE entry SET recorded_at = ?, hash = ? WHERE number = ?",
            (other.recorded_at, other.expected_hash(), number),
        )
        connection.commit()
    with pytest.raises(LedgerError):
        book.verify()


@given(
    parts=st.lists(
        st.tuples(
            st.fractions(min_value=0, max_value=10, max_denominator=10**60),
            st.fractions(min_value=0, max_value=1, max_denominator=10**60),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_sums_of_charges_are_never_understated(
    parts: list[tuple[Fraction, Fraction]],
) -> None:
    """Long fractions are rounded upwards, by hardly anything."""
    spent, exact = Budget.of(0), Budget.of(0)
    for epsilon, delta in parts:
        charge = Budget(epsilon, delta)
        rounded = booked(charge)
        assert charge.within(rounded)
        assert max(rounded.epsilon.denominator, rounded.delta.denominator) <= LONGEST_CHARGE
        spent, exact = added(spent, rounded), exact + charge
    assert exact.within(spent)
    capacity = Fraction(len(parts) + 1, 10**38)
    assert spent.within(exact + Budget(capacity, capacity))
