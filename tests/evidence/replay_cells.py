"""Releases of cells to replay: every method with every setting, on users who are tied."""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from tests.support import methods

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import shoal
    from tests.evidence.replay_watch import Case, Release

# Within the bounds, at them, beyond them, and the middle that means are counted from.
_VALUES = (0.0, 100.0, 50.0, -1e9, 1e9, 60.0, 60.000001, 37.25)


class Cells:
    """Records of tied users and a plan for them."""

    forced: ClassVar[dict[int, tuple[int, int]]] = {}
    slots = None

    def __init__(
        self, wanted: Mapping[str, Any], rng: np.random.Generator, users: int = 40
    ) -> None:
        users, cells = int(rng.integers(8, users)), int(rng.integers(1, 5))
        self.table = methods.tied(int(rng.integers(2**31)), users, cells)
        # In pieces or whole: how a table lies in memory is public, and alike for both.
        self.pieces = int(rng.choice([7, len(self.table)]))
        self.table = self._in_some_order(self.table, rng)
        epsilon = float(rng.choice([0.5, 4.0, 40.0]))
        self.plan = methods.plan(self.table, wanted, epsilon=epsilon)
        self.epsilon = 0.0 if self.plan.gaussian else float(self.plan.exact_epsilon)
        self.rho = float(self.plan.rho or 0.0)

    def base(self) -> Release:
        """Of the table as it is."""
        return self._release(self.table)

    def neighbour(self, rng: np.random.Generator) -> Release:
        """All values of one user are another one; the rows come in another order."""
        names = self.table.column("who").to_pylist()
        user = str(names[int(rng.integers(len(names)))])
        value = float(rng.choice([*_VALUES, rng.uniform(0, 100)]))
        return self._release(self._in_some_order(methods.neighbour(self.table, user, value), rng))

    def again(self, rng: np.random.Generator, folder: Path) -> Release:
        """The same records in another order, from a file, a folder, a frame or an engine."""
        table = self._in_some_order(self.table, rng)
        ways = list(SOURCES.values())
        return self._release(ways[int(rng.integers(len(ways)))](table, folder))

    def _in_some_order(self, table: pa.Table, rng: np.random.Generator) -> pa.Table:
        every = list(methods.orders(table, int(rng.integers(2**31))).values())
        rows = every[int(rng.integers(len(every)))].combine_chunks()
        return pa.concat_tables(
            rows.slice(at, self.pieces) for at in range(0, len(rows), self.pieces)
        )

    def _release(self, table: object) -> Release:
        def release(book: shoal.Ledger) -> bytes:
            return self.plan.release(methods.records(table), ledger=book).document

        return release


def _csv(table: pa.Table, folder: Path) -> object:
    path = folder / "records.csv"
    csv.write_csv(table, path)
    return path


def _parquet(table: pa.Table, folder: Path) -> object:
    path = folder / "records.parquet"
    pq.write_table(table, path, row_group_size=50)
    return path


def _partitioned(table: pa.Table, folder: Path, threads: int) -> object:
    """A folder of files by value, as hash partitions have them, read by several threads."""
    import ibis

    place = folder / "parts"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    part = np.asarray(table.column("value").to_numpy() * 7919).astype(np.int64) % 5
    for number in range(5):
        rows = table.filter(pa.array(part == number))
        if len(rows):
            pq.write_table(rows, place / f"{number}.parquet", row_group_size=40)
    engine: Any = ibis.duckdb.connect()
    engine.raw_sql(f"SET threads = {threads}")
    engine.raw_sql("SET preserve_insertion_order = false")
    return engine.read_parquet(str(place / "*.parquet"))


def _sorted(table: pa.Table, folder: Path) -> object:
    made: Any = _partitioned(table, folder, 2)
    return made.order_by("value").union(made.limit(0))


def _polars(table: pa.Table, _folder: Path) -> object:
    import polars as pl

    return pl.from_arrow(table)


def _pandas(table: pa.Table, _folder: Path) -> object:
    return table.to_pandas()


SOURCES: dict[str, Callable[[pa.Table, Path], object]] = {
    "a table in memory": lambda table, _: table,
    "CSV": _csv,
    "Parquet": _parquet,
    "partitions, one thread": partial(_partitioned, threads=1),
    "partitions, four threads": partial(_partitioned, threads=4),
    "sorted by value": _sorted,
    "Polars": _polars,
    "pandas": _pandas,
}
CASES: dict[str, Callable[..., Case]] = {
    f"cells, {name}": partial(Cells, wanted) for name, wanted in methods.METHODS.items()
}
