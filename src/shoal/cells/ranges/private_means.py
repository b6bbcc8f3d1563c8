"""What is averaged, with its private values: means of users or groups, clipped to ranges."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.contributions.design import FINE, SHARE, add_by
from shoal.cells.ranges.selected import Range, ends

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.contributions.design import Design
    from shoal.data.aggregate import Aggregate

_HALF = 26


@dataclass(frozen=True, eq=False)
class PrivateMeans:
    """The private means of users and groups that a design averages, in ticks over 2^FINE.

    Attributes:
        design: Weights and groups; public.
        aggregate: Sums; private.
        measure: What is averaged instead of the values, if anything.
    """

    design: Design
    aggregate: Aggregate = field(repr=False)
    measure: str = ""

    @property
    def top(self) -> int:
        """The upper bound in ticks over 2^FINE; the lower one is 0."""
        return 1 << (self.aggregate.lattice.bits + FINE)

    @cached_property
    def means(self) -> NDArray[np.int64]:
        """Mean of each member, rounded to the nearest."""
        sums, count = self.aggregate.sums_of(self.measure)[self.design.member], self.design.count
        whole, rest = np.divmod(sums, count)
        return (whole << FINE) + ((rest << FINE) + count // 2) // count

    @cached_property
    def sums(self) -> NDArray[np.int64]:
        """Sum of each member."""
        return self.aggregate.sums_of(self.measure)[self.design.member] << FINE

    @cached_property
    def group_means(self) -> NDArray[np.int64]:
        """Mean of each group, rounded to the nearest."""
        groups = self.design.groups
        if groups is None:
            return self.means
        total = add_by(groups.group, groups.records * self.means[groups.member], len(groups.number))
        return np.asarray((2 * total + groups.filled) // (2 * groups.filled))

    @property
    def group_number(self) -> NDArray[np.int64]:
        """Number of each group."""
        groups = self.design.groups
        return self.design.number if groups is None else groups.number

    def add_up(self, chosen: Range | None) -> list[int]:
        """Exact sum of weight times clipped mean of each number, in ticks over 2^FINE."""
        design = self.design
        if design.interval is not None:
            low, high = ends(design, chosen or self._whole)
            return self._weighed(design.number, design.weight, np.clip(self.means, low, high))
        if chosen is None:
            exact = design.weight == design.count
            whole = self.aggregate.sums_of(self.measure)[design.member]
            if exact.all():
                return [x << FINE for x in exact_sums(design.number, whole, design.n_numbers)]
            high = np.where(exact, whole, design.weight * (self.means >> FINE))
            low = np.where(exact, 0, design.weight * (self.means & ((1 << FINE) - 1)))
            return self._sums(design.number, high, low)
        if design.sums:
            clipped = np.minimum(self.sums, chosen.high[design.number])
            return self._sums(design.number, clipped >> FINE, clipped & ((1 << FINE) - 1))
        if design.groups is None:
            low, high = ends(design, chosen)
            return self._weighed(design.number, design.weight, np.clip(self.means, low, high))
        number = design.groups.number
        clipped = np.clip(self.group_means, chosen.low[number], chosen.high[number])
        return self._weighed(number, np.full(len(number), 1 << SHARE), clipped)

    @property
    def _whole(self) -> Range:
        size = self.design.n_numbers
        return Range(np.zeros(size, dtype=np.int64), np.full(size, self.top))

    def _weighed(
        self, number: NDArray[np.int64], weight: NDArray[np.int64], means: NDArray[np.int64]
    ) -> list[int]:
        return self._sums(number, weight * (means >> FINE), weight * (means & ((1 << FINE) - 1)))

    def _sums(
        self, number: NDArray[np.int64], high: NDArray[np.int64], low: NDArray[np.int64]
    ) -> list[int]:
        size = self.design.n_numbers
        return [
            (up << FINE) + down
            for up, down in zip(
                exact_sums(number, high, size), exact_sums(number, low, size), strict=True
            )
        ]


def exact_sums(number: NDArray[np.int64], amount: NDArray[np.int64], size: int) -> list[int]:
    """Sums by group as Python integers, where one 64-bit sum could overflow."""
    high = np.bincount(number, amount >> _HALF, minlength=size)
    low = np.bincount(number, amount & (2**_HALF - 1), minlength=size)
    return [
        (int(up) << _HALF) + int(down) for up, down in zip(high.tolist(), low.tolist(), strict=True)
    ]
