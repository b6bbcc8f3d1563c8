"""A ledger that is looked at as something else keeps the locks of whoever is charging it."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

import shoal
from shoal import documents, files, trials
from shoal.documents.fork_gate import GATE
from shoal.errors import ShoalError
from shoal.means.plan import UnbiasedPlan
from shoal.privacy.ledger import recording

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.unit, pytest.mark.full]

LOOKS: dict[str, Callable[[Any], object]] = {
    "plan": shoal.Plan.load,
    "occupancy": shoal.Occupancy.load,
    "manifest": shoal.verify,
    "trial": trials.PrivateTrial.load,
    "unbiased plan": UnbiasedPlan.load,
    "document": lambda path: documents.read(path, "shoal.plan/3", "plan"),
    "records": lambda path: shoal.Records(
        path, user="a", value="b", bounds=(0, 1), cell="c"
    ).occupancy(),
    "output": lambda path: files.write_bytes(path, b"x", overwrite=True),
}
LOCKED = """
import sqlite3, sys
try:
    sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None).execute("BEGIN IMMEDIATE")
except sqlite3.OperationalError:
    print("locked")
"""


@pytest.mark.parametrize("look", list(LOOKS))
def test_a_look_by_another_thread_unlocks_no_ledger(
    look: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other process can write while a charge goes on, whoever opens the file."""
    path = tmp_path / "a.csv"
    book = shoal.Ledger.create(path, epsilon=1, unit="person")
    charging, looked = threading.Event(), threading.Event()

    def wait(point: str) -> None:
        if point == "checked":
            charging.set()
            assert looked.wait(60)

    def charge() -> None:
        book.record("q", unit="person", epsilon="1", document=b"x")

    def see() -> None:
        with pytest.raises(ShoalError):
            LOOKS[look](path)

    monkeypatch.setattr(recording, "_at", wait)
    threads = [threading.Thread(target=charge), threading.Thread(target=see)]
    threads[0].start()
    assert charging.wait(60)
    threads[1].start()
    threads[1].join(0.3)
    command = [sys.executable, "-c", LOCKED, str(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    looked.set()
    for thread in threads:
        thread.join(60)
    assert said.strip() == "locked"
    assert len(book.links()) == 1
    book.verify()


def test_no_look_is_open_while_the_process_forks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child would inherit a lock of SQLite's that nobody drops; forks wait."""
    shoal.Ledger.create(tmp_path / "a.ledger", epsilon=1, unit="person")
    looking, seen = sqlite3.connect, list[bool]()

    def connect(*arguments: Any, **options: Any) -> Any:
        other = threading.Thread(target=lambda: seen.append(GATE.acquire(blocking=False)))
        other.start()
        other.join()
        return looking(*arguments, **options)

    monkeypatch.setattr(sqlite3, "connect", connect)
    assert files.is_database(tmp_path / "a.ledger")
    assert seen == [False]
