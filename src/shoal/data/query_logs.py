"""PySpark's own logs of failed queries, which quote the values that a query failed on."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# One for queries that were written as text, one for those of methods.
QUERY_LOGS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
# One for each that reads at the moment, and what the logs were before the first of them.
_readers: list[None] = []
_before: list[tuple[Any, bool]] = []
_guard = Lock()


@contextmanager
def silent_query_logs() -> Iterator[None]:
    """Disable PySpark's logs of failed queries in a block, and leave them as they were after it.

    Guarantees: G-CANARY.

    Example:
        >>> with silent_query_logs():
        ...     pass
    """
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    """Disable the logs for the first that reads: threads come and go in any order."""
    with _guard:
        if not _readers:
            _before.extend((log, log.disabled) for log in _logs())
        _readers.append(None)
        for log, _ in _before:
            log.disabled = True


def _leave() -> None:
    """Leave the logs as they were, once nobody reads any more."""
    with _guard:
        _readers.pop()
        if _readers:
            return
        while _before:
            log, disabled = _before.pop()
            log.disabled = disabled


def _logs() -> list[Any]:
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:
        # There is none, or one before version 4, which logs no queries.
        return []
    kind = logging.getLoggerClass()
    try:
        # Made as PySpark makes them: it could not write to a logger of another class later on.
        return [PySparkLogger.getLogger(name) for name in QUERY_LOGS]
    finally:
        logging.setLoggerClass(kind)
