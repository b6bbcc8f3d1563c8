"""Paths that stay the same whatever the working folder will be."""

from __future__ import annotations

import os

from shoal import checks
from shoal.errors import InputError


def whole_path(value: object, name: str = "path") -> str:
    """A path as text that stays the same whatever the working folder will be; follows no link.

    Raises:
        InputError: It is none, or relative to a working folder that was removed.

    Example:
        >>> whole_path("/trips/../a.csv")
        '/a.csv'
    """
    given = checks.path(value, name)
    try:
        return os.path.abspath(given)
    except OSError:
        pass
    raise InputError(
        f"{name} is relative, and the working folder was removed",
        "an absolute path, or a working folder that exists",
        "change to a folder that exists",
    )
