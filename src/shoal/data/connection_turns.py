"""Threads take turns at a connection, which no engine lets two of them use at once."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from shoal.data.source import engine_errors, runs_here

if TYPE_CHECKING:
    from collections.abc import Iterator

# A lock lives as long as somebody holds it or waits for it.
_locks: WeakValueDictionary[int, Any] = WeakValueDictionary()
_guard = Lock()


@contextmanager
def turn(source: object) -> Iterator[None]:
    """Wait until no other thread of shoal's uses the connection of a table, and hold it.

    Files and tables in memory are read over connections of their own.

    Raises:
        DataError: A table that belongs to no engine.

    Guarantees: G-ROWS.

    Example:
        >>> with turn("trips.parquet"):
        ...     pass
    """
    connection = _connection(source)
    if connection is None:
        yield
        return
    with _guard:
        lock = _locks.get(id(connection))
        if lock is None:
            lock = _locks[id(connection)] = RLock()
    with lock:
        yield


def _connection(source: Any) -> object:
    module = type(source).__module__.split(".")[0]
    if module == "pyspark":
        return source.sparkSession
    if module != "ibis":
        return None
    with engine_errors(source):
        if runs_here(source):
            return None
        backend = source.get_backend()
        return getattr(backend, "con", backend)
