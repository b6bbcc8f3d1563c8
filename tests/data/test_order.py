"""Counts and sums are those of plain Python, whatever holds the records and in which order."""

from __future__ import annotations

import datetime as dt
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.data import keys
from shoal.data.counts import build
from tests.data import kinds
from tests.data.kinds import KINDS, RULES
from tests.support import methods

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
        pa.DictionaryArray.from_arrays(
            pa.array([TEXTS[::-1].index(text) for text in TEXTS], pa.int8()), pa.array(TEXTS[::-1])
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
        public, order = build(pa.array(who), pa.table({"c": where}), np.array(many))
        return public.fingerprint, [rows[at] for at in order]

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
    monkeypatch.setattr("shoal.data.counts._mix", np.zeros_like)
    who, where = np.array(["b", "b", "a", "a", "c"]), np.array([0, 1, 0, 1, 0])
    many = np.array([1, 3, 2, 2, 4])
    for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 3, 1]):
        _, found = build(pa.array(who[order]), pa.table({"c": pa.array(where[order])}), many[order])
        assert who[order][found].tolist() == ["a", "a", "b", "b", "c"]


def test_every_rule_gives_the_integers_of_plain_python() -> None:
    """At all edges of bins and clocks, before 1970 and across changes of the clocks."""
    whole = kinds.table()
    for rule in RULES:
        assert kinds.found(whole, rule) == kinds.expected(whole, rule), rule


GAPS: dict[str, Any] = {"missing": "public", "tick_bits": 24}


@cache
def facts_with_gaps() -> tuple[Any, ...]:
    """Those of the table in memory."""
    return kinds.facts(kinds.with_gaps(kinds.table()), **GAPS)


@pytest.mark.filterwarnings("ignore")  # of the frames' libraries about themselves
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_source_gives_the_same_integers(kind: str, tmp_path: Path) -> None:
    """With all rules at once, rows sorted by value; missing users, cells and values go alike."""
    gaps = kinds.with_gaps(kinds.table())
    assert kinds.facts(KINDS[kind](gaps, tmp_path), **GAPS) == facts_with_gaps()


@pytest.mark.parametrize("threads", [1, 16])
def test_every_order_of_rows_gives_the_same_integers(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tied users, in small row groups, by any number of threads; all rules, sorted by value."""
    connect, tied, whole = duckdb.connect, methods.tied(), kinds.table()

    def with_threads(config: dict[str, Any]) -> Any:
        return connect(config={**config, "threads": threads, "preserve_insertion_order": False})

    options: dict[str, Any] = {"by": "place", "bounds": (0, 100)}
    expected, of_whole = kinds.facts(tied, **options), kinds.facts(whole)
    monkeypatch.setattr(duckdb, "connect", with_threads)
    for order, rows in methods.orders(tied).items():
        assert kinds.facts(kinds.parquet(rows, tmp_path), **options) == expected, order
    by_value = methods.orders(whole)["by value"]
    assert kinds.facts(kinds.parquet(by_value, tmp_path)) == of_whole


def test_large_memberships_are_added_as_integers(tmp_path: Path) -> None:
    """An odd number of odd squares near 2^38: floating point would round their sum."""
    size, (lo, hi) = 3 * 2**15 + 1, (-3.0, 61.7)
    value = lo + (hi - lo) * (1 - 2.0**-20)
    whole = pa.table({"who": ["x"] * size, "place": ["y"] * size, "value": [value] * size})
    for source in (whole, kinds.parquet(whole, tmp_path)):
        *_, count, total, squares = kinds.facts(source, by="place", bounds=(lo, hi))
        assert squares == [size * (2**19 - 1) ** 2]
        assert squares[0] > 2**53
        assert (count, total) == ([size], [size * (2**20 - 1)])
