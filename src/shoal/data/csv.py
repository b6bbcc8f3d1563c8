"""CSV files: each cell is a text, and becomes a number or a time by itself.

An engine that guesses types from some of the rows lets one user's value decide how others' are
read, and one that looks for the ends of records in parallel loses some: so types are not guessed,
and records are counted a second time, by their line ends and quotes alone.
"""

import csv
import io
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.errors import DataError

# How files are compressed, by the endings of their names.
CODECS = {".csv": "none", ".csv.gz": "gzip", ".csv.zst": "zstd"}
_BLOCK, _MOST_HEADER = 2**20, 2**20
_MARK = b"\xef\xbb\xbf"
_QUOTE, _LINE = b'"\n'
_TIME = (
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?"
    "(Z| UTC|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)?)?$"
)
_ALLOWED = {
    "number": "a number, true, false or nothing in every row",
    "time": "a date or time in ISO 8601, or nothing, in every row",
}


def codec_of(path: str) -> str:
    """Returns how a CSV file is compressed, by its name; an empty text for another file."""
    name = path.casefold()
    return next((codec for ending, codec in CODECS.items() if name.endswith(ending)), "")


def header(path: str) -> list[str]:
    """Returns names in the first line; they are not for messages: the line may be a record."""
    with _stream(path) as stream:
        start = stream.read(_MOST_HEADER).removeprefix(_MARK)
    lines = io.StringIO(start.decode(errors="replace"), newline="")
    try:
        names = next(csv.reader(lines, strict=True), [])
    except csv.Error:
        names = []
    whole = len(start) < _MOST_HEADER - len(_MARK) or lines.tell() < len(lines.getvalue())
    if not names or not whole or "\ufffd" in "".join(names):
        raise DataError(
            f"the first line of {called(path)} names no columns" + ", as it is empty" * (not start),
            "give a CSV file in UTF-8 whose first line names the columns, with commas between; "
            "convert one in Latin-1, as Windows or Excel may write it: iconv -f latin1 -t utf-8",
        )
    return names


def read_texts(
    connection: Any, files: Sequence[str], names: Sequence[str], uses: Mapping[str, str]
) -> None:
    """Makes the view `records` of columns of CSV files, `c0`, `c1`, ... in the order of their uses.

    Commas between cells, double quotes around them, UTF-8; `names` are those of the first line.
    """
    chosen = []
    for at, (name, use) in enumerate(uses.items()):
        text = f"t{names.index(name)}"
        value = _value(text, use)
        odd = f"{value} IS NULL AND trim({text}, E' \\t\\r\\n') <> ''"
        chosen.append(f"{value} AS c{at}, {odd} AS bad{at}")
    texts = ", ".join(f"'t{at}': 'VARCHAR'" for at in range(len(names)))
    connection.execute(
        f"CREATE TEMP TABLE texts AS SELECT {', '.join(chosen)} FROM "
        f"read_csv([{', '.join(map(file_literal, files))}], columns = {{{texts}}}, "
        "auto_detect = false, header = true, delim = ',', quote = '\"', escape = '\"', "
        "strict_mode = true, null_padding = false, ignore_errors = false, "
        f"hive_partitioning = false, parallel = false, compression = '{codec_of(files[0])}')"
    )
    any_bad = ", ".join(f"bool_or(bad{at})" for at in range(len(uses)))
    rows, *wrong = connection.execute(f"SELECT count(*), {any_bad} FROM texts").fetchone()
    if rows != sum(count_records(each, columns=len(names)) for each in files):
        raise _malformed(files)
    for (name, use), is_wrong in zip(uses.items(), wrong, strict=True):
        if is_wrong:
            raise DataError(f"the column {name!r} holds text", f"give {_ALLOWED[use]}")
    kept = ", ".join(f"c{at}" for at in range(len(uses)))
    connection.execute(f"CREATE TEMP VIEW records AS SELECT {kept} FROM texts")


def count_records(path: str, *, columns: int) -> int:
    """Counts records of a CSV file behind its line of names, in one pass of constant memory.

    A quote opens a cell at its start; a line end outside of quotes ends a record. An empty line is
    none, but where there is one column alone.
    """
    lines, inside, last = 0, 0, b"\n"
    with _stream(path) as stream:
        block = stream.read(len(_MARK)).removeprefix(_MARK) + stream.read(_BLOCK)
        while block:
            text = np.frombuffer(last + block.replace(b"\r", b""), np.uint8)
            quotes, ends = (np.flatnonzero(text[1:] == each) + 1 for each in (_QUOTE, _LINE))
            if not np.isin(text[quotes[inside::2] - 1], list(b',\n"')).all():
                raise _malformed([path])
            if inside or len(quotes):
                ends = ends[(inside + np.searchsorted(quotes, ends)) % 2 == 0]
            lines += len(ends) if columns == 1 else int((text[ends - 1] != _LINE).sum())
            inside = (inside + len(quotes)) % 2
            last = text[-1:].tobytes()
            block = stream.read(_BLOCK)
    if inside:
        raise _malformed([path])
    return lines + (last != b"\n") - 1


def called(path: str) -> str:
    """Returns a path as messages show it: from the working folder, if it is in there."""
    return repr(path.removeprefix(os.path.join(os.getcwd(), "")))


def file_literal(path: str) -> str:
    """Returns a path in SQL: square brackets and stars in a name are no pattern."""
    return "'" + re.sub(r"([*?\[])", r"[\1]", path).replace("'", "''") + "'"


def _value(text: str, use: str) -> str:
    """Returns SQL of what a cell is by itself: null if it is not of its column's use."""
    if use in {"key", "text"}:
        return text
    if use == "time":
        return (
            f"CASE WHEN regexp_matches({text}, '{_TIME}') THEN TRY_CAST({text} AS TIMESTAMPTZ) END"
        )
    # 1_0, +-5 and nan(1) are numbers for DuckDB alone.
    odd = f"regexp_matches({text}, '_|[(]|[+]-')"
    number = f"CASE WHEN {odd} THEN NULL ELSE TRY_CAST({text} AS DOUBLE) END"
    truth = f"CASE lower(trim({text})) WHEN 'true' THEN 1e0 WHEN 'false' THEN 0e0 END"
    return f"coalesce({number}, {truth})"


def _stream(path: str) -> Any:
    stream: Any = pa.input_stream  # without compression: None
    codec = codec_of(path)
    return stream(path, compression=None if codec == "none" else codec)


def _malformed(files: Sequence[str]) -> DataError:
    return DataError(
        f"the CSV file is malformed: {', '.join(map(called, files[:3]))}",
        "write it again with a CSV writer: double quotes only around whole cells, each closed, "
        "and doubled inside of a cell; all lines with the same ending",
    )
