"""What the engine cannot hold in memory: only the user can read it, and it does not stay."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
from shoal.data import spill
from shoal.data.source import connect, duckdb, engine_name
from shoal.data.turns import turn

pytestmark = pytest.mark.skipif(os.name == "nt", reason="modes are those of POSIX")
# Sums that need several times the memory they may have.
SPILL = """
import os, sys
from shoal.data.source import duckdb
engine = duckdb()
def spill():
    for order in ("set memory_limit='60MB'", "set threads=1",
                  "create temp table s as select i, hash(i) x from range(4000000) t(i) order by x"):
        engine.con.execute(order)
"""
CHILD = """
pid = os.fork()
if not pid:
    sys.exit(0)
os.waitpid(pid, 0)
spill()
"""


def _run(script: str, folder: Path) -> tuple[int, list[Path]]:
    """How a process ended that spills, and what it left in the system's folder."""
    work, system = folder / "work", folder / "system"
    work.mkdir()
    system.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", SPILL + script],
        cwd=work,
        env={**os.environ, "TMPDIR": str(system)},
        timeout=120,
        check=False,
    )
    assert list(work.iterdir()) == []
    return done.returncode, list(system.iterdir())


def test_a_kill_leaves_nothing_that_others_can_read(tmp_path: Path) -> None:
    """G-SPILL: private sums lie in no folder of the user's work, nor where others can open them."""
    code, left = _run("spill()\nos.kill(os.getpid(), 9)", tmp_path)
    assert code == -signal.SIGKILL
    (folder,) = left
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert sum(path.stat().st_size for path in folder.rglob("*")) > 2**20


@pytest.mark.parametrize(
    "script", ["spill()", "spill()\nengine.disconnect()", CHILD, "spill()\n1/0"]
)
def test_a_process_that_ends_leaves_nothing(tmp_path: Path, script: str) -> None:
    """G-SPILL: with the engine open or closed, after an error, and after a child's end."""
    code, left = _run(script, tmp_path)
    assert code == ("1/0" in script)
    assert left == []


def test_engines_have_folders_of_their_own() -> None:
    """G-SPILL: two engines would write over each other; none is made before it is needed."""
    asked = "select current_setting('temp_directory')"
    found = [Path(duckdb().con.execute(asked).fetchone()[0]) for _ in range(2)]
    assert found[0] != found[1]
    assert found[0].parent == found[1].parent
    assert not found[0].exists()


def test_without_a_place_for_temporary_files_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G-SPILL: better out of memory than written elsewhere."""

    def nowhere(**_: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(spill, "_made", None)
    monkeypatch.setattr(tempfile, "mkdtemp", nowhere)
    assert spill.spill_folder() == ""
    asked = "select current_setting('temp_directory')"
    assert duckdb().con.execute(asked).fetchone() == ("",)


def test_a_folder_that_was_swept_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """G-SPILL: systems remove old temporary files, also of a process that still runs."""
    monkeypatch.setattr(spill, "_made", None)
    first = Path(spill.spill_folder()).parent
    first.rmdir()
    assert Path(spill.spill_folder()).parent.is_dir()


TRIPS = pa.table(
    {"who": ["a", "a", "b"], "speed": [1.0, 2, 3], "place": ["x", "y", "y"], "day": [1, 2, 2]}
)
IN_MEMORY = {
    "table": lambda table: table,
    "filter": lambda table: table.filter(table.place == "y"),
    "column": lambda table: table.mutate(fast=table.speed > 1),
    "join": lambda table: table.join(ibis.memtable(pa.table({"who": ["a", "b"]})), "who"),
    "union": lambda table: table.union(ibis.memtable(TRIPS)),
    "compared": lambda table: table.filter(table.speed <= table.speed.max()),
    "numbers": lambda _: (
        ibis.range(9)
        .unnest()
        .name("who")
        .as_table()
        .mutate(speed=1.0, place=ibis.literal("x"), day=1)
    ),
}


@pytest.mark.parametrize("made", IN_MEMORY.values(), ids=IN_MEMORY)
def test_tables_of_ibis_in_memory_run_in_our_engine(
    made: Any,  # noqa: ANN401
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G-SPILL: Ibis's own engine would write private sums to the working folder."""
    monkeypatch.setattr(ibis.options, "default_backend", None)
    table = made(ibis.memtable(TRIPS))
    _, backend = connect(table)
    asked = "select current_setting('temp_directory')"
    assert (
        Path(backend.con.execute(asked).fetchone()[0]).parent == Path(spill.spill_folder()).parent
    )
    assert engine_name(table) == "duckdb"
    for cell in ("place", ["place", "day"]):
        records = shoal.Records(table, user="who", value="speed", bounds=(0, 9), cell=cell)
        assert records.occupancy().n_users > 0
    with turn(table):
        # Whoever needs no engine of Ibis's does not start one.
        assert ibis.options.default_backend is None


def test_tables_of_a_connection_stay_with_it(tmp_path: Path) -> None:
    """G-ENGINES: what any table of a connection is part of runs there."""
    parquet.write_table(TRIPS, tmp_path / "trips.parquet")
    theirs = ibis.duckdb.connect()
    table = theirs.read_parquet(tmp_path / "trips.parquet")
    memory = ibis.memtable(TRIPS)
    for each in (
        table,
        table.filter(table.speed > 1),
        table.union(memory),
        memory.semi_join(table, "who"),
    ):
        assert connect(each)[1] is theirs
