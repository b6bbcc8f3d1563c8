"""What is asked of private counts: cells, statistics, and about how many users there are."""

from __future__ import annotations

import operator
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Self

import pyarrow as pa
from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from shoal import checks
from shoal.data.value_lattice import MOST_BITS, Bounds, Lattice
from shoal.documents.model import Model, checked, is_none
from shoal.errors import InputError
from shoal.presence.guide import Guide
from shoal.privacy.budget import check_delta, check_epsilon
from shoal.privacy.unit import MOST_PERIODS
from shoal.release.envelope import Keys, Text, TwoBounds
from shoal.release.statistics import Statistic, read_statistic

TOTALS = ("users", "records", "sum")
# Pieces of the range, and more of them where epsilon times the users of a cell is so large that
# noise hides less than a piece does.
PIECES = 8
_FINE_PIECES = 16
_USERS_OF_FINE = 600
_MOST_USERS = 2**32
_MOST_STATISTICS = 30
_OF_VALUES = (
    *("mean", "median", "quantile", "share_above", "share_below", "share_between"),
    "histogram",
)
_Exact = PlainSerializer(str)


def statistic_of(text: object) -> Statistic:
    """Returns a statistic by its name; InputError for another."""
    name = checks.text(text, "a statistic")
    found = read_statistic(name, (*TOTALS, *_OF_VALUES))
    # Pieces of a private range are not known beforehand.
    if found is not None and not (found.kind == "histogram" and found.numbers):
        return found
    raise InputError(
        f"there is no statistic {checks.shown(name)} of private counts"
        + (
            ": what lies outside a private range is most of a standard deviation"
            if name in ("std", "variance")
            else ""
        ),
        "give users, records, sum, mean, median, quantile(0.9), share_above(60), "
        "share_below(60), share_between(20, 60) or histogram",
    )


def _statistics(given: Any) -> tuple[str, ...]:
    listed = checks.items(given, "statistics", least=1, most=_MOST_STATISTICS)
    found = [statistic_of(each).name for each in listed]
    if len(set(found)) < len(found):
        raise InputError("a statistic is given twice", f"give each of {', '.join(found)} once")
    return tuple(found)


class Request(Model):
    """Exactly what a custodian asks of private counts.

    Attributes:
        keys: The cells, a column for each cell rule; without a row they are found with the delta.
        users: About how many users there are: public knowledge, not from the data.
        pieces: Of the private range, for medians and the like.
        records_per_user: Each user counts for at most so many records; None lets a look decide.
        periods: The periods that are answered and charged, sorted, if a user in one period takes
            the place of a user; empty if not.
        min_users: A cell with a smaller noisy number of users is marked; None marks none.
        guide: What an earlier release says beforehand, in place of looks and a range.
        like_last: Whether `shoal publish` takes the last release as the guide of the next one.
    """

    keys: Keys
    bounds: TwoBounds
    tick_bits: Annotated[int, checked(checks.whole, "tick bits", least=10, most=MOST_BITS)] = 20
    statistics: Annotated[tuple[str, ...], BeforeValidator(_statistics)] = ("users", "mean")
    epsilon: Annotated[Fraction, checked(check_epsilon), _Exact]
    delta: Annotated[Fraction, checked(check_delta), _Exact] = Fraction(0)
    users: Annotated[int, checked(checks.whole, "users", least=1, most=_MOST_USERS)]
    pieces: Annotated[int, checked(checks.whole, "pieces", least=2, most=64)] = PIECES
    records_per_user: Annotated[
        int | None, checked(checks.whole, "records_per_user", least=1, most=2**30)
    ] = None

    periods: Annotated[tuple[Text, ...], Field(max_length=MOST_PERIODS)] = ()
    min_users: Annotated[
        int | None, checked(checks.whole, "min_users", least=1, most=_MOST_USERS)
    ] = Field(default=None, exclude_if=is_none)
    guide: Guide | None = Field(default=None, exclude_if=is_none)
    like_last: bool = Field(default=False, exclude_if=operator.not_)

    def of_cells(self, cells: pa.Table) -> Self:
        """The same request for cells that were found."""
        return self.model_copy(update={"keys": cells, "delta": Fraction(0)})

    @property
    def finds(self) -> bool:
        """Whether the cells are found."""
        return not self.keys.num_rows

    @cached_property
    def lattice(self) -> Lattice:
        """Bounds and ticks of the values."""
        return Lattice(Bounds(*self.bounds), self.tick_bits)

    @cached_property
    def kinds(self) -> tuple[Statistic, ...]:
        """What is asked of each cell."""
        return tuple(map(statistic_of, self.statistics))

    @property
    def totals(self) -> list[str]:
        """Users, records and sums, as far as they are asked for, in this order."""
        return [each for each in TOTALS if each in self.statistics]

    @property
    def of_values(self) -> list[Statistic]:
        """What is asked of the values."""
        return [each for each in self.kinds if each.kind not in TOTALS]

    @property
    def n_pieces(self) -> int:
        """Pieces of the range: one is enough for a mean alone, none without values."""
        kinds = {each.kind for each in self.of_values}
        if not kinds:
            return 0
        return 1 if kinds == {"mean"} else self.pieces

    @property
    def best_pieces(self) -> int:
        """Pieces of the range, unless somebody asks for others."""
        if self.finds or self.epsilon * self.users < _USERS_OF_FINE * self.keys.num_rows:
            return PIECES
        return _FINE_PIECES

    @property
    def blocks(self) -> set[str]:
        """The blocks of numbers of which each has a cap."""
        return {*self.totals, *(["values"] if self.n_pieces else [])}

    @model_validator(mode="after")
    def _together(self) -> Self:
        """Refuses what does not go together."""
        if self.finds != (self.delta > 0):
            raise InputError(
                "a delta finds cells that are not listed, and is of no use for others",
                "give either keys or a delta, such as delta=1e-9",
            )
        if self.min_users is not None and "users" not in self.statistics:
            raise InputError(
                "min_users is compared with the noisy number of users, which is not asked for",
                "add users to the statistics, or leave min_users out",
            )
        if self.guide is not None and not self.guide.fits(self.keys.num_rows, self.blocks):
            raise InputError(
                "the guide is of other cells or statistics than the request",
                "make the plan anew with like=",
            )
        low, high = self.bounds
        limits = [each for kind in self.of_values if "share" in kind.kind for each in kind.numbers]
        for limit in limits:
            if not low < limit < high:
                raise InputError(
                    f"the limit {limit:g} of a share is not inside the bounds",
                    f"give a limit between {low:g} and {high:g}",
                )
        if "sum" in self.statistics and self.bounds[0] < 0:
            raise InputError(
                "a sum needs values from 0",
                "ask for the mean and records, or move the values by a public constant",
            )
        return self
