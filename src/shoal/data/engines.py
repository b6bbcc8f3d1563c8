"""The engines that compute over records: our own DuckDB, and Spark for its own frames.

Both run the same query over columns `c0`, `c1`, ... of their `relation`. What differs, functions of
times and how texts are grouped, is in here. No session's time zone matters: DuckDB's is UTC, and
Spark is asked for seconds since 1970.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pyarrow as pa

from shoal.data.types import Kind
from shoal.errors import DataError, ShoalError

# PySpark's logs of failed queries quote the values that a query failed on.
_LOGS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


@dataclass(frozen=True)
class DuckDB:
    """Our own DuckDB, in UTC."""

    connection: Any
    relation: str = "records"

    @property
    def types(self) -> tuple[str, ...]:
        """Types of the columns."""
        return tuple(row[1] for row in self.connection.execute("DESCRIBE records").fetchall())

    def run(self, query: str) -> pa.Table:
        """Returns the result of a query."""
        table: pa.Table = self.connection.sql(query).to_arrow_table()
        return table

    def add(self, name: str, function: Callable[..., Any]) -> None:
        """Makes a function of two columns of numbers known, which gives whole numbers."""
        numbers = ["DOUBLE", "DOUBLE"]
        self.connection.create_function(name, function, numbers, "BIGINT", type="arrow")

    def key(self, column: str, kind: Kind | None) -> str:
        """Returns a key as it is grouped by: tables of our own have no collation."""
        return column

    def seconds(self, column: str, engine_type: str) -> str:
        """Returns seconds since 1970 in universal time, rounded downwards, of any time or date."""
        unit, each = ("ns", 10**9) if "_NS" in engine_type else ("us", 10**6)
        return f"CAST({floored(f'epoch_{unit}({column})', each)} / {each} AS BIGINT)"

    def local(self, seconds: str, zone: str) -> str:
        """Returns seconds since 1970 as the clocks of a zone show them, by DuckDB's own ICU."""
        return f"CAST(epoch(timezone('{zone}', to_timestamp({seconds}))) AS BIGINT)"


@dataclass(frozen=True)
class Spark:
    """The session that a frame is of; see `DuckDB`."""

    frame: Any
    relation: str = "{records}"

    @property
    def types(self) -> tuple[str, ...]:
        """Types of the columns."""
        return tuple(kind for _, kind in self.frame.dtypes)

    def run(self, query: str) -> pa.Table:
        """Returns the result of a query; PySpark's logs are off meanwhile."""
        from pyspark.logger import PySparkLogger

        with ExitStack() as before:
            for log in map(PySparkLogger.getLogger, _LOGS):
                before.callback(setattr, log, "disabled", log.disabled)
                log.disabled = True
            table: pa.Table = self.frame.sparkSession.sql(query, records=self.frame).toArrow()
        return table

    def add(self, name: str, function: Callable[..., Any]) -> None:
        """Makes a function over arrays of Arrow known."""
        functions: Any = import_module("pyspark.sql.functions")
        self.frame.sparkSession.udf.register(name, functions.arrow_udf(function, "bigint"))

    def key(self, column: str, kind: Kind | None) -> str:
        """Returns texts as bytes: columns of Spark may have a collation."""
        return f"CAST({column} AS BINARY)" if kind == "text" else column

    def seconds(self, column: str, engine_type: str) -> str:
        """Returns seconds since 1970, without casts between types of time.

        Such casts follow the session's time zone.
        """
        midnight = f"CAST(unix_date(CAST({column} AS DATE)) AS BIGINT) * 86400"
        if engine_type == "date":
            return midnight
        if engine_type == "timestamp_ntz":
            clock = f"hour({column}) * 3600 + minute({column}) * 60 + second({column})"
            return f"CAST({midnight} + {clock} AS BIGINT)"
        return f"unix_seconds({column})"

    def local(self, seconds: str, zone: str) -> str:
        """Uses the zones of Java."""
        return f"unix_seconds(from_utc_timestamp(timestamp_seconds({seconds}), '{zone}'))"


def floored(whole: str, width: int) -> str:
    """Returns SQL of a whole number down to a multiple of a width, also below 0."""
    return f"({whole} - {rest(whole, width)})"


def rest(whole: str, width: int) -> str:
    """Returns SQL of what a whole number is above a multiple of a width: 0 to width - 1."""
    return f"((({whole}) % {width} + {width}) % {width})"


@contextmanager
def duckdb() -> Iterator[DuckDB]:
    """A DuckDB of our own: without the network, and with a private folder to spill to."""
    import duckdb as engine

    off = dict.fromkeys(("autoinstall_known_extensions", "autoload_known_extensions"), False)
    with (
        tempfile.TemporaryDirectory(prefix="shoal-", ignore_cleanup_errors=True) as spill,
        engine.connect(config={**off, "temp_directory": spill}) as connection,
    ):
        # Its progress bar would be written among the results.
        connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
        yield DuckDB(connection)


@contextmanager
def engine_errors(source: str) -> Iterator[None]:
    """Raises errors of an engine again by their kind alone, since their texts quote cells."""
    try:
        yield
    except ShoalError:
        raise
    except BaseException as error:
        # DuckDB makes errors of its own of Ctrl-C.
        for each in (error, error.__cause__, error.__context__):
            is_query = isinstance(each, RuntimeError) and str(each) == "Query interrupted"
            if is_query or "Interrupt" in type(each).__name__:
                raise KeyboardInterrupt() from None
        if not isinstance(error, Exception):
            raise
        raise DataError(
            f"the engine could not read {source} ({type(error).__name__})",
            "check with the engine's own tools that it is whole and that each column has one type",
        ) from None
