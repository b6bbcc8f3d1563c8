"""SQLite keeps texts in columns of numbers: they are missing numbers."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

import shoal
from shoal.data.whole_columns import read_columns
from shoal.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

# Ibis reads SQLite by way of pandas, which warns of what its next version does.
pytestmark = pytest.mark.filterwarnings("ignore")
NUMBERS = {
    "v": "real", "vi": "integer", "vn": "numeric", "vd": "decimal(10,2)", "vf": "float"
}  # fmt: skip
NONE = ["", "n/a", "NaN", "7 mph", "1,5", b"5", float("inf"), float("-inf"), None]


def table(folder: Path, columns: dict[str, str], rows: list[tuple[Any, ...]]) -> Any:  # noqa: ANN401
    """A table of SQLite."""
    import ibis

    with sqlite3.connect(folder / "s.db") as connection:
        connection.execute("drop table if exists t")
        connection.execute(f"create table t ({', '.join(map(' '.join, columns.items()))})")
        connection.executemany("insert into t values (?, ?, ?)", rows)
    connection.close()
    return ibis.sqlite.connect(folder / "s.db").table("t")


def records(source: object, value: str, **wishes: Any) -> shoal.Records:  # noqa: ANN401
    """Values between -8 and 8."""
    given = {"user": "who", "cell": "place", "bounds": (-8, 8), **wishes}
    return shoal.Records(source, value=value, **given)


@pytest.mark.parametrize("column", NUMBERS)
@pytest.mark.parametrize("cell", NONE, ids=repr)
def test_what_is_no_number_is_missing(tmp_path: Path, column: str, cell: object) -> None:
    """G-MISSING: texts, bytes and infinities, as on every other engine; the others stay."""
    rows = [(f"u{at}", "x", 4) for at in range(5)] + [("u1", "x", 1.5), ("bad", "x", cell)]
    source = table(tmp_path, {"who": "text", "place": "text", column: NUMBERS[column]}, rows)
    with pytest.raises(DataError, match=f"missing|infinite in the column '{column}'") as caught:
        records(source, column).aggregate()
    assert "mph" not in str(caught.value)
    found = records(source, column, missing="public").aggregate()
    assert found.occupancy.count.sum() == 6
    assert sum(found.cell_sums()) == (5 * 12 + 9.5) * 2**16
    whole = read_columns(source, private={"outcome": column}, public={}).column(column).to_pylist()
    assert whole[:6] == [4.0] * 5 + [1.5]
    assert whole[6] is None or abs(whole[6]) == float("inf")


@pytest.mark.parametrize("cell", ["7", "7x", "", b"7", 7.5], ids=repr)
@pytest.mark.parametrize("name", ["who", "place"])
def test_a_text_is_no_whole_number_as_key(tmp_path: Path, name: str, cell: object) -> None:
    """G-ENGINES: it joins no other user's records, and no other cell."""
    # SQLite itself makes whole numbers of texts like 7: there is none then.
    at = ("who", "place").index(name)
    rows: list[list[Any]] = [[7, 7, 1.0], [8, 7, 1.0], [9, 7, 1.0]]
    rows[2][at] = cell
    source = table(
        tmp_path, {"who": "integer", "place": "integer", "v": "real"}, list(map(tuple, rows))
    )
    if cell == "7":
        assert records(source, "v").occupancy().count.sum() == 3
        return
    with pytest.raises(DataError, match=f"null in the column '{name}'"):
        records(source, "v").occupancy()
    found = records(source, "v", missing="public").occupancy()
    assert (found.n_users, found.n_cells) == (2, 1)


def test_bytes_are_no_text_as_key(tmp_path: Path) -> None:
    """G-ENGINES: nor as a label."""
    rows = [("a", "x", 1.0), (b"a", "x", 2.0)]
    source = table(tmp_path, {"who": "text", "place": "text", "v": "real"}, rows)
    with pytest.raises(DataError, match="null in the column 'who'"):
        records(source, "v").occupancy()
    labels = read_columns(source, private={"outcome": "who"}, public={}, texts=True)
    assert labels.column("who").to_pylist() == ["a", None]
