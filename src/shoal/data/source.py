"""Where records are: files, tables in memory, or a table of any Ibis backend."""

from __future__ import annotations

import inspect
import os
import re
import signal
import sys
import threading
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from shoal.data.csv_bytes import CODECS
from shoal.data.file_set import PARQUET
from shoal.data.query_logs import silent_query_logs
from shoal.data.source_file import describe, files_of
from shoal.data.spill import spill_folder
from shoal.errors import DataError, InputError, ShoalError
from shoal.files.patterns import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import FrameType

    from shoal.data.source_file import SourceFile


# Ibis ships no types that a checker could use: these names say what is meant.
EngineTable = Any
EngineColumn = Any
Engine = Any

# Of files of records.
ENDINGS = (*PARQUET, *CODECS)
_INTERRUPT = "InterruptException"


@contextmanager
def _heard() -> Iterator[None]:
    """Raise Ctrl-C behind an engine that swallowed it, and may have ended its read early."""
    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    heard = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal heard
        heard = True
        signal.default_int_handler(number, frame)

    try:
        signal.signal(signal.SIGINT, note)
        yield
    except Exception:
        if heard:
            # Some engines make an error of their own of it, without a cause.
            raise KeyboardInterrupt() from None
        raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if heard:
        raise KeyboardInterrupt


@contextmanager
def engine_errors(source: object) -> Iterator[None]:
    """Turn any exception of an engine into one of ours; its text may hold private values.

    Raises:
        DataError: The engine failed.
        KeyboardInterrupt: The user stopped it, which some engines report as a failure.
    """
    try:
        # What is not loaded logs nothing.
        with _heard(), silent_query_logs() if "pyspark" in sys.modules else nullcontext():
            yield
    except ShoalError:
        raise
    except BaseException as error:
        if _interrupted(error):
            raise KeyboardInterrupt() from None
        if not isinstance(error, Exception):
            raise
        raise DataError(
            f"the engine could not read {describe(source)} ({type(error).__name__})",
            "readable records whose columns have one type each",
            "check the source with the engine's own tools",
        ) from None


def _interrupted(error: BaseException) -> bool:
    """Whether it is Ctrl-C, or what an engine made of it: DuckDB raises errors of two kinds."""
    seen: BaseException | None = error
    while seen is not None:
        said = isinstance(seen, RuntimeError) and str(seen) == "Query interrupted"
        if said or isinstance(seen, KeyboardInterrupt) or type(seen).__name__ == _INTERRUPT:
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def connect(source: object) -> tuple[EngineTable, Engine]:
    """An Ibis table and the engine that runs it; DuckDB for tables of Arrow.

    Frames are made such tables by `shoal.data.frames.chosen` first.

    Raises:
        DataError: A source that cannot be read.
        InputError: Another kind of source.
    """
    with engine_errors(source):
        import ibis
        import pyarrow as pa

        if isinstance(source, ibis.Table):
            return source, duckdb() if runs_here(source) else source.get_backend()
        if isinstance(source, pa.Table):
            return ibis.memtable(source), duckdb()
        if library(source) == "pyspark":
            return _spark(source)
    raise no_records(source)


def no_records(source: object) -> InputError:
    """What is said of an object that holds no records."""
    return InputError(
        f"records of type {type(source).__name__}",
        "a path, a PyArrow, Polars or pandas table, a Spark frame, or an Ibis table",
        "convert them to one of these",
    )


def library(source: object) -> str:
    """The package that an object's type is of."""
    return type(source).__module__.split(".")[0]


def is_frame(source: object) -> bool:
    """Whether it is an object of PyArrow, pandas or Polars."""
    return library(source) in {"pyarrow", "pandas", "polars"}


def in_memory(table: EngineTable) -> bool:
    """Whether a table is held in this process already, so that streaming it saves nothing."""
    import ibis.expr.operations as ops

    return isinstance(table.op(), ops.InMemoryTable)


def runs_here(table: EngineTable) -> bool:
    """Whether a table of Ibis is computed from tables in memory alone, and so by our own engine.

    Ibis would run it in an engine of its own, which writes what does not fit into memory to the
    working folder.
    """
    import ibis.expr.operations as ops

    known = ops.InMemoryTable, ops.DummyTable
    return all(
        isinstance(leaf, known)
        for leaf in table.op().find(ops.Relation)
        if not any(isinstance(each, ops.Relation) for each in leaf.__children__)
    )


def held(source: Any) -> Any:
    """The table in memory behind a table of Ibis, if it is one and nothing else."""
    if library(source) != "ibis" or not in_memory(source):
        return source
    return getattr(source.op().data, "obj", source)


def engine_name(table: EngineTable) -> str:
    """Name of the engine that runs a table; tables in memory run in the embedded DuckDB."""
    return "duckdb" if runs_here(table) else str(table.get_backend().name)


def engine_call(name: str, *arguments: object, kind: Any = "int64") -> EngineColumn:
    """A function of the engine by its name, where Ibis has none of the same meaning."""
    import ibis

    given = [each if isinstance(each, ibis.Value) else ibis.literal(each) for each in arguments]

    def function() -> object:
        """Run by the engine, never here."""
        raise NotImplementedError

    # Ibis looks at the signature for how many arguments there are.
    positional = inspect.Parameter.POSITIONAL_ONLY
    stated: Any = function
    stated.__signature__ = inspect.Signature(
        [inspect.Parameter(f"argument_{at}", positional) for at in range(len(given))]
    )
    signature = (tuple(each.type() for each in given), kind)
    return ibis.udf.scalar.builtin(name=name, signature=signature)(stated)(*given)


def is_csv(source: object) -> TypeGuard[str | os.PathLike[str]]:
    """Whether a source is a CSV file or several, by its ending.

    Raises:
        DataError: There is no such file.
    """
    if not isinstance(source, str | os.PathLike) or not _ends(source, CODECS):
        return False
    check_files(source)
    return True


def check_files(source: str | os.PathLike[str]) -> None:
    """Refuse a path that is no file of records, or stands for one that is none.

    Raises:
        DataError: Another ending, nothing there, or a database.
    """
    files = files_of(source)
    if not _ends(source, ENDINGS) and not os.path.isdir(source):
        raise DataError(
            f"records in {describe(source)}",
            f"a file that ends in {', '.join(ENDINGS)}, a pattern of such, or a folder of Parquet",
            "convert it, or give a table",
        )
    for each in files:
        _check_file(each)


def literal_name(path: str | os.PathLike[str]) -> str:
    """A name for DuckDB that is one file: no pattern, and no address of another machine."""
    return re.sub(r"([*?\[])", r"[\1]", plain(os.fspath(path)))


def duckdb() -> Engine:
    """The embedded engine; nothing is fetched from the network behind the user's back.

    What it cannot hold in memory it would write to the working folder.
    """
    import ibis

    return ibis.duckdb.connect(
        autoinstall_known_extensions=False,
        autoload_known_extensions=False,
        temp_directory=spill_folder(),
    )


def collected(source: Any) -> Any:
    """A table in memory for what becomes one: a lazy Polars frame, or Ibis's table of one."""
    with engine_errors(source):
        if library(source) == "polars" and hasattr(source, "collect"):
            return source.collect()
    return source


def _ends(source: str | os.PathLike[str], endings: Iterable[str]) -> bool:
    return os.fspath(source).casefold().endswith(tuple(endings))


def _check_file(source: SourceFile) -> None:
    path = Path(source)
    try:
        there = path.is_file()
    except OSError:
        # Such as a name that is longer than any file's.
        there = False
    if not there:
        what = "a folder" if os.path.isdir(path) else "no file"
        raise DataError(f"{what} at {describe(source)}", "a Parquet or CSV file", "check the path")
    if path.suffix.lower() == ".ledger":
        raise DataError(
            f"a ledger at {describe(source)}",
            "a Parquet or CSV file",
            "check the path; give tables of a database through Ibis",
        )


def _spark(frame: Any) -> tuple[EngineTable, Engine]:
    import ibis

    backend = ibis.pyspark.connect(frame.sparkSession)
    name = f"shoal_{id(frame):x}"
    frame.createOrReplaceTempView(name)
    return backend.table(name), backend
