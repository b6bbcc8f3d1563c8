"""One ledger, one privacy unit, through every family of releases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal import trials, unbiased
from shoal.errors import InputError, ShoalError
from shoal.privacy.privacy_unit import PrivacyUnit, unit_of_column
from shoal.verification import strict

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

N = 100


def table() -> pa.Table:
    """One person with 101 rows, and 99 with one each."""
    person = np.r_[np.zeros(101, dtype=int), np.arange(1, N)].tolist()
    rows = len(person)
    return pa.table(
        {"person": person, "row": list(range(rows)), "place": [0] * rows, "value": [0.5] * rows}
    )


def cells(book: shoal.Ledger, user: str, epsilon: Any = 1, **options: Any) -> shoal.Release:
    """Release the mean of a cell."""
    records = shoal.Records(table(), user=user, value="value", bounds=(0, 1), cell="place")
    plan = shoal.plan(
        records.occupancy(), method="balanced", bounds=(0, 1), epsilon=epsilon, uninformative="keep"
    )
    return plan.release(records, ledger=book, **options)


def trial(book: shoal.Ledger, **options: Any) -> trials.PrivateTrial:
    """Release a trial of a hundred units."""
    arm = np.arange(N) % 2
    options = {"outcome_name": "bought"} | options
    space = trials.Space.binary()
    return trials.UniformPrior(1).privatize(arm, 1 - arm, space=space, ledger=book, **options)


def mean(
    book: shoal.Ledger, users: object = None, **options: Any,
) -> unbiased.UnbiasedEstimate:  # fmt: skip
    """Release an unbiased mean of a hundred values."""
    return unbiased.clipped_mean(
        np.zeros(N), users, interval=(-1, 1), bias=0.1, moment=unbiased.Moment(2, 1), epsilon=1,  # type: ignore[arg-type]
        ledger=book, **{"values_name": "height"} | options,
    )  # fmt: skip


def test_rows_and_persons_are_never_added_up(tmp_path: Path) -> None:
    """Cells by row after cells by person are refused, at no cost, in words."""
    book = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=2)
    assert book.unit is None
    assert cells(book, "person").manifest["guarantee"]["unit"] == {
        "name": "person", "relation": "values", "records": "all",
    }  # fmt: skip
    before = book.path.read_bytes()
    with pytest.raises(InputError, match=r"all values of one row; .* all values of one person"):
        cells(book, "row")
    assert book.path.read_bytes() == before
    assert book.unit == PrivacyUnit("person")


@pytest.mark.parametrize("act", [lambda book: cells(book, "row"), trial, mean])
def test_a_unit_fixed_at_creation_refuses_others(act: Any, tmp_path: Path) -> None:
    """The families all state their unit; rows are not persons."""
    book = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=9, unit="person")
    with pytest.raises(InputError, match="this ledger protects: all values of one person"):
        act(book)
    assert book.entries() == []


def test_persons_of_all_families_share_a_ledger(tmp_path: Path) -> None:
    """Cells, a trial and means of the same persons are added up."""
    book = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=9, unit="person")
    cells(book, "person")
    trial(book, unit=np.arange(N), privacy_unit="person")
    mean(book, privacy_unit="person")
    with pytest.warns(shoal.errors.ShoalWarning, match="without a name before"):
        mean(book, np.arange(N), privacy_unit="person", name="by name")
    assert {entry.unit for entry in book.entries()} == {PrivacyUnit("person")}
    assert 3 < book.spent.epsilon <= 4
    book.verify()


def test_rows_have_a_ledger_of_their_own(tmp_path: Path) -> None:
    """Without names each row is a unit; a named column is another, whatever its name."""
    book = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=9)
    trial(book, privacy_unit="each row")
    mean(book)
    assert str(book.unit) == "the values of one row"
    for unit in ("row", "person"):
        with pytest.raises(InputError, match="this ledger protects: the values of one row"):
            mean(book, privacy_unit=unit, name="another")


_WIDE = "".join(chr(ord(letter) + 0xFEE0) for letter in "each")


@pytest.mark.parametrize(
    "name",
    ["Each row", "EACH ROW", f"{_WIDE} row", "each\u2800row", "each\u034f row", "\u00e9ach row"],
)
def test_nothing_else_reads_like_each_row(name: str) -> None:
    """A ledger of "Each row" would say that it protects all values of one."""
    with pytest.raises(InputError, match="reads like"):
        PrivacyUnit(name)
    told = {"name": name, "relation": "values", "records": "all"}
    assert strict.unit({**told, "name": "person"})
    assert not strict.unit(told)


@pytest.mark.parametrize("name", [" person", "person ", "a  person"])
def test_blanks_make_no_other_unit(name: str) -> None:
    """What nobody can write here is nothing that a manifest may claim."""
    with pytest.raises(InputError, match="blanks"):
        PrivacyUnit(name)
    assert not strict.unit({"name": name, "relation": "values", "records": "all"})
    assert not strict.release_name(name)


@pytest.mark.parametrize("act", [trial, mean])
def test_a_unit_that_nobody_said_fixes_no_ledger(act: Any, tmp_path: Path) -> None:
    """Rows are units where somebody says so: in the call, or in the ledger."""
    book = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=9)
    before = book.path.read_bytes()
    with pytest.raises(InputError, match='privacy_unit="each row"'):
        act(book)
    assert (book.path.read_bytes(), book.unit) == (before, None)
    act(book, privacy_unit="each row")
    rows = shoal.Ledger.create(tmp_path / "rows.ledger", epsilon=9, unit="each row")
    act(rows)
    assert len(book.entries()) == len(rows.entries()) == 1
    assert book.unit == rows.unit == PrivacyUnit("each row")


def test_people_of_a_renamed_column_stay_in_their_ledger(tmp_path: Path) -> None:
    """The same people under another column's name are one unit if the caller says so."""
    book = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=9)
    cells(book, "person")
    with pytest.raises(InputError, match="if each row is one person, say privacy_unit='person'"):
        cells(book, "row")
    again = cells(book, "row", privacy_unit="person")
    assert again.manifest["guarantee"]["unit"]["name"] == "person"
    assert again.manifest["records"]["user"] == "row"
    again.write_manifest(tmp_path / "m.json")
    verdict = shoal.verify(tmp_path / "m.json", ledger=book)
    assert verdict.holds
    assert "all values of one person (column row)" in str(verdict)
    assert {entry.unit for entry in book.entries()} == {PrivacyUnit("person")}
    assert len(book.entries()) == 2
    for unit in ("each row", "a\nb", 3, None):
        with pytest.raises(InputError):
            cells(book, "row", privacy_unit=unit)
    assert len(book.entries()) == 2


def test_each_row_is_no_unit_that_a_column_tells_apart(tmp_path: Path) -> None:
    """Said as a text or as an object, of users with many rows it is refused."""
    book = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=9, unit="each row")
    for unit in ("each row", PrivacyUnit("each row")):
        for act in (
            lambda said: cells(book, "person", privacy_unit=said),
            lambda said: trial(book, unit=np.arange(N), privacy_unit=said),
            lambda said: mean(book, np.arange(N), privacy_unit=said),
        ):
            with pytest.raises(InputError, match="every record is a unit of its own"):
                act(unit)
    assert book.entries() == []


@pytest.mark.parametrize("name", [" person", "person ", "a  person", " "])
def test_blanks_make_no_second_unit(tmp_path: Path, name: str) -> None:
    """Nobody would see why a ledger refuses; the name is shown in quotes."""
    with pytest.raises(InputError, match=f"named '{' '.join(name.split(' ')[:1])}"):
        PrivacyUnit(name)
    with pytest.raises(InputError, match="with blanks around it or two in a row"):
        shoal.Ledger.create(tmp_path / "a.ledger", epsilon=9, unit=name)
    assert not (tmp_path / "a.ledger").exists()
    assert unit_of_column("person", " person").unit == PrivacyUnit("person")


def test_a_ledger_wants_the_name_of_what_arrays_hold(tmp_path: Path) -> None:
    """Units told apart by an array have a name, or nothing is drawn."""
    book = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=9)
    with pytest.raises(InputError, match="privacy_unit"):
        trial(book, unit=np.arange(N))
    with pytest.raises(InputError, match="privacy_unit"):
        mean(book, np.arange(N))
    with pytest.raises(InputError, match="each row"):
        mean(book, np.arange(N), privacy_unit="each row")
    assert book.entries() == []


def test_all_names_that_a_ledger_wants_are_asked_for_at_once(tmp_path: Path) -> None:
    """One error says both, and nothing is drawn."""
    book = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=9)
    for call, name in (
        (lambda: trial(book, unit=np.arange(N), outcome_name=""), "outcome_name"),
        (lambda: mean(book, np.arange(N), values_name=""), "values_name"),
    ):
        with pytest.raises(InputError, match=f"without {name} and privacy_unit; ") as refused:
            call()
        assert f'{name}="' in refused.value.todo
        assert 'privacy_unit="person"' in refused.value.todo
    assert book.entries() == []


@pytest.mark.parametrize("unit", ["", "a\nb", "x" * 201, 3, b"person", ["person"]])
def test_units_are_short_text(unit: Any, tmp_path: Path) -> None:
    """Anything else is refused in words, and no file is made."""
    with pytest.raises(ShoalError, match="allowed:"):
        shoal.Ledger.create(tmp_path / "a.ledger", epsilon=1, unit=unit)
    assert list(tmp_path.iterdir()) == []


def test_a_refused_unit_leads_back_to_the_same_ledger(tmp_path: Path) -> None:
    """The same people under another name are no reason for a second ledger."""
    book = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=9, unit="home_id")
    with pytest.raises(InputError) as refused:
        trial(book)
    words = "if each row is one home_id, say privacy_unit='home_id'"
    assert words in str(refused.value)
    assert "for other people only" in str(refused.value)
    trial(book, privacy_unit="home_id")
    assert len(book.entries()) == 1
