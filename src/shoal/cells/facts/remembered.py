"""What is long to compute of a plan, or of its numbers, and is kept with them."""

from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

Others = ParamSpec("Others")
Found = TypeVar("Found")


class Remembering:
    """An unchanging object that keeps what functions of layers above have found of it."""

    @cached_property
    def known(self) -> dict[Any, Any]:
        """By function and its other arguments: what it returned."""
        return {}


Owner = TypeVar("Owner", bound=Remembering)


def remembered(
    function: Callable[Concatenate[Owner, Others], Found],
) -> Callable[Concatenate[Owner, Others], Found]:
    """Returns the function, which computes once for the same object and arguments."""

    @wraps(function)
    def once(owner: Owner, /, *others: Others.args, **named: Others.kwargs) -> Found:
        asked = (function, *others, *named.items())
        if asked not in owner.known:
            owner.known[asked] = function(owner, *others, **named)
        found: Found = owner.known[asked]
        return found

    return once
