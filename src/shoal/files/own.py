"""Whether a file is an output of shoal: nothing else is ever replaced, forced or not.

Each kind of file says so in its own place: a document by the schema at its top, a table in CSV or
JSON by its columns, all of them in their order, Parquet by a mark of its contents, which readers
hand on to tables that have others, and a picture or a page by a mark where its format has such
things.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from typing import TYPE_CHECKING

from shoal.documents import KINDS
from shoal.documents.strict_json import MOST_BYTES

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

MARK = b"shoal.output"
PAGE_END = b"<!-- " + MARK + b" -->\n"
# A column that marks tables whose own columns differ from one to the next.
MARK_COLUMN = "shoal_study"
# Columns of a table of cells, after those of the keys.
_CELLS = (
    *("statistic", "status", "reason", "source", "users", "records", "value", "low", "high"),
    *("plain", "plain_low", "plain_high", "noise_scale", "bias_bound", "worst_case_error"),
)
_TRIALS = {
    ("cluster", "arm", "outcome", "debiased"),
    ("cluster", "arm", "unit", "outcome", "debiased"),
    ("cluster", "arm", "response", "debiased"),
    ("cluster", "arm", "unit", "response", "debiased"),
    ("cluster", "arm", "units", "control_units", "difference", "noise_standard_error"),
    ("cluster", "arm", "units", "outcome", "share"),
    ("question", "value", "standard_error", "low", "high"),
}
_PNG, _PDF, _PARQUET = b"\x89PNG\r\n", b"%PDF-", b"PAR1"
_SVG = (b"<?xml", b"<svg")
_START, _PART, _TAIL = 2**16, 2**20, 8


def is_own(path: Path) -> bool:
    r"""Whether a regular file is empty or was written by shoal, as far as its contents tell.

    Args:
        path: Of a regular file that is no database of SQLite.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "pupils.csv")
        ...     _ = path.write_text("pupil,grade\n1,3\n")
        ...     is_own(path)
        False
    """
    try:
        with path.open("rb") as stream:
            return _is_own(stream)
    except OSError:
        return False


def contents_mark(stream: BinaryIO) -> bytes:
    """The mark of a Parquet file: of columns, types, and all bytes before the footer, which has it.

    Args:
        stream: The file, with or without the mark.

    Raises:
        ArrowException: It is no Parquet file.

    Example:
        >>> import io, pyarrow as pa
        >>> from pyarrow import parquet
        >>> files = io.BytesIO(), io.BytesIO()
        >>> for number, file in enumerate(files):
        ...     parquet.write_table(pa.table({"a": [number]}), file)
        >>> contents_mark(files[0]) == contents_mark(files[1])
        False
    """
    from pyarrow import parquet

    schema = parquet.read_metadata(stream).schema.to_arrow_schema()
    columns = [[field.name, str(field.type)] for field in schema]
    found = hashlib.sha256(json.dumps(columns).encode())
    # The last bytes are the footer's length and the mark of the format.
    end = stream.seek(-_TAIL, os.SEEK_END)
    left = end - int.from_bytes(stream.read(4), "little")
    stream.seek(0)
    while left > 0 and (part := stream.read(min(left, _PART))):
        found.update(part)
        left -= len(part)
    return found.hexdigest().encode()


def _is_own(stream: BinaryIO) -> bool:
    start = stream.read(_START)
    if not start:
        return True
    if start.startswith(_PARQUET):
        return _marked_parquet(stream)
    if start.startswith(_PNG):
        return b"tEXtSoftware\0" + MARK in start
    if start.startswith(_SVG):
        return b"<dc:title>" + MARK in start.replace(b"\n", b"").replace(b" ", b"")
    if start.startswith(_PDF):
        stream.seek(0)
        return b"/Creator (" + MARK + b")" in stream.read(MOST_BYTES)
    if start.lstrip()[:1] in {b"{", b"["}:
        stream.seek(0)
        return _is_json(stream.read(MOST_BYTES + 1))
    return start.endswith(PAGE_END) or _is_table(_header(start))


def _marked_parquet(stream: BinaryIO) -> bool:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        mark = (parquet.read_metadata(stream).metadata or {}).get(MARK)
        return mark is not None and mark == contents_mark(stream)
    except (pa.ArrowException, OSError):
        return False


def _is_json(text: bytes) -> bool:
    """Whether it is a document of a schema of shoal's, or rows of one of its tables."""
    if len(text) > MOST_BYTES:
        return False
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if isinstance(found, list):
        shapes = {tuple(row) if isinstance(row, dict) else () for row in found}
        return len(shapes) == 1 and _is_table(shapes.pop())
    return str(found.get("schema", "")).partition("/")[0] in KINDS


def _is_table(names: tuple[str, ...]) -> bool:
    """Whether columns are those of one of our tables, all of them and in their order."""
    if names[:1] == (MARK_COLUMN,) or names in _TRIALS:
        return True
    return len(names) > len(_CELLS) and names[-len(_CELLS) :] == _CELLS


def _header(start: bytes) -> tuple[str, ...]:
    """Columns of a table by its first line."""
    line = start.split(b"\n", 1)[0].decode("utf-8", "replace").strip("\r\ufeff")
    try:
        return tuple(next(csv.reader([line]), ()))
    except csv.Error:
        return ()
