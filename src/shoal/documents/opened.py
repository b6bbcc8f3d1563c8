"""Files opened for reading, at a time when no ledger of this process could lose its locks by it."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from shoal.documents.fork_gate import GATE, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to read from, closed before any operation on a ledger goes on in this process.

    Whatever the path is said to be, it may be that of a ledger: to close a second handle of a file
    drops all locks that a process holds on it. A pipe or a device is opened without waiting.

    Args:
        path: Of a file.

    Raises:
        OSError: It cannot be opened or read, or an operation on a ledger of this very thread goes
            on, which a signal's handler has interrupted.

    Guarantees: G-LEDGER.

    Example:
        >>> with opened(os.devnull) as stream:
        ...     stream.read()
        b''
    """
    # Opening a pipe for reading waits for a writer unless it is told not to.
    if within():
        raise BlockingIOError(errno.EAGAIN, "an operation on a ledger goes on in this thread")
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with GATE:
        handle = os.open(path, flags)
        try:
            stream = os.fdopen(handle, "rb")
        except OSError:  # a folder
            os.close(handle)
            raise
        with stream:
            yield stream
