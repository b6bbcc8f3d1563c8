"""Kills, races and full disks: nothing delivered is unrecorded, nothing recorded is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

DRIVER = Path(__file__).with_name("driver.py")
WHOLE = {"unrecorded": 0, "killed": True, "spent_is_sum": True, "same_bytes": True}

pytestmark = [
    pytest.mark.audit,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked"),
]


def drive(*job: object) -> dict[str, Any]:
    """Do a job of the driver in a process of its own, and return what it saw."""
    # A fork beside a thread is what one job is about; newer Pythons warn of it.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", str(DRIVER)]
    done = subprocess.run(
        [*command, *map(str, job)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return {"seen": json.loads(done.stdout)}


def test_a_kill_at_any_step_loses_nothing(tmp_path: Path) -> None:
    """100 kills: 20 at each of the five steps, after none to three whole deliveries."""
    kills = drive("points", tmp_path, 20)["seen"]
    assert len(kills) == 100
    for kill in kills:
        assert kill.items() >= WHOLE.items()
        assert kill["delivered"] == kill["turn"]
        # Only a kill between commit and delivery leaves an entry that nobody has seen yet.
        assert kill["undelivered"] == (kill["point"] == "after commit")
    assert sum(kill["journal"] for kill in kills) >= 20


def test_a_kill_at_any_moment_loses_nothing(tmp_path: Path) -> None:
    """120 kills at random moments of recording without pause, all on one ledger."""
    kills = drive("random", tmp_path, 120)["seen"]
    assert len(kills) == 120
    for kill in kills:
        assert kill.items() >= WHOLE.items()
        assert kill["undelivered"] in (0, 1)
    assert kills[-1]["delivered"] >= 120


def test_a_killed_creation_leaves_a_whole_ledger_or_none(tmp_path: Path) -> None:
    """Before and after each step on the disk; then the path can be used."""
    kills = drive("creation", tmp_path, 1)["seen"]
    assert [kill["there"] for kill in kills] == [False] * 5 + [True] * 3
    assert all(kill["killed"] and kill["spent"] == "1" for kill in kills)


def test_32_processes_never_exceed_a_budget(tmp_path: Path) -> None:
    """320 charges race for a budget of 100: exactly 100 are accepted."""
    seen = drive("race", tmp_path, 32, 10)["seen"]
    assert seen == {
        "clean": True,
        "answers": 320,
        "accepted": 100,
        "wrong": 0,
        "entries": 100,
        "spent": "1",
    }


def test_processes_that_ask_the_same_get_the_same(tmp_path: Path) -> None:
    """16 processes race for the same 10 releases: one charge and one document each."""
    seen = drive("same", tmp_path, 16, 10)["seen"]
    assert (seen["clean"], seen["accepted"], seen["wrong"]) == (True, 160, 0)
    assert (seen["entries"], seen["spent"]) == (10, "1/10")


def test_a_fork_beside_a_recording_thread_is_safe(tmp_path: Path) -> None:
    """SQLite's locks are never taken over half held: children record, nothing is lost."""
    assert drive("threads", tmp_path, 20)["seen"] == {"clean": True, "lost": 0}


def test_no_room_refuses_and_keeps_what_was_recorded(tmp_path: Path) -> None:
    """A write refused by the system is a plain error without contents; room helps."""
    seen = drive("no room", tmp_path)["seen"]
    assert seen["message"].startswith("LedgerError the ledger ")
    assert "free space" in seen["message"]
    assert "PRIVATE" not in seen["message"]
    assert seen["recorded"] > 3
    assert seen["entries"] == seen["recorded"] + 1


def test_a_reader_without_write_permission_reads() -> None:
    """Reading and verifying work; recording and creating are refused in words."""
    with tempfile.TemporaryDirectory() as folder:
        seen = drive("read only", folder)["seen"]
    (recording, why), (creating, reason), read = seen["lines"]
    assert (recording, creating) == ("LedgerError", "LedgerError")
    assert "cannot be written" in why
    assert "Permission denied" in reason
    assert read == ["read", 1]
    assert seen["entries"] == 1
