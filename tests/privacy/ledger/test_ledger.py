"""The ledger's interface: charges, deliveries, refusals."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shoal_studies.benchmarks.ledger import fill

from shoal.errors import BudgetError, InputError, LedgerError
from shoal.privacy.budget import Budget
from shoal.privacy.charge_rounding import booked
from shoal.privacy.ledger import arguments
from shoal.privacy.ledger import file as ledger_file
from shoal.privacy.ledger import recording as module
from shoal.privacy.ledger.ledger import Ledger

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from shoal.privacy.budget import Amount

pytestmark = pytest.mark.unit

BAD_AMOUNTS = (
    True,
    False,
    None,
    float("nan"),
    float("inf"),
    -1,
    "-0.1",
    "nan",
    "inf",
    "1/0",
    "much",
    "",
    b"1",
    [1],
    "1e999999999",
    "1e1_000_000_000",
    "9" * 9000,
    10**5000,
    Decimal("1e99999"),
    1 + 2j,
)


@pytest.fixture
def book(tmp_path: Path) -> Ledger:
    """A new ledger of epsilon 1 and delta 1/100000."""
    return Ledger.create(tmp_path / "a.ledger", epsilon=1, delta="1e-5")


def test_ten_charges_of_a_tenth_fit_and_the_eleventh_does_not(book: Ledger) -> None:
    """0.1 is one tenth, however it is written."""
    for number in range(10):
        amount: Any = (0.1, "0.1", "1/10", Fraction(1, 10))[number % 4]
        assert book.record(
            str(number), unit="person", epsilon=amount, document=b"x"
        ).epsilon == Fraction(1, 10)
    assert book.remaining == Budget(Fraction(0), Fraction(1, 100_000))
    with pytest.raises(BudgetError, match=r"epsilon 0\.1, delta 0; allowed: .* epsilon 0, delta"):
        book.record("10", unit="person", epsilon=0.1, document=b"x")
    with pytest.raises(BudgetError):
        book.check("1/1000000000000000000000000")
    assert len(book.entries()) == 10
    book.verify()


def test_deltas_add_up(book: Ledger) -> None:
    """Ten deltas of a tenth of the budget fit, whatever epsilon is left."""
    for number in range(10):
        book.record(str(number), unit="person", epsilon=0, delta=1e-6, document=b"x")
    with pytest.raises(BudgetError):
        book.check(0, "1e-30")
    book.check(1)
    assert book.spent == Budget(Fraction(0), Fraction(1, 100_000))


def test_a_request_is_charged_once(book: Ledger) -> None:
    """Asked again, also through another handle and above the budget, it is the same entry."""
    first = book.record("a", unit="person", epsilon=1, document=b"drawn once")
    with Ledger.open(book.path) as other:
        assert (
            other.record("a", unit="person", epsilon=1, document=b"drawn twice")
            == first
            == other.find("a")
        )
    assert (first.number, first.name, first.document) == (1, "", b"drawn once")
    assert first.recorded_at.endswith("+00:00")
    assert book.find("b") is None
    assert book.spent.epsilon == 1


def test_entries_are_chained(book: Ledger) -> None:
    """Each entry names the head before it; the head moves with each."""
    heads = [book.head]
    for number in range(3):
        book.record(str(number), unit="person", epsilon="1/7", document=bytes([number]))
        heads.append(book.head)
    assert [entry.previous for entry in book.entries()] == heads[:-1]
    assert [entry.hash for entry in book.entries()] == heads[1:]
    for head in heads:
        book.verify(head=head)
    with pytest.raises(LedgerError, match="does not contain the head"):
        book.verify(head="0" * 64)


@pytest.mark.parametrize(
    "amount",
    BAD_AMOUNTS,
    ids=lambda amount: repr(amount)[:20] if not isinstance(amount, int) else "integer",
)
def test_unusable_amounts_are_refused(book: Ledger, tmp_path: Path, amount: Amount) -> None:
    """Not a number, not finite, negative or endless: as budget, charge or question."""
    with pytest.raises(InputError):
        Ledger.create(tmp_path / "new", epsilon=amount)
    with pytest.raises(InputError):
        Ledger.create(tmp_path / "new", epsilon=1, delta=amount)
    with pytest.raises(InputError):
        book.record("a", unit="person", epsilon=amount, document=b"x")
    with pytest.raises(InputError):
        book.record("a", unit="person", epsilon=0, delta=amount, document=b"x")
    with pytest.raises(InputError):
        book.check(amount)
    assert not (tmp_path / "new").exists()
    assert book.entries() == []


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0), ("0/5", 0), (1, 1), (1, "1.5")])
def test_a_budget_has_a_range(tmp_path: Path, epsilon: Amount, delta: Amount) -> None:
    """Epsilon is above zero and delta below one."""
    with pytest.raises(InputError):
        Ledger.create(tmp_path / "new", epsilon=epsilon, delta=delta)


def test_unusable_arguments_are_refused(
    book: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests, labels, documents and paths of another type or size."""
    wrong: Any
    for wrong in ("", "\ud800", None, 7, b"a"):
        with pytest.raises(InputError):
            book.record(wrong, unit="person", epsilon=0, document=b"x")
        with pytest.raises(InputError):
            book.find(wrong)
    for wrong in ("\ud800", None, 7):
        with pytest.raises(InputError):
            book.record("a", unit="person", epsilon=0, document=b"x", name=wrong)
    for wrong in ("text", None, bytearray(b"x")):
        with pytest.raises(InputError, match="document is a"):
            book.record("a", unit="person", epsilon=0, document=wrong)
    for wrong in (None, 7, ["a"]):
        with pytest.raises(InputError, match="ledger path"):
            Ledger.open(wrong)
    monkeypatch.setattr(arguments, "_MOST_BYTES", 10)
    with pytest.raises(InputError, match="11 bytes"):
        book.record("a", unit="person", epsilon=0, document=bytes(11))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.ledger"]


def test_documents_and_names_are_kept_byte_for_byte(tmp_path: Path) -> None:
    """Empty, binary and large documents; names and paths with odd characters."""
    book = Ledger.create(tmp_path / "ein #%?' Büchlein", epsilon="1e-30")
    documents = [b"", b"\x00\xff" * 7, bytes(3_000_000)]
    for number, document in enumerate(documents):
        book.record(
            f"'; DROP TABLE entry\0{number}", unit="person", epsilon="1e-31", document=document
        )
    again = Ledger.open(str(book.path))
    assert [entry.document for entry in again.entries()] == documents
    assert again.find("'; DROP TABLE entry\x001") == book.entries()[1]
    book.verify()


def test_a_handle_holds_nothing(book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """It survives copying, a change of folder, leaving its block, and hides documents."""
    with book:
        entry = book.record("a", unit="person", epsilon=0.5, document=b"PRIVATE")
    monkeypatch.chdir("/")
    copied = copy.copy(book)
    assert copied.find("a") == entry
    assert "PRIVATE" not in repr(entry)
    assert repr(book).startswith("<ledger '/")


def test_threads_share_a_handle(book: Ledger) -> None:
    """Forty askers in eight threads get exactly what is there."""

    def ask(number: int) -> bool:
        try:
            book.record(str(number), unit="person", epsilon="1/20", document=b"x")
        except BudgetError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(40))) == 20
    book.verify()


def test_an_interrupt_leaves_nothing(book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the commit nothing is recorded; after it, asking again delivers."""
    for point in ("begun", "checked", "inserted", "before commit", "after commit"):

        def stop(reached: str, point: str = point) -> None:
            if reached == point:
                raise KeyboardInterrupt

        monkeypatch.setattr(module, "_at", stop)
        with pytest.raises(KeyboardInterrupt):
            book.record("a", unit="person", epsilon=1, document=b"first")
        monkeypatch.undo()
        assert len(book.entries()) == (point == "after commit")
    assert book.record("a", unit="person", epsilon=1, document=b"second").document == b"first"


AMOUNTS = st.one_of(
    st.fractions(min_value=0, max_value=1, max_denominator=50),
    st.floats(min_value=0, max_value=1),
    st.integers(min_value=0, max_value=2),
    st.decimals(min_value=0, max_value=1, places=4).map(str),
)


@settings(max_examples=40, deadline=None)
@given(
    budget=st.fractions(min_value=Fraction(1, 50), max_value=2, max_denominator=50),
    asked=st.lists(st.tuples(st.integers(0, 9), AMOUNTS, AMOUNTS), max_size=15),
)
def test_any_sequence_of_charges_stays_within_the_budget(
    tmp_path_factory: pytest.TempPathFactory,
    budget: Fraction,
    asked: list[tuple[int, Any, Any]],
) -> None:
    """A model that adds up what is booked accepts and refuses the same."""
    book = Ledger.create(
        tmp_path_factory.mktemp("model") / "book", epsilon=budget, delta=Fraction(1, 2)
    )
    spent, known = Budget.of(0), set[int]()
    for request, epsilon, delta in asked:
        charge = booked(Budget.of(epsilon, delta))
        fits = (spent + charge).within(book.budget)
        if request in known or fits:
            book.record(str(request), unit="person", epsilon=epsilon, delta=delta, document=b"x")
            spent += Budget.of(0) if request in known else charge
            known.add(request)
        else:
            with pytest.raises(BudgetError):
                book.record(
                    str(request), unit="person", epsilon=epsilon, delta=delta, document=b"x"
                )
            with pytest.raises(BudgetError):
                book.check(epsilon, delta)
        assert book.spent == spent
        assert book.remaining + spent == book.budget
    book.verify()


@given(value=st.fractions(min_value=0), up=st.booleans())
def test_shown_amounts_are_rounded_to_the_safe_side(value: Fraction, *, up: bool) -> None:
    """A charge is never understated and what is left never overstated."""
    shown = Fraction(Budget(value).show(up=up).split(",")[0].removeprefix("epsilon "))
    assert shown >= value if up else shown <= value
    assert abs(shown - value) <= value / 10**5


def test_a_charge_reads_no_history(book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many rows are read for a charge after 1 entry as after 300."""
    steps: list[int] = []
    connect = ledger_file._connect

    def counted(path: Path) -> sqlite3.Connection:
        connection = connect(path)
        connection.set_progress_handler(lambda: steps.append(1), 1)
        return connection

    monkeypatch.setattr(ledger_file, "_connect", counted)
    book.record("first", unit="person", epsilon=0, document=b"x")
    costs = []
    for history in (1, 300):
        fill(book, history)
        steps.clear()
        book.record(f"after {history}", unit="person", epsilon=0, document=b"x")
        costs.append(len(steps))
    # Steps of SQLite's machine; a search of a deeper tree takes none of them.
    assert costs[1] <= costs[0] * 1.1
    book.verify()
