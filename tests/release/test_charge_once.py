"""The order of every release: find, check, draw, record, deliver; by a family of its own."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.errors import BudgetError, DocumentError, InputError
from shoal.privacy.budget import Budget
from shoal.privacy.ledger import Ledger
from shoal.privacy.unit import Unit
from tests.support import noisy_count
from tests.support.noisy_count import Plan, Release, Request

VALUES = [1.0, 2.0, 3.0]
HALF = Budget.of("1/2")


def plan_of(limit: float, meanwhile: Callable[[], object] = tuple) -> Plan:
    """A count above a limit, of epsilon 1/2; tests do something while it is drawn."""
    return Plan(Request(limit=limit, bits=1), meanwhile)


def book_of(folder: Path) -> Ledger:
    """A ledger of persons."""
    return Ledger.create(folder / "a.ledger", epsilon=1, privacy_unit="person", counts="public")


def test_a_family_is_its_plan(tmp_path: Path) -> None:
    """Plans, saves, loads, releases, is recorded, shown and verified by the base classes alone."""
    book = book_of(tmp_path)
    plan_of(1.5).save(tmp_path / "plan.json")
    plan = Plan.load(tmp_path / "plan.json")
    assert (str(plan).splitlines()[0], plan.epsilon) == ("values above 1.5", 0.5)
    done = plan.release(VALUES, book)
    again = plan.release(VALUES, book)
    assert (done.document, again.origin[:8], book.spent) == (again.document, "recorded", HALF)
    assert done.table().column("count").to_pylist() == [again.released]
    done.write_record(tmp_path / "manifest.json")
    done.write(tmp_path / "table.csv")
    assert Release.load(tmp_path / "manifest.json").plan.request.limit == 1.5
    assert shoal.verify(tmp_path / "manifest.json", ledger=book.path).holds
    forged: dict[str, Any] = json.loads(done.document)
    forged["plan"]["request"]["limit"] = 2.5
    (tmp_path / "forged.json").write_bytes(shoal.documents.canonical_bytes(forged))
    assert not shoal.verify(tmp_path / "forged.json").holds
    whose = json.loads(done.document)
    for part in (whose["plan"], whose["guarantee"]):
        part["unit"]["period"] = "month"
    (tmp_path / "period.json").write_bytes(shoal.documents.canonical_bytes(whose))
    with pytest.raises(DocumentError, match="damaged"):
        shoal.verify(tmp_path / "period.json")
    forged["plan"]["request"]["bits"] = 0
    (tmp_path / "cheap.json").write_bytes(shoal.documents.canonical_bytes(forged))
    with pytest.raises(DocumentError, match="damaged"):
        Release.load(tmp_path / "cheap.json")


def test_a_release_is_drawn_recorded_and_delivered_once(tmp_path: Path) -> None:
    """Asked again, under its name or none, it is delivered and costs nothing."""
    book, drawn = book_of(tmp_path), list[int]()
    plan = plan_of(1.5, meanwhile=lambda: drawn.append(1))
    for name in ("", "May"):
        first, again = plan.release(VALUES, book, name), plan.release(VALUES, book, name)
        assert (first.from_ledger, again.from_ledger) == (False, True)
        assert (again.document, again.entry) == (first.document, first.entry)
        assert json.loads(first.document)["name"] == name
    assert (len(drawn), book.spent) == (2, HALF + HALF)


def test_what_does_not_fit_is_never_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in epsilon nor in delta, nor of another unit, nor under a name that nobody sees."""
    book = book_of(tmp_path)
    plan = plan_of(1.5, meanwhile=pytest.fail)
    with monkeypatch.context() as patched:
        for charge in (Budget.of("1001/1000"), Budget.of(0, "1e-10")):
            patched.setattr(Plan, "exact_loss", charge)
            with pytest.raises(BudgetError):
                plan.release(VALUES, book)
    with pytest.raises(InputError, match="protects"):
        plan.deliver(
            VALUES, {"of": "v"}, Unit("device", "public"), name="", ledger=book, noise=None
        )
    with pytest.raises(InputError, match="blanks"):
        plan.release(VALUES, book, " May")
    assert book.state().entries == 0


def test_of_two_draws_at_once_the_recorded_one_is_delivered(tmp_path: Path) -> None:
    """Another process records the same question while this one draws."""
    book = book_of(tmp_path)
    theirs = list[Release]()
    plan = plan_of(1.5)

    def others() -> None:
        theirs.append(plan.release([9.0] * 1000, Ledger(book.path)))

    found = replace(plan, meanwhile=others).release(VALUES, book)
    assert (found.document, found.from_ledger) == (theirs[0].document, True)
    assert book.spent == HALF


def test_a_budget_that_is_used_up_while_drawing_refuses(tmp_path: Path) -> None:
    """Only the write lock decides: the draw is thrown away, nothing is overspent."""
    book = book_of(tmp_path)

    def others() -> None:
        for name in ("one", "two"):
            plan_of(2.5).release(VALUES, Ledger(book.path), name)

    with pytest.raises(BudgetError):
        plan_of(1.5, meanwhile=others).release(VALUES, book)
    assert book.spent == HALF + HALF
    assert book.verify().entries == 2


def test_what_nobody_could_read_is_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contents that JSON or the schema of manifests cannot hold."""
    book = book_of(tmp_path)
    for results in ({"steps": float("nan")}, {"steps": "1"}, {"steps": 1, "unknown": 1}):
        monkeypatch.setattr(noisy_count.Plan, "results", lambda *_, found=results: found)
        with pytest.raises(InputError, match="nothing was charged"):
            plan_of(1.5).release(VALUES, book)
    assert book.state().entries == 0
