"""What may be given to a ledger, and what it keeps of it: plain texts that look like themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import pytest

import shoal
from shoal.cells.statistics.share import ShareAbove
from shoal.errors import InputError
from shoal.privacy.ledger.arguments import release_name
from shoal.privacy.ledger.message import decoded, encoded
from shoal.privacy.privacy_unit import PrivacyUnit
from tests.support import flights

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

LOOK_ALIKE = (
    " May",
    "May ",
    "a  May",
    "\u200bMay",
    "May\n",
    "M\x00ay",
    "\u202eMay",
    "M" * 201,
    b"May",
)


class Sly(str):
    """A text that is whatever it is compared with, and says nothing true of itself."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__

    def _lies(self, *_: object) -> NoReturn:
        raise AssertionError

    __str__ = __len__ = isprintable = split = encode = _lies  # type: ignore[assignment]


@pytest.fixture
def book(tmp_path: Path) -> shoal.Ledger:
    """Of persons."""
    return shoal.Ledger.create(tmp_path / "a.ledger", epsilon=1, unit="person")


def _asked(**others: Any) -> dict[str, Any]:
    return {"question": "q", "unit": "person", "epsilon": "1/10", "document": b"1", **others}


@pytest.mark.parametrize("name", LOOK_ALIKE)
def test_a_ledger_takes_the_names_that_a_release_takes(name: Any, book: shoal.Ledger) -> None:
    """What looks like another name is refused at either door, and nothing is charged."""
    with pytest.raises(InputError, match="release name"):
        book.record(**_asked(name=name))
    with pytest.raises(InputError, match="release name"):
        release_name(name)
    with pytest.raises(InputError, match="release name"):
        flights.plan().release(flights.records(), ledger=book, name=name)
    assert not book.entries()


def test_a_message_takes_the_names_that_a_ledger_takes(book: shoal.Ledger) -> None:
    """Nor does a process that records for others."""
    entry = book.record(**_asked(name="May"))
    sent = encoded("a", entry)  # type: ignore[arg-type]
    assert decoded("a", sent) is not None
    assert decoded("a", sent.replace(b'"May"', b'" Ma"')) is None


@pytest.mark.parametrize("part", ["question", "name", "kind", "unit"])
def test_a_ledger_keeps_plain_texts(part: str, book: shoal.Ledger) -> None:
    """A text with equality of its own is what it says, and damages nothing."""
    plain = {"question": "q", "name": "May", "kind": "cells", "unit": "person"}
    book.record(**_asked(**{**plain, part: Sly(plain[part])}))
    [entry] = book.entries()
    kept = (entry.question, entry.name, entry.kind, entry.unit.name)
    assert kept == tuple(plain.values())
    assert [type(each) for each in kept] == [str] * 4
    book.verify()
    assert book.find(Sly("q"), Sly("June")) is None
    assert book.look_up(Sly("other")).names == []


def test_a_unit_that_equals_all_others_is_another_unit(book: shoal.Ledger) -> None:
    """Rows are never charged to a ledger of persons."""
    with pytest.raises(InputError, match="person"):
        book.record(**_asked(unit=Sly("row")))
    with pytest.raises(InputError, match="relation"):
        PrivacyUnit("person", Sly("rows"))
    assert not book.entries()


@pytest.mark.parametrize("most", [-1, 0, True, 1.5, "2"])
def test_how_many_names_is_checked(most: Any, book: shoal.Ledger) -> None:
    """A whole number from 1: SQLite takes -1 for all."""
    for name in ("June", "May"):
        book.record(**_asked(name=name))
    assert book.names("q", 1) == ["June"]
    with pytest.raises(InputError, match="most is"):
        book.names("q", most)


@pytest.mark.parametrize(
    "measures",
    [
        iter([ShareAbove(1.0)]),
        [1],
        [ShareAbove(1.0)] * 2,
        [ShareAbove(float(at)) for at in range(9)],
        "x",
    ],
)
def test_measures_are_a_list_of_measures(measures: Any) -> None:
    """Up to eight, each with a name of its own."""
    with pytest.raises(InputError, match="measures"):
        flights.records().aggregate(measures)


def test_only_what_was_delivered_is_a_release() -> None:
    """Not anything else that is given for it."""
    with pytest.raises(InputError, match="carrying a plan out"):
        shoal.Release.delivered(object(), flights.plan())  # type: ignore[arg-type]
