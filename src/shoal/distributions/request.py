"""Holds what is asked of public counts beside means, and the parts of epsilon that it needs."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, model_validator

from shoal import checks
from shoal.cells.facts.request import (
    FEWEST_USERS,
    RANGES,
    ExactDelta,
    PlainFraction,
    TwoBounds,
)
from shoal.cells.facts.request import Request as CellsRequest
from shoal.data.value_lattice import MOST_BITS, Bounds, Lattice
from shoal.documents.model import Model, checked
from shoal.errors import InputError
from shoal.privacy.budget import check_epsilon
from shoal.release.statistics import Statistic, read_statistic

# Statistics that follow from the mean, and from squares about it.
OF_MEANS = ("mean", "sum", "std", "variance")
OF_SQUARES = ("std", "variance")
_MOST_STATISTICS = 30
# What to do instead of asking for another statistic.
_INSTEAD = {
    "count": "counts are public: take records.counts().to_pandas()",
    "users": "counts are public: take records.counts().to_pandas()",
    "records": "counts are public: take records.counts().to_pandas()",
    "presence": 'who is in which cell is public here; if it is secret, leave counts="public" out',
}


def statistic_of(text: object) -> Statistic:
    """Returns a statistic by its name; InputError for another."""
    name = checks.text(text, "a statistic")
    found = read_statistic(name, OF_MEANS)
    if found is not None:
        return found
    raise InputError(
        f"there is no statistic {checks.shown(name)} of public counts",
        _INSTEAD.get(name, "give mean, sum, std or variance"),
    )


def _statistics(given: Any) -> tuple[str, ...]:
    """Returns the names of different statistics."""
    listed = checks.items(given, "statistics", least=1, most=_MOST_STATISTICS)
    found = [statistic_of(each).name for each in listed]
    if len(set(found)) < len(found):
        raise InputError("a statistic is given twice", f"give each of {', '.join(found)} once")
    return tuple(found)


class Request(Model):
    """Exactly what a custodian asks; see `shoal.plan` for each."""

    bounds: TwoBounds
    tick_bits: Annotated[int, checked(checks.whole, "tick bits", least=10, most=MOST_BITS)] = 20
    statistics: Annotated[tuple[str, ...], BeforeValidator(_statistics)]
    epsilon: Annotated[Fraction, checked(check_epsilon), PlainFraction]
    delta: ExactDelta = Fraction(0)
    range: Annotated[str | None, checked(checks.choice, RANGES, "range")] = None
    min_users: Annotated[int, checked(checks.whole, "min_users", least=1)] = FEWEST_USERS
    min_records: Annotated[int, checked(checks.whole, "min_records", least=1)] = 1

    @cached_property
    def lattice(self) -> Lattice:
        """Bounds and ticks of the values."""
        return Lattice(Bounds(*self.bounds), self.tick_bits)

    @cached_property
    def kinds(self) -> tuple[Statistic, ...]:
        """What is asked of each cell."""
        return tuple(map(statistic_of, self.statistics))

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts, each of which has the same part of epsilon."""
        kinds = {each.kind for each in self.kinds}
        needed = {"mean": OF_MEANS, "squares": OF_SQUARES}
        return tuple(part for part, of_part in needed.items() if kinds & {*of_part})

    def of_part(self, part: str) -> CellsRequest:
        """Returns the request for the means of values, or of squares about released means."""
        many = len(self.parts)
        low, high = self.bounds
        is_mean = part == "mean"
        return CellsRequest(
            bounds=self.bounds if is_mean else (0.0, float((Fraction(high) - Fraction(low)) ** 2)),
            tick_bits=self.tick_bits,
            epsilon=self.epsilon / many,
            delta=self.delta / many,
            # Squares are small beside the square of the width, unless values fill the bounds.
            range=self.range if is_mean else self.range or "loose",
            min_users=self.min_users,
            min_records=self.min_records,
        )

    @model_validator(mode="after")
    def _together(self) -> Self:
        """Refuses bounds and tick bits that do not go together."""
        _ = self.lattice
        return self
