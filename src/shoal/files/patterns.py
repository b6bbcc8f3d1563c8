"""Patterns of file names: which files they stand for, and which a new file would be one of."""

from __future__ import annotations

import glob
import os
import re
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

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
    here = os.path.abspath(os.curdir) if not os.path.isabs(path) else ""
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
