"""Options that public functions pass on by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shoal.checks import shown
from shoal.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def check_keywords(
    given: Mapping[str, Any], known: Iterable[str], where: str, todo: str = "check the spelling"
) -> None:
    """Refuse options that a function does not have.

    Args:
        given: Those that it was called with.
        known: Names of those that it has.
        where: What the function is called.
        todo: What to do instead.

    Raises:
        InputError: One that is not known.

    Example:
        >>> check_keywords({"seed": 1}, ["noise"], "mean.auto")
        Traceback (most recent call last):
        shoal.errors.InputError: an option 'seed' of mean.auto; allowed: noise; check the spelling.
    """
    names = list(known)
    unknown = [name for name in given if name not in names]
    if unknown:
        raise InputError(f"an option {shown(min(unknown))} of {where}", ", ".join(names), todo)
