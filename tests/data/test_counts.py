"""The counts: canonical, anonymous, saved and loaded."""

import copy
import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal import documents
from shoal.data import keys
from shoal.errors import DataError, DocumentError
from tests.support import made_counts
from tests.support.loop import loop_over


@given(counts=made_counts.small, seed=st.integers(0, 99))
def test_fingerprints_forget_names_and_order(counts: shoal.Counts, seed: int) -> None:
    """Renaming users and shuffling rows changes nothing."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(counts.user))
    names = rng.permutation(1000)
    again = shoal.Counts.from_counts(
        names[counts.user[order]],
        counts.cells.column("cell").to_numpy()[counts.cell[order]],
        counts.count[order],
    )
    assert again.fingerprint == counts.fingerprint
    assert again.user.tolist() == counts.user.tolist()
    assert again.count.tolist() == counts.count.tolist()


@given(counts=made_counts.small)
def test_fingerprints_see_every_count(counts: shoal.Counts) -> None:
    """One record more is another counts."""
    more = counts.count.copy()
    more[-1] += 1
    cells = counts.cells.column("cell").to_numpy()[counts.cell]
    other = shoal.Counts.from_counts(counts.user, cells, more)
    assert other.fingerprint != counts.fingerprint


def test_all_key_types_survive(tmp_path: Path) -> None:
    """Text, integers, booleans, dates and times, together."""
    day = dt.date(2013, 1, 1)
    time = dt.datetime(2013, 1, 1, 5, 30, tzinfo=dt.UTC)
    cells = {"a": ["x", "ø"], "b": [-1, 2], "c": [True, False], "d": [day, day], "e": [time, time]}
    counts = shoal.Counts.from_counts([1, 2], cells, [3, 4])
    counts.save(tmp_path / "o.json")
    again = shoal.Counts.load(tmp_path / "o.json")
    assert again.cells.equals(counts.cells)
    assert list(again.labels) == ["x · -1 · True · 2013-01-01 · 2013-01-01 05:30+00:00",
                            "ø · 2 · False · 2013-01-01 · 2013-01-01 05:30+00:00"]  # fmt: skip


def test_the_summary_counts() -> None:
    """Users, cells, records, memberships, G_1 and quantiles."""
    counts = shoal.Counts.from_counts(["a", "a", "b"], ["x", "y", "x"], [5, 1, 3])
    summary = counts.summary()
    assert (summary.users, summary.cells, summary.records, summary.memberships) == (2, 2, 9, 3)
    assert summary.cells_per_user == 2
    assert summary.count_quantiles == (1, 1, 3, 5, 5)
    assert summary.users_per_cell == (1, 1, 1, 2, 2)


@loop_over(
    ("users", "cells", "counts", "message"),
    [
        ([], [], np.zeros(0, int), "no records"),
        ([1], [1, 2], [1], "three columns of one length"),
        ([1], [1], [0], "count is below 1, or the sum of all counts"),
        ([1], [1], [1.5], "counts are of type float64"),
        ([1, 1], [2, 2], [1, 1], "a user occurs twice in one cell"),
        ([None], [1], [1], "user column has a null"),
        ([1], [None], [1], "cell column has a null"),
        ([1.5], [1], [1], "holds double"),
        ([1], [1.5], [1], "holds double"),
        ([[1]], [1], [1], "holds list"),
        ([1], {}, [1], "0 cell columns"),
        ([1, 2], {"a": [1, 2], "b": [1]}, [1, 1], "differ in length"),
        (["a", 3], [1, 2], [1, 1], "mixed"),
    ],
)
def test_bad_counts(users: Any, cells: Any, counts: Any, message: str) -> None:
    """Each refused in one line."""
    with pytest.raises(DataError, match=message):
        shoal.Counts.from_counts(users, cells, counts)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("cells"),
        lambda d: d.update(cells=3),
        lambda d: d.update(fingerprint="x"),
        lambda d: d["count"].update(length=1),
        lambda d: d["count"].update(type="<f8"),
        lambda d: d["cell"].update(data="%%%"),
        lambda d: d["cells"]["columns"][0].update(type="double"),
        lambda d: d["cells"]["columns"][0].update(type="nonsense"),
        lambda d: d["cells"]["columns"][0].update(values=[1, "x"]),
        lambda d: d.update(cells_per_user=d["cell"]),
    ],
)
def test_damaged_documents(change: Callable[[dict[str, Any]], object]) -> None:
    """A changed or cut document is refused."""
    document = made_counts.sparse(1).to_document()
    change(document)
    with pytest.raises(DocumentError):
        shoal.Counts.from_document(document)


def test_many_key_columns_do_not_overflow() -> None:
    """Six columns of 3,000 keys each: every cell keeps its own key."""
    columns = {
        name: np.random.default_rng(at).permutation(3000) for at, name in enumerate("abcdef")
    }
    counts = shoal.Counts.from_counts(np.zeros(3000, int), columns, np.arange(1, 3001))
    rows = set(zip(*(column.tolist() for column in columns.values()), strict=True))
    found = zip(*(c.to_pylist() for c in counts.cells.columns), strict=True)
    assert set(found) == rows


def test_fingerprints_see_who_is_where() -> None:
    """The same users with the same counts, one of them in another cell."""
    users, counts = ["a", "b", "b"], [2, 1, 1]
    one, other = (shoal.Counts.from_counts(users, [cell, "x", "y"], counts) for cell in ("x", "y"))
    assert one.user.tolist() == other.user.tolist()
    assert one.count.tolist() == other.count.tolist()
    assert one.cells.equals(other.cells)
    assert one.fingerprint != other.fingerprint


@pytest.mark.parametrize(
    ("kind", "true", "false"),
    [
        ("date32[day]", "2013-01-02", "20130102"),
        ("timestamp[us]", "2013-01-02T06:00:00", "2013-01-02 06:00:00"),
        ("timestamp[us, tz=UTC]", "2013-01-02T06:00:00+00:00", "2013-01-02T07:00:00+01:00"),
        ("int64", 7, True),
        ("bool", True, 1),
    ],
)
def test_a_key_of_a_document_has_one_text(kind: str, true: object, false: object) -> None:
    """The document that was read is published, and asked about, as it is."""
    column = {"name": "c", "type": kind, "values": [true]}
    assert keys.to_document(keys.from_document({"columns": [column]})) == {"columns": [column]}
    with pytest.raises(DocumentError, match="cells are damaged"):
        keys.from_document({"columns": [{**column, "values": [false]}]})


def test_a_false_column_before_the_true_one_is_refused() -> None:
    """Of two columns of one name the last was counted, and both were published."""
    document = copy.deepcopy(made_counts.sparse(2).to_document())
    columns = document["cells"]["columns"]
    columns.insert(0, {**columns[0], "values": list(reversed(columns[0]["values"]))})
    with pytest.raises(DocumentError):
        shoal.Counts.from_document(document)


def test_other_counts_under_the_same_fingerprint_are_refused() -> None:
    """Each part is sound by itself, and the fingerprint is of other counts."""
    document = copy.deepcopy(made_counts.sparse(2).to_document())
    count = documents.unpack_integers(document["count"], "count")
    document["count"] = documents.pack_integers(count + (np.arange(len(count)) == 0))
    with pytest.raises(DocumentError):
        shoal.Counts.from_document(document)
    document["count"] = documents.pack_integers(count)
    assert shoal.Counts.from_document(document).to_document() == document


@pytest.mark.parametrize("name", ["Status", "users", "source"])
def test_given_counts_keep_out_of_columns_of_results_as_counted_ones_do(name: str) -> None:
    """One fingerprint, and a table that has each name once."""
    columns: dict[str, list[Any]] = {"who": ["a", "b", "c"], name: ["x"] * 3, "v": [1, 2, 4]}
    records = shoal.Records(
        pa.table(columns), user="who", value="v", bounds=(0, 8), by=name, counts="public"
    )
    counts = shoal.Counts.from_counts(columns["who"], {name: columns[name]}, [1, 1, 1])
    assert counts.fingerprint == records.counts().fingerprint
    names = shoal.plan(counts, bounds=(0, 8), epsilon=8).table().column_names
    assert names[0] == f"{name}_"
    assert len(set(names)) == len(names)
    with pytest.raises(DataError, match="cell columns"):
        shoal.Counts.from_counts(["a"], {name: ["x"], f"{name}_": ["y"]}, [1])
