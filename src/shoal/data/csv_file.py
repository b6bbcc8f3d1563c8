"""CSV files: every cell is a text, and what it means is decided by itself or by public columns.

An engine that guesses types from some of the rows lets one user's value decide how the others' are
read. Here a private text becomes a number on its own; a public column has a type by a rule over all
of its rows, in any order.
"""

from __future__ import annotations

import codecs
import csv
import io
from contextlib import closing
from functools import reduce
from itertools import zip_longest
from operator import and_
from typing import TYPE_CHECKING, Literal, TypeAlias

from shoal.data.csv_bytes import blocks, codec_of
from shoal.data.csv_records import count_records, malformed
from shoal.data.own_names import check_present
from shoal.data.source import duckdb, engine_errors, literal_name
from shoal.data.source_file import describe, files_of
from shoal.errors import DataError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from shoal.data.source import Engine, EngineColumn, EngineTable
    from shoal.data.source_file import SourceFile

# What a column is for: numbers, numbers or truths (1 and 0), texts, public keys, or times.
Kind: TypeAlias = Literal["number", "answer", "text", "key", "time"]

_MOST_HEADER = 2**20
_ROWS, _FILE = "rows", "file"
_UTC = "timestamp('UTC')"
WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"
TRUTH = r"^(?i:true|false)$"
DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?"
    r"(Z| UTC|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)?)?$"
)
_ALLOWED = {
    "number": "a number or nothing in every row",
    "answer": "a number, true, false or nothing in every row",
    "time": "a date or time as in ISO 8601 or nothing in every row",
}


def read_texts(
    path: str | os.PathLike[str], kinds: Mapping[str, Kind]
) -> tuple[EngineTable, Engine]:
    """Some columns of a CSV file, or of several with the same names, each cell read on its own.

    Commas between cells, double quotes around them, UTF-8, names in the first line. A private
    column is numbers or texts as its kind says; a public key is a whole number, a truth or a date
    if every cell of the column is one, else a text: leading zeros, signs and fractions are text.

    Args:
        path: The file, or a pattern of files.
        kinds: What each needed column is for.

    Raises:
        DataError: No such columns, a cell that is not of its column's kind, or no CSV.

    Guarantees: G-RECORDS.
    """
    files = files_of(path)
    known = _same_names(files, list(kinds))
    with engine_errors(path):
        records = {each.place: _records(each, known) for each in files}
        backend = duckdb()
        table = _texts(files, len(known), backend)
        # The engine leaves out a last record that it takes for unfinished.
        found = _rows(table, backend) if len(files) > 1 else records
        for each in files:
            if found.get(each.place, 0) != records[each.place]:
                raise malformed(each)
        texts = table.select([table[f"column_{known.index(name)}"].name(name) for name in kinds])
        facts = _facts(texts, kinds, backend)
        if facts.pop(_ROWS) != sum(records.values()):
            raise malformed(path)
    for name, kind in kinds.items():
        if facts.get(f"{name} is bad"):
            raise DataError(
                f"the column {name!r} holds string", _ALLOWED[kind], "convert it, or clean the file"
            )
    with engine_errors(path):
        columns = [
            _typed(texts[name], kind, facts, name).name(name) for name, kind in kinds.items()
        ]
        return texts.select(columns), backend


def _same_names(files: Sequence[SourceFile], needed: Sequence[str]) -> list[str]:
    """Names of the columns that all files have, in the same order.

    Raises:
        DataError: A file without such a column, or with another first line.
    """
    first: list[str] = []
    for each in files:
        names = header(each)
        check_present(each, names, needed)
        first = first or names
        for at, (mine, other) in enumerate(zip_longest(names, first), start=1):
            if mine != other:
                # All that is asked for is in both: they are lines of names, not records.
                raise DataError(
                    f"column {at} of {describe(each)} is {mine!r}, but {other!r} in "
                    f"{describe(files[0])}",
                    "files with the same columns in the same order",
                    "write one of the files anew, or name fewer files",
                )
    return first


def _texts(files: Sequence[SourceFile], columns: int, backend: Engine) -> EngineTable:
    """Every cell as a text, by the place of its column, and which file it is of."""
    return backend.read_csv(
        [literal_name(each) for each in files],
        columns={f"column_{at}": "VARCHAR" for at in range(columns)},
        auto_detect=False,
        header=True,
        delim=",",
        quote='"',
        escape='"',
        strict_mode=True,
        null_padding=False,
        ignore_errors=False,
        hive_partitioning=False,
        compression=codec_of(files[0]) or "none",
        filename=_FILE,
        # In parts it would look for rows inside of quoted cells, and fail at some of them.
        parallel=False,
    )


def _records(path: SourceFile, known: Sequence[str]) -> int:
    with engine_errors(path):
        return count_records(path, columns=len(known))


def _rows(table: EngineTable, backend: Engine) -> dict[str, int]:
    """How many rows the engine reads of each file."""
    counted = table.group_by(_FILE).agg(**{_ROWS: table.count()})
    found = backend.to_pyarrow(counted)
    return dict(zip(found.column(_FILE).to_pylist(), found.column(_ROWS).to_pylist(), strict=True))


def header(path: str | os.PathLike[str]) -> list[str]:
    """Names in the first line; they are not for messages, since the line may be a record.

    Raises:
        DataError: The file has no line of texts.
    """
    try:
        start = _start(path)
        lines = io.StringIO(start, newline="")
        names = next(csv.reader(lines, strict=True), [])
        whole = len(start) < _MOST_HEADER or lines.tell() < len(start)
    except DataError:
        raise
    except (OSError, ValueError, csv.Error):
        names, whole = [], False
    if not names or not whole:
        raise DataError(
            f"no columns in the first line of {describe(path)}"
            + (", which is empty" if whole and not start else ""),
            "a CSV file in UTF-8 whose first line names the columns, with commas between",
            "check the file; of one in Latin-1, as Windows or Excel may write it, make one in "
            "UTF-8 (iconv -f latin1 -t utf-8)",
        ) from None
    return names


def _start(path: str | os.PathLike[str]) -> str:
    """Text at the start of a file, as much as a line of names may have."""
    found = b""
    with closing(blocks(path)) as parts:
        while len(found) < _MOST_HEADER and (part := next(parts, b"")):
            found += part
    return codecs.getincrementaldecoder("utf-8")().decode(found, final=len(found) < _MOST_HEADER)


def _facts(table: EngineTable, kinds: Mapping[str, Kind], backend: Engine) -> dict[str, int]:
    """What holds of whole columns: how many rows, which types all cells have, one of no use."""
    found: dict[str, int] = {}
    for name, kind in kinds.items():
        if kind == "text":
            continue
        # Keys repeat: a rule that holds of each different cell holds of all of them.
        column = table.select(name).distinct() if kind == "key" else table
        asked = _asked(column[name], kind)
        if kind != "key":
            asked[_ROWS] = column.count()
        (answers,) = backend.to_pyarrow(column.agg(**asked)).to_pylist()
        found[_ROWS] = answers.pop(_ROWS, found.get(_ROWS))
        found |= {f"{name} is {what}": bool(each) for what, each in answers.items()}
    if found.get(_ROWS) is None:
        # Of a column: without one the engine might not read the rows.
        column = table[next(iter(kinds))]
        (answers,) = backend.to_pyarrow(
            table.agg(**{_ROWS: column.count() + column.isnull().sum()})
        ).to_pylist()
        found |= answers
    return found


def _asked(text: EngineColumn, kind: Kind) -> dict[str, EngineColumn]:
    """What is asked of all cells of a column."""
    import ibis

    if kind in {"number", "answer"}:
        # Blanks are looked for only where there is no number: this is most of the pass's time.
        blank = ibis.ifelse(_number(text, kind).notnull(), ibis.literal(True), text.strip() == "")
        return {"bad": ~_every(text, blank)}
    asked = {"date": _every(text, text.re_search(DAY), _is(text, "date"))}
    if kind == "time":
        return asked | {"bad": ~_every(text, text.re_search(_TIME), _is(text, _UTC))}
    whole, truth = text.re_search(WHOLE), text.re_search(TRUTH)
    return asked | {"int64": _every(text, whole), "boolean": _every(text, truth)}


def _typed(text: EngineColumn, kind: Kind, facts: Mapping[str, int], name: str) -> EngineColumn:
    if kind in {"number", "answer"}:
        return _number(text, kind)
    for each in ("int64", "boolean", "date"):
        if facts.get(f"{name} is {each}"):
            return text.try_cast(each)
    return text.try_cast(_UTC) if kind == "time" else text


def _number(text: EngineColumn, kind: Kind) -> EngineColumn:
    import ibis

    # Blanks around a number are the engine's to skip; 1_0, +-5 and nan(1) are numbers nowhere else.
    odd = text.contains("_") | text.contains("+-") | text.contains("(")
    plain = ibis.ifelse(odd, ibis.null("string"), text)
    number = plain.try_cast("float64")
    if kind == "number":
        return number
    word = text.strip().lower()
    truth = ibis.cases((word == "true", 1.0), (word == "false", 0.0), else_=ibis.null("float64"))
    return ibis.coalesce(number, truth)


def _every(text: EngineColumn, *holds: EngineColumn) -> EngineColumn:
    return (text.isnull() | reduce(and_, holds)).all()


def _is(text: EngineColumn, kind: str) -> EngineColumn:
    return text.try_cast(kind).notnull()
