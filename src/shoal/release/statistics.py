"""Reads what is asked of every cell, of private and of public counts, by the texts that name it."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from itertools import pairwise
from typing import NamedTuple

from shoal.errors import InputError

_NUMBER = r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?"
_CALL = re.compile(rf"([a-z_]+)(?:\(({_NUMBER}(?:, ?{_NUMBER})*)\))?")
# The statistics that have so many numbers in their names; those of the last line have any.
_NUMBERS = {
    **dict.fromkeys(("users", "records", "sum", "mean", "std", "variance", "median"), 0),
    **dict.fromkeys(("quantile", "share_above", "share_below"), 1),
    "share_between": 2,
    **dict.fromkeys(("histogram", "cdf"), None),
}


class Statistic(NamedTuple):
    """One statistic of every cell: its name, what it is, and the numbers in its name."""

    name: str
    kind: str
    numbers: tuple[float, ...] = ()

    @property
    def limits(self) -> tuple[float, float]:
        """Of a share: the limits between which values count."""
        if self.kind == "share_above":
            return self.numbers[0], math.inf
        if self.kind == "share_below":
            return -math.inf, self.numbers[0]
        low, high = self.numbers
        return low, high

    @property
    def level(self) -> float:
        """Of a quantile: the share of values below it."""
        return self.numbers[0] if self.numbers else 0.5


def read_statistic(name: str, kinds: Collection[str]) -> Statistic | None:
    """Returns the statistic of a name, written in one way; None if it is none of these kinds.

    A level that is no share, and thresholds that do not rise, are an InputError.
    """
    call = _CALL.fullmatch(name)
    if call is None or call[1] not in kinds:
        return None
    kind = call[1]
    numbers = tuple(float(each) for each in call[2].split(",")) if call[2] else ()
    if _NUMBERS[kind] not in (len(numbers), None):
        return None
    if kind == "quantile" and not 0 < numbers[0] < 1:
        raise InputError(f"there is no {name}", "give a level between 0 and 1, such as 0.9")
    for low, high in pairwise(numbers):
        if not low < high:
            raise InputError(
                f"there is nothing between the limits of {name}", "give rising numbers, low < high"
            )
    return Statistic(named(kind, *numbers), kind, numbers)


def named(kind: str, *numbers: float) -> str:
    """Returns the name of a statistic: 5e1 and 50.0 are 50."""
    texts = [repr(float(each)).removesuffix(".0") for each in numbers]
    return f"{kind}({', '.join(texts)})" if texts else kind
