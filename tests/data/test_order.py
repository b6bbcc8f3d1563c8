"""Users come in the order of their public keys, whatever holds the records and in which order."""

from __future__ import annotations

import datetime as dt
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.data import keys
from shoal.data.occupancy import build
from tests.support import methods

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.audit

NUMBERS = [3, 0, 2**31 - 1, 7, 3, 0, 12]
TEXTS = ["Zoo", "zoo", "Åby", "a", "", "é", "e\u0301", "a b", "\U0001f600", "\uffff", "Zoo"]
COLUMNS: dict[str, list[pa.Array[Any]]] = {
    "whole numbers": [
        pa.array(NUMBERS, kind) for kind in (pa.int32(), pa.int64(), pa.uint32(), pa.uint64())
    ],
    "signed numbers": [pa.array([5, -3, 0, -128, 127], kind) for kind in (pa.int8(), pa.int64())],
    "large numbers": [pa.array([2**64 - 1, 2**63, 0, 2**63 - 1], pa.uint64())],
    "texts": [
        pa.array(TEXTS, pa.string()),
        pa.array(TEXTS, pa.large_string()),
        pa.array(TEXTS, pa.string_view()),
        pa.array(TEXTS).dictionary_encode(),
        pa.DictionaryArray.from_arrays(
            pa.array([TEXTS[::-1].index(text) for text in TEXTS], pa.int8()),
            pa.array(TEXTS[::-1]),
        ),
    ],
    "truths": [pa.array([True, False, True])],
    "days": [
        pa.array([dt.date(2020, 1, 2), dt.date(1969, 1, 1), dt.date(2020, 1, 1)], pa.date32())
    ],
    "times": [
        pa.array([5, -5, 0, 7], pa.int64()).cast(pa.timestamp(unit)) for unit in ("s", "ms", "us")
    ],
}


def rank(values: list[Any]) -> list[int]:
    """Positions among the distinct values; texts by their bytes."""
    plain = [value.encode() if isinstance(value, str) else value for value in values]
    ordered = sorted(set(plain))
    return [ordered.index(value) for value in plain]


@pytest.mark.parametrize("name", COLUMNS)
def test_keys_of_every_type_and_form_have_one_order(name: str) -> None:
    """Numbers by size, texts by bytes; widths, dictionaries and chunks change nothing."""
    for column in COLUMNS[name]:
        expected = rank(column.to_pylist())
        assert keys.encode(column, "user").tolist() == expected
        backwards = pa.concat_arrays([column.slice(at, 1) for at in range(len(column))][::-1])
        assert keys.encode(backwards, "user").tolist() == expected[::-1]
        chunks = pa.chunked_array([column.slice(0, 1), column.slice(1, 0), column.slice(1)])
        assert keys.encode(chunks, "user").tolist() == expected


@given(st.lists(st.text(max_size=4), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_codes_move_with_their_rows(names: list[str], random: Any) -> None:
    """Shuffled rows have the shuffled codes, for any texts."""
    order = list(range(len(names)))
    random.shuffle(order)
    codes = keys.encode(pa.array(names), "user")
    shuffled = keys.encode(pa.array([names[at] for at in order]), "user")
    assert shuffled.tolist() == codes[order].tolist() == [rank(names)[at] for at in order]


@given(
    st.lists(
        st.lists(st.integers(0, 2), min_size=3, max_size=3).filter(any), min_size=1, max_size=12
    ),
    st.randoms(use_true_random=False),
)
def test_ties_are_resolved_by_key(counts: list[list[int]], random: Any) -> None:
    """`build` gives every membership the same place for any order of rows."""
    rows = [(f"u{u}", c, n) for u, own in enumerate(counts) for c, n in enumerate(own) if n]
    shuffled = random.sample(rows, len(rows))

    def built(rows: list[tuple[str, int, int]]) -> tuple[str, list[tuple[str, int, int]]]:
        who, where, many = zip(*rows, strict=True)
        occupancy, order = build(pa.array(who), pa.table({"c": where}), np.array(many))
        return occupancy.fingerprint, [rows[at] for at in order]

    fingerprint, placed = built(rows)
    assert built(shuffled) == (fingerprint, placed)
    # Users of equal rows come by their keys.
    alike: dict[tuple[tuple[int, int], ...], list[str]] = {}
    for user in dict.fromkeys(who for who, _, _ in placed):
        own = tuple((c, n) for who, c, n in placed if who == user)
        alike.setdefault(own, []).append(user)
    for users in alike.values():
        assert users == sorted(users)


def test_colliding_marks_are_resolved_by_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Users whose marks are equal by chance, with other counts, come by their keys."""
    monkeypatch.setattr("shoal.data.occupancy._mix", np.zeros_like)
    who, where = np.array(["b", "b", "a", "a", "c"]), np.array([0, 1, 0, 1, 0])
    many = np.array([1, 3, 2, 2, 4])
    for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 3, 1]):
        _, found = build(pa.array(who[order]), pa.table({"c": pa.array(where[order])}), many[order])
        assert who[order][found].tolist() == ["a", "a", "b", "b", "c"]


def facts(source: object) -> tuple[Any, ...]:
    """All that a pass gives, row by row."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the frames' libraries about themselves
        found = methods.records(source).aggregate()
    occupancy = found.occupancy
    columns = (occupancy.user, occupancy.cell, occupancy.count, found.sums, found.squares)
    return occupancy.fingerprint, *(column.tolist() for column in columns)


def duckdb_with(threads: int) -> Callable[[pa.Table, Path], object]:
    """A Parquet file of many row groups in a DuckDB of the user's own."""

    def source(table: pa.Table, folder: Path) -> object:
        import ibis

        path = folder / f"{threads}.parquet"
        pq.write_table(table, path, row_group_size=97)
        backend = ibis.duckdb.connect()
        backend.con.execute(f"set threads to {threads}")
        backend.con.execute("set preserve_insertion_order to false")
        return backend.read_parquet(path)

    return source


def csv_file(table: pa.Table, folder: Path) -> object:
    """A CSV file."""
    pa_csv.write_csv(table, folder / "r.csv")
    return folder / "r.csv"


def parquet(table: pa.Table, folder: Path) -> object:
    """A Parquet file of many row groups."""
    pq.write_table(table, folder / "r.parquet", row_group_size=50)
    return folder / "r.parquet"


def categories(table: pa.Table, _folder: Path) -> object:
    """A pandas frame whose users are a category, in an order of its own."""
    frame = table.to_pandas()
    frame["who"] = frame["who"].astype("category")
    kinds = frame["who"].cat.categories
    frame["who"] = frame["who"].cat.reorder_categories(kinds[::-1], ordered=True)
    return frame


def polars_categories(table: pa.Table, _folder: Path) -> object:
    """A Polars frame whose users are a category, in the order of their first rows."""
    import polars as pl

    return pl.DataFrame(table).with_columns(pl.col("who").cast(pl.Categorical))


def dictionaries(table: pa.Table, _folder: Path) -> object:
    """Chunks with dictionaries of their own."""
    encoded = table.column("who").combine_chunks().dictionary_encode()
    return table.set_column(0, "who", encoded)


SOURCES = [
    parquet, csv_file, categories, polars_categories, dictionaries, duckdb_with(1), duckdb_with(8)
]  # fmt: skip


@pytest.mark.parametrize(
    "source",
    SOURCES,
    ids=["parquet", "csv", "pandas", "polars", "dictionaries", "one thread", "eight threads"],
)
def test_every_engine_gives_every_order_of_rows_the_same_users(
    source: Callable[[pa.Table, Path], object], tmp_path: Path
) -> None:
    """Counts and sums of each user in its place: shuffled, sorted, hashed, chunked rows."""
    table = methods.tied()
    expected = facts(table)
    for order, rows in methods.orders(table).items():
        folder = tmp_path / order
        folder.mkdir()
        assert facts(source(rows, folder)) == expected, order


def test_csv_files_give_every_order_the_same_users(tmp_path: Path) -> None:
    """More whole numbers than engines guess types from, before the fractions or after."""
    whole: dict[str, Any] = {
        "who": ["u"] * 21_000,
        "place": ["p0"] * 21_000,
        "value": [1.0] * 21_000,
    }
    table = pa.concat_tables([methods.tied(), pa.table(whole)])
    expected = facts(table)
    for order, rows in methods.orders(table).items():
        pa_csv.write_csv(rows, tmp_path / f"{order}.csv")
        assert facts(tmp_path / f"{order}.csv") == expected, order


@pytest.mark.full
@pytest.mark.spark
def test_spark_gives_every_order_and_partition_the_same_users(spark: Any, tmp_path: Path) -> None:
    """One partition or seven, by user or by value."""
    table = methods.tied()
    expected = facts(table)
    for order, rows in methods.orders(table).items():
        pq.write_table(rows, tmp_path / f"{order}.parquet")
        frame = spark.read.parquet(str(tmp_path / f"{order}.parquet"))
        for parts in (frame.coalesce(1), frame.repartition(7, "value"), frame.repartition(3)):
            assert facts(parts) == expected, order


@pytest.mark.parametrize("threads", [1, 8])
def test_many_threads_give_a_large_file_the_same_users(threads: int, tmp_path: Path) -> None:
    """120,000 records sorted by value, 20,000 tied users, in 120 row groups."""
    rng = np.random.default_rng(8)
    who = np.repeat(rng.permutation(20_000), 6)
    table = pa.table(
        {
            "who": pa.array(who, pa.int32()),
            "place": pa.array(np.tile([0, 0, 1, 1, 1, 2], 20_000)),
            "value": pa.array(rng.uniform(0, 100, len(who)).round(2)),
        }
    )
    import ibis

    pq.write_table(table.sort_by("value"), tmp_path / "v.parquet", row_group_size=1000)
    backend = ibis.duckdb.connect()
    backend.con.execute(f"set threads to {threads}")
    assert facts(backend.read_parquet(tmp_path / "v.parquet")) == facts(table)


def test_collations_of_a_backend_do_not_merge_users() -> None:
    """Names that a collation calls equal are different users, in the order of bytes."""
    import ibis

    backend = ibis.duckdb.connect()
    table = pa.table({"who": ["b", "B", "a", "b"], "place": [1] * 4, "value": [1.0, 9.0, 5.0, 3.0]})
    backend.con.register("rows", table)
    backend.con.execute("create table t (who varchar collate nocase, place int, value double)")
    backend.con.execute("insert into t select * from rows")
    expected = facts(table.set_column(1, "place", pa.array([1] * 4, pa.int32())))
    assert facts(backend.table("t")) == expected
    assert shoal.Occupancy.from_counts(["b", "B", "a"], [1, 1, 1], [2, 1, 1]).n_users == 3
