"""Columns are those that the source calls so, or are refused; what engines call them is theirs."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.data.own_names import check_present
from shoal.data.whole_columns import read_columns
from shoal.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Ibis asks pandas about frames in a way that pandas warns of.
pytestmark = [
    pytest.mark.audit,
    pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning"),
    pytest.mark.full,
]

REFUSALS = "called", "other names", "could not read"

# Names that engines have been seen to change, or to give to other columns, around three that are
# asked for: what is needed is always called `who`, `where` and a third name.
CROWDS: dict[str, tuple[list[str], str]] = {
    "a pair but for case, and its invented name": (["speed", "Speed", "speed_1"], "speed_1"),
    "the invented name first": (["speed_1", "speed", "Speed"], "speed_1"),
    "capital invented names": (["Speed", "speed", "SPEED_1"], "SPEED_1"),
    "a name twice, and its invented name": (["speed", "speed", "speed_1"], "speed_1"),
    "a name three times": (["speed", "speed", "speed", "speed_2"], "speed_2"),
    "nothing for a name": (["", "v0", "C0", "column0"], "v0"),
    "one of the pair": (["speed", "SPEED"], "speed"),
    "one of two": (["speed", "speed"], "speed"),
    "letters that fold to others": (["straße", "STRASSE", "straße_1"], "straße_1"),
    "names by place": (["col3", "col2", "col1", "col0"], "col1"),
    "names of a scan": (["filename", "file_row_number", "rowid"], "rowid"),
}
PRIVATE = 918273640


def crowd(name: str) -> pa.Table:
    """Four persons; the n-th further column holds n, or what is private where it is not asked for.

    The asked-for column is the last of its name.
    """
    names, asked = CROWDS[name]
    at = len(names) - 1 - names[::-1].index(asked)
    columns = [[PRIVATE + n] * 4 if n != at else [1, 2, 3, 4] for n in range(len(names))]
    # The first place is where DuckDB calls a column without a name `v0`.
    arrays: list[Any] = [*map(pa.array, columns), pa.array(list("abcd")), pa.array([1, 1, 2, 2])]
    return pa.Table.from_arrays(arrays, names=[*names, "who", "where"])


def parquet(table: pa.Table, folder: Path) -> object:
    """The table in a file."""
    pq.write_table(table, folder / "crowd.parquet")
    return folder / "crowd.parquet"


def pandas(table: pa.Table, _: Path) -> object:
    """The table as a frame of pandas, with whatever names."""
    frame = pd.concat([pd.Series(column.to_pylist()) for column in table.columns], axis=1)
    frame.columns = pd.Index(table.column_names)
    return frame


def numbered(table: pa.Table, folder: Path) -> object:
    """The same with one more column, whose name is a number."""
    frame: Any = pandas(table, folder)
    frame.insert(0, 9, 0, allow_duplicates=True)
    return frame


def polars(table: pa.Table, _: Path) -> object:
    """The table as a frame of Polars, which allows no name twice."""
    if len(set(table.column_names)) < table.num_columns:
        return table
    return pl.DataFrame(dict(zip(table.column_names, table.columns, strict=True)))


def of_ibis(table: pa.Table, _: Path) -> object:
    """The table in an expression of Ibis."""
    return ibis.memtable(table) if len(set(table.column_names)) == table.num_columns else table


def expression(table: pa.Table, folder: Path) -> object:
    """The same with a column more."""
    found: Any = of_ibis(table, folder)
    return found.mutate(more=1) if found is not table else table


def csv(table: pa.Table, folder: Path) -> object:
    """The table as text."""
    lines = [table.column_names, *zip(*(each.to_pylist() for each in table.columns), strict=True)]
    (folder / "crowd.csv").write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
    return folder / "crowd.csv"


SOURCES: dict[str, Callable[[pa.Table, Path], object]] = {
    "arrow": lambda table, _: table,
    "batch": lambda table, _: table.combine_chunks().to_batches()[0],
    "parquet": parquet,
    "pandas": pandas,
    "numbered": numbered,
    "polars": polars,
    "ibis": of_ibis,
    "expression": expression,
    "csv": csv,
}


@pytest.mark.parametrize(("name", "form"), list(product(CROWDS, SOURCES)))
def test_a_column_is_the_one_of_its_name_or_refused(name: str, form: str, tmp_path: Path) -> None:
    """A private column is never read for a public one that an engine calls alike."""
    asked = CROWDS[name][1]
    source = SOURCES[form](crowd(name), tmp_path)
    readers: dict[str, Callable[[], Any]] = {
        "cell": lambda: (
            shoal.Records(source, user="who", value="where", bounds=(0, 8), cell=asked)
            .occupancy()
            .cells.column(0)
        ),
        "outcome": lambda: read_columns(source, private={"outcome": asked}, public={}).column(0),
        "unit": lambda: read_columns(source, private={}, public={"unit": asked}).column(0),
    }
    for read in readers.values():
        found: object
        try:
            found = read().to_pylist()
        except DataError as error:
            said = str(error)
            found = [1, 2, 3, 4] if any(each in said for each in REFUSALS) else said
        assert found == [1, 2, 3, 4]


def test_frames_with_other_names_nearby_are_read() -> None:
    """What is not asked for, whatever it is called, decides nothing in a frame."""
    table = crowd("a pair but for case, and its invented name")
    for form in ("arrow", "pandas", "numbered", "polars"):
        source: Any = SOURCES[form](table, None)  # type: ignore[arg-type]
        records = shoal.Records(source, user="who", value="speed_1", bounds=(0, 8), cell="where")
        assert records.aggregate().occupancy.totals.tolist() == [2, 2]
        assert (records.aggregate().sums / 2**17).tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("name", [7, 7.0, None, True, ("7",), b"7"])
def test_a_name_that_only_looks_like_one_is_none(name: object) -> None:
    """A column whose name is no text has no name here."""
    frame = pd.DataFrame([["a", 1, 2.0]], columns=pd.Index(["who", "where", name], dtype=object))
    records = shoal.Records(frame, user="who", value=str(name), bounds=(0, 8), cell="where")
    with pytest.raises(DataError, match=r"no column .* allowed: one of where, who;"):
        records.occupancy()


def test_names_that_ibis_put_in_the_place_of_others_are_refused() -> None:
    """Of a frame with one name that is no text Ibis renames all columns by place."""
    frame = pd.DataFrame({"col2": [1, 2], "col1": [PRIVATE, 4], "col0": [5, 6], 9: [7, 7]})
    table = ibis.memtable(frame)
    for source in (table, table.mutate(more=1), table.filter(table.col0 > 0)):
        records = shoal.Records(source, user="col2", value="col3", bounds=(0, 8), cell="col1")
        with pytest.raises(DataError, match="an engine calls by other names"):
            records.occupancy()


def test_names_that_ibis_was_told_are_refused() -> None:
    """A frame's columns have their own names, also in Ibis."""
    table: Any = ibis.memtable(crowd("one of the pair"), columns=["a", "b", "who", "where"])
    records = shoal.Records(table, user="who", value="a", bounds=(0, 8), cell="where")
    with pytest.raises(DataError, match="an engine calls by other names"):
        records.occupancy()


def test_a_step_of_an_expression_renames_nothing() -> None:
    """Names that are alike in the middle of an expression are refused at its end."""
    table: Any = ibis.memtable(pa.table({"who": [1], "where": [PRIVATE], "v": [2.0]}))
    twins = table.mutate(place=table["where"], Place=table["where"], place_1=1)
    records = shoal.Records(
        twins.filter(twins.v > 1).select("who", "v", "place_1"),
        user="who",
        value="v",
        bounds=(0, 8),
        cell="place_1",
    )
    with pytest.raises(DataError, match="an engine calls by other names"):
        records.occupancy()


def test_trials_read_the_cluster_that_is_named(tmp_path: Path) -> None:
    """Outcomes do not leave as the clusters of a file that names them twice."""
    outcomes = pa.array(PRIVATE + np.arange(8) % 2)
    arrays = [pa.array(np.arange(8) % 2), outcomes, outcomes, pa.array(np.arange(8) // 4)]
    path = tmp_path / "trial.parquet"
    pq.write_table(
        pa.Table.from_arrays(arrays, names=["arm", "bought", "bought", "bought_1"]), path
    )
    with pytest.raises(DataError, match="that are called 'bought' but for case"):
        read_columns(path, private={"outcome": "bought"}, public={"cluster": "bought_1"})


# Without a name there is no view, and of two of one name a view's is the first.
@pytest.mark.parametrize("name", sorted(CROWDS.keys() - {"nothing for a name", "one of two"}))
def test_views_of_ones_own_read_the_column_or_refuse_it(name: str, tmp_path: Path) -> None:
    """DuckDB changes names where it makes a table or a view of a file, too."""
    path = str(parquet(crowd(name), tmp_path))
    engine: Any = ibis.duckdb.connect()
    view = engine.read_parquet(path)
    views = (
        view,
        engine.read_parquet([path, path]).mutate(more=1),
        engine.create_table("kept", view),
        engine.create_view("seen", view),
    )
    for source in views:
        try:
            found = read_columns(source, private={}, public={"unit": CROWDS[name][1]})
        except DataError:
            continue
        assert set(found.column(0).to_pylist()) == {1, 2, 3, 4}


def test_numbered_names_of_ones_own_are_read(tmp_path: Path) -> None:
    """A file says itself what its columns are called."""
    path = tmp_path / "crowd.parquet"
    pq.write_table(pa.table({"x": [1], "x_1": [2], "x_1_1": [3]}), path)
    assert read_columns(path, private={}, public={"unit": "x_1"}).column(0).to_pylist() == [2]


def test_names_alike_are_told_from_names_that_are_not_there() -> None:
    """A name is looked for as it is written, and neither of a pair but for case is it."""
    check_present("a.parquet", ["a", "b", "B"], ["a"])
    for name in "bB":
        with pytest.raises(DataError, match=f"called '{name}' but for case"):
            check_present("a.parquet", ["a", "b", "B"], [name])
    with pytest.raises(DataError, match="no column 'A'"):
        check_present("a.parquet", ["a", "b", "B"], ["A"])
