"""The order of every release: find, check, draw, record, deliver."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shoal.cells.facts.plan_file import Manifest
from shoal.errors import BudgetError, InputError
from shoal.privacy.budget import Budget
from shoal.privacy.ledger import Ledger
from shoal.release.draw import Delivered, release
from shoal.release.question import Question
from tests.support import flights

CHARGE = Budget.of("1/2", "1e-9")


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    """Of a release that any reader takes."""
    import shoal

    found: dict[str, Any] = (
        flights.plan().release(flights.records(), noise=shoal.Simulated(1)).manifest
    )
    return found


class Way:
    """A draw that gives a number, notes what is called, and may do something else meanwhile."""

    def __init__(self, manifest: dict[str, Any], meanwhile: Callable[[], object] = tuple) -> None:
        """Results are those of a manifest."""
        self.manifest, self.meanwhile, self.called = manifest, meanwhile, list[str]()

    def check(self) -> None:
        """Nothing is wrong."""
        self.called.append("check")

    def draw(self, _: object) -> float:
        """Once."""
        self.called.append("draw")
        self.meanwhile()
        return 3.0 + len(self.called)

    def results(self, _: float) -> Any:
        """Of the manifest's form."""
        return self.manifest["results"]


def deliver(book: Ledger, way: Way, name: str = "", **more: Any) -> Delivered:
    """Release one question of a person's values."""
    about, told = way.manifest, {"of": "q", "loss": CHARGE, "unit": "person", **more}
    question = Question(
        "cells", about["plan"], {"of": told["of"]}, about["records"], told["unit"], told["loss"],
        about["guarantee"]["privacy"], about["guarantee"]["neighbours"],
        lambda data: Manifest.from_bytes(data, "manifest"), name,
    )  # fmt: skip
    return release(question, way, ledger=book, noise=None)


def book_of(folder: Path, delta: object = "1e-8") -> Ledger:
    """A ledger of persons."""
    return Ledger.create(folder / "a.ledger", epsilon=1, delta=delta, unit="person")


def test_a_release_is_drawn_recorded_and_delivered_once(
    tmp_path: Path, manifest: dict[str, Any]
) -> None:
    """Asked again, under its name or none, it is checked, delivered and costs nothing."""
    book, way = book_of(tmp_path), Way(manifest)
    for name in ("", "May"):
        first, again = deliver(book, way, name), deliver(book, way, name)
        assert (first.from_ledger, again.from_ledger) == (False, True)
        assert (again.document, again.entry) == (first.document, first.entry)
        assert (first.drawn is None, again.drawn) == (False, None)
        assert json.loads(first.document)["name"] == name
    assert way.called == ["draw", "check", "draw", "check"]
    assert book.spent == CHARGE + CHARGE


def test_what_does_not_fit_is_never_drawn(tmp_path: Path, manifest: dict[str, Any]) -> None:
    """Neither in epsilon nor in delta, nor of another unit, nor under a name that nobody sees."""
    book, way = book_of(tmp_path), Way(manifest)
    for charge in (Budget.of("1001/1000"), Budget.of(0, "101e-10")):
        with pytest.raises(BudgetError):
            deliver(book, way, loss=charge)
    with pytest.raises(InputError, match="protects"):
        deliver(book, way, unit="device")
    with pytest.raises(InputError, match="blanks"):
        deliver(book, way, " May")
    assert (way.called, book.state().entries) == ([], 0)


def test_of_two_draws_at_once_the_recorded_one_is_delivered(
    tmp_path: Path, manifest: dict[str, Any]
) -> None:
    """Another process records the same question while this one draws."""
    book = book_of(tmp_path)
    theirs = {**manifest, "results": manifest["results"][:1]}
    found = deliver(book, Way(manifest, lambda: deliver(Ledger(book.path), Way(theirs))))
    assert (len(json.loads(found.document)["results"]), found.from_ledger) == (1, True)
    assert book.spent == CHARGE


def test_a_budget_that_is_used_up_while_drawing_refuses(
    tmp_path: Path, manifest: dict[str, Any]
) -> None:
    """Only the write lock decides: the draw is thrown away, nothing is overspent."""
    book = book_of(tmp_path)

    def others() -> None:
        for name in ("one", "two"):
            deliver(Ledger(book.path), Way(manifest), name, of="another")

    with pytest.raises(BudgetError):
        deliver(book, Way(manifest, others))
    assert book.spent == CHARGE + CHARGE
    assert book.verify().entries == 2


def test_what_nobody_could_read_is_not_recorded(tmp_path: Path, manifest: dict[str, Any]) -> None:
    """Contents that JSON or the schema of manifests cannot hold."""
    book = book_of(tmp_path)
    for results in ([{"cell": float("nan")}], [{"cell": 1}], {"unknown": 1}):
        with pytest.raises(InputError, match="nothing was charged"):
            deliver(book, Way({**manifest, "results": results}))
    assert book.state().entries == 0
