"""Processes wait in the kernel's queue: one at a time, all of them, and not for ever."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import threading
import time
from contextlib import closing
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from shoal.documents.fork_gate import GATE
from shoal.errors import LedgerError
from shoal.privacy.ledger import file as ledger_file
from shoal.privacy.ledger.ledger import Ledger
from shoal.privacy.ledger.queue import Turn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.unit,
    pytest.mark.skipif(find_spec("fcntl") is None, reason="the system has no such locks"),
    pytest.mark.full,
]


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Ledger]:
    """A ledger of which another process, here a handle, holds the turn."""
    yield Ledger.create(tmp_path / "a.ledger", epsilon=1, unit="person")
    assert [path.name for path in tmp_path.iterdir()] == ["a.ledger"]


def _is_free(book: Ledger) -> bool:
    """Whether nobody has the turn."""
    import fcntl

    handle = os.open(book.path.parent, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def test_a_time_limit_while_the_folder_is_looked_for_is_the_callers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A TimeoutError of a signal's handler is not taken for a folder without a lock."""

    def late(_: object) -> str:
        raise TimeoutError("mine")

    turn = Turn(tmp_path / "a.ledger", 60)
    monkeypatch.setattr(os.path, "realpath", late)
    with pytest.raises(TimeoutError, match="mine"):
        turn.is_taken()


def test_one_at_a_time_and_all_of_them(tmp_path: Path) -> None:
    """Twenty askers each have their turn, and never two together."""
    inside, most, done = [0], [0], []

    def ask(number: int) -> None:
        with Turn(tmp_path / "a.ledger", 60):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            time.sleep(0.005)
            inside[0] -= 1
        done.append(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
    assert sorted(done) == list(range(20))


def test_who_keeps_a_turn_does_not_stop_charges(
    book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may read the folder can keep its lock: then SQLite's own decides.

    Who went on without a turn does not keep it when it comes.
    """
    monkeypatch.setattr(ledger_file, "_IN_LINE", 0.2)
    before = threading.active_count()
    with Turn(book.path, 1):
        book.record("a", unit="person", epsilon="1/2", document=b"x")
        assert book.spent.epsilon == 1 / 2
    until = time.monotonic() + 20
    while threading.active_count() > before and time.monotonic() < until:
        time.sleep(0.01)
    assert threading.active_count() == before
    book.record("b", unit="person", epsilon="1/2", document=b"x")
    assert book.spent.epsilon == 1


@pytest.mark.parametrize("failing", ["open", "flock"])
def test_without_such_locks_sqlite_decides_alone(
    failing: str, book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the folder cannot be opened, or has no locks, charges are still recorded."""

    def refuse(*_: object) -> int:
        raise OSError(95, "not supported")

    module = "fcntl" if failing == "flock" else "os"
    monkeypatch.setattr(f"shoal.privacy.ledger.queue.{module}.{failing}", refuse)
    book.record("a", unit="person", epsilon="1/2", document=b"x")
    monkeypatch.undo()
    assert len(book.entries()) == 1


def test_a_charge_waits_for_who_reads(book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at a ledger delays its commit, and does not end it; one for ever does."""
    with closing(sqlite3.connect(book.path, isolation_level=None, timeout=0)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM head").fetchall()
        monkeypatch.setattr(ledger_file, "_PATIENCE", 0.2)
        with pytest.raises(LedgerError, match="kept it locked"):
            book.record("a", unit="person", epsilon="1/2", document=b"x")
        monkeypatch.undo()
        waiting = threading.Thread(
            target=lambda: book.record("a", unit="person", epsilon="1/2", document=b"x")
        )
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
        reader.execute("ROLLBACK")
        waiting.join(20)
    assert [entry.question for entry in book.entries()] == ["a"]


def test_an_interrupt_leaves_no_turn_behind(book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C as the kernel gives the lock; asking again is safe, for others too."""
    import fcntl

    lock = fcntl.flock

    def interrupted(handle: int, how: int) -> None:
        lock(handle, how)
        if how & fcntl.LOCK_EX:
            raise KeyboardInterrupt

    monkeypatch.setattr(fcntl, "flock", interrupted)
    with pytest.raises(KeyboardInterrupt) as kept:
        book.record("a", unit="person", epsilon="1/2", document=b"x")
    monkeypatch.undo()
    assert _is_free(book)
    other = Ledger.create(book.path.with_name("b.ledger"), epsilon=1, unit="person")
    other.record("a", unit="person", epsilon="1/2", document=b"x")
    book.record("a", unit="person", epsilon="1/2", document=b"x")
    assert kept.value.__traceback__ is not None
    other.path.unlink()


@pytest.mark.parametrize("what", ["_operation", "Turn"])
@pytest.mark.parametrize("when", ["begin", "end"])
def test_an_operation_that_is_interrupted_at_an_edge_is_over(
    what: str, when: str, book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although the interrupt is kept, as notebooks do: no lock, no turn, no gate."""
    steps: Any = contextlib._GeneratorContextManager if what == "_operation" else Turn
    name = "__enter__" if when == "begin" else "__exit__"
    act = getattr(steps, name)

    def interrupted(self: Any, *more: object) -> object:
        if what == "_operation" and self.gen.gi_code.co_name != what:
            return act(self, *more)
        if when == "begin":
            act(self, *more)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(steps, name, interrupted)
        with pytest.raises(KeyboardInterrupt) as kept:
            book.record("a", unit="person", epsilon="1/2", document=b"x")
    assert not GATE._is_owned()
    assert _is_free(book)
    other = Ledger.create(book.path.with_name("b.ledger"), epsilon=1, unit="person")
    other.record("a", unit="person", epsilon="1/2", document=b"x")
    book.record("a", unit="person", epsilon="1/2", document=b"x")
    assert book.spent.epsilon == 1 / 2
    assert kept.value.__traceback__ is not None
    other.path.unlink()


def test_a_timeout_of_the_callers_own_stays_one(book: Ledger) -> None:
    """What a signal's handler raises while a charge waits is not told as another's."""

    def late(*_: object) -> None:
        raise TimeoutError("mine")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with closing(sqlite3.connect(book.path, isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            with pytest.raises(TimeoutError, match="mine"):
                book.record("a", unit="person", epsilon="1/2", document=b"x")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert book.spent.epsilon == 0
