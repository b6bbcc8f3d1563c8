"""Ledgers whose budget holds in each period: exact sums, by the periods of the records."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

import mpmath
import pytest

from shoal.errors import BudgetError, InputError, LedgerError
from shoal.privacy.budget import Budget
from shoal.privacy.ledger import Ledger
from shoal.privacy.unit import Periods, Unit
from tests.attacks import kills

if TYPE_CHECKING:
    from pathlib import Path

MONTHLY = Unit("bus", "public", "month")
DAILY = Unit("bus", "public", "day")


def book_of(folder: Path, unit: Unit = MONTHLY, **more: object) -> Ledger:
    """A new ledger with a budget of 1 in each period."""
    given = {"epsilon": 1, **more}
    return Ledger.create(
        folder / "a.ledger", privacy_unit="bus", counts="public", period=unit.period, **given
    )  # type: ignore[arg-type]


def months(*names: str, rule: str = "month(at)") -> Periods:
    """Periods of records."""
    return Periods.of(rule, "times without a zone", names)


def test_a_budget_holds_in_each_period_of_the_records(tmp_path: Path) -> None:
    """Random charges of random months, against a model that adds up fractions."""
    rng = random.Random(3)
    for total in (None, 3):
        folder = tmp_path / f"{total}"
        folder.mkdir()
        book = book_of(folder, total=total)
        spent = dict.fromkeys("abcde", Fraction(0))
        refused = 0
        for at in range(60):
            names = rng.sample("abcde", rng.choice([1, 1, 2, 5]))
            charge = Fraction(rng.randint(0, 4), rng.choice([7, 12, 30]))
            fits = all(spent[name] + charge <= 1 for name in names)
            whole = sum(spent.values()) + charge * len(names)
            fits = fits and (total is None or whole <= total)
            try:
                given = {"privacy_unit": MONTHLY, "epsilon": charge, "document": b""}
                book.record(f"{at}", periods=months(*names), **given)  # type: ignore[arg-type]
            except BudgetError:
                assert not fits
                refused += 1
                continue
            assert fits
            for name in names:
                spent[name] += charge
        state = book.verify()
        assert {name: each.epsilon for name, each in state.booked.items()} == spent
        assert state.spent.epsilon == sum(spent.values())
        assert state.left.epsilon == 1 - max(spent.values())
        assert refused > 10


def test_booking_by_the_day_of_the_release_would_break_the_promise(tmp_path: Path) -> None:
    """Four answers about one day at odds of 2 have odds of 16, on whatever days they are given."""
    true, false = Fraction(2, 3), Fraction(1, 3)

    def law(days: tuple[int, ...], bits: tuple[int, ...], answers: tuple[int, ...]) -> Fraction:
        told = zip(days, answers, strict=True)
        return math.prod(true if bits[day] == answer else false for day, answer in told)

    def odds(days: tuple[int, ...]) -> Fraction:
        answers = [*product((0, 1), repeat=4)]
        one_day = [(0, 0, 0, 0), (1, 0, 0, 0)]
        return max(law(days, one_day[1], each) / law(days, one_day[0], each) for each in answers)

    assert odds((0, 1, 2, 3)) == 2
    assert odds((0, 0, 0, 0)) == 16
    book = book_of(tmp_path, DAILY)

    def ask(at: int, day: int) -> None:
        periods = Periods.of("date(at)", "dates", [f"2026-05-0{day + 1}"])
        book.record(f"{at}", privacy_unit=DAILY, periods=periods, epsilon=1, document=b"")

    for day in range(4):
        ask(day, day)
    for later in range(3):
        with pytest.raises(BudgetError, match="exceeds what is left in 2026-05-01, epsilon 0"):
            ask(10 + later, 0)
    assert book.verify().spent == Budget.of(4)


def test_records_have_one_period(tmp_path: Path) -> None:
    """By one column and zone; a charge without periods, or of others, has no place here."""
    book = book_of(tmp_path)
    given = {"privacy_unit": MONTHLY, "epsilon": "1/4", "document": b""}
    book.record("q", periods=months("2026-05"), **given)  # type: ignore[arg-type]
    for periods, match in (
        (None, "does not say which periods"),
        (Periods.of("week(at)", "dates", ["2026-W20"]), "does not say which periods"),
        (months("2026-06", rule="month(at,Asia/Kolkata)"), "one record could lie in two periods"),
        (months("2026-06", rule="month(paid)"), "one record could lie in two periods"),
    ):
        with pytest.raises(InputError, match=match):
            book.record("p", periods=periods, **given)  # type: ignore[arg-type]
    for unit, step in (
        (Unit("bus", "public"), "divided by month .* trials, means and arrays have no period"),
        (DAILY, r"with period='day' \(--period day\)"),
    ):
        with pytest.raises(InputError, match=step):
            book.state().check(Budget.of(0), unit, None)
    assert book.state().entries == 1


@pytest.mark.parametrize(
    ("before", "now", "step"),
    [
        ("times without a zone", "times with a zone", "give the times without a zone, by the same"),
        ("times with a zone", "dates", "give the times with their zone"),
        ("dates", "times without a zone", "give the days alone"),
        ("text or whole numbers", "true or false", "give the column as text"),
    ],
)
def test_a_column_that_holds_something_else_is_refused(
    before: str, now: str, step: str, tmp_path: Path
) -> None:
    """The same instants would lie in other months; it is decided under the lock of the ledger."""
    book = book_of(tmp_path)
    given = {"privacy_unit": MONTHLY, "epsilon": "1/4", "document": b""}
    rule = "month(at,Asia/Kolkata)"
    book.record("q", periods=Periods.of(rule, before, ["2026-05"]), **given)  # type: ignore[arg-type]
    said = f"whose column holds {now} here, and {before} in earlier .* in two periods; {step}"
    with pytest.raises(InputError, match=said):
        book.record("p", periods=Periods.of(rule, now, ["2026-06"]), **given)  # type: ignore[arg-type]
    assert book.verify().entries == 1


@pytest.mark.parametrize("other", ["01", "1.0", " 1"])
def test_a_period_has_one_spelling(other: str, tmp_path: Path) -> None:
    """In one release, and over releases; another name is another period."""
    unit = Unit("bus", "public", "wave")
    book = book_of(tmp_path, unit)

    def ask(question: str, *names: str) -> None:
        periods = Periods.of("wave", "text or whole numbers", names)
        book.record(question, privacy_unit=unit, periods=periods, epsilon=1, document=b"")

    with pytest.raises(InputError, match=r"is equal to .* but for blanks .*; spell it"):
        ask("both", "1", other)
    ask("first", "1", "10", "w1")
    with pytest.raises(InputError, match=f"the period '{other}' is equal to '1'.*; spell it '1'"):
        ask("again", "2", other)
    with pytest.raises(BudgetError, match="what is left in 1, epsilon 0"):
        ask("same", "1")
    ask("next", "2", "-1", "1.5")
    assert set(book.verify().booked) == {"1", "10", "w1", "2", "-1", "1.5"}


@pytest.mark.parametrize(
    ("rule", "holds", "said"),
    [
        ("month(at)", "times with a zone", "months by universal time"),
        ("month(at)", "times without a zone", "months by times without a zone, as written"),
        ("date(at,Asia/Kolkata)", "times with a zone", "days by the clocks of Asia/Kolkata"),
        (
            "week(at,Asia/Kolkata)", "times without a zone",
            "weeks by the clocks of Asia/Kolkata; "
            "times without a zone are taken for universal time",
        ),
        ("month(at,Asia/Kolkata)", "dates", "months by dates, which no zone moves"),
        ("wave", "text or whole numbers", ""),
    ],
)  # fmt: skip
def test_periods_say_by_which_clocks(rule: str, holds: str, said: str) -> None:
    """Local times without a zone beside a zone are moved, which a reader must know."""
    assert Periods.of(rule, holds, ["1"]).clocks == said


@pytest.mark.parametrize(
    ("create", "match"),
    [
        ({"total": 12, "delta": "1e-9"}, "or with a delta; leave total out"),
        ({"period": None, "total": 12}, "for a ledger without a period"),
        ({"period": "month(at)"}, "give only the kind, such as 'month'"),
        ({"privacy_unit": "each row"}, "a single row cannot be protected in each period"),
    ],
)
def test_what_cannot_have_a_period_is_refused(
    create: dict[str, object], match: str, tmp_path: Path
) -> None:
    """And no file is left."""
    given = {"epsilon": 1, "privacy_unit": "bus", "counts": "public", "period": "month", **create}
    with pytest.raises(InputError, match=match):
        Ledger.create(tmp_path / "a.ledger", **given)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_a_total_is_at_least_the_budget_of_one_period(tmp_path: Path) -> None:
    """Otherwise no release could ever spend the budget."""
    with pytest.raises(InputError, match="below the epsilon of one month"):
        book_of(tmp_path, total="0.99")
    assert book_of(tmp_path, total=1).state().left.epsilon == 1


def test_a_ledger_says_what_is_left_in_which_period(tmp_path: Path) -> None:
    """Periods with the same amount together, and what all periods cost a user."""
    book = book_of(tmp_path, total=12)
    assert "0 releases: epsilon 1 in each month\nepsilon 12 over all months\nprotects" in str(book)
    names = [f"2026-0{at}" for at in range(1, 6)]
    given = {"privacy_unit": MONTHLY, "document": b""}
    book.record("q", periods=months(*names), epsilon=1, **given)  # type: ignore[arg-type]
    book.record("p", periods=months("2026-06"), epsilon="1/2", **given)  # type: ignore[arg-type]
    for line in (
        "epsilon 0 is left in 2026-01 to 2026-05 (5); epsilon 0.5 is left in 2026-06; epsilon 1 in",
        "one bus with records in all 6 months has lost up to epsilon 5.5, and may lose epsilon 12",
        "protects all values of one bus in one month",
    ):
        assert line in " ".join(str(book).split())
    assert book.state().balance(["2026-06"])[0] == "epsilon 0.5 is left in 2026-06"


def test_a_rest_below_a_thousandth_is_next_to_nothing(tmp_path: Path) -> None:
    """No small number that somebody would plan with; what is exactly spent is 0."""
    book = book_of(tmp_path)
    given = {"privacy_unit": MONTHLY, "document": b""}
    for at, epsilon in enumerate(("2097151/2097152", "999/1000", "1"), 1):
        name = months(f"2026-0{at}")
        book.record(f"{at}", periods=name, epsilon=epsilon, **given)  # type: ignore[arg-type]
    said = " ".join(str(book).split())
    assert (
        "next to nothing is left in 2026-01; epsilon 0.001 is left in 2026-02; epsilon 0 is" in said
    )
    whole = Ledger.create(tmp_path / "b.ledger", epsilon=1, privacy_unit="bus", counts="public")
    unit = whole.privacy_unit
    whole.record("q", privacy_unit=unit, epsilon="2097151/2097152", document=b"")
    assert "spent of epsilon 1, next to nothing left" in str(whole)
    assert whole.state().balance() == ["of epsilon 1, next to nothing is left"]


def test_a_changed_list_of_periods_is_found(tmp_path: Path) -> None:
    """It is in the chain."""
    import sqlite3
    from contextlib import closing

    book = book_of(tmp_path)
    given = {"privacy_unit": MONTHLY, "epsilon": 1, "document": b""}
    book.record("q", periods=months("2026-05"), **given)  # type: ignore[arg-type]
    for change in (
        'UPDATE entry SET periods = \'["month(at)", "2026-04"]\'',
        "UPDATE entry SET periods = 'x'",
        "UPDATE entry SET periods = NULL",
        "UPDATE ledger SET total = '99'",
        "UPDATE ledger SET period = 'day'",
    ):
        before = book.path.read_bytes()
        with closing(sqlite3.connect(book.path, isolation_level=None)) as connection:
            connection.execute(change)
        with pytest.raises(LedgerError, match="restore the newest backup"):
            book.verify()
        book.path.write_bytes(before)


@pytest.mark.parametrize("periods", [1, 2, 7, 800])
def test_a_delta_grows_by_group_privacy(periods: int) -> None:
    """At least delta (e^(k epsilon) - 1)/(e^epsilon - 1), which a chain of k neighbours gives."""
    one = Budget.of("1/3", "1e-9")
    found = one.in_all(periods)
    exact = mpmath.mpf(10) ** -9 * mpmath.expm1(mpmath.mpf(periods) / 3) / mpmath.expm1(1 / 3)
    assert found.epsilon == Fraction(periods, 3)
    assert min(exact, 1) <= float(found.delta) * (1 + 1e-9) <= 1 + 1e-9
    assert (found == one) == (periods == 1)
    assert Budget.of("1/3").in_all(periods).delta == 0


def test_eight_processes_add_up_each_month_exactly(tmp_path: Path) -> None:
    """Two of them are killed while they record; takes a second, as charges reach the disk."""
    found = kills.seen("months", tmp_path, 8, seed=1)
    assert found == {"failed": 0, "lost": 0, "sums_are_exact": True, "most": "1", "refused": True}
