"""Where records are: files, frames, tables of Ibis. All become columns of an engine that computes.

Files, frames and tables of Ibis are read into our own DuckDB, whoever holds them; frames of Spark
stay where they are.
"""

from __future__ import annotations

import glob
import os
import re
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from shoal import checks
from shoal.data.csv import CODECS, called, codec_of, file_literal, header, read_texts
from shoal.data.engines import DuckDB, Spark, duckdb, engine_errors, kind_of
from shoal.errors import DataError, InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from shoal.data.engines import Kind

# What a column is for: public keys, numbers, numbers or truths, texts, or times.
Use = Literal["key", "number", "answer", "text", "time"]

PARQUET = (".parquet", ".pq")
ENDINGS = (*PARQUET, *CODECS)
_MOST_DIGITS = 38  # of a decimal of DuckDB
_MOST_WHOLE = 2.0**53
# What all texts of a public column are, if they are no texts.
_FORMS = {
    "BIGINT": "^(0|-?[1-9][0-9]{0,17})$",
    "BOOLEAN": "^(?i:true|false)$",
    "DATE": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
}
_NUMBER = "regexp_matches(c, '^-?[0-9]+([.][0-9]+)?$')"
_SEPARATORS = {";": "semicolons", "\t": "tabs"}
# One connection of the user's own is no place for two threads.
_READING = Lock()


@dataclass(frozen=True)
class Columns:
    """By names of columns: what queries call them, what they hold, the engine's word for it."""

    engine: DuckDB | Spark
    sql: Mapping[str, str]
    kinds: Mapping[str, Kind]
    types: Mapping[str, str]


def located(source: object) -> object:
    """A path as text that no change of the working folder moves; anything else as it is."""
    if isinstance(source, str | os.PathLike):
        return os.path.join(os.getcwd(), checks.path(source, "a source"))
    return source


def described(source: object) -> str:
    """A source in public words: its path, or what kind of table it is."""
    return called(source) if isinstance(source, str) else f"the {_library(source)} table"


@contextmanager
def opened(
    source: object, uses: Mapping[str, Use], private: Collection[str] = ()
) -> Iterator[Columns]:
    """Columns of a source by the names that it has for them, in an engine, in a block.

    Raises:
        InputError: No source of records, or a private column that folders are named for.
        DataError: It cannot be read, changed meanwhile, or has no such columns.
    """
    with engine_errors(described(source)):
        if _library(source) == "pyspark":
            yield _typed(Spark(_spark_columns(source, uses)), uses, ())
            return
        with duckdb() as engine:
            if not isinstance(source, str):
                _read_table(source, uses, private, engine.connection)
                yield _typed(engine, uses, ())
                return
            before = _states(source)
            texts = _read_files(list(before), uses, private, engine.connection)
            yield _typed(engine, uses, texts)
        if _states(source) != before:
            raise DataError(
                f"the file {called(source)} changed while it was read",
                "a file that stays as it is until the command is done",
                "ask again once the file is complete",
            )


def files_of(path: str) -> list[str]:
    """Files of a path, a pattern, or a folder of Parquet files, by the order of their names."""
    if os.path.isdir(path):
        folder = Path(path)
        found = [str(each) for each in folder.rglob("*") if _is_like(each, PARQUET)]
        # What begins so are notes of Spark and others.
        found = [each for each in found if not {"_", "."} & _initials(Path(each), folder)]
    else:
        # Names of folders that are there are no patterns.
        root = next(each for each in Path(path).parents if each.is_dir())
        like = os.path.relpath(path, root)
        found = [str(root / each) for each in glob.glob(like, root_dir=root, recursive=True)]
        found = [path] if os.path.exists(path) else found
    if len(set(map(codec_of, found))) != 1 or not all(_is_like(each, ENDINGS) for each in found):
        raise DataError(
            f"{'files of several kinds' if found else 'no file of records'} at {called(path)}",
            f"a file that ends in {', '.join(ENDINGS)}, a pattern of such, or a folder of Parquet",
            "check the path, put a pattern in quotes, or convert the file",
        )
    return sorted(set(found), key=os.fsencode)


def _initials(path: Path, folder: Path) -> set[str]:
    return {part[0] for part in path.relative_to(folder).parts}


def _is_like(path: object, endings: tuple[str, ...]) -> bool:
    return str(path).casefold().endswith(endings) and os.path.isfile(str(path))


def _states(path: str) -> dict[str, tuple[int, int]]:
    """Size and time of each file."""
    states = {each: os.stat(each) for each in files_of(path)}
    return {each: (state.st_size, state.st_mtime_ns) for each, state in states.items()}


def _read_files(
    files: list[str], uses: Mapping[str, Use], private: Collection[str], connection: Any
) -> list[str]:
    """Make `records` of files; gives names of columns that are texts for want of a type."""
    if not codec_of(files[0]):
        return _read_parquet(files, uses, private, connection)
    names = header(files[0])
    _check_names(names, uses, called(files[0]), is_csv=True)
    for each in files[1:]:
        if header(each) != names:
            raise DataError(
                f"another first line in {called(each)} than in {called(files[0])}",
                "files with the same columns in the same order",
                "write one of the files anew, or name fewer files",
            )
    read_texts(connection, files, names, uses)
    return [name for name, use in uses.items() if use == "key"]


def _read_parquet(
    files: list[str], uses: Mapping[str, Use], private: Collection[str], connection: Any
) -> list[str]:
    """Parquet files of the same columns; a folder such as month=5 is a column, too."""
    import pyarrow.parquet as pq

    schemas = [pq.read_schema(each) for each in files]
    names = schemas[0].names
    folders = [part.partition("=")[0] for part in Path(files[0]).parts[:-1] if "=" in part]
    _check_names([*names, *(set(folders) - set(names))], uses, described(files[0]))
    hive = [name for name in uses if name not in names]
    if {*private} & {*hive}:
        raise InputError(
            f"a private column that folders are named for: {', '.join(private)}",
            "a column of the files: names of folders are public",
            "name another column",
        )
    for schema in schemas:
        _check_digits(schema, private)
    chosen = ", ".join(f"{quoted(name)} AS c{at}" for at, name in enumerate(uses))
    options = f"hive_partitioning = {bool(hive)}, hive_types_autocast = false"
    folded = [name.casefold() for name in (*names, *(folders if hive else ()))]
    select = "SELECT {} FROM read_parquet([{}], {})".format
    places = list(map(file_literal, files))
    shapes = {
        str(connection.execute(f"DESCRIBE {select(chosen, each, options)}").fetchall())
        for each in places
    }
    if len(shapes) > 1 or len(set(folded)) < len(folded):
        raise DataError(
            f"columns of {called(files[0])} and files beside it that are not alike, or not unique",
            "files whose columns have the same types, and names that differ in more than case",
            "write one of the files anew, rename a column, or name fewer files",
        )
    connection.execute(f"CREATE TEMP VIEW records AS {select(chosen, ', '.join(places), options)}")
    return hive


def _read_table(
    source: Any, uses: Mapping[str, Use], private: Collection[str], connection: Any
) -> None:
    """Make `records` of a frame, or of a table of Ibis, which its own engine reads."""
    kind = _library(source)
    if kind == "ibis" and hasattr(source, "to_pyarrow"):
        _check_names(source.columns, uses, described(source))
        with _READING:
            table = source.select(*uses).to_pyarrow()
    elif kind in {"pandas", "polars", "pyarrow"} and hasattr(type(source), "columns"):
        table = _frame_in_arrow(source, uses, private)
    else:
        raise InputError(
            f"records of type {type(source).__name__}",
            "a path, a PyArrow, Polars or pandas table, a Spark frame, or an Ibis table",
            "convert them to one of these",
        )
    _check_digits(table.schema, private)
    columns = [_plain(table.column(name)) for name in uses]
    given = pa.Table.from_arrays(columns, names=[f"c{at}" for at in range(len(columns))])
    connection.register("records", given)


def _frame_in_arrow(frame: Any, uses: Mapping[str, Use], private: Collection[str]) -> pa.Table:
    kind, lazy = _library(frame), hasattr(frame, "collect_schema")
    known = frame.collect_schema().names() if lazy else frame.columns
    known = frame.schema.names if kind == "pyarrow" else known
    _check_names(known, uses, described(frame))
    if kind == "pyarrow":
        return pa.table(frame.select(list(uses)))
    if kind == "polars":
        chosen = frame.select(*uses)
        found: pa.Table = (chosen.collect() if hasattr(chosen, "collect") else chosen).to_arrow()
        return found
    for name in private:
        if frame[name].dtype == object:
            raise DataError(
                f"the private column {name!r} holds Python objects",
                "a column of one type for all its cells, such as float64",
                "convert it first, for example with astype(float)",
            )
    return pa.Table.from_pandas(frame[list(uses)], preserve_index=False)


def _plain(column: Any) -> Any:
    """A column of Arrow without a dictionary, or half precision, which DuckDB does not read."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column.cast(pa.float32()) if pa.types.is_float16(column.type) else column


def _spark_columns(frame: Any, uses: Mapping[str, Use]) -> Any:
    _check_names(frame.columns, uses, described(frame))
    escaped = [name.replace("`", "``") for name in uses]
    return frame.selectExpr(*(f"`{name}` AS c{at}" for at, name in enumerate(escaped)))


def _typed(engine: DuckDB | Spark, uses: Mapping[str, Use], texts: Collection[str]) -> Columns:
    """What each column is; keys of texts or floats get the type that their whole column has.

    A column of texts without a type is whole numbers, truths or dates if every cell is one in its
    one form; a column of floats is whole numbers if all are, as pandas has them beside a missing
    one. A rule over the whole of a public column depends on no order of rows.
    """
    types = dict(zip(uses, engine.types, strict=True))
    kinds = {name: kind_of(each) for name, each in types.items()}
    sql = {name: f"c{at}" for at, name in enumerate(uses)}
    for name in uses:
        column = sql[name]
        if name in texts:
            for target, form in _FORMS.items():
                valid = f"regexp_matches(c, '{form}') AND TRY_CAST(c AS {target}) IS NOT NULL"
                if _every(engine, f"SELECT DISTINCT {column} AS c FROM {engine.relation}", valid):
                    sql[name], kinds[name] = f"CAST({column} AS {target})", kind_of(target)
                    break
            else:
                rows = f"SELECT DISTINCT {column} AS c FROM {engine.relation}"
                if _every(engine, rows, _NUMBER) and not _every(engine, rows, "NOT c LIKE '%.%'"):
                    kinds[name], types[name] = "float", "numbers with fractions"
        elif uses[name] == "key" and kinds[name] == "float":
            whole = f"c - c <> 0 OR (floor(c) = c AND abs(c) < {_MOST_WHOLE})"
            if _every(engine, f"SELECT {column} AS c FROM {engine.relation}", whole):
                sql[name] = f"CASE WHEN {column} - {column} = 0 THEN CAST({column} AS BIGINT) END"
                kinds[name] = "whole"
        elif kinds[name] == "decimal":
            # By the digits of each cell: those of the longest one decide nothing.
            sql[name] = f"CAST(CAST({column} AS STRING) AS DOUBLE)"
    return Columns(engine, sql, kinds, types)


def _every(engine: DuckDB | Spark, rows: str, holds: str) -> bool:
    """Whether something holds of all that is there."""
    found = engine.run(f"SELECT bool_and({holds}) AS every FROM ({rows}) AS r WHERE c IS NOT NULL")
    return bool(found.column("every")[0].as_py())


def _check_names(
    known: Sequence[object], needed: Collection[str], source: str, *, is_csv: bool = False
) -> None:
    """Refuse columns that are not there, or whose names are another's but for case.

    The first line of a CSV file may be a record: its names are told only if one is asked for.
    """
    texts = [name for name in known if isinstance(name, str)]
    folded = [name.casefold() for name in texts]
    for name in needed:
        if name not in texts:
            told = not is_csv or any(each in texts for each in needed)
            raise DataError(
                f"no column {name!r} in {source}{_meant(name, texts) if told else ''}",
                _first_line(texts) if is_csv else f"one of {', '.join(sorted(texts))}",
                "check the spelling",
            )
        if folded.count(name.casefold()) > 1:
            raise DataError(
                f"columns of {source} that are called {name!r} but for case",
                "names that differ in more than case",
                "rename one of them",
            )


def _meant(name: str, known: Sequence[str]) -> str:
    plain = {re.sub(r"[\W_]", "", each.casefold()): each for each in known}
    near = get_close_matches(re.sub(r"[\W_]", "", name.casefold()), plain, n=3, cutoff=0.7)
    return f" (did you mean {' or '.join(repr(plain[each]) for each in near)}?)" if near else ""


def _first_line(names: Sequence[str]) -> str:
    told = f"one of the {len(names)} columns that the first line names, with commas between"
    for mark, plural in _SEPARATORS.items():
        if len(names) == 1 and mark in names[0]:
            told += f": the file seems to be separated by {plural}, write it with commas"
    return told


def _check_digits(schema: pa.Schema, private: Collection[str]) -> None:
    """Refuse private decimals that DuckDB would read by the digits of the longest cell."""
    for name in private:
        kind: Any = schema.field(name).type
        if pa.types.is_decimal(kind) and kind.precision > _MOST_DIGITS:
            raise DataError(
                f"the private column {name!r} holds decimals of {kind.precision} digits",
                f"at most {_MOST_DIGITS} digits, or floating point",
                "convert it to DECIMAL(38, s) or double",
            )


def _library(source: object) -> str:
    """The package that an object's type is of."""
    return type(source).__module__.split(".")[0]


def quoted(name: str) -> str:
    """A name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'
