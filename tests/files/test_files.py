"""Files are made whole or not at all, over nothing that is there, and no ledger is ever lost."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
from shoal import files
from shoal.errors import DocumentError, InputError
from shoal.files import own, tables
from tests.support import flights

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.unit

TAKE_LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
try:
    connection.execute("BEGIN IMMEDIATE")
    print("taken")
except sqlite3.OperationalError:
    print("locked")
"""


def _writers(folder: Path) -> dict[str, Callable[..., None]]:
    table: pa.Table = flights.table()
    trial = shoal.trials.UniformPrior(1).privatize(
        table.column("speed"), table.column("place"), space=shoal.trials.Space.bins(0, 700)
    )
    wanted: dict[str, Any] = {"epsilon": 1, "interval": (0, 700), "bias": 9}
    mean = shoal.unbiased.plan("clipped_mean", 9, moment=shoal.unbiased.Moment(2, 90), **wanted)
    shoal.Ledger.create(folder / "own.ledger", epsilon=9, unit="aircraft")
    release = flights.plan().release(flights.records(), ledger=folder / "own.ledger", name="a")
    return {
        "o.json": flights.records().occupancy().save,
        "p.json": flights.plan().save,
        "r.csv": release.write,
        "m.json": release.write_manifest,
        "t.parquet": trial.write,
        "u.json": trial.write_manifest,
        "q.json": mean.save,
        "e.json": mean.release([350.0] * 9).write_manifest,
        "f.png": lambda path, **options: shoal.picture(flights.plan(), path, **options),
    }


def test_every_call_that_writes_keeps_what_is_there(tmp_path: Path) -> None:
    """In Python, too, a file is replaced by overwrite=True alone, a ledger never."""
    for name, write in _writers(tmp_path).items():
        place = tmp_path / name
        write(place)
        made = place.read_bytes()
        assert made
        with pytest.raises(DocumentError, match="there is a file"):
            write(place)
        with pytest.raises(DocumentError, match="there is a file"):
            write(str(place))
        assert place.read_bytes() == made
        write(place, overwrite=True)
        assert len(place.read_bytes()) > 3
        place.write_bytes(b"old")
        for overwrite in (False, True):
            with pytest.raises(DocumentError, match=r"there is a file|shoal did not make"):
                write(place, overwrite=overwrite)
        assert place.read_bytes() == b"old"
        place.unlink()
        place.write_bytes(
            shoal.Ledger.create(tmp_path / f"{name}.ledger", epsilon=1, unit="a").path.read_bytes()
        )
        book = place.read_bytes()
        for overwrite in (False, True):
            with pytest.raises(DocumentError, match=r"there is a file|is a ledger"):
                write(place, overwrite=overwrite)
        assert place.read_bytes() == book
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_file_that_appears_meanwhile_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the check and the last step somebody may take the name."""
    link = os.link

    def late(source: Any, target: Any) -> None:
        Path(target).write_bytes(b"theirs")
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(DocumentError, match="there is a file"):
        files.write_bytes(tmp_path / "a.json", b"ours")
    assert (tmp_path / "a.json").read_bytes() == b"theirs"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP])
def test_file_systems_without_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """A new file is made under its own name, one that is there is kept."""

    def refuse(_source: object, _target: object) -> None:
        raise OSError(code, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    files.write_bytes(tmp_path / "a.json", b"ours")
    assert (tmp_path / "a.json").read_bytes() == b"ours"
    monkeypatch.setattr(files, "check_free", lambda *_, **__: None)
    with pytest.raises(DocumentError, match="there is a file"):
        files.write_bytes(tmp_path / "a.json", b"again")
    assert (tmp_path / "a.json").read_bytes() == b"ours"


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No part of a file, and the old one as it was."""
    old = b'{"schema":"shoal.plan/3"}'
    (tmp_path / "old.json").write_bytes(old)

    def full(_handle: int, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "_fill", full)
    for name in ("old.json", "new.json"):
        with pytest.raises(DocumentError, match="No space left"):
            files.write_bytes(tmp_path / name, b"new", overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["old.json"]
    assert (tmp_path / "old.json").read_bytes() == old


def test_databases_are_told_from_other_files(tmp_path: Path) -> None:
    """Ledgers, damaged ones too, are databases; texts, pictures and empty files are not."""
    shoal.Ledger.create(tmp_path / "a.ledger", epsilon=1, unit="a")
    assert files.is_database(tmp_path / "a.ledger")
    whole = (tmp_path / "a.ledger").read_bytes()
    (tmp_path / "cut").write_bytes(whole[: len(whole) // 2])
    assert files.is_database(tmp_path / "cut")
    for name, data in (
        ("empty", b""),
        ("text", b"a,b\n" * 99),
        ("png", b"\x89PNG\r\n" + b"\0" * 999),
    ):
        (tmp_path / name).write_bytes(data)
        assert not files.is_database(tmp_path / name)


@pytest.mark.parametrize(
    "damage", [(0, b"\0"), (1, b"q"), (0, bytes(16)), (68, b"\0"), (10, b"x" * 6)]
)
def test_a_ledger_with_a_damaged_start_is_kept(tmp_path: Path, damage: tuple[int, bytes]) -> None:
    """SQLite knows it no longer, but its charges can still be restored."""
    path, (at, bad) = tmp_path / "a.ledger", damage
    shoal.Ledger.create(path, epsilon=1, unit="a")
    data = bytearray(path.read_bytes())
    data[at : at + len(bad)] = bad
    path.write_bytes(data)
    with pytest.raises(DocumentError, match="is a ledger"):
        files.write_bytes(path, b"x", overwrite=True)
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("pupils.csv", b"pupil,arm,outcome\n1,a,3\n"),
        ("feb.csv", b"user,cell,value,low,high\n1,2,3,4,5\n"),
        ("notes.md", b"# What shoal wrote\n"),
        ("zeros", bytes(4096)),
        ("other.json", b'{"schema":"another/1"}'),
        ("near.json", b'{"schema":"shoal.anything"}'),
        ("rows.json", b'[\n {"statistic": "mean", "value": 3}\n]'),
        ("photo.png", b"\x89PNG\r\n" + bytes(99) + b"shoal.output"),
        ("words.csv", b"pupil,comment\n1,shoal.output\n"),
        ("notes.ipynb", b'{"cells": [{"data": {"schema": "shoal.manifest/4"}}]}'),
        ("months.json", b'{"may": {"schema": "shoal.manifest/4"}}'),
        ("cut", b"SQLite format 3"),
    ],
)
def test_a_file_of_somebody_else_is_kept(tmp_path: Path, name: str, data: bytes) -> None:
    """What shoal did not make is never replaced, forced or not."""
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(DocumentError, match="shoal did not make"):
        files.write_bytes(path, b"new", overwrite=True)
    assert path.read_bytes() == data


def test_a_table_made_from_ours_is_kept(tmp_path: Path) -> None:
    """Arrow hands the mark of a table on to what is made from it."""
    path = tmp_path / "out.parquet"
    tables.write(_table(), path)
    made = parquet.read_table(path)
    for other in (made.select(["user"]), pa.concat_tables([made, made])):
        parquet.write_table(other, path)
        before = path.read_bytes()
        assert b"shoal.output" in before
        with pytest.raises(DocumentError, match="shoal did not make"):
            files.write_bytes(path, b"new", overwrite=True)
        assert path.read_bytes() == before


def test_a_json_table_of_ours_is_replaced_whatever_it_holds(tmp_path: Path) -> None:
    """Braces in a key or a name end no object."""
    path = tmp_path / "out.json"
    table = pa.table({name: pa.array(["a}b"]) for name in ("c}x", *own._CELLS)})
    tables.write(table, path)
    tables.write(table, path, overwrite=True)


def test_an_empty_file_is_replaced(tmp_path: Path) -> None:
    """Nothing is lost with it."""
    path = tmp_path / "a.csv"
    path.touch()
    files.write_bytes(path, b"new", overwrite=True)
    assert path.read_bytes() == b"new"


def test_a_large_document_is_known_by_its_schema(tmp_path: Path) -> None:
    """Wherever in a large file of one line its name stands."""
    path = tmp_path / "a.json"
    for before in (2**20 - 5, 3 * 2**20):
        data = b'{"cells":"' + b"x" * before + b'","schema":"shoal.occupancy/1","user":"'
        path.write_bytes(data + b"y" * 2**18 + b'"}')
        files.write_bytes(path, b"", overwrite=True)
        assert path.read_bytes() == b""


@pytest.mark.skipif(not Path("/dev").is_dir(), reason="no folder of devices")
def test_a_link_to_a_device_is_kept(tmp_path: Path) -> None:
    """`/dev/stdout` may lead to a regular file; what is replaced would be the link."""
    (tmp_path / "made.json").touch()
    with (tmp_path / "made.json").open("wb") as stream:
        link = tmp_path / "stdout"
        link.symlink_to(f"/proc/self/fd/{stream.fileno()}")
        for place in (link, f"/dev/fd/{stream.fileno()}"):
            with pytest.raises(DocumentError, match="no regular file"):
                files.write_bytes(place, b"new", overwrite=True)
    assert link.is_symlink()


def test_a_ledger_that_appears_meanwhile_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look and the replacement somebody makes a ledger."""
    path, fill = tmp_path / "a.ledger", files._fill

    def late(handle: int, data: bytes) -> None:
        fill(handle, data)
        shoal.Ledger.create(path, epsilon=1, unit="a")

    monkeypatch.setattr(files, "_fill", late)
    with pytest.raises(DocumentError, match="is a ledger"):
        files.write_bytes(path, b"x", overwrite=True)
    assert shoal.Ledger.open(path).budget.epsilon == 1
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_looking_at_a_ledger_does_not_unlock_it(tmp_path: Path) -> None:
    """Closing another handle of the file would drop the locks of this process."""
    import sqlite3

    path = tmp_path / "a.ledger"
    shoal.Ledger.create(path, epsilon=1, unit="a")
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    assert files.is_database(path)
    with pytest.raises(DocumentError, match="is a ledger"):
        files.write_bytes(path, b"x", overwrite=True)
    done = subprocess.run(
        [sys.executable, "-c", TAKE_LOCK, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "locked"
    holder.execute("ROLLBACK")
    holder.close()


@pytest.mark.parametrize("path", [None, 3, b"a.json", "a\0b", "x.ledger-journal"])
def test_no_path_at_all(path: Any) -> None:
    """One clear message."""
    with pytest.raises(DocumentError):
        files.write_bytes(path, b"x")


def _table() -> pa.Table:
    return pa.table({"user": pa.array([1, 2]), "value": pa.array([3.0, 4.0])})


def test_records_are_never_replaced(tmp_path: Path) -> None:
    """An engine may read a file that no path of ours names; forced, too."""
    parquet.write_table(_table(), tmp_path / "a.parquet")
    base = duckdb.connect(str(tmp_path / "b.duckdb"))
    base.sql("create table t as select 1 as x")
    base.close()
    for name in ("a.parquet", "b.duckdb"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(DocumentError, match="other files are never replaced"):
            files.write_bytes(tmp_path / name, b"new", overwrite=True)
        assert (tmp_path / name).read_bytes() == before


@pytest.mark.parametrize("name", ["b.duckdb.wal", "B.WAL", "a.ledger-wal", "a.ledger-\u017fhm"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_what_a_database_keeps_beside_it_is_never_written(
    tmp_path: Path, name: str, *, overwrite: bool
) -> None:
    """Rows that DuckDB has committed may lie in its `.wal` alone; forced, too."""
    with pytest.raises(DocumentError, match=r"does not end in .*\.wal: databases keep such files"):
        files.write_bytes(tmp_path / name, b"new", overwrite=overwrite)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / name).write_bytes(b"rows")
    with pytest.raises(DocumentError, match="databases keep such files"):
        files.write_bytes(tmp_path / name, b"new", overwrite=overwrite)
    assert (tmp_path / name).read_bytes() == b"rows"


def test_a_table_of_ours_is_replaced_if_that_is_asked_for(tmp_path: Path) -> None:
    """What shoal wrote carries its mark, also among many columns."""
    for table in (_table(), pa.table({f"c{at}": pa.array([at]) for at in range(900)})):
        path = tmp_path / "out.parquet"
        tables.write(table, path, overwrite=True)
        tables.write(table, path, overwrite=True)
        assert parquet.read_table(path).equals(table)
        path.unlink()


@pytest.mark.parametrize("given", ["no", "", 0, 1, None, [], "False"])
def test_only_true_replaces_a_file(tmp_path: Path, given: Any) -> None:
    """What merely counts as true, such as the text `no`, is refused."""
    path = tmp_path / "a.json"
    files.write_bytes(path, b'{"schema":"shoal.plan/3"}')
    with pytest.raises(InputError, match="overwrite is"):
        files.write_bytes(path, b"{}", overwrite=given)
    assert path.read_bytes() == b'{"schema":"shoal.plan/3"}'
