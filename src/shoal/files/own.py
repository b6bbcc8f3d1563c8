"""Whether a file is an output of shoal: nothing else is ever replaced, forced or not.

Parquet files, pictures and pages carry a mark. Documents name a schema of shoal's. A table in CSV
or JSON is known by its columns: it has all those of one of shoal's tables.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

from shoal.documents.opened import opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

MARK = b"shoal.output"
# A column that marks tables whose own columns differ from one to the next.
MARK_COLUMN = "shoal_study"
_TABLES: tuple[frozenset[str], ...] = (
    frozenset({"statistic", "status", "users", "records", "noise_scale", "worst_case_error"}),
    frozenset({"cluster", "arm", "outcome", "debiased"}),
    frozenset({"cluster", "arm", "difference", "noise_standard_error"}),
    frozenset({"cluster", "arm", "units", "outcome", "share"}),
    frozenset({MARK_COLUMN}),
)
_SCHEMA = re.compile(rb'"schema":\s*"shoal\.')
_KEY = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:')
_END, _PART, _OVERLAP = 2**16, 2**20, 64


def is_own(path: Path) -> bool:
    r"""Whether a regular file is empty or was written by shoal, as far as its contents tell.

    No operation on a ledger goes on in this process meanwhile: to close another handle of its file
    would drop its locks.

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
        with opened(path) as stream:
            start = stream.read(_END)
            stream.seek(max(0, path.stat().st_size - _END))
            if not start or MARK in start or MARK in stream.read(_END):
                return True
            if start.lstrip().startswith(b"{"):
                return _names_a_schema(stream)
    except OSError:
        return False
    return any(columns <= _columns(start) for columns in _TABLES)


def _names_a_schema(stream: BinaryIO) -> bool:
    """Whether a document says anywhere that it is of a schema of shoal's."""
    return any(_SCHEMA.search(part) is not None for part in _parts(stream))


def _parts(stream: BinaryIO) -> Iterator[bytes]:
    stream.seek(0)
    last = b""
    while part := stream.read(_PART):
        yield last + part
        last = part[-_OVERLAP:]


def _columns(start: bytes) -> set[str]:
    """Columns of a table by its first line, or by the keys of its first object."""
    if start.lstrip().startswith(b"["):
        return {each.decode("utf-8", "replace") for each in _KEY.findall(start.split(b"}")[0])}
    line = start.split(b"\n", 1)[0].decode("utf-8", "replace").strip("\r\ufeff")
    try:
        return set(next(csv.reader([line]), ()))
    except csv.Error:
        return set()
