"""Whose turn it is to write a ledger: processes wait in the kernel's queue, not by asking again.

The queue is a lock of the ledger's folder, so that no second file lies beside the ledger. It is
about order and speed alone: what may be written is decided under SQLite's own lock, which holds
also where the system has no such queue.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

try:
    import fcntl
except ImportError:  # Windows: SQLite's own waiting is left
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def turn(path: Path, patience: float) -> Iterator[bool]:
    """Wait until this process is the first to write the ledger at a path, to the block's end.

    Yields:
        Whether it is the first: without such locks all are at once.

    Args:
        path: The ledger's file.
        patience: Seconds to wait at most.

    Raises:
        TimeoutError: Another process kept its turn so long.
    """
    handle = _open(path)
    if handle is None:
        yield False
        return
    waiting = _Waiting(handle)
    if not waiting.queue(patience):
        raise TimeoutError
    try:
        yield waiting.first
    finally:
        waiting.leave()


def _open(path: Path) -> int | None:
    """The folder that holds the file, links followed; never the file itself.

    Closing any handle of the ledger's file would drop SQLite's locks on it.
    """
    if fcntl is None:
        return None
    try:
        return os.open(Path(os.path.realpath(path)).parent, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


class _Waiting:
    """One wait for a lock that has no time limit of its own."""

    def __init__(self, handle: int) -> None:
        self._handle, self._decision = handle, threading.Lock()
        self._told = threading.Event()
        self._here, self._gone = False, False
        self.first = True

    def queue(self, patience: float) -> bool:
        """Wait for the lock; tell whether it is held, or not to be had on this file system."""
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return self._wait(patience)
        except OSError:  # a file system without such locks
            self.first = False
        return True

    def leave(self) -> None:
        """Let the next process have its turn."""
        # Explicit: a child made in between may hold a copy of the handle.
        with suppress(OSError):
            fcntl.flock(self._handle, fcntl.LOCK_UN)
        os.close(self._handle)

    def _wait(self, patience: float) -> bool:
        waiter = threading.Thread(target=self._block, daemon=True)
        try:
            waiter.start()
        except RuntimeError:  # no room for a thread
            self.first = False
            return True
        try:
            # Not joined: a thread is over a little after it has told.
            self._told.wait(patience)
        except BaseException:
            if self._settle():
                self.leave()
            raise
        return self._settle()

    def _settle(self) -> bool:
        """End the wait: either the lock is ours now, or the waiter gives it back when it comes."""
        with self._decision:
            self._gone = not self._here
        return self._here

    def _block(self) -> None:
        with suppress(OSError):
            fcntl.flock(self._handle, fcntl.LOCK_EX)
        with self._decision:
            self._here = True
            self._told.set()
            if self._gone:
                self.leave()
