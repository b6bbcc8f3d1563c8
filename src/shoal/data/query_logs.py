"""PySpark's own logs of failed queries, which quote the values that a query failed on."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# One for queries that were written as text, one for those of methods.
QUERY_LOGS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


@contextmanager
def silent_query_logs() -> Iterator[None]:
    """Disable PySpark's logs of failed queries in a block, and leave them as they were after it.

    Guarantees: G-CANARY.

    Example:
        >>> with silent_query_logs():
        ...     pass
    """
    logs = _logs()
    before = [log.disabled for log in logs]
    try:
        for log in logs:
            log.disabled = True
        yield
    finally:
        for log, disabled in zip(logs, before, strict=True):
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
