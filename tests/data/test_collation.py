"""Keys that a collation calls equal stay apart, whatever the engine."""

from __future__ import annotations

import sqlite3
import warnings
from typing import TYPE_CHECKING, Any

import ibis
import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.data import collation
from shoal.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

# Ibis asks pandas about the results of SQLite in a way that pandas warns of.
pytestmark = [
    pytest.mark.audit,
    pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning"),
    pytest.mark.full,
]

NAMES = [name for at in range(10) for name in (f"Zo\u00eb{at}", f"ZO\u00eb{at}")]
ROWS = [(name, "x", at / len(NAMES)) for at, name in enumerate(NAMES)]


def centred(table: object) -> tuple[list[str], list[int]]:
    """The fingerprint of who is there, and what each user's ticks add up to."""
    records = shoal.Records(table, user="u", value="v", bounds=(0, 1), cell="c")
    found = records.aggregate()
    return [found.occupancy.fingerprint], found.centred.tolist()


def expected() -> tuple[list[str], list[int]]:
    """Of the same rows in memory, which have no collation."""
    return centred(pa.table(list(map(pa.array, zip(*ROWS, strict=True))), names=["u", "c", "v"]))


def orders() -> list[list[tuple[str, str, float]]]:
    """The rows as they are, backwards, and with two alike that swap places."""
    swapped = [*ROWS[:6], ROWS[7], ROWS[6], *ROWS[8:]]
    shuffled = [ROWS[at] for at in np.random.default_rng(0).permutation(len(ROWS))]
    return [ROWS, ROWS[::-1], swapped, shuffled]


def test_collations_of_sqlite_make_no_groups(tmp_path: Path) -> None:
    """One user's place among the rows names no other's group."""
    for at, rows in enumerate(orders()):
        path = tmp_path / f"{at}.db"
        with sqlite3.connect(path) as engine:
            engine.execute("create table t (u text collate nocase, c text, v real)")
            engine.executemany("insert into t values (?, ?, ?)", rows)
        assert centred(ibis.sqlite.connect(path).table("t")) == expected()


@pytest.mark.full
@pytest.mark.spark
def test_collations_of_spark_make_no_groups(spark: Any) -> None:
    """As above, where the column says UTF8_LCASE."""
    for rows in orders():
        frame = spark.createDataFrame(rows, "u string, c string, v double").coalesce(1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PySpark warns about its own use of pandas
            found = centred(frame.selectExpr("u collate UTF8_LCASE as u", "c", "v"))
        assert found == expected()


def test_texts_of_other_engines_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the engine's name; integers there are keys."""
    table = ibis.table({"u": "string", "c": "int64"}, name="t")
    monkeypatch.setattr(collation, "engine_name", lambda _: "mysql")
    assert collation.as_bytes(table, table.c).equals(table.c)
    with pytest.raises(DataError, match="a text as key in a table of mysql"):
        collation.as_bytes(table, table.u)
