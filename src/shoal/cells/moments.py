"""Weighted moments of the released cells, exactly: what statistics make their numbers of."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.contributions.design import FINE, add_by
from shoal.cells.ranges.private_means import PrivateMeans, exact_sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.contributions.design import Design
    from shoal.cells.statistics.base import Fractions
    from shoal.data.aggregate import Aggregate

_HALF = 20


@dataclass(frozen=True, eq=False)
class WeighedMoments:
    """First and second moments of the values of each cell, users weighed by their contribution.

    With T the total of a cell, R the sum of its contributions and y in [-1/2, 1/2] the centred
    values, the missing mass (T - R)/T lies at y = 0.

    Attributes:
        design: Weights; public.
        aggregate: Sums; private.
        linear: Whether means weigh users by their contribution; else the design's own intervals
            hold.
    """

    design: Design
    aggregate: Aggregate = field(repr=False)
    linear: bool = False

    @property
    def _top(self) -> int:
        return 1 << (self.aggregate.lattice.bits + FINE)

    @cached_property
    def _total(self) -> list[int]:
        total: list[int] = self.design.total.tolist()
        return total

    @cached_property
    def _missing(self) -> list[int]:
        """T - R of each cell where there are public intervals, else 0."""
        design = self.design
        if design.interval is None:
            return [0] * design.n_numbers
        contribution = add_by(design.number, design.contribution, design.n_numbers)
        missing: list[int] = (design.total - contribution).tolist()
        return missing

    def mean(self, measure: str) -> Fractions:
        """Mean of each cell over the width (of a measure: over its ticks)."""
        if measure or not self.linear:
            sums = PrivateMeans(self.design, self.aggregate, measure).add_up(None)
            return [(x, whole * self._top) for x, whole in zip(sums, self._total, strict=True)]
        return [
            (2 * first + whole * self._top, 2 * whole * self._top)
            for first, whole in zip(self._first, self._total, strict=True)
        ]

    def second_moment(self) -> Fractions:
        """4 sum w y^2 of each cell."""
        ticks = 1 << (2 * self.aggregate.lattice.bits)
        return [
            (4 * second, whole * ticks)
            for second, whole in zip(self._second, self._total, strict=True)
        ]

    def variance(self) -> Fractions:
        """4 (sum w y^2 - (sum w y)^2), with the middle of what the missing mass may add.

        With d missing that is d (1 - d), or 1/2 - d (1 - d) from d = 1/2 on
        (docs/theory/variance.md).
        """
        found = []
        fine, square = 1 << (2 * FINE), self._top**2
        for first, second, whole, missing in zip(
            self._first, self._second, self._total, self._missing, strict=True
        ):
            moments = 4 * (second * whole * fine - first**2)
            added = missing * (whole - missing)
            if 2 * missing > whole:
                added = whole**2 // 2 - added
            # Means of users are rounded: by less than the margin of the sensitivity.
            number, most = moments + added * square, whole**2 * square
            found.append((min(max(number, 0), most), most))
        return found

    @cached_property
    def _first(self) -> list[int]:
        """Sum of contribution times centred mean, in ticks over 2^FINE."""
        ticks = self._weighed(self.aggregate.centred, FINE)
        return [int(x) for x in ticks]

    @cached_property
    def _second(self) -> list[int]:
        """Sum of contribution times mean square, in squared ticks."""
        return self._weighed(self.aggregate.squares, 0)

    def _weighed(self, sums: NDArray[np.int64], fine: int) -> list[int]:
        """Sum over members of contribution times mean, in 2^-fine; exact where it is a multiple."""
        design = self.design
        own, count = sums[design.member], design.count
        times, rest = np.divmod(design.contribution, count)
        exact = rest == 0
        whole, left = np.divmod(own, count)
        mean = (whole << fine) + ((left << fine) + count // 2) // count
        high = self._product(np.where(exact, times, 0), own)
        low = self._product(np.where(exact, 0, design.contribution), mean)
        return [(up << fine) + down for up, down in zip(high, low, strict=True)]

    def _product(self, weight: NDArray[np.int64], amount: NDArray[np.int64]) -> list[int]:
        """Sums by cell of a product that may pass 64 bits."""
        number, size = self.design.number, self.design.n_numbers
        high = exact_sums(number, weight * (amount >> _HALF), size)
        low = exact_sums(number, weight * (amount & ((1 << _HALF) - 1)), size)
        return [(up << _HALF) + down for up, down in zip(high, low, strict=True)]
