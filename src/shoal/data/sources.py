"""Where records are: files, frames, tables of Ibis. All become columns of an engine that computes.

Files, frames and tables of Ibis are read into our own DuckDB, whoever holds them; frames of Spark
stay where they are.
"""

import glob
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import pyarrow as pa

from shoal import checks
from shoal.data.csv import CODECS, called, codec_of, file_literal, header, read_texts
from shoal.data.engines import DuckDB, Kind, Spark, duckdb, engine_errors, kind_of
from shoal.errors import DataError, InputError

# What a column is for: public keys, numbers, numbers or truths, texts, or times.
Use = Literal["key", "number", "text", "time"]

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
# One connection of the user's own is no place for two threads.
_READING = Lock()


@dataclass(frozen=True)
class Columns:
    """By names of columns: what queries call them, what they hold, the engine's word for it."""

    engine: DuckDB | Spark
    sql: dict[str, str]
    kinds: dict[str, Kind]
    types: dict[str, str]

    def key(self, name: str) -> str:
        """Returns a public key as it is grouped by."""
        return self.engine.key(self.sql[name], self.kinds[name])


def read_columns(
    source: object,
    *,
    private: Mapping[str, str | None],
    public: Mapping[str, str | None],
    texts: bool = False,
) -> pa.Table:
    """Returns columns of records by their roles, in the order of the source's rows. Private."""
    checks.roles(private, public)
    hidden = [name for name in private.values() if name is not None]
    uses: dict[str, Use] = dict.fromkeys(hidden, "text" if texts else "number")
    uses.update({name: "key" for name in public.values() if name is not None})
    place = located(source)
    with opened(place, uses, hidden) as columns:
        chosen = ", ".join(f"{columns.sql[name]} AS c{at}" for at, name in enumerate(uses))
        table = columns.engine.run(f"SELECT {chosen} FROM {columns.engine.relation}")
    if table.num_rows == 0:
        raise DataError(f"{described(place)} has no rows", "check the source and its filters")
    return table.rename_columns(list(uses))


def located(source: object) -> object:
    """Returns a path as text that no change of the working folder moves; anything else as it is."""
    if isinstance(source, str | os.PathLike):
        return os.path.join(os.getcwd(), checks.path(source, "a source"))
    return source


def described(source: object) -> str:
    """Returns a source in public words: its path, or what kind of table it is."""
    return called(source) if isinstance(source, str) else f"the {_library(source)} table"


def names_of(source: object) -> list[str]:
    """Returns the names of a source's columns; no row is read."""
    place = located(source)
    with engine_errors(described(place)):
        if not isinstance(place, str):
            return [name for name in _names_in(place) if isinstance(name, str)]
        first = files_of(place)[0]
        if codec_of(first):
            return header(first)
        import pyarrow.parquet as pq

        return [*pq.read_schema(first).names, *_folders(first)]


@contextmanager
def opened(
    source: object, uses: Mapping[str, Use], private: Collection[str] = ()
) -> Iterator[Columns]:
    """Yields columns of a source by the names that it has for them, in an engine."""
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
                "try again once the file is complete",
            )


def files_of(path: str) -> list[str]:
    """Returns files of a path, a pattern, or a folder of Parquet files, in the order of names."""
    if os.path.isdir(path):
        each_file = (each for each in Path(path).rglob("*") if _is_like(each, PARQUET))
        # What begins with these signs are notes of Spark and others.
        found = [
            str(each)
            for each in each_file
            if not any(part[0] in "_." for part in each.relative_to(path).parts)
        ]
    else:
        # Names of folders that are there are no patterns.
        root = next(each for each in Path(path).parents if each.is_dir())
        like = os.path.relpath(path, root)
        found = [str(root / each) for each in glob.glob(like, root_dir=root, recursive=True)]
        found = [path] if os.path.exists(path) else found
    if len(set(map(codec_of, found))) != 1 or not all(_is_like(each, ENDINGS) for each in found):
        raise DataError(
            f"{'several kinds of files are' if found else 'no file of records'} at {called(path)}",
            f"give a file that ends in {', '.join(ENDINGS)}, a pattern for such files (in "
            "quotes), or a folder of Parquet files",
        )
    return sorted(set(found), key=os.fsencode)


def _is_like(path: object, endings: tuple[str, ...]) -> bool:
    return str(path).casefold().endswith(endings) and os.path.isfile(str(path))


def _states(path: str) -> dict[str, tuple[int, int]]:
    states = {each: os.stat(each) for each in files_of(path)}
    return {each: (state.st_size, state.st_mtime_ns) for each, state in states.items()}


def _read_files(
    files: list[str], uses: Mapping[str, Use], private: Collection[str], connection: Any
) -> list[str]:
    """Makes `records` of files; returns names of columns that are texts for want of a type."""
    if not codec_of(files[0]):
        return _read_parquet(files, uses, private, connection)
    names = header(files[0])
    _check_names(names, uses, called(files[0]), is_csv=True)
    for each in files[1:]:
        if header(each) != names:
            raise DataError(
                f"the first lines of {called(each)} and {called(files[0])} differ",
                "give files with the same columns in the same order",
            )
    read_texts(connection, files, names, uses)
    return [name for name, use in uses.items() if use == "key"]


def _read_parquet(
    files: list[str], uses: Mapping[str, Use], private: Collection[str], connection: Any
) -> list[str]:
    """Reads Parquet files of the same columns; a folder such as month=5 is a column, too."""
    import pyarrow.parquet as pq

    schemas = [pq.read_schema(each) for each in files]
    names = schemas[0].names
    folders = _folders(files[0])
    _check_names([*names, *(set(folders) - set(names))], uses, described(files[0]))
    hive = [name for name in uses if name not in names]
    if {*private} & {*hive}:
        raise InputError(
            f"names of folders are public, but hold a private column: {', '.join(private)}",
            "name a column that the files themselves hold",
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
            f"columns of {called(files[0])} and of other files differ, or two columns share a name",
            "give files whose columns have the same types, and names that differ in more than case",
        )
    connection.execute(f"CREATE TEMP VIEW records AS {select(chosen, ', '.join(places), options)}")
    return hive


def _folders(path: str) -> list[str]:
    """Columns that folders such as month=5 stand for."""
    return [part.partition("=")[0] for part in Path(path).parts[:-1] if "=" in part]


def _read_table(
    source: Any, uses: Mapping[str, Use], private: Collection[str], connection: Any
) -> None:
    """Makes `records` of a frame, or of a table of Ibis, which its own engine reads."""
    kind, names = _library(source), list(uses)
    lazy = hasattr(source, "collect_schema")
    if kind not in {"ibis", "pandas", "polars", "pyarrow"} or not hasattr(type(source), "columns"):
        raise InputError(
            f"the records have the type {type(source).__name__}",
            "give a path, a PyArrow, Polars or pandas table, a Spark frame, or an Ibis table",
        )
    _check_names(_names_in(source), uses, described(source))
    if kind == "ibis":
        with _READING:
            table = source.select(*names).to_pyarrow()
    elif kind == "pandas":
        for name in private:
            if source[name].dtype == object:
                raise DataError(
                    f"the private column {name!r} holds Python objects",
                    "convert it to one type, for example with astype(float)",
                )
        table = pa.Table.from_pandas(source[names], preserve_index=False)
    elif kind == "polars":
        chosen = source.select(*names)
        table = (chosen.collect() if lazy and hasattr(chosen, "collect") else chosen).to_arrow()
    else:
        table = pa.table(source.select(names))
    _check_digits(table.schema, private)
    columns = [_plain(table.column(name)) for name in names]
    plain = pa.Table.from_arrays(columns, names=[f"c{at}" for at in range(len(columns))])
    connection.register("records", plain)


def _names_in(table: Any) -> Sequence[object]:
    """Names of the columns of a table in memory, or of one that is read later."""
    if _library(table) == "pyarrow":
        return list(table.schema.names)
    if hasattr(table, "collect_schema"):
        return list(table.collect_schema().names())
    return list(getattr(table, "columns", ()))


def _plain(column: Any) -> Any:
    """Returns a column without a dictionary, or half precision, which DuckDB does not read."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column.cast(pa.float32()) if pa.types.is_float16(column.type) else column


def _spark_columns(frame: Any, uses: Mapping[str, Use]) -> Any:
    _check_names(frame.columns, uses, described(frame))
    escaped = [name.replace("`", "``") for name in uses]
    return frame.selectExpr(*(f"`{name}` AS c{at}" for at, name in enumerate(escaped)))


def _typed(engine: DuckDB | Spark, uses: Mapping[str, Use], texts: Collection[str]) -> Columns:
    """Says what each column is; keys of texts or floats get the type that their whole column has.

    A column of texts without a type is whole numbers, truths or dates if every cell is one in its
    one form; a column of floats is whole numbers if all are, as pandas has them beside a missing
    one. A rule over the whole of a public column depends on no order of rows.
    """
    types = dict(zip(uses, engine.types, strict=True))
    kinds = {name: kind_of(each) for name, each in types.items()}
    sql = {name: f"c{at}" for at, name in enumerate(uses)}
    for name in uses:
        column = sql[name]
        rows = f"SELECT DISTINCT {column} AS c FROM {engine.relation}"
        if name in texts:
            for target, form in _FORMS.items():
                valid = f"regexp_matches(c, '{form}') AND TRY_CAST(c AS {target}) IS NOT NULL"
                if _every(engine, rows, valid):
                    sql[name], kinds[name] = f"CAST({column} AS {target})", kind_of(target)
                    break
            else:
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
        if uses[name] == "number" and kinds[name] == "truth":
            sql[name] = f"CAST({sql[name]} AS DOUBLE)"
    return Columns(engine, sql, kinds, types)


def _every(engine: DuckDB | Spark, rows: str, holds: str) -> bool:
    """Whether something holds of all that is there."""
    query = f"SELECT bool_and({holds}) AS every FROM ({rows}) AS r WHERE c IS NOT NULL"
    return bool(engine.run(query).column("every")[0].as_py())


def _check_names(
    known: Sequence[object], needed: Collection[str], source: str, *, is_csv: bool = False
) -> None:
    """Refuses columns that are not there, or whose names are another's but for case.

    The first line of a CSV file may be a record: its names are told only if one is asked for.
    """
    texts = [name for name in known if isinstance(name, str)]
    folded = [name.casefold() for name in texts]
    for name in needed:
        if folded.count(name.casefold()) > 1:
            raise DataError(
                f"several columns of {source} are called {name!r} if case is ignored",
                "rename all but one of them",
            )
        if name not in texts:
            near = "" if is_csv and not {*needed} & {*texts} else checks.suggestions(name, texts)
            columns = f"one of the {len(texts)} columns that the first line names"
            for mark, plural in ((";", "semicolons"), ("\t", "tabs")):
                if is_csv and len(texts) == 1 and mark in texts[0]:
                    columns += f"; it seems to be separated by {plural}: write it with commas"
            raise DataError(
                f"there is no column {name!r} in {source}{near}",
                f"give {columns if is_csv else 'one of ' + ', '.join(sorted(texts))}",
            )


def _check_digits(schema: pa.Schema, private: Collection[str]) -> None:
    """Refuses private decimals that DuckDB would read by the digits of the longest cell."""
    for name in private:
        kind: Any = schema.field(name).type
        if pa.types.is_decimal(kind) and kind.precision > _MOST_DIGITS:
            raise DataError(
                f"the private column {name!r} holds decimals of {kind.precision} digits",
                f"convert it to DECIMAL({_MOST_DIGITS}, s) or double",
            )


def _library(source: object) -> str:
    return type(source).__module__.split(".")[0]


def quoted(name: str) -> str:
    """Returns a name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'
