"""A file is read where it was, and as one state of it."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.data import one_pass
from shoal.data.source_file import located
from shoal.data.whole_columns import read_columns
from shoal.errors import DataError, DocumentError, InputError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.audit, pytest.mark.full]

NAMES = ["who", "where", "speed", "salary"]
OTHERS = ["who", "salary", "speed", "where"], ["who", "where", "salary", "speed"]


def write(path: Path, order: list[str], speed: int = 30, rows: int = 20) -> None:
    """Speeds of one size, salaries of another, whatever the order of columns."""
    cells = [
        {"who": f"u{n}", "where": "north", "speed": speed, "salary": 900 + n} for n in range(rows)
    ]
    text = ",".join(order) + "\n"
    text += "".join(",".join(str(row[name]) for name in order) + "\n" for row in cells)
    if path.suffix == ".csv":
        path.write_text(text)
    else:
        pq.write_table(pyarrow.csv.read_csv(io.BytesIO(text.encode())), path)


def records(path: object) -> shoal.Records:
    """Speeds."""
    return shoal.Records(path, user="who", value="speed", bounds=(0, 1024), cell="where")


def mean(found: shoal.Records) -> tuple[tuple[str, ...], float]:
    """Cells, and the mean of all values."""
    aggregate = found.aggregate()
    total = sum(aggregate.cell_sums()) / 1024
    return aggregate.occupancy.labels, total / int(aggregate.occupancy.count.sum())


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("order", OTHERS, ids=str)
def test_every_pass_reads_the_names_anew(tmp_path: Path, order: list[str], ending: str) -> None:
    """A file with the same columns in another order is not read by the old one."""
    path = tmp_path / f"a.{ending}"
    write(path, NAMES)
    kept = records(path)
    assert mean(kept) == (("north",), 30.0)
    write(path, order)
    assert mean(kept) == (("north",), 30.0)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_that_changes_meanwhile_is_refused(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its first line and the pass, written in place or replaced."""
    path, draft = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    run = one_pass.run

    def late(*given: object, **wanted: object) -> object:
        if ways.pop():
            write(path, NAMES, rows=40)
        else:
            write(draft, NAMES, rows=20)
            os.replace(draft, path)
        return run(*given, **wanted)  # type: ignore[arg-type]

    monkeypatch.setattr(one_pass, "run", late)
    ways = [True, False]
    while ways:
        write(path, NAMES)
        with pytest.raises(DataError, match="changed while it was read"):
            records(path).occupancy()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_working_folder_moves_no_records(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read is what was named, and that is what no output replaces."""
    name = f"a.{ending}"
    for folder, speed in (("first", 30), ("second", 500)):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / name, NAMES, speed)
    monkeypatch.chdir(tmp_path / "first")
    kept = records(name)
    monkeypatch.chdir(tmp_path / "second")
    assert mean(kept) == (("north",), 30.0)
    assert kept.occupancy().origin == kept.place == str(tmp_path / "first" / name)
    table = read_columns(name, private={"value": "speed"}, public={})
    assert table.column("speed").to_pylist() == [500] * 20
    with pytest.raises(DocumentError):
        kept.occupancy().save(tmp_path / "first" / name, overwrite=True)
    missing = shoal.Records("no.csv", user="who", value="speed", bounds=(0, 9), cell="where")
    with pytest.raises(DataError, match=r"no file at 'no.csv'"):
        missing.occupancy()


@pytest.mark.parametrize("source", ["a.csv", "*.csv", "x/../a.csv"])
def test_no_working_folder(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the working folder was removed a relative path is refused in words."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(InputError, match="working folder was removed") as told:
        located(source)
    assert told.value.__context__ is None
    assert located("/a.csv")
