"""Asking again: what a release is of, and that nothing old is delivered by accident."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import DataError, InputError, ShoalError
from tests.support import flights

if TYPE_CHECKING:
    from pathlib import Path


def test_next_months_values_never_get_last_months_numbers(tmp_path: Path) -> None:
    """G-AGAIN: the same plan on changed values wants a name, and draws anew with it."""
    book, plan = flights.ledger(tmp_path), flights.plan()
    may, june = flights.records(), flights.records(flights.neighbour(flights.table(), "N007", 0.0))
    first = plan.release(may, ledger=book)
    with pytest.raises(InputError, match=r"no name; .* again=True"):
        plan.release(june, ledger=book)
    assert len(book.entries()) == 1
    second = plan.release(june, ledger=book, name="June")
    assert not second.from_ledger
    assert second.document != first.document
    assert [entry.name for entry in book.entries()] == ["", "June"]


@pytest.mark.parametrize("how", [{"name": "May"}, {"again": True}])
def test_a_recorded_release_says_that_it_is_one(how: dict[str, Any], tmp_path: Path) -> None:
    """G-AGAIN: with its name or `again` it is delivered, at no cost, and says which entry it is."""
    book, plan = flights.ledger(tmp_path), flights.plan()
    first = plan.release(flights.records(), ledger=book, name="May")
    again = plan.release(flights.records(), ledger=book, **how)
    assert (again.document, again.from_ledger) == (first.document, True)
    assert "entry 1 recorded 20" in repr(again)
    assert repr(again).endswith("named 'May'>")
    assert len(book.entries()) == 1


def test_records_of_another_shape_are_refused_on_delivery_too(tmp_path: Path) -> None:
    """G-AGAIN: other counts, bounds or ticks, no file; told before a name is asked for."""
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
    """G-AGAIN: only counts are looked at."""
    book, plan = flights.ledger(tmp_path), flights.plan()
    pq.write_table(flights.table(), tmp_path / "flights.parquet")
    records = flights.records(tmp_path / "flights.parquet")
    plan.release(records, ledger=book, name="May")

    def never(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(shoal.Records, "aggregate", never)
    assert plan.release(records, ledger=book, name="May").from_ledger


def test_several_names_and_none_is_refused(tmp_path: Path) -> None:
    """G-AGAIN: `again` alone does not say which of two releases is meant."""
    book, plan = flights.ledger(tmp_path, 5), flights.plan()
    for name in ("May", "June"):
        plan.release(flights.records(), ledger=book, name=name)
    with pytest.raises(InputError, match="'June', 'May'"):
        plan.release(flights.records(), ledger=book, again=True)
    with pytest.raises(ShoalError):
        plan.release(flights.records(), ledger=book, again="yes")  # type: ignore[arg-type]
    assert len(book.entries()) == 2
