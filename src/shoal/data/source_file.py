"""Files of records: where they are, for good, and that they stay so while they are read."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from shoal import checks
from shoal.data.file_set import members
from shoal.errors import DataError, InputError
from shoal.files.patterns import absolute, is_pattern, plain

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class SourceFile(os.PathLike[str]):
    """A file, or several as a pattern or folder, by absolute path; called as the user did.

    Attributes:
        given: The path as it was given.
        place: The same, whatever the working folder will be.
        pattern: Whether it is a pattern, rather than a file whose name has brackets.
        files: The files that it stands for, once they are listed.
    """

    given: str
    place: str
    pattern: bool = False
    files: tuple[SourceFile, ...] = ()

    def __fspath__(self) -> str:
        """Where the file is."""
        return self.place


def located(source: object) -> object:
    """A path as a file that no change of the working folder moves; anything else as it is.

    Guarantees: G-RECORDS.

    Example:
        >>> located("a.csv").place == os.path.abspath("a.csv"), located(3)
        (True, 3)
    """
    if isinstance(source, SourceFile):
        return source
    try:
        given = checks.path(source)
    except InputError:
        return source
    if is_pattern(given):
        return SourceFile(given, absolute(given), pattern=True)
    # Not resolved: a link and what it leads to are both what is read.
    return SourceFile(given, plain(given))


def files_of(source: str | os.PathLike[str]) -> tuple[SourceFile, ...]:
    """The files that a path stands for; within `unchanged` those that were there at its start.

    Raises:
        DataError: No file is like the pattern, or a folder is none of Parquet files.

    Example:
        >>> [each.given for each in files_of("a.csv")]
        ['a.csv']
    """
    if isinstance(source, SourceFile) and source.files:
        return source.files
    found = located(source)
    if not isinstance(found, SourceFile):
        return (SourceFile(os.fspath(source), os.fspath(source)),)
    listed = members(found.given, found.place, pattern=found.pattern)
    return tuple(SourceFile(*each) for each in listed)


def describe(source: object) -> str:
    """A source in public words: its path, or what kind of table it is."""
    if isinstance(source, SourceFile):
        return repr(source.given)
    if isinstance(source, str | PurePath):
        return repr(os.fspath(source))
    return f"the {type(source).__module__.split('.')[0]} table"


@contextmanager
def unchanged(source: object) -> Iterator[Any]:
    """Read a source in a block; files must be the same after it, so that all is of one reading.

    Yields:
        The source; of several files, those that are there now, whatever is added meanwhile.

    Raises:
        DataError: A file was written, replaced, added or taken away meanwhile.

    Guarantees: G-RECORDS.

    Example:
        >>> with unchanged("no file") as source:
        ...     source.given
        'no file'
    """
    found = located(source)
    if not isinstance(found, SourceFile):
        yield source
        return
    now = replace(found, files=files_of(replace(found, files=())))
    before = _state(now)
    yield now
    if _state(found) != before:
        raise DataError(
            f"the file {describe(source)} changed while it was read",
            "a file that stays as it is until the command is done",
            "ask again once the file is complete",
        )


def _state(source: SourceFile) -> list[tuple[str | int, ...]]:
    return [_state_of(each.place) for each in files_of(source)]


def _state_of(path: str) -> tuple[str | int, ...]:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        # Whoever reads it says so.
        return (path,)
    whole = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    return (path, *whole)
