"""Keeps results that take long to compute with the plan, or the numbers, that they are about."""

from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

Others = ParamSpec("Others")
Found = TypeVar("Found")


class Remembering:
    """An object that never changes and keeps the results of `remembered` functions about it."""

    @cached_property
    def known(self) -> dict[Any, Any]:
        """The results of functions, by function and other arguments."""
        return {}


Owner = TypeVar("Owner", bound=Remembering)


def remembered(
    function: Callable[Concatenate[Owner, Others], Found],
) -> Callable[Concatenate[Owner, Others], Found]:
    """Returns the function with its results kept: it computes once for an object and arguments."""

    @wraps(function)
    def once(owner: Owner, /, *others: Others.args, **named: Others.kwargs) -> Found:
        asked = (function, *others, *named.items())
        if asked not in owner.known:
            owner.known[asked] = function(owner, *others, **named)
        found: Found = owner.known[asked]
        return found

    return once
