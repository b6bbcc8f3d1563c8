"""Threads that share records or a connection."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
import pytest

import shoal

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.audit, pytest.mark.full]

DATA = pa.table({
    "who": [f"u{at % 50}" for at in range(20_000)],
    "place": [at % 3 for at in range(20_000)],
    "a": [at % 8 for at in range(20_000)],
    "b": [at % 5 + 10 for at in range(20_000)],
})  # fmt: skip


def source(kind: str, folder: Path) -> Any:
    """The same data in a file, a frame, or a connection of the user's own."""
    import ibis

    if kind == "csv":
        pyarrow.csv.write_csv(DATA, folder / "a.csv")
        return folder / "a.csv"
    if kind == "duckdb":
        backend = ibis.duckdb.connect()
        backend.raw_sql(
            "create table t as select 'u' || i % 50 as who, i % 3 as place, i % 8 as a, "
            "i % 5 + 10 as b from range(20000) r(i)"
        )
        return backend.table("t")
    return ibis.memtable(DATA) if kind == "memtable" else DATA


@pytest.mark.parametrize("kind", ["duckdb", "memtable", "frame", "csv"])
def test_threads_wait_for_one_another(tmp_path: Path, kind: str) -> None:
    """Several records on one connection, and one that several threads read."""
    shared = source(kind, tmp_path)

    def records(name: str) -> shoal.Records:
        return shoal.Records(shared, user="who", value=name, bounds=(0, 16), cell="place")

    once = {name: records(name) for name in "ab"}
    want = {name: once[name].aggregate().cell_sums() for name in "ab"}

    def work(turn: int) -> bool:
        name = "ab"[turn % 2]
        read = records(name) if turn % 4 < 2 else once[name]
        return read.aggregate().cell_sums() == want[name]

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(40)))
