"""Holds what is asked of public counts beside means, and the parts of epsilon that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BeforeValidator, model_validator

from shoal import checks
from shoal.cells.facts.request import (
    FEWEST_USERS,
    OBJECTIVES,
    RANGES,
    ExactDelta,
    PlainFraction,
)
from shoal.cells.facts.request import Request as CellsRequest
from shoal.data.value_lattice import MOST_BITS, Bounds, Lattice
from shoal.documents.model import Model, checked
from shoal.errors import InputError
from shoal.privacy.budget import check_epsilon
from shoal.release.envelope import TwoBounds
from shoal.release.statistics import Statistic, named, read_statistic
from shoal.theory.user_clipping import SPREAD

# Statistics that follow from the mean, and from squares about it.
OF_MEANS = ("mean", "sum", "std", "variance")
OF_SQUARES = ("std", "variance")
# Statistics that follow from bins.
_SHARES = ("share_above", "share_below", "share_between")
_SEVERAL = ("histogram", "cdf")
QUANTILES = ("median", "quantile")
_MOST_STATISTICS = 30
# What to do instead of asking for another statistic.
_INSTEAD = {
    "count": "counts are public: take records.counts().to_pandas()",
    "users": "counts are public: take records.counts().to_pandas()",
    "records": "counts are public: take records.counts().to_pandas()",
    "min": "the smallest value is one person's: ask for quantile(0.01)",
    "max": "the largest value is one person's: ask for quantile(0.99)",
    "range": "both ends are single persons': ask for quantile(0.01) and quantile(0.99)",
    "mode": "ask for histogram, whose fullest bin is the mode",
    "presence": 'who is in which cell is public here; if it is secret, leave counts="public" out',
}


def statistic_of(text: object) -> Statistic:
    """Returns a statistic by its name; InputError for another."""
    name = checks.text(text, "a statistic")
    found = read_statistic(name, (*OF_MEANS, *_SHARES, *_SEVERAL, *QUANTILES))
    if found is not None:
        return found
    raise InputError(
        f"there is no statistic {checks.shown(name)} of public counts",
        _INSTEAD.get(
            name,
            "give mean, sum, std, variance, median, quantile(0.9), share_above(60), "
            "share_below(60), share_between(20, 60), histogram(20, 40, 60), histogram or cdf",
        ),
    )


def _statistics(given: Any) -> tuple[str, ...]:
    """Returns the names of different statistics."""
    listed = checks.items(given, "statistics", least=1, most=_MOST_STATISTICS)
    found = [statistic_of(each) for each in listed]
    names = tuple(each.name for each in found)
    if len({(each.kind, each.numbers) for each in found}) < len(found):
        raise InputError("a statistic is given twice", f"give each of {', '.join(names)} once")
    return names


class Request(Model):
    """Exactly what a custodian asks; see `shoal.plan` for each."""

    bounds: TwoBounds
    tick_bits: Annotated[int, checked(checks.whole, "tick bits", least=10, most=MOST_BITS)] = 20
    statistics: Annotated[tuple[str, ...], BeforeValidator(_statistics)]
    epsilon: Annotated[Fraction, checked(check_epsilon), PlainFraction]
    delta: ExactDelta = Fraction(0)
    objective: Annotated[str | None, checked(checks.choice, OBJECTIVES, "objective")] = None
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
        bins = (*_SHARES, *_SEVERAL, *QUANTILES)
        needed = {"mean": OF_MEANS, "squares": OF_SQUARES, "bins": bins}
        return tuple(part for part, of_part in needed.items() if kinds & {*of_part})

    @property
    def of_means(self) -> tuple[str, ...]:
        """The parts that are means."""
        return tuple(part for part in self.parts if part != "bins")

    @property
    def finds(self) -> bool:
        """Whether edges of bins have to be found, as thresholds are not all that is asked for."""
        return any(
            each.kind in QUANTILES or (each.kind in _SEVERAL and not each.numbers)
            for each in self.kinds
        )

    @property
    def limits(self) -> list[float]:
        """All public thresholds; a value equal to one is below it."""
        return sorted({each for kind in self.kinds for each in self._limits(kind)})

    @property
    def thresholds(self) -> list[int]:
        """The ticks of all public thresholds."""
        compared = [self.lattice.compared(each) for each in self.limits]
        found: list[int] = self.lattice.ticks(np.array(compared, dtype=np.float64)).tolist()
        return found

    def rows_of(self, kind: Statistic, edges: Sequence[float]) -> list[Statistic]:
        """Returns the shares that a histogram or a distribution function consists of.

        Without thresholds of its own it has the inner `edges` that were found.
        """
        if kind.kind not in _SEVERAL:
            return [kind]
        limits = kind.numbers or tuple(edges)
        below = [Statistic(named("share_below", each), "share_below", (each,)) for each in limits]
        if kind.kind == "cdf":
            return below
        between = [
            Statistic(named("share_between", *each), "share_between", each)
            for each in pairwise(limits)
        ]
        last = limits[-1]
        above = Statistic(named("share_above", last), "share_above", (last,))
        return [below[0], *between, above]

    def of_part(self, part: str, cells: int) -> CellsRequest:
        """Returns the request for the means of values, or of squares about released means.

        Squares are small beside the square of the width, unless values fill the bounds; but in
        few cells, of which one does not tell how much they differ, a narrower range may cut much.
        """
        many = len(self.parts)
        is_mean = part == "mean"
        low, high = map(Fraction, self.bounds)
        of_squares = 0.0, float((high - low) ** 2)
        of_width = "tight" if cells < SPREAD else "loose"
        return CellsRequest(
            bounds=self.bounds if is_mean else of_squares,
            tick_bits=self.tick_bits,
            epsilon=self.epsilon / many,
            delta=self.delta / len(self.of_means),
            range=self.range if is_mean else self.range or of_width,
            min_users=self.min_users,
            min_records=self.min_records,
        )

    @model_validator(mode="after")
    def _together(self) -> Self:
        """Refuses bounds and tick bits that do not go together."""
        low, high = self.bounds
        for each in self.kinds:
            for limit in self._limits(each):
                if not low < limit < high:
                    raise InputError(
                        f"{limit:g} of {each.name} is not inside the bounds",
                        f"give thresholds between {low:g} and {high:g}; histogram alone finds them",
                    )
        top = 1 << self.lattice.bits
        limits = [low, *self.limits, high]
        ticks = [0, *self.thresholds, top]
        for at, (tick, following) in enumerate(pairwise(ticks)):
            if tick == following:
                raise InputError(
                    f"{limits[at]:g} and {limits[at + 1]:g} are nearer to each other than a "
                    f"tick, which is {(high - low) / top:.2g}",
                    "give narrower bounds, more tick_bits, or thresholds farther apart",
                )
        if self.objective == "worst_case" and self.of_means:
            raise InputError(
                f"no error of {', '.join(self.statistics)} is certified together",
                "leave objective out; or ask for shares, quantiles and histograms alone, or for "
                "mean, variance and share_above(...)",
            )
        return self

    def _limits(self, kind: Statistic) -> tuple[float, ...]:
        """Returns the thresholds of a statistic."""
        return () if kind.kind == "quantile" else kind.numbers
