"""What the engine cannot hold in memory: only the user can read it, and it does not stay."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ibis
import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
from shoal.data import spill
from shoal.data.connection_turns import turn
from shoal.data.source import connect, duckdb, engine_name

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.audit,
    pytest.mark.skipif(os.name == "nt", reason="modes are those of POSIX"),
    pytest.mark.full,
]
# Sums that need several times the memory they may have.
SPILL = """
import os, sys
from shoal.data.source import duckdb
engine = None
def spill():
    global engine
    engine = engine or duckdb()
    for order in ("set memory_limit='60MB'", "set threads=1",
                  "create temp table s as select i, hash(i) x from range(4000000) t(i) order by x"):
        engine.con.execute(order)
"""
CHILD = """
engine = duckdb()
pid = os.fork()
if not pid:
    sys.exit(0)
os.waitpid(pid, 0)
spill()
"""
WORKER = """
import multiprocessing
worker = multiprocessing.get_context("fork").Process(target=spill)
worker.start()
worker.join()
sys.exit(worker.exitcode)
"""
# The worker goes on when its parent, and with it the parent's folder, is gone.
ORPHAN = """
import time
from shoal.data.spill import spill_folder
mine, (read, write) = os.path.dirname(spill_folder()), os.pipe()
if os.fork():
    os.close(write)
    assert os.read(read, 1)
else:
    assert os.path.dirname(spill_folder()) != mine
    os.write(write, b"x")
    while os.path.exists(mine):
        time.sleep(0.01)
    os.mkdir(mine)
    os.chmod(mine, 0o777)
    spill()
    left = os.listdir(mine)
    os.rmdir(mine)
    assert os.path.dirname(spill_folder()) != mine and left == []
    engine.disconnect()
    open(os.environ["TMPDIR"] + "/done", "w").close()
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
    """Private sums lie in no folder of the user's work, nor where others can open them."""
    code, left = _run("spill()\nos.kill(os.getpid(), 9)", tmp_path)
    assert code == -signal.SIGKILL
    (folder,) = left
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert sum(path.stat().st_size for path in folder.rglob("*")) > 2**20


@pytest.mark.parametrize(
    "script", ["spill()", "spill()\nengine.disconnect()", CHILD, WORKER, "spill()\n1/0"]
)
def test_a_process_that_ends_leaves_nothing(tmp_path: Path, script: str) -> None:
    """With the engine open or closed, after an error, and after a child's end."""
    code, left = _run(script, tmp_path)
    assert code == ("1/0" in script)
    assert left == []


def test_the_command_line_leaves_nothing(tmp_path: Path) -> None:
    """It ends without an ordinary exit, after a release as after a refusal."""
    work, system = tmp_path / "work", tmp_path / "system"
    work.mkdir()
    system.mkdir()
    rows = "".join(f"u{at},a,{at % 7}\n" for at in range(300))
    (work / "d.csv").write_text(f"user,cell,v\n{rows}", encoding="utf-8")
    asked = ["plan", "d.csv", "--user", "user", "--value", "v", "--cell", "cell", "--epsilon", "1"]
    for more, wanted in ((["--bounds", "0", "9"], 0), (["--bounds", "9", "0"], 2)):
        done = subprocess.run(
            [sys.executable, "-m", "shoal", *asked, *more],
            cwd=work, env={**os.environ, "TMPDIR": str(system)}, timeout=120, check=False,
            capture_output=True,
        )  # fmt: skip
        assert done.returncode == wanted
        assert list(system.iterdir()) == []


def test_a_child_that_outlives_its_parent_has_a_folder_of_its_own(tmp_path: Path) -> None:
    """The parent's goes with the parent, and others may take its name then."""
    code, _ = _run(ORPHAN, tmp_path)
    assert code == 0
    end, system = time.monotonic() + 30, tmp_path / "system"
    while [path.name for path in system.iterdir()] != ["done"] and time.monotonic() < end:
        time.sleep(0.05)
    assert [path.name for path in system.iterdir()] == ["done"]


def test_engines_have_folders_of_their_own() -> None:
    """Two engines would write over each other; none is made before it is needed."""
    asked = "select current_setting('temp_directory')"
    found = [Path(duckdb().con.execute(asked).fetchone()[0]) for _ in range(2)]
    assert found[0] != found[1]
    assert found[0].parent == found[1].parent
    assert not found[0].exists()


def test_without_a_place_for_temporary_files_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Better out of memory than written elsewhere."""

    def nowhere(**_: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(spill, "_made", None)
    monkeypatch.setattr(tempfile, "mkdtemp", nowhere)
    assert spill.spill_folder() == ""
    asked = "select current_setting('temp_directory')"
    assert duckdb().con.execute(asked).fetchone() == ("",)


def test_a_folder_that_was_swept_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Systems remove old temporary files, also of a process that still runs."""
    monkeypatch.setattr(spill, "_made", None)
    first = Path(spill.spill_folder()).parent
    first.rmdir()
    assert Path(spill.spill_folder()).parent.is_dir()


def _open_to_all(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


def _link_to_one(path: Path) -> None:
    other = path.with_name(f"{path.name}-other")
    other.mkdir(mode=0o700)
    path.symlink_to(other)


def _shared(path: Path) -> None:
    path.mkdir()
    path.chmod(0o750)


@pytest.mark.parametrize("squat", [_open_to_all, _link_to_one, _shared, Path.touch])
def test_what_took_the_name_of_a_folder_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, squat: Callable[[Path], None]
) -> None:
    """Whoever makes a folder of a name that was swept could read what comes there."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(spill, "_made", None)
    first = Path(spill.spill_folder()).parent
    first.rmdir()
    squat(first)
    second = Path(spill.spill_folder()).parent
    assert second != first
    assert stat.S_IMODE(second.lstat().st_mode) == 0o700


def test_a_folder_of_another_user_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its owner opens it whatever its mode says."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(spill, "_made", None)
    first = Path(spill.spill_folder()).parent
    assert Path(spill.spill_folder()).parent == first
    me = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: me + 1)
    assert Path(spill.spill_folder()).parent != first


def test_a_group_bit_of_the_system_s_folder_costs_no_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Folders inherit it, and are nobody else's for that."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tmp_path.chmod(0o2700)
    monkeypatch.setattr(spill, "_made", None)
    assert Path(spill.spill_folder()).parent == Path(spill.spill_folder()).parent


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
        ibis.range(9)  # type: ignore[call-arg]
        .unnest()
        .name("who")
        .as_table()
        .mutate(speed=1.0, place=ibis.literal("x"), day=1)
    ),
}


@pytest.mark.parametrize("made", IN_MEMORY.values(), ids=IN_MEMORY)
def test_tables_of_ibis_in_memory_run_in_our_engine(
    made: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ibis's own engine would write private sums to the working folder."""
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
    """What any table of a connection is part of runs there."""
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
