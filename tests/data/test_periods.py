"""A user and period takes the place of a user in counts and sums, and in nothing else."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import shoal
from shoal.data.counts import Counts
from shoal.errors import DataError, DocumentError, InputError
from tests.data import kinds

if TYPE_CHECKING:
    from pathlib import Path

NAMES = "text or whole numbers"
ZONED = "times with a zone"
KNOWN: dict[str, Any] = {"user": "who", "value": "value", "bounds": (-5, 5), "counts": "public"}


def as_users(table: pa.Table, rule: str) -> pa.Table:
    """The same records, whose users are written beside their periods."""
    period = [str(kinds.RULES[rule](row)) for row in table.to_pylist()]
    users = [f"{who} in {each}" for who, each in zip(table["who"].to_pylist(), period, strict=True)]
    return table.set_column(table.column_names.index("who"), "who", pa.array(users))


@pytest.mark.parametrize(
    ("rule", "by"),
    [
        ("month(at)", "place"),
        ("date(at,Asia/Kathmandu)", "hour_of_day(at)"),
        ("year(at,America/St_Johns)", None),
        ("week(at)", "week(at)"),
        ("place", "month(at)"),
    ],
)
def test_they_are_those_of_users_in_periods(rule: str, by: str | None) -> None:
    """Cells, counts, sums of each member and the list of periods, whatever the order of rows."""
    table = kinds.table()
    divided = shoal.Records(table, by=by, period=rule, **KNOWN)
    counts, sums = divided.aggregate()
    own, expected = shoal.Records(as_users(table, rule), by=by, **KNOWN).aggregate()
    assert counts.periods is not None
    assert counts.cells == own.cells
    assert [counts.user.tolist(), counts.cell.tolist(), counts.count.tolist()] == [
        own.user.tolist(), own.cell.tolist(), own.count.tolist()
    ]  # fmt: skip
    # Users alike have any order, in which those of other names may come.
    members = [np.stack([each.centred, each.squares, own.cell]).T for each in (sums, expected)]
    assert sorted(map(tuple, members[0].tolist())) == sorted(map(tuple, members[1].tolist()))
    found = {str(kinds.RULES[rule](row)) for row in table.to_pylist()}
    holds = NAMES if rule == "place" else ZONED
    assert counts.periods.listed == [rule, holds, *sorted(found)]
    shuffled = table.take(pa.array(np.random.default_rng(2).permutation(len(table))))
    again = shoal.Records(shuffled, by=by, period=rule, **KNOWN).counts()
    assert again.same_as(counts)
    assert again.fingerprint == counts.fingerprint


def test_other_periods_are_other_counts() -> None:
    """In comparison, fingerprint and documents, from which lists come back as they were."""
    table = pa.table({"who": [1, 2, 3], "wave": ["b", "a", "b"], "value": [0.0] * 3})
    first = shoal.Records(table, period="wave", **KNOWN).counts()
    other = shoal.Records(table.slice(1), period="wave", **KNOWN).counts()
    assert first.periods is not None
    assert first.periods.names == ("a", "b")
    whole = shoal.Records(table, **KNOWN).counts()
    assert not first.same_as(whole)
    assert first.fingerprint != whole.fingerprint
    assert str(first).startswith("3 records of 3 user-waves in 1 cell")
    document = first.to_document()
    assert Counts.from_document(document).periods == first.periods == other.periods
    assert "periods" not in whole.to_document()
    for forged in (
        ["wave", "a"],
        ["wave", NAMES, "b", "a"],
        ["wave", NAMES],
        "ab",
        [NAMES, 1],
        None,
    ):
        with pytest.raises(DocumentError, match="counts is damaged"):
            Counts.from_document({**document, "periods": forged})


LATE = datetime(2026, 5, 31, 20, 30)


@pytest.mark.parametrize(
    ("column", "rule", "holds", "name"),
    [
        (pa.array([LATE]), "month(at)", "times without a zone", "2026-05"),
        (["2026-05-31 20:30"], "month(at,Asia/Kolkata)", "times without a zone", "2026-06"),
        (pa.array([LATE], pa.timestamp("ms", "Asia/Kolkata")), "month(at)", ZONED, "2026-05"),
        (["2026-06-01T02:00+05:30"], "month(at)", ZONED, "2026-05"),
        (["2026-06-01T00:00Z"], "month(at)", ZONED, "2026-06"),
        (["2026-06-01 00:00"], "month(at,America/New_York)", "dates", "2026-06"),
        (pa.array([datetime(2026, 6, 1)]), "month(at,America/New_York)", "dates", "2026-06"),
        (["2026-06-01"], "at", "dates", "2026-06-01"),
        (["true"], "at", "true or false", "True"),
        (["1"], "at", NAMES, "1"),
        (pa.array(["01"]), "at", NAMES, "01"),
    ],
)
def test_periods_say_what_their_column_holds(
    column: Any, rule: str, holds: str, name: str, tmp_path: Path
) -> None:
    """A table in memory, or a file of texts: what is alike is held alike."""
    source: Any = tmp_path / "a.csv"
    if isinstance(column, list):
        source.write_text(f"who,value,at\nann,1,{column[0]}\n")
    else:
        source = pa.table({"who": ["ann"], "value": [1.0], "at": column})
    counts = shoal.Records(source, period=rule, **KNOWN).counts()
    assert counts.periods is not None
    assert counts.periods.listed == [rule, holds, name]


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"period": "who"}, "also given as cell or period"),
        ({"period": "date(value)"}, "the value column 'value' is also given as period"),
        ({"period": "weekday(at)"}, "give one of date, week, month, quarter, year"),
        ({"period": "bins(far,10)"}, "or a column with a few public values"),
        ({"period": ["place", "month(at)"]}, "the period is place, month"),
        ({"period": 7}, "type int"),
        ({"period": "month(place)"}, "'place' holds"),
        ({"period": "far"}, "'far' holds"),
    ],
)
def test_what_is_no_period_is_refused(more: dict[str, Any], match: str) -> None:
    """Before anything is counted."""
    with pytest.raises((InputError, DataError), match=match):
        shoal.Records(kinds.table(), **KNOWN, **more).counts()


def test_a_period_is_public_and_there() -> None:
    """Rows without one are refused or dropped; too many are no periods."""
    table = kinds.with_gaps(kinds.table())
    full = table.filter(pc.is_valid(table["who"]))
    with pytest.raises(DataError, match="the column 'place' has null values"):
        shoal.Records(full, period="place", **KNOWN).counts()
    found = shoal.Records(table, period="place", missing="public", **KNOWN).counts()
    assert found.periods is not None
    assert found.totals.sum() == 1195
    many = pa.table({"who": range(5000), "at": range(5000), "value": [0.0] * 5000})
    with pytest.raises(InputError, match="5,000 different values of at"):
        shoal.Records(many, period="at", **KNOWN).counts()
