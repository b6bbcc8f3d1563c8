"""Asking again: what a release is of, and that nothing old is delivered by accident."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import shoal
from shoal import trials, unbiased
from shoal.errors import DataError, InputError, ShoalError, ShoalWarning
from tests.support import flights

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


def test_next_months_values_never_get_last_months_numbers(tmp_path: Path) -> None:
    """The same plan on changed values wants a name, and draws anew with it."""
    book, plan = flights.ledger(tmp_path), flights.plan()
    may, june = flights.records(), flights.records(flights.neighbour(flights.table(), "N007", 0.0))
    first = plan.release(may, ledger=book)
    with pytest.raises(InputError, match=r"no name; .* again=True"):
        plan.release(june, ledger=book)
    assert len(book.entries()) == 1
    with pytest.warns(ShoalWarning, match="without a name before.*again=True"):
        second = plan.release(june, ledger=book, name="June")
    assert not second.from_ledger
    assert second.document != first.document
    assert [entry.name for entry in book.entries()] == ["", "June"]


def test_a_name_for_what_has_none_is_asked_about_before_it_is_charged(tmp_path: Path) -> None:
    """Whoever makes an error of the warning pays nothing; other names warn of nothing."""
    book, plan, records = flights.ledger(tmp_path), flights.plan(), flights.records()
    plan.release(records, ledger=book)
    with pytest.raises(ShoalWarning, match="'May' draws and charges anew"):
        plan.release(records, ledger=book, name="May")
    assert len(book.entries()) == 1
    with pytest.warns(ShoalWarning):
        first = plan.release(records, ledger=book, name="May")
    assert plan.release(records, ledger=book, name="May").document == first.document
    unnamed = plan.release(records, ledger=book, again=True).entry
    assert unnamed is not None
    assert unnamed.name == ""


@pytest.mark.parametrize("how", [{"name": "May"}, {"again": True}])
def test_a_recorded_release_says_that_it_is_one(how: dict[str, Any], tmp_path: Path) -> None:
    """With its name or `again` it is delivered, at no cost, and says which entry it is."""
    book, plan = flights.ledger(tmp_path), flights.plan()
    first = plan.release(flights.records(), ledger=book, name="May")
    again = plan.release(flights.records(), ledger=book, **how)
    assert (again.document, again.from_ledger) == (first.document, True)
    assert "delivered again from the ledger, entry 1 recorded 20" in str(again)
    assert repr(again).endswith("named 'May'; no value was read>")
    assert repr(first).endswith("entry 1 of the ledger, named 'May'>")
    assert len(book.entries()) == 1


def test_every_family_says_where_it_is_booked(tmp_path: Path) -> None:
    """In str and repr: delivered again, recorded just now, or in no ledger."""
    book = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=9, unit="person")
    arm, values = np.arange(100) % 2, np.zeros(100)

    def trial(**options: Any) -> Any:
        made = trials.UniformPrior(1)
        return made.privatize(arm, 1 - arm, space=trials.Space.binary(), **options)

    def mean(**options: Any) -> Any:
        return unbiased.clipped_mean(
            values, interval=(-1, 1), bias=0.1, moment=unbiased.Moment(2, 1), epsilon=1, **options
        )

    for act, name in ((trial, "outcome_name"), (mean, "values_name")):
        asked = {"ledger": book, "name": "May", "privacy_unit": "person", name: "x"}
        said = [str(act()), str(act(**asked)), str(act(**asked)), repr(act(**asked))]
        assert "not recorded in a ledger" in said[0]
        assert "of the ledger, named 'May'" in said[1]
        assert all("delivered again from the ledger, entry" in each for each in said[2:])
        assert all("no value was read" in each for each in said[2:])
    assert "not recorded" in repr(
        flights.plan().release(flights.records(), noise=shoal.Simulated(1))
    )
    kept = trial()
    kept.write_manifest(tmp_path / "trial.json")
    assert "recorded" not in repr(trials.PrivateTrial.load(tmp_path / "trial.json"))


def _families(book: Any) -> dict[str, Any]:
    """A release of each family into a ledger, or into none."""
    arm, values = np.arange(100) % 2, np.zeros(100)
    more = {"ledger": book, "privacy_unit": "person"}

    def mean(**how: Any) -> Any:
        bounds = {"interval": (-1, 1), "bias": 0.1, "moment": unbiased.Moment(2, 1), "epsilon": 1}
        return unbiased.clipped_mean(values, **bounds, values_name="x", **more, **how)  # type: ignore[arg-type]

    def trial(**how: Any) -> Any:
        space = trials.Space.binary()
        made = trials.UniformPrior(1)
        return made.privatize(arm, 1 - arm, space=space, outcome_name="x", **more, **how)

    def cells(**how: Any) -> Any:
        return flights.plan().release(flights.records(), **more, **how)

    return {"cells": cells, "mean": mean, "trial": trial}


@pytest.mark.parametrize("family", ["cells", "mean", "trial"])
def test_again_never_draws_or_charges(family: str, tmp_path: Path) -> None:
    """Of what is not recorded it is refused, and says what is; in no ledger, too."""
    book = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=9, unit="person")
    release = _families(book)[family]
    for name in ("", "May"):
        with pytest.raises(InputError, match=r"holds no release; .* never draws or charges"):
            release(again=True, name=name)
    assert book.entries() == []
    first = release(name="May")
    with pytest.raises(InputError, match=r"'June'; the ledger .* holds the question under 'May'"):
        release(again=True, name="June")
    for name in ("", "May"):
        again = release(again=True, name=name)
        assert (again.from_ledger, again.entry) == (True, first.entry)
    assert len(book.entries()) == 1
    with pytest.raises(InputError, match="ledger"):
        _families(None)[family](again=True)


@pytest.mark.parametrize("family", ["cells", "mean", "trial"])
@pytest.mark.parametrize("name", [" May", "May ", "1  May", " ", "\u00a0May", "May\t"])
def test_blanks_make_no_second_name(family: str, name: str, tmp_path: Path) -> None:
    """A name that looks like another would draw and charge what is recorded."""
    book = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=9, unit="person")
    for how in (True, False):
        with pytest.raises(InputError, match="release name"):
            _families(book)[family](name=name, again=how)
    assert book.entries() == []


def test_again_of_records_of_another_shape_says_so(tmp_path: Path) -> None:
    """Who brings other records is told that first, recorded or not."""
    book, plan = flights.ledger(tmp_path), flights.plan()
    with pytest.raises(DataError):
        plan.release(flights.records(flights.table(seed=1)), ledger=book, again=True)
    assert book.entries() == []


def test_a_release_without_a_name_is_called_so(tmp_path: Path) -> None:
    """A question held without a name, with one, or both is told in words."""
    book, plan = flights.ledger(tmp_path, 5), flights.plan()
    plan.release(flights.records(), ledger=book)
    with pytest.raises(InputError, match="holds without a name, and no name"):
        plan.release(flights.records(), ledger=book)
    with pytest.warns(ShoalWarning):
        plan.release(flights.records(), ledger=book, name="June")
    with pytest.raises(InputError, match="holds without a name and under 'June', and no name"):
        plan.release(flights.records(), ledger=book)


def test_records_of_another_shape_are_refused_on_delivery_too(tmp_path: Path) -> None:
    """Other counts, bounds or ticks, no file; told before a name is asked for."""
    book, plan = flights.ledger(tmp_path), flights.plan()
    plan.release(flights.records(), ledger=book, name="May")
    for records in (
        flights.records(flights.table(seed=1)),
        flights.records(bounds=(0, 650)),
        flights.records(tick_bits=16),
        flights.records(tmp_path / "gone.parquet"),
    ):
        for how in ({"name": "May"}, {"again": True}, {}):
            with pytest.raises(DataError):
                plan.release(records, ledger=book, **how)


def test_no_value_is_read_for_a_recorded_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only counts are looked at."""
    book, plan = flights.ledger(tmp_path), flights.plan()
    pq.write_table(flights.table(), tmp_path / "flights.parquet")
    records = flights.records(tmp_path / "flights.parquet")
    plan.release(records, ledger=book, name="May")

    def never(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(shoal.Records, "aggregate", never)
    assert plan.release(records, ledger=book, name="May").from_ledger


def test_several_names_and_none_is_refused(tmp_path: Path) -> None:
    """`again` alone does not say which of two releases is meant."""
    book, plan = flights.ledger(tmp_path, 5), flights.plan()
    for name in ("May", "June"):
        plan.release(flights.records(), ledger=book, name=name)
    with pytest.raises(InputError, match="'June', 'May'"):
        plan.release(flights.records(), ledger=book, again=True)
    with pytest.raises(ShoalError):
        plan.release(flights.records(), ledger=book, again="yes")  # type: ignore[arg-type]
    assert len(book.entries()) == 2
