"""Whether results that a manifest states follow from what was drawn, which it states, too."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from shoal.errors import DocumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# As in the second opinion: another machine's mathematics may move the last digits.
CLOSE = 1e-9


def check_stated(
    stated: Sequence[Any], own: Sequence[Any], slack: Sequence[float] | None = None
) -> None:
    """Refuse results that do not follow from what was drawn.

    There are as many, in the same order; texts, whole numbers and keys are the same. Floating-point
    numbers differ by at most a part of 1e-9 of the largest number of their result, and its slack.

    Args:
        stated: Results as read, one JSON object each.
        own: The same, computed from what was drawn.
        slack: What else rounding may move the numbers of each result by: nothing unless given.

    Raises:
        DocumentError: They do not follow, or are no numbers.

    Example:
        >>> check_stated([{"cell": 1, "value": 0.3}], [{"cell": 1, "value": 0.1 + 0.2}])
        >>> check_stated([{"cell": 1, "value": 0.3}], [{"cell": 2, "value": 0.1 + 0.2}])
        Traceback (most recent call last):
        shoal.errors.DocumentError: the manifest is damaged, or may have been changed; allowed: ...
    """
    more = [0.0] * len(own) if slack is None else slack
    if len(stated) != len(own):
        raise damaged()
    for told, made, off in zip(stated, own, more, strict=True):
        largest = max((abs(each) for each in _numbers(made)), default=0.0)
        if not _same(told, made, CLOSE * largest + off):
            raise damaged()


def damaged() -> DocumentError:
    """The error of a manifest whose parts do not fit each other."""
    return DocumentError(
        "the manifest is damaged, or may have been changed",
        "a document written by shoal",
        "fetch it again, or have it delivered from the ledger",
    )


def _numbers(made: Any) -> Iterator[float]:
    if isinstance(made, float):
        yield made
    elif isinstance(made, dict | list):
        for each in made.values() if isinstance(made, dict) else made:
            yield from _numbers(each)


def _same(told: Any, made: Any, slack: float) -> bool:
    if isinstance(made, float):
        # JSON may write a whole number without its point; true is no number.
        return type(told) in {int, float} and abs(told - made) <= slack < math.inf
    # True == 1, but they are not the same key.
    if type(told) is not type(made):
        return False
    if isinstance(made, dict):
        return told.keys() == made.keys() and all(
            _same(told[name], each, slack) for name, each in made.items()
        )
    if isinstance(made, list):
        return len(told) == len(made) and all(
            _same(one, other, slack) for one, other in zip(told, made, strict=True)
        )
    return bool(told == made)
