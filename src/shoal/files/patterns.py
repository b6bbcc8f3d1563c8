"""Patterns of file names: which files they stand for, and which a new file would be one of."""

from __future__ import annotations

import glob
import os
import re
import unicodedata
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_MAGIC = re.compile(r"[*?\[]")
# Not one sign in brackets, which stands for itself.
_OPEN, _ESCAPED = re.compile(r"[*?]|\[(?![*?\[]\])"), re.compile(r"\[([*?\[])\]")


def is_pattern(path: str | os.PathLike[str]) -> bool:
    """Whether a path stands for all files whose names are like it; one that is there is itself.

    Example:
        >>> is_pattern("trips/*.csv"), is_pattern("trips.csv")
        (True, False)
    """
    return bool(_MAGIC.search(os.fspath(path))) and not os.path.lexists(path)


def absolute(pattern: str) -> str:
    """The same pattern whatever the working folder will be; the name of that is no pattern.

    Example:
        >>> absolute("/trips/*.csv")
        '/trips/*.csv'
    """
    if os.path.isabs(pattern):  # noqa: PTH117  a text
        return pattern
    return os.path.join(glob.escape(os.getcwd()), pattern)  # noqa: PTH109, PTH118


def fixed_part(pattern: str) -> str:
    """The folder that all matches lie in: what is before the first part with a star or bracket.

    Example:
        >>> fixed_part("trips/2013-*/a.csv"), fixed_part("*.csv"), fixed_part("a[*]b/*.csv")
        ('trips', '', 'a*b')
    """
    found = _OPEN.search(_ESCAPED.sub("xxx", pattern))
    folder = os.path.dirname(pattern[: found.start()] if found else pattern)  # noqa: PTH120
    return _ESCAPED.sub(r"\1", folder)


def matches(pattern: str) -> list[str]:
    """What there is whose name is like a pattern, in the order of bytes; `**` is any folders.

    Example:
        >>> matches("/no such folder/*.csv")
        []
    """
    try:
        found = glob.glob(pattern, recursive=True)  # noqa: PTH207  names as they are spelled
    except ValueError:  # a broken name
        return []
    return sorted(found, key=os.fsencode)


def would_match(pattern: Path, target: Path) -> bool:
    """Whether a file, once written, is or becomes one of a pattern's; links are followed.

    Letters are also compared as file systems do that fold case or accents.

    Example:
        >>> from pathlib import Path
        >>> would_match(Path("*.csv"), Path("new.csv")), would_match(Path("*.csv"), Path("a.json"))
        (True, False)
    """
    if not is_pattern(pattern):
        return False
    whole = absolute(os.fspath(pattern))
    folder, name = os.path.split(whole)
    places = {target, _real(target)}
    read = {_identity(each) for each in matches(whole)} - {None}
    if any(_identity(each) in read for each in places):
        return True
    within = {_identity(each) for each in matches(folder)} - {None}
    return any(_identity(each.parent) in within and _like(each.name, name) for each in places)


def _like(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(_folded(name), _folded(pattern))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _identity(path: str | Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116  a path of any kind
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def _real(path: Path) -> Path:
    try:
        return type(path)(os.path.realpath(path))
    except (OSError, ValueError):
        return path
