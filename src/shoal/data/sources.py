"""Where records are: files, frames, tables of Ibis. All become columns of an engine that computes.

Files, frames and tables of Ibis are read into our own DuckDB, whoever holds them; frames of Spark
stay where they are.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal import checks
from shoal.data.columns_in_memory import is_object_column, roles
from shoal.data.csv import header, is_date, read_texts, value_of
from shoal.data.engines import DuckDB, Spark, duckdb, engine_errors
from shoal.data.keys import warn_of_words
from shoal.data.places import (
    called,
    codec_of,
    file_literal,
    files_of,
    located,
    readable,
    warn_of_copies,
)
from shoal.data.types import MOST_WHOLE, Kind, Use, fits, kind_of, misfit, refuse_unknown
from shoal.errors import DataError, InputError
from shoal.privacy.unit import DATES, NAMES, TRUTHS, UNZONED, ZONED

_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
# What all texts of a public column are, if they are no texts. R writes 100000 as 1e+05, and pandas
# writes 1 as 1.0 beside a missing number.
_WHOLE = "^(0|-?[1-9][0-9]{0,17})([.]0+)?$|^-?[1-9]([.][0-9]+)?e[+](0[0-9]|1[0-4])$"
_NUMBER = "^-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?$"
_FORMS = {
    "BIGINT": f"bool_and(regexp_matches(c, '{_WHOLE}') AND TRY_CAST(c AS DOUBLE) % 1 = 0)",
    "BOOLEAN": "bool_and(regexp_matches(c, '^(?i:true|false)$'))",
    "DATE": "bool_and(regexp_matches(c, '^[0-9]{4}-[0-9]{2}-[0-9]{2}$') "
    "AND TRY_CAST(c AS DATE) IS NOT NULL)",
    "DOUBLE": f"bool_and(regexp_matches(c, '{_NUMBER}')) "
    "AND bool_or(TRY_CAST(c AS DOUBLE) % 1 <> 0)",
}
CELL_RULES = (
    "timeslot(column,1h), hour_of_day(column), weekday(column), date(column), week(column), "
    "month(column), quarter(column), year(column), each with a time zone or without, "
    "bins(column,10) or hexagon(lat,lon,7)"
)
# One connection of the user's own is no place for two threads.
_READING = Lock()


@dataclass(frozen=True)
class Columns:
    """By names of columns: what queries call them, what they hold, the engine's word for it.

    Attributes:
        engine: Where they are.
        sql: Each column in SQL.
        kinds: What each holds; None if that has no use.
        types: The engine's word for it.
        names: Of all columns of the source.
        rows: How many the source has, as its own footers say; None if nothing says it.
        dates: Of a column of times, if some rows may hold a date: SQL of which.
        texts: Columns of texts that are read row by row.
        forms: What is said of the times in such columns, as only their rows could tell.
    """

    engine: DuckDB | Spark
    sql: dict[str, str]
    kinds: dict[str, Kind | None]
    types: dict[str, str]
    names: tuple[str, ...]
    rows: int | None
    dates: dict[str, str] = field(default_factory=dict)
    texts: frozenset[str] = frozenset()
    forms: Mapping[str, str] = field(default_factory=dict)

    def key(self, name: str) -> str:
        """Returns a public key as it is grouped by."""
        return self.engine.key(self.sql[name], self.kinds[name])

    def check_use(self, name: str, use: Use) -> None:
        """Refuses a column that does not hold what it is used for."""
        if not fits(self.kinds[name], use):
            raise misfit(name, self.types[name].lower(), use)

    def holds(self, name: str) -> str:
        """Returns what a column holds, as far as it decides how records are divided by it."""
        kind = self.kinds[name]
        if kind == "time" and name in self.texts:
            if name not in self.forms:
                raise InputError(
                    f"the column {name!r} is read as text, and whether its times have a zone is "
                    "private",
                    'say it with the records: times="with a zone", "without a zone", or "dates"; '
                    "cells of another form are then missing",
                )
            return self.forms[name]
        if kind == "time":
            return ZONED if _has_zone(self.engine, self.types[name]) else UNZONED
        if kind == "date":
            return DATES
        return TRUTHS if kind == "truth" else NAMES

    def check_rows(self, found: int) -> None:
        """Refuses a result that lacks rows of the source."""
        if self.rows is not None and found != self.rows:
            raise DataError(
                f"{found} of {self.rows} rows of the source were read",
                "write its files again with another tool",
            )


@dataclass(frozen=True)
class _Source:
    """What is known of a source before its types: names, texts without a type, rows."""

    names: Sequence[object]
    texts: Collection[str] = ()
    rows: int | None = None
    is_csv: bool = False


def read_columns(
    source: object,
    *,
    private: Mapping[str, str | None],
    public: Mapping[str, str | None],
    texts: bool = False,
    missing: str = "refuse",
) -> pa.Table:
    """Returns columns of records by their roles, in the order of the source's rows. Private.

    Where it is public which rows lack something (`missing`), these are left out.
    """
    roles(private, public)
    hidden = [name for name in private.values() if name is not None]
    uses: dict[str, Use] = dict.fromkeys(hidden, "label" if texts else "number")
    uses.update({name: "public" for name in public.values() if name is not None})
    place = located(source)
    with opened(place, uses, hidden) as columns:
        chosen = ", ".join(f"{columns.sql[name]} AS c{at}" for at, name in enumerate(uses))
        table = columns.engine.run(f"SELECT {chosen} FROM {columns.engine.relation}")
    if table.num_rows == 0:
        raise DataError(f"{described(place)} has no rows", "check the source and its filters")
    columns.check_rows(table.num_rows)
    table = table.rename_columns(list(uses))
    for name, use in uses.items():
        if missing == "public":
            table = table.filter(pc.invert(pc.is_null(table.column(name), nan_is_null=True)))
        if use == "public":
            warn_of_words(name, table.column(name))
    return table


def read_texts_of(source: object, names: Sequence[str]) -> pa.Table:
    """Returns the texts of columns, as private records have them: each cell by itself."""
    place = located(source)
    with opened(place, dict.fromkeys(names, "key"), by_rows=True) as columns:
        chosen = ", ".join(f"{columns.sql[name]} AS c{at}" for at, name in enumerate(names))
        table = columns.engine.run(f"SELECT {chosen} FROM {columns.engine.relation}")
    return table.rename_columns(list(names))


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
        return [*_footer(first).schema.to_arrow_schema().names, *_folders(first)]


@contextmanager
def opened(
    source: object,
    uses: Mapping[str, Use],
    private: Collection[str] = (),
    *,
    by_rows: bool = False,
    forms: Mapping[str, str] | None = None,
) -> Iterator[Columns]:
    """Yields columns of a source by the names that it has for them, in an engine.

    What a public column holds may be decided by all of its rows; if nothing of the rows is public,
    each is read `by_rows`, by itself. Texts of times then are of one of the `forms` that are said
    of their columns, such as `times with a zone`; those of another form are missing.
    """
    said = forms or {}
    typed = partial(_read_by_rows, forms=said) if by_rows else _typed
    with engine_errors(described(source)):
        if _library(source) == "pyspark":
            frame: Any = source
            yield typed(Spark(_spark_columns(frame, uses)), uses, _Source(frame.columns))
            return
        with duckdb() as engine:
            if not isinstance(source, str):
                table = _read_table(source, uses, private, engine.connection, by_rows=by_rows)
                yield typed(engine, uses, table)
                return
            before = _states(source)
            known = _read_files(
                list(before), uses, private, engine.connection, by_rows=by_rows, forms=said
            )
            yield typed(engine, uses, known)
        if _states(source) != before:
            raise DataError(
                f"the file {called(source)} changed while it was read",
                "try again once the file is complete",
            )


def _states(path: str) -> dict[str, tuple[int, int]]:
    states = {each: os.stat(each) for each in files_of(path)}
    return {each: (state.st_size, state.st_mtime_ns) for each, state in states.items()}


def _read_files(
    files: list[str],
    uses: Mapping[str, Use],
    private: Collection[str],
    connection: Any,
    *,
    by_rows: bool,
    forms: Mapping[str, str],
) -> _Source:
    """Makes `records` of files."""
    warn_of_copies(files)
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
    rows = read_texts(connection, files, names, uses, forms if by_rows else None)
    texts = [name for name, use in uses.items() if use in {"key", "public"}]
    return _Source(names, texts, rows, is_csv=True)


def _read_parquet(
    files: list[str], uses: Mapping[str, Use], private: Collection[str], connection: Any
) -> _Source:
    """Reads Parquet files of the same columns; a folder such as month=5 is a column, too."""
    footers = {each: _footer(each) for each in files}
    schemas = {each: footer.schema.to_arrow_schema() for each, footer in footers.items()}
    names = schemas[files[0]].names
    folders = _folders(files[0])
    hive = [name for name in uses if name not in names and name in folders]
    if {*private} & {*hive}:
        raise InputError(
            f"names of folders are public, but hold a private column: {', '.join(private)}",
            "name a column that the files themselves hold",
        )
    for each, schema in schemas.items():
        _check_names([*schema.names, *({*folders} - {*schema.names})], uses, called(each))
        refuse_unknown(schema, {name: use for name, use in uses.items() if name not in hive})
        folded = [name.casefold() for name in (*schema.names, *(folders if hive else ()))]
        if len(set(folded)) < len(folded):
            raise DataError(
                f"two columns of {called(each)} share a name, if case is ignored",
                "give files whose names of columns differ in more than case",
            )
    chosen = ", ".join(f"{quoted(name)} AS c{at}" for at, name in enumerate(uses))
    options = f"hive_partitioning = {bool(hive)}, hive_types_autocast = false"
    select = "SELECT {} FROM read_parquet([{}], {})".format
    places = {each: file_literal(each) for each in files}
    first = None
    for each, place in places.items():
        rows = connection.execute(f"DESCRIBE {select(chosen, place, options)}").fetchall()
        types = [row[1] for row in rows]
        first = first or types
        for name, kind, other in zip(uses, types, first, strict=True):
            if kind != other:
                raise DataError(
                    f"the column {name!r} is {kind.lower()} in {called(each)} and "
                    f"{other.lower()} in {called(files[0])}",
                    "write the files with the same types",
                )
    every = ", ".join(places.values())
    connection.execute(f"CREATE TEMP VIEW records AS {select(chosen, every, options)}")
    return _Source([*names, *folders], hive, sum(each.num_rows for each in footers.values()))


def _footer(path: str) -> Any:
    """Returns the metadata of a Parquet file."""
    import pyarrow.parquet as pq

    with readable(path, "Parquet file"):
        return pq.read_metadata(path)


def _folders(path: str) -> list[str]:
    """Columns that folders such as month=5 stand for."""
    return [part.partition("=")[0] for part in Path(path).parts[:-1] if "=" in part]


def _read_table(
    source: Any,
    uses: Mapping[str, Use],
    private: Collection[str],
    connection: Any,
    *,
    by_rows: bool,
) -> _Source:
    """Makes `records` of a frame, or of a table that its own engine reads."""
    kind = _library(source)
    is_known = kind in {"duckdb", "ibis", "pandas", "polars", "pyarrow"}
    if not is_known or not hasattr(type(source), "columns"):
        raise InputError(
            f"the records have the type {type(source).__name__}",
            "give a path, a PyArrow, Polars or pandas table, a Spark frame, or a table of DuckDB "
            "or Ibis",
        )
    names = _names_in(source)
    index = [*source.index.names] if kind == "pandas" else []
    if {*uses} & {*index} - {*names}:
        raise DataError("a column that is asked for is the index", "call reset_index() first")
    _check_names(names, uses, described(source))
    if kind in {"duckdb", "ibis"}:
        with _READING:
            if kind == "ibis":
                source = source.select(*uses).to_pyarrow()
            else:
                source = source.select(*map(quoted, uses)).to_arrow_table()
    elif hasattr(source, "collect_schema"):
        source = source.lazy().select(*uses).collect()
    objects = [name for name in uses if by_rows and is_object_column(source[name])]
    columns = [
        _texts_of(source[name]) if name in objects else _column(source, name, name in private)
        for name in uses
    ]
    table = pa.Table.from_arrays(columns, names=list(uses))
    # Fields of a table of Arrow may say what its columns alone do not.
    refuse_unknown(source.schema if _library(source) == "pyarrow" else table.schema, uses)
    plain = [_plain(column) for column in table.columns]
    connection.register(
        "records", pa.Table.from_arrays(plain, [f"c{at}" for at in range(len(plain))])
    )
    return _Source(names, objects, table.num_rows)


def _column(frame: Any, name: str, private: bool) -> Any:
    """Returns a column of a frame in Arrow."""
    column = frame.column(name) if isinstance(frame, pa.Table) else frame[name]
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    if is_object_column(column):
        if private or not hasattr(column, "dropna"):
            raise DataError(
                f"the {'private ' if private else ''}column {name!r} holds Python objects",
                "convert it to one type, for example with astype(float)",
            )
        found = sorted({each.__name__ for each in column.dropna().map(type).unique()})
        if len(found) > 1 and found != ["float", "int"]:
            raise DataError(
                f"the column {name!r} mixes {' and '.join(found[:2])}",
                "convert it to one type, in which what is equal stays equal",
            )
        if {"datetime", "Timestamp"} & {*found}:
            raise DataError(
                f"the column {name!r} holds times as Python objects",
                "convert them with pd.to_datetime, with utc=True if they have zones",
            )
    try:
        return (
            column.to_arrow() if hasattr(column, "to_arrow") else pa.array(column, from_pandas=True)
        )
    except Exception:
        # The text of the error may hold a cell.
        raise DataError(
            f"the column {name!r} holds a type that Arrow does not know ({column.dtype})",
            "convert it to numbers, text, booleans, dates or times",
        ) from None


def _texts_of(column: Any) -> Any:
    """Returns the texts of a column of Python objects, each by itself, and null for nothing.

    They are those that the same values have in a column of one type.
    """
    texts = column.map(_text_of, na_action="ignore")
    return pa.array(texts.where(column.notna(), None), pa.string(), from_pandas=True)


def _text_of(value: Any) -> str:
    """Returns the text of a value: true, 1 of 1.0, and times as ISO 8601 has them."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        number = float(value)
        whole = number.is_integer() and abs(number) < MOST_WHOLE["float"]
        return str(int(number)) if whole else repr(number)
    text = value.isoformat(" ") if isinstance(value, datetime) else str(value)
    # No cell is refused for what it holds, such as half of a character.
    return text.encode(errors="replace").decode()


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


def _typed(engine: DuckDB | Spark, uses: Mapping[str, Use], known: _Source) -> Columns:
    """Says what each column is, by a rule over the whole of a public one, in any order of rows.

    Texts without a type are whole numbers, truths, dates or numbers if every cell is one. Numbers
    that name something are whole if all are, as pandas has them beside a missing one. Times without
    a zone are dates if all are midnights: a date is a day, which no zone moves.
    """
    types = dict(zip(uses, engine.types, strict=True))
    kinds = {name: kind_of(each) for name, each in types.items()}
    sql = {name: f"c{at}" for at, name in enumerate(uses)}
    found = Columns(engine, sql, kinds, types, tuple(map(str, known.names)), known.rows)
    for name, use in uses.items():
        column = sql[name]
        if name in known.texts:
            target = _form_of(engine, column)
            if target:
                sql[name] = f"CAST({column} AS {target})"
                kinds[name] = kind_of(target)
                types[name] = "numbers with fractions" if target == "DOUBLE" else target
        elif kinds[name] == "uuid":
            sql[name] = f"CAST({column} AS VARCHAR)"
            kinds[name] = "text"
        elif use in {"key", "public"} and _all_whole(engine, column, kinds[name]):
            sql[name] = f"CASE WHEN {column} - {column} = 0 THEN CAST({column} AS BIGINT) END"
            kinds[name] = "whole"
        elif kinds[name] == "decimal":
            # By the digits of each cell: those of the longest one decide nothing.
            sql[name] = f"CAST(CAST({column} AS STRING) AS DOUBLE)"
        elif kinds[name] == "time" and _all_days(engine, column, types[name]):
            sql[name] = f"CAST({column} AS DATE)"
            kinds[name] = "date"
            types[name] = "date"
        if use == "number" and kinds[name] == "truth":
            sql[name] = f"CAST({sql[name]} AS DOUBLE)"
        found.check_use(name, use)
    return found


def _read_by_rows(
    engine: DuckDB | Spark,
    uses: Mapping[str, Use],
    known: _Source,
    *,
    forms: Mapping[str, str],
) -> Columns:
    """Says what each column is by its type alone: keys are the texts of their cells.

    Of numbers with fractions each whole one has the text of a whole number, as pandas has them
    beside a missing one. Whole numbers are left as they are, which is faster to group by; whoever
    has the groups compares their texts.
    """
    types = dict(zip(uses, engine.types, strict=False))
    kinds = {name: kind_of(each) for name, each in types.items()}
    sql = {name: f"c{at}" for at, name in enumerate(uses)}
    dates = {}
    if known.is_csv:
        dates = {name: f"date{at}" for at, (name, use) in enumerate(uses.items()) if use == "time"}
    names = tuple(map(str, known.names))
    texts = frozenset(uses) if known.is_csv else frozenset(known.texts)
    found = Columns(engine, sql, kinds, types, names, None, dates, texts, forms)
    for name, use in uses.items():
        column = sql[name]
        if name in known.texts and use in {"number", "time"} and not known.is_csv:
            sql[name] = value_of(column, use, forms.get(name))
            types[name] = "DOUBLE"
            if use == "time":
                sql[name] = f"CAST({sql[name]} AS TIMESTAMP)"
                types[name] = "TIMESTAMP"
                dates[name] = is_date(column)
            kinds[name] = kind_of(types[name])
        elif use == "key" and kinds[name] == "whole":
            continue
        elif use == "key" and (kinds[name] in MOST_WHOLE or fits(kinds[name], use)):
            text = f"CAST({column} AS STRING)"
            if kinds[name] in MOST_WHOLE:
                number = f"CAST({column} AS DOUBLE)"
                is_whole = f"floor({number}) = {number} AND abs({number}) < {2**53}"
                whole = f"CAST(CAST({number} AS BIGINT) AS STRING)"
                text = f"CASE WHEN {is_whole} THEN {whole} ELSE {text} END"
            sql[name] = text
            kinds[name] = "text"
        elif kinds[name] in {"decimal", "truth"}:
            sql[name] = f"CAST(CAST({column} AS STRING) AS DOUBLE)"
            if kinds[name] == "truth":
                sql[name] = f"CAST({column} AS DOUBLE)"
        found.check_use(name, use)
    return found


def _form_of(engine: DuckDB | Spark, column: str) -> str | None:
    """Returns the type that every text of a column has, if it has one; None for texts."""
    rows = f"SELECT DISTINCT {column} AS c FROM {engine.relation}"
    asked = ", ".join(_FORMS.values())
    answers = engine.run(f"SELECT {asked} FROM ({rows}) AS r WHERE c IS NOT NULL")
    held = [answer[0].as_py() for answer in answers.columns]
    return next((target for target, every in zip(_FORMS, held, strict=True) if every), None)


def _all_whole(engine: DuckDB | Spark, column: str, kind: Kind | None) -> bool:
    """Whether all numbers of a column are whole, as far as its kind tells them apart."""
    if kind not in MOST_WHOLE:
        return False
    whole = f"c - c <> 0 OR (floor(c) = c AND abs(c) < {MOST_WHOLE[kind]})"
    return _every(engine, column, whole)


def _all_days(engine: DuckDB | Spark, column: str, engine_type: str) -> bool:
    """Whether all times of a column are midnights without a zone."""
    if _has_zone(engine, engine_type):
        return False
    return _every(engine, column, f"CAST(CAST(c AS DATE) AS {engine_type}) = c")


def _has_zone(engine: DuckDB | Spark, engine_type: str) -> bool:
    """Whether a type of times is one of moments, and not of what some clocks show."""
    name = engine_type.lower()
    of_spark = name == "timestamp" and isinstance(engine, Spark)
    return of_spark or "zone" in name or "tz_" in name


def _every(engine: DuckDB | Spark, column: str, holds: str) -> bool:
    """Whether something holds of all that is there."""
    rows = f"SELECT {column} AS c FROM {engine.relation}"
    query = f"SELECT bool_and({holds}) AS every FROM ({rows}) AS r WHERE c IS NOT NULL"
    return bool(engine.run(query).column("every")[0].as_py())


def _check_names(
    known: Sequence[object], needed: Collection[str], source: str, *, is_csv: bool = False
) -> None:
    """Refuses columns that are not there, or whose names are another's but for case.

    The first line of a CSV file may be a record: its names are told only if one is asked for.
    """
    texts = [name for name in known if isinstance(name, str)]
    if known and not texts:
        raise DataError(
            f"the columns of {source} are named by numbers, or not by text",
            "give each column a text as its name",
        )
    folded = [name.casefold() for name in texts]
    for name in needed:
        if folded.count(name.casefold()) > 1:
            raise DataError(
                f"several columns of {source} are called {name!r} if case is ignored",
                "rename all but one of them",
            )
        if name in texts:
            continue
        may_tell = not is_csv or {*needed} & {*texts}
        calls = [each for each in texts if _reads(each, name)] if may_tell else []
        if calls:
            raise DataError(
                f"the column {calls[0]!r} of {source} is written like a cell rule",
                "rename the column",
            )
        near = checks.suggestions(name, texts) if may_tell else ""
        columns = "one of " + ", ".join(sorted(texts))
        if is_csv:
            columns = f"one of the {len(texts)} columns that the first line names"
        for mark, plural in _SEPARATORS.items():
            if is_csv and len(texts) == 1 and mark in texts[0]:
                columns += f"; it seems to be separated by {plural}: write it with commas"
        if "(" in name:
            columns += f"; or a cell rule: {CELL_RULES}"
        raise DataError(f"there is no column {name!r} in {source}{near}", f"give {columns}")


def _reads(call: str, column: str) -> bool:
    """Whether a name of a column looks like a cell rule over another column."""
    return bool(re.fullmatch(rf"\w+\s*\(\s*{re.escape(column)}\s*(,.*)?\)", call))


def _library(source: object) -> str:
    return type(source).__module__.split(".")[0]


def quoted(name: str) -> str:
    """Returns a name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'
