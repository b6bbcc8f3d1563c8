"""Reads CSV files, in which each cell is a text that becomes a number or a time by itself.

An engine that guesses types from some of the rows lets one user's value decide how others' are
read, and one that looks for the ends of records in parallel loses some: so types are not guessed,
and records are counted a second time, by their line ends and quotes alone.
"""

import codecs
import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.data.places import called, codec_of, file_literal, readable
from shoal.errors import DataError
from shoal.privacy.unit import DATES, UNZONED, ZONED

_BLOCK = 2**20
_MOST_HEADER = 2**20
_MARK = b"\xef\xbb\xbf"
_QUOTE, _LINE = b'"\n'
_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_DATE_LENGTH = 10
_TIME = (
    f"^{_DATE}([ T][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}([.][0-9]{{1,9}})?)?"
    "(Z| UTC| ?[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)?)?$"
)
_ZONE = "(Z|UTC|[0-9] ?[+-][0-9:]+)$"
# A midnight without a zone; if all cells of a column are one, they are days.
_MIDNIGHT = f"^{_DATE}([ T]00:00(:00([.]0+)?)?)?$"
_ALLOWED = {
    "number": "a number with a decimal point, true, false, or an empty field if it is missing",
    "time": "a date or time in ISO 8601, or an empty field if it is missing",
}
_LATIN = "convert it, for example from Latin-1: iconv -f latin1 -t utf-8"
_MARKS_OF_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# First bytes of files that are no texts.
_OTHERS = {
    b"PAR1": "a Parquet file",
    b"PK\3\4": "a workbook or a zip archive",
    b"\x1f\x8b": "compressed by gzip",
    b"\x28\xb5\x2f\xfd": "compressed by zstd",
}
# Our message for each kind of line that DuckDB leaves out.
_REJECTED = {
    "MISSING COLUMNS": (
        "has lines with fewer fields than names in its first line",
        "write it again with a CSV writer: each line with all fields, empty ones too",
    ),
    "TOO MANY COLUMNS": (
        "has lines with more fields than names in its first line",
        "write decimals with points, and quote cells that hold a comma",
    ),
    "LINE SIZE OVER MAXIMUM": (
        "has a line of more than 2 MB, as where a quote is never closed",
        "write it again with a CSV writer",
    ),
}


def header(path: str) -> list[str]:
    """Returns names in the first line; they are not for messages: the line may be a record."""
    with _stream(path) as stream:
        start = stream.read(_MOST_HEADER).removeprefix(_MARK)
    for first, kind in _OTHERS.items():
        if start.startswith(first):
            raise DataError(
                f"{called(path)} is {kind} by its first bytes", "give its name the right ending"
            )
    if start.startswith(_MARKS_OF_UTF16) or b"\0" in start.partition(b"\n")[0]:
        raise DataError(
            f"the first line of {called(path)} names no columns in UTF-8, but perhaps in UTF-16",
            "convert it: iconv -f utf-16 -t utf-8",
        )
    lines = io.StringIO(start.decode(errors="replace"), newline="")
    try:
        names = next(csv.reader(lines, strict=True), [])
    except csv.Error:
        names = []
    whole = len(start) < _MOST_HEADER - len(_MARK) or lines.tell() < len(lines.getvalue())
    if not names or not whole or "\ufffd" in "".join(names):
        raise DataError(
            f"the first line of {called(path)} names no columns"
            f"{'' if start else ', as it is empty'}",
            "give a CSV file in UTF-8 whose first line names the columns, with commas between; or "
            f"{_LATIN}",
        )
    return names


def read_texts(
    connection: Any,
    files: Sequence[str],
    names: Sequence[str],
    uses: Mapping[str, str],
    forms: Mapping[str, str] | None = None,
) -> int:
    """Makes the view `records` of columns of CSV files, `c0`, `c1`, ... in the order of their uses.

    Commas between cells, double quotes around them, UTF-8; `names` are those of the first line.
    Returns how many records there are. With `forms` each row is read by itself: a cell that does
    not fit its column's use, or has another form of time than is said there of its column, is
    missing, times are universal time, and `date0`, `date1`, ... say in which rows there is a date.
    """
    from duckdb import InvalidInputException

    chosen = []
    for at, (name, use) in enumerate(uses.items()):
        text = f"t{names.index(name)}"
        value = value_of(text, use, (forms or {}).get(name))
        odd = f"{value} IS NULL AND trim({text}, E' \\t\\r\\n') <> ''"
        # The length of this is that of a midnight without a zone, and 0 for all other times.
        day = f"regexp_extract(nullif({text}, ''), '{_MIDNIGHT}')" if use == "time" else "''"
        zone = f"regexp_matches(substr({text}, 12), '{_ZONE}')" if use == "time" else "false"
        chosen.append(
            f"{value} AS c{at}, {odd} AS bad{at}, length({day}) AS day{at}, {zone} AS zone{at}"
        )
    try:
        connection.execute(
            f"CREATE TEMP TABLE texts AS SELECT {', '.join(chosen)} FROM "
            f"{_lines_of(files, names)}, ignore_errors = false)"
        )
    except InvalidInputException:
        raise _cause(connection, files, names) from None
    asked = ", ".join(
        f"bool_or(bad{at}), min(day{at}), bool_or(day{at} = {_DATE_LENGTH}), "
        f"count(DISTINCT zone{at}) FILTER (c{at} IS NOT NULL), bool_or(zone{at})"
        for at in range(len(uses))
    )
    rows, *found = connection.execute(f"SELECT count(*), {asked} FROM texts").fetchone()
    if rows != sum(count_records(each, columns=len(names)) for each in files):
        raise _cause(connection, files, names)
    kept = _by_columns(uses, found) if forms is None else _by_rows(uses)
    connection.execute(f"CREATE TEMP VIEW records AS SELECT {', '.join(kept)} FROM texts")
    return int(rows)


def _by_rows(uses: Mapping[str, str]) -> list[str]:
    """Returns SQL of the columns of `read_texts`, none of which depends on other rows."""
    times = [at for at, use in enumerate(uses.values()) if use == "time"]
    kept = [
        f"CAST(c{at} AS TIMESTAMP) AS c{at}" if at in times else f"c{at}" for at in range(len(uses))
    ]
    return [*kept, *(f"day{at} = {_DATE_LENGTH} AS date{at}" for at in times)]


def _by_columns(uses: Mapping[str, str], found: Sequence[Any]) -> list[str]:
    """Returns SQL of the same columns, of which each holds one thing in all rows; DataError if not.

    Of each column there are five numbers, in the order in which they were asked for.
    """
    kept = []
    for at, (name, use) in enumerate(uses.items()):
        is_bad, shortest, has_dates, zones, has_zone = found[5 * at : 5 * at + 5]
        if is_bad:
            raise DataError(f"the column {name!r} holds text", f"give {_ALLOWED[use]}")
        if has_dates and not shortest:
            raise DataError(
                f"the column {name!r} holds dates in some rows and times in others",
                "give dates in all rows, or times in all rows",
            )
        if zones > 1:
            raise DataError(
                f"the column {name!r} holds times with a zone in some rows and without one in "
                "others",
                "write all of them in the same way",
            )
        column = f"c{at}"
        if shortest:
            # All times are midnights without a zone, and so they are days.
            column = f"CAST(c{at} AS DATE) AS c{at}"
        elif use == "time" and not has_zone:
            column = f"CAST(c{at} AS TIMESTAMP) AS c{at}"
        kept.append(column)
    return kept


def _lines_of(files: Sequence[str], names: Sequence[str]) -> str:
    """Returns the beginning of SQL that reads each cell of files as a text."""
    texts = ", ".join(f"'t{at}': 'VARCHAR'" for at in range(len(names)))
    return (
        f"read_csv([{', '.join(map(file_literal, files))}], columns = {{{texts}}}, "
        "auto_detect = false, header = true, delim = ',', quote = '\"', escape = '\"', "
        "strict_mode = true, null_padding = false, hive_partitioning = false, parallel = false, "
        f"compression = '{codec_of(files[0])}'"
    )


def _cause(connection: Any, files: Sequence[str], names: Sequence[str]) -> DataError:
    """Returns the error that says why files cannot be read, and which one.

    It tells neither a line nor its number.
    """
    from duckdb import Error

    for path in files:
        encoded, alike = _bytes_of(path)
        if not encoded:
            return DataError(f"{called(path)} is not in UTF-8", _LATIN)
        rejected = []
        try:
            # The table of what is left out is made at the end.
            connection.execute(
                f"SELECT count(*) FROM {_lines_of([path], names)}, store_rejects = true)"
            ).fetchall()
            kinds = "SELECT DISTINCT error_type FROM reject_errors ORDER BY 1"
            rejected = [kind for (kind,) in connection.execute(kinds).fetchall()]
        except Error:
            pass  # The checks below find the cause, or a general error is returned.
        for kind in rejected:
            if kind in _REJECTED:
                what, todo = _REJECTED[kind]
                return DataError(f"{called(path)} {what}", todo)
        if not alike:
            return DataError(
                f"{called(path)} has lines that end in different ways, or in CR alone",
                "end every line in the same way, with LF or with CR and LF",
            )
    return _malformed(files)


def _bytes_of(path: str) -> tuple[bool, bool]:
    """Whether a file is in UTF-8, and whether all its lines end alike, with or without a CR."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    carriages = 0
    lines = 0
    both = 0
    last = b""
    with _stream(path) as stream:
        block = stream.read(_BLOCK)
        while block:
            try:
                decoder.decode(block)
            except UnicodeDecodeError:
                return False, False
            carriages += block.count(b"\r")
            lines += block.count(b"\n")
            both += (last + block).count(b"\r\n")
            last = block[-1:]
            block = stream.read(_BLOCK)
    return True, carriages == both and both in {0, lines}


def count_records(path: str, *, columns: int) -> int:
    """Counts records of a CSV file behind its line of names, in one pass of constant memory.

    A quote opens a cell at its start; a line end outside of quotes ends a record. An empty line is
    no record unless there is only one column.
    """
    lines = 0
    inside = 0
    last = b"\n"
    with _stream(path) as stream:
        block = stream.read(len(_MARK)).removeprefix(_MARK) + stream.read(_BLOCK)
        while block:
            text = np.frombuffer(last + block.replace(b"\r", b""), np.uint8)
            quotes, ends = (np.flatnonzero(text[1:] == each) + 1 for each in (_QUOTE, _LINE))
            # Every second quote opens a cell: the first one may close a cell that is still open.
            if not np.isin(text[quotes[inside::2] - 1], list(b',\n"')).all():
                raise _malformed([path])
            if inside or len(quotes):
                # Line ends behind an odd number of quotes are inside of a cell.
                ends = ends[(inside + np.searchsorted(quotes, ends)) % 2 == 0]
            lines += len(ends) if columns == 1 else int((text[ends - 1] != _LINE).sum())
            inside = (inside + len(quotes)) % 2
            last = text[-1:].tobytes()
            block = stream.read(_BLOCK)
    if inside:
        raise _malformed([path])
    return lines + (last != b"\n") - 1


def value_of(text: str, use: str, form: str | None = None) -> str:
    """Returns SQL of the value of a cell: null if it does not fit its column's use, or its form."""
    if use in {"key", "public", "label"}:
        return text
    if use == "time":
        joined = f"regexp_replace({text}, ' ([+-])', '\\1')"
        zoned = f"regexp_matches(substr({text}, 12), '{_ZONE}')"
        wanted = {
            ZONED: f" AND {zoned}",
            UNZONED: f" AND NOT {zoned} AND NOT {is_date(text)}",
            DATES: f" AND {is_date(text)}",
        }
        of_form = "" if form is None else wanted[form]
        return (
            f"CASE WHEN regexp_matches({text}, '{_TIME}'){of_form} "
            f"THEN TRY_CAST({joined} AS TIMESTAMPTZ) END"
        )
    # 1_0, +-5 and nan(1) are numbers for DuckDB alone.
    odd = f"regexp_matches({text}, '_|[(]|[+]-')"
    number = f"CASE WHEN {odd} THEN NULL ELSE TRY_CAST({text} AS DOUBLE) END"
    truth = f"CASE lower(trim({text})) WHEN 'true' THEN 1e0 WHEN 'false' THEN 0e0 END"
    return f"coalesce({number}, {truth})"


def is_date(text: str) -> str:
    """Returns SQL of whether a cell holds a date, which no zone moves, in place of a time."""
    return f"regexp_matches({text}, '^{_DATE}$')"


@contextmanager
def _stream(path: str) -> Iterator[Any]:
    """Opens a CSV file, which is unpacked as its name says."""
    stream: Any = pa.input_stream  # without compression: None
    codec = codec_of(path)
    packed = None if codec == "none" else codec
    kind = f"file compressed by {packed}" if packed else "CSV file"
    with readable(path, kind), stream(path, compression=packed) as opened:
        yield opened


def _malformed(files: Sequence[str]) -> DataError:
    """Returns the error for files whose lines or quotes are in disorder."""
    return DataError(
        f"the CSV file is malformed: {', '.join(map(called, files[:3]))}",
        "write it again with a CSV writer: double quotes only around whole cells, each closed, "
        "and doubled inside of a cell; all lines with the same ending",
    )
