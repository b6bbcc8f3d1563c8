"""Releases of users in periods: charged to the periods of their records, and said so."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import shoal
from shoal.errors import BudgetError, DataError, DocumentError, InputError

if TYPE_CHECKING:
    from pathlib import Path

KNOWN: dict[str, Any] = {
    "user": "bus", "value": "speed", "bounds": (0, 65), "by": "line", "counts": "public",
    "period": "month(at)",
}  # fmt: skip


def trips(*months: int) -> pa.Table:
    """Trips of 40 buses on two lines in some months."""
    rows = [
        (bus, datetime(2026, month, day), line, 30.0 + day)
        for bus in range(40)
        for month in months
        for day in (3, 17)
        for line in "ab"
    ]
    return pa.table(dict(zip(("bus", "at", "line", "speed"), zip(*rows, strict=True), strict=True)))


def book_of(folder: Path, **more: Any) -> shoal.Ledger:
    """A ledger of buses in months."""
    given = {"epsilon": 2, "privacy_unit": "bus", "counts": "public", "period": "month", **more}
    return shoal.Ledger.create(folder / f"{len([*folder.iterdir()])}.ledger", **given)


def test_a_release_of_two_months_is_charged_to_both(tmp_path: Path) -> None:
    """Plan, record, manifest, report and ledger say it; the same again is free."""
    book = book_of(tmp_path)
    for months in ((5,), (5, 6)):
        records = shoal.Records(trips(*months), **KNOWN)
        plan = shoal.plan(records, epsilon=1)
        done = plan.release(records, ledger=book, name=f"{months}")
    assert {name: each.epsilon for name, each in book.verify().booked.items()} == {
        "2026-05": 2, "2026-06": 1,
    }  # fmt: skip
    assert plan.release(records, ledger=book, name="(5, 6)").from_ledger
    assert plan.counts.n_users == 80
    text = " ".join(str(plan).split())
    assert "epsilon 1 per user-month in all" in text
    assert "charged to 2026-05, 2026-06: one bus with records in all 2 months loses up to" in text
    assert "epsilon 1 per user-month" in str(done)
    plan.save(tmp_path / "plan.json")
    assert shoal.Plan.load(tmp_path / "plan.json").to_document() == plan.to_document()
    done.write_manifest(tmp_path / "m.json")
    guarantee = json.loads((tmp_path / "m.json").read_bytes())["guarantee"]
    assert (guarantee["periods"], guarantee["unit"]["period"]) == (["2026-05", "2026-06"], "month")
    verdict = shoal.verify(tmp_path / "m.json", ledger=book, replan=True)
    assert verdict
    assert "periods in the ledger" in str(verdict)
    pytest.importorskip("matplotlib")
    shoal.report(tmp_path / "m.json", tmp_path / "m.html", ledger=book)
    page = (tmp_path / "m.html").read_text()
    for said in (
        "all values of one bus in one month",
        "<td>2026-05</td><td>2 releases</td><td>epsilon 2</td><td>epsilon 0</td>",
        "one bus with records in all 2 months loses up to epsilon 2",
    ):
        assert said in page
    with pytest.raises(BudgetError, match="exceeds what is left in 2026-05, epsilon 0"):
        plan.release(records, ledger=book, name="again")


def test_the_same_moments_lie_in_the_same_months(tmp_path: Path) -> None:
    """Whatever their zone; without one they are other times, and a plan says how they are read."""
    zoned = {**KNOWN, "period": "month(at,Asia/Kolkata)"}
    book = book_of(tmp_path, epsilon=1)
    moments = pa.array([datetime(2026, 5, 31, 20, 30)] * 40, pa.timestamp("us", "UTC"))
    given = {"bus": range(40), "speed": [30.0] * 40, "line": ["a", "b"] * 20}
    for zone in ("UTC", "America/New_York"):
        at = moments.cast(pa.timestamp("us", zone))
        records = shoal.Records(pa.table({**given, "at": at}), **zoned)
        plan = shoal.plan(records, epsilon=1)
        if zone == "UTC":
            plan.release(records, ledger=book, name=zone)
    assert "charged to 2026-06: one bus" in " ".join(str(plan).split())
    with pytest.raises(BudgetError, match="what is left in 2026-06, epsilon 0"):
        plan.release(records, ledger=book, name="again")
    local = pa.array([datetime(2026, 6, 1, 2)] * 40)
    records = shoal.Records(pa.table({**given, "at": local}), **zoned)
    plan = shoal.plan(records, epsilon=1)
    said = "months by the clocks of Asia/Kolkata; times without a zone are taken for universal time"
    assert said in " ".join(str(plan).split())
    with pytest.raises(InputError, match="times without a zone here, and times with a zone in"):
        plan.release(records, ledger=book, name="local")
    assert book.verify().entries == 1


def test_a_row_that_is_dropped_moves_no_other(tmp_path: Path) -> None:
    """Midnights are dates only if all are: an hour in a row without a value would move them."""
    book = book_of(tmp_path)
    given = {**KNOWN, "missing": "public", "period": "month(at,America/New_York)"}
    days = trips(6)
    late = {"bus": [0], "at": [datetime(2026, 6, 1, 2)], "line": ["a"], "speed": [None]}
    more = pa.concat_tables([days, pa.table(late, schema=days.schema)])
    for table in (days, more):
        records = shoal.Records(table, **given)
        plan = shoal.plan(records, epsilon=1)
        if table is days:
            plan.release(records, ledger=book, name="days")
    with pytest.raises(InputError, match="times without a zone here, and dates in earlier"):
        plan.release(records, ledger=book, name="hours")


def test_a_month_has_its_own_budget(tmp_path: Path) -> None:
    """In one call, until the ceiling over all months is reached; the unit's word may differ."""
    book = book_of(tmp_path, epsilon=1, total=2)
    for month in (1, 2):
        given = {**KNOWN, "epsilon": 1, "ledger": book, "anyway": True}
        shoal.summarize(trips(month), name=f"{month}", **given)
    with pytest.raises(BudgetError, match="what is left over all periods, epsilon 0"):
        shoal.summarize(trips(3), name="3", **given)


def test_periods_and_their_absence_do_not_mix(tmp_path: Path) -> None:
    """Records, plans, counts and ledgers."""
    book, whole = book_of(tmp_path), book_of(tmp_path, period=None)
    divided = shoal.Records(trips(5), **KNOWN)
    undivided = shoal.Records(trips(5), **{**KNOWN, "period": None})
    plan, plain = (shoal.plan(each, epsilon=1) for each in (divided, undivided))
    for made, records, ledger, error, match in (
        (plan, divided, whole, InputError, "that was made with period='month'"),
        (plain, undivided, book, InputError, "records that are divided by month"),
        (plan, undivided, book, DataError, "of the records differ from those of the plan"),
        (plain, divided, whole, DataError, "of the records differ from those of the plan"),
        (plan, shoal.Records(trips(6), **KNOWN), book, DataError, "public counts of the records"),
    ):
        with pytest.raises(error, match=match):
            made.release(records, ledger=ledger)
    with pytest.raises(InputError, match="counts are of user-months"):
        shoal.plan(divided.counts(), bounds=(0, 65), epsilon=1, source=undivided.describe())
    bare = shoal.plan(divided.counts(), bounds=(0, 65), epsilon=1)
    bare.release(divided, ledger=book)
    moment = shoal.unbiased.Moment(2, 15.0)
    mean = shoal.unbiased.plan(
        "clipped_mean", 100, moment=moment, epsilon=1, interval=(0, 9), bias=1.0
    )
    with pytest.raises(InputError, match="trials, means and arrays have no period"):
        mean.release([1.0] * 100, [*range(100)], ledger=book, values_name="x", privacy_unit="bus")
    assert (book.state().entries, whole.state().entries) == (1, 0)


def test_a_record_of_other_periods_does_not_verify(tmp_path: Path) -> None:
    """Neither in the guarantee, nor in the counts, nor in the unit."""
    records = shoal.Records(trips(5), **KNOWN)
    done = shoal.plan(records, epsilon=1).release(records, ledger=book_of(tmp_path))

    def forged(change: Any) -> Any:
        record = json.loads(done.document)
        change(record)
        return shoal.verify(record)

    assert not forged(lambda record: record["guarantee"].update(periods=["2026-04"]))
    assert not forged(lambda record: record["guarantee"].pop("periods"))
    assert not forged(lambda record: record["guarantee"]["unit"].update(period=None))
    with pytest.raises(DocumentError):
        forged(lambda record: record["plan"]["unit"].update(period=None))
    with pytest.raises(DocumentError):
        forged(lambda record: record["plan"]["records"].pop("period"))
    with pytest.raises(DocumentError):
        forged(
            lambda record: record["plan"]["counts"].update(
                periods=["month(at)", "dates", "2026-04"]
            )
        )
