"""Patterns of file names: which files they stand for, and which a new file would be one of."""

from __future__ import annotations

import glob
import os
import re
import unicodedata
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import TYPE_CHECKING

from shoal.checks.places import whole_path

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


def plain(path: str) -> str:
    """The same place whatever the working folder will be, in one spelling that all engines share.

    What `..` behind a link leads to is where the system goes, not what the text looks like.

    Example:
        >>> plain("/trips/2013.csv"), plain("/no such folder/./x//2013.csv")
        ('/trips/2013.csv', '/no such folder/x/2013.csv')
    """
    here = whole_path(os.curdir) if not os.path.isabs(path) else ""
    whole = os.path.join(here, path) if path else here
    if os.path.normpath(whole) == whole:
        return whole
    folder, name = os.path.split(whole)
    if name in {"", os.curdir, os.pardir}:
        return os.path.realpath(whole)
    return os.path.join(os.path.realpath(folder), name)


def absolute(pattern: str) -> str:
    """The same pattern whatever the working folder will be; the name of that is no pattern.

    Example:
        >>> absolute("/trips/*.csv"), absolute("/trips/./2013//*.csv")
        ('/trips/*.csv', '/trips/2013/*.csv')
    """
    found = _OPEN.search(_ESCAPED.sub("xxx", pattern))
    folder = os.path.dirname(pattern[: found.start()] if found else pattern)
    rest = pattern[len(folder) :].lstrip(os.sep)
    # pathlib drops empty parts and single dots, which mean nothing, and keeps double ones.
    return os.path.join(glob.escape(plain(_ESCAPED.sub(r"\1", folder))), *PurePath(rest).parts)


def fixed_part(pattern: str) -> str:
    """The folder that all matches lie in: what is before the first part with a star or bracket.

    Example:
        >>> fixed_part("trips/2013-*/a.csv"), fixed_part("*.csv"), fixed_part("a[*]b/*.csv")
        ('trips', '', 'a*b')
    """
    found = _OPEN.search(_ESCAPED.sub("xxx", pattern))
    folder = os.path.dirname(pattern[: found.start()] if found else pattern)
    return _ESCAPED.sub(r"\1", folder)


def matches(pattern: str) -> list[str]:
    """What there is whose name is like a pattern, in the order of bytes; `**` is any folders.

    Example:
        >>> matches("/no such folder/*.csv")
        []
    """
    try:
        found = glob.glob(pattern, recursive=True)
    except (ValueError, RecursionError):  # a broken name, or thousands of folders
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
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def _real(path: Path) -> Path:
    try:
        return type(path)(os.path.realpath(path))
    except (OSError, ValueError):
        return path
