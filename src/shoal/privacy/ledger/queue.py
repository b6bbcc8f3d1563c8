"""Whose turn it is to write a ledger: processes wait in the kernel's queue, not by asking again.

The queue is a lock of the ledger's folder, so that no second file lies beside the ledger. It is
about order and speed alone: what may be written is decided under SQLite's own lock, which holds
also where the system has no such queue.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: SQLite's own waiting is left
    fcntl = None  # type: ignore[assignment]


class Turn:
    """A wait until this process is the first to write the ledger at a path, to a block's end.

    Whether it is: without such locks all are at once. Who uses it leaves again in a `finally`, as a
    signal may end the block's end before it begins.

    Args:
        path: The ledger's file.
        patience: Seconds to wait at most; after that all are at once.
    """

    def __init__(self, path: Path, patience: float) -> None:
        self._path, self._patience = path, patience
        self._handle: int | None = None
        self._held, self._behind = False, False
        self._decision, self._told = threading.Lock(), threading.Event()
        self._blocked, self._gone = False, False

    def is_taken(self) -> bool:
        """Whether another process has its turn; if none has, it is this one's from now on."""
        self._handle = _open(self._path)
        if self._handle is not None:
            with suppress(OSError):  # a file system without such locks
                try:
                    fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    self._behind = True
                else:
                    self._held = True
        return self._behind

    def __enter__(self) -> bool:
        """Wait, and tell whether the lock is held."""
        try:
            if self._handle is None:
                self.is_taken()
            if self._behind and self._handle is not None:
                return self._wait(self._handle)
        except BaseException:
            self.leave()
            raise
        return self._held

    def __exit__(self, *_: object) -> None:
        """Let the next process have its turn."""
        self.leave()

    def _wait(self, handle: int) -> bool:
        """Wait for a lock that has no time limit of its own."""
        self._blocked = True
        waiter = threading.Thread(target=self._block, args=(handle,), daemon=True)
        try:
            waiter.start()
        except RuntimeError:
            if waiter.is_alive():
                raise
            self._blocked = False  # no room for a thread
            return False
        # Not joined: a thread is over a little after it has told. Who may read the folder may keep
        # its lock for ever: then SQLite's own lock decides, as where there is no such queue.
        return self._told.wait(self._patience)

    def _block(self, handle: int) -> None:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        with self._decision:
            self._blocked, gone = False, self._gone
        if gone:
            self._give_back()
        self._told.set()

    def leave(self) -> None:
        """Give the lock back: now, or when the one who waits has it. Again it does nothing."""
        with self._decision:
            self._gone = True
            if self._blocked:
                return
        self._give_back()

    def _give_back(self) -> None:
        if self._handle is not None:
            # Explicit: a child made in between may hold a copy of the handle.
            with suppress(OSError):
                fcntl.flock(self._handle, fcntl.LOCK_UN)
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)


def _open(path: Path) -> int | None:
    """The folder that holds the file, links followed; never the file itself.

    Closing any handle of the ledger's file would drop SQLite's locks on it.
    """
    if fcntl is None:
        return None
    folder = Path(os.path.realpath(path)).parent
    # Around one call alone: what a signal's handler raises meanwhile is the caller's.
    try:
        return os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
