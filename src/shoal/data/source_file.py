"""A file of records: where it is, for good, and that it stays as it is while it is read."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal import checks
from shoal.errors import DataError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class SourceFile(os.PathLike[str]):
    """A file by its absolute path, which messages call as the user did.

    Attributes:
        given: The path as it was given.
        place: The same, whatever the working folder will be.
    """

    given: str
    place: str

    def __fspath__(self) -> str:
        """Where the file is."""
        return self.place


def located(source: object) -> object:
    """A path as a file that no change of the working folder moves; anything else as it is.

    Guarantees: G-PLACE.

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
    # Not resolved: a link and what it leads to are both what is read.
    return SourceFile(given, os.path.abspath(given))  # noqa: PTH100


def describe(source: object) -> str:
    """A source in public words: its path, or what kind of table it is."""
    if isinstance(source, SourceFile):
        return repr(source.given)
    if isinstance(source, str | os.PathLike):
        return repr(os.fspath(source))
    return f"the {type(source).__module__.split('.')[0]} table"


@contextmanager
def unchanged(source: object) -> Iterator[None]:
    """Read a source in a block; a file must be the same after it, so that all is of one reading.

    Raises:
        DataError: The file was written, replaced or taken away meanwhile.

    Guarantees: G-PLACE.

    Example:
        >>> with unchanged("no file"):
        ...     pass
    """
    before = _state(source)
    yield
    if _state(source) != before:
        raise DataError(
            f"the file {describe(source)} changed while it was read",
            "a file that stays as it is until the command is done",
            "ask again once the file is complete",
        )


def _state(source: object) -> tuple[int, ...] | None:
    if not isinstance(source, str | os.PathLike):
        return None
    try:
        found = os.stat(source)  # noqa: PTH116  a path of any kind
    except (OSError, ValueError):
        # Whoever reads it says so.
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
