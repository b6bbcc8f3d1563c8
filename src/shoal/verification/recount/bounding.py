"""What each user counts for and can move in each cell, by 13 mechanisms, in whole numbers."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from shoal.verification.recount.reading import Array, Cells

_PART, _SHARE = 16, 24
_IN_PARTS = ("optimal", "optimal_in_range")


@dataclass(frozen=True, eq=False)
class Bounding:
    """Weights and contributions over a total of each cell; most arrays that one user is in."""

    cells: Cells
    weight: Array
    moved: Array
    total: list[int]
    arrays: int = 1

    @classmethod
    def of(cls, cells: Cells) -> Bounding:
        """From counts and parameters."""
        name, count, parameters = cells.name, cells.count, cells.parameters
        records = [int(count[members].sum()) for members in cells.members]
        if name in ("array_averaging", "opt_array_averaging", "levy", "quantile"):
            return cls._in_arrays(cells, clipped=name in ("levy", "quantile"))
        if name == "akmv":
            return cls(cells, np.ones_like(count), np.ones_like(count), records)
        if name == "baseline":
            return cls(cells, count, count, records)
        if name == "worst_case_optimal":
            moved = np.minimum(count, parameters["threshold"][cells.cell])
            return cls(cells, count, moved, records)
        if name in _IN_PARTS:
            total = [each << _PART for each in records]
            return cls(cells, count << _PART, count * parameters["part"], total)
        weight = np.minimum(count, parameters["cap"][cells.cell]) * parameters.get("kept", 1)
        moved, total = weight, [int(weight[members].sum()) for members in cells.members]
        if cells.widened:
            # Lighter users get wider ranges: everybody moves the sum as the heaviest one does.
            moved = np.array([weight[members].max() for members in cells.members])[cells.cell]
        return cls(cells, weight, moved, total)

    @classmethod
    def _in_arrays(cls, cells: Cells, *, clipped: bool) -> Bounding:
        weight, touched, total = np.zeros_like(cells.count), np.zeros_like(cells.count), []
        grouping = cells.settings.get("grouping", "best_fit")
        for members, cap in zip(cells.members, cells.parameters["cap"].tolist(), strict=True):
            number, share, arrays = _group(cells.count[members].tolist(), cap, grouping)
            weight[members], touched[members] = share, arrays
            total.append(number << _SHARE)
        # A clipped array reaches the whole range, however small a user's share of it is.
        return cls(cells, weight, touched << _SHARE if clipped else weight, total, touched.max())

    @cached_property
    def mass(self) -> list[Fraction]:
        """Sum of all contributions to each cell."""
        sums = [int(self.moved[members].sum()) for members in self.cells.members]
        return [Fraction(each, total) for each, total in zip(sums, self.total, strict=True)]

    def missing(self, at: int) -> Fraction:
        """Mass that counts for nobody, and is taken to lie in the middle of the bounds."""
        return 1 - self.mass[at] if self.cells.name in _IN_PARTS else Fraction(0)

    @cached_property
    def bias(self) -> list[Fraction]:
        """Mass by which weights and shares of records differ, or half of what is cut."""
        if self.cells.name in (*_IN_PARTS, "worst_case_optimal"):
            return [(1 - each) / 2 for each in self.mass]
        biases = []
        for at, total in enumerate(self.total):
            count, weight, _ = self._members(at)
            apart = (count * total - weight * count.sum()) * (self.cells.name != "akmv")
            most = max(apart[apart > 0].sum(), -apart[apart < 0].sum())
            biases.append(Fraction(int(most), int(count.sum()) * total))
        return biases

    def range_bias(self, at: int, low: int, high: int) -> Fraction:
        """Most that clipping to a selected range adds to that."""
        name, top, middle = self.cells.name, self.cells.top, (low + high) // 2
        count, weight, moved = self._members(at)
        if name == "user_clipped":
            return Fraction(1)
        if name == "akmv":
            lost = np.maximum(count * top - high, 0)
        elif name == "optimal_in_range" or self.cells.widened:
            half = (high - low) * moved // (2 * weight)
            lost = weight * np.maximum(max(middle, top - middle) - half, 0)
        else:
            lost = weight * max(low, top - high, 0)
        return Fraction(int(lost.sum()), self.total[at] * top) - self.missing(at) / 2

    def _members(self, at: int) -> list[Array]:
        """Counts, weights and contributions of the members of a cell, without limits of size."""
        columns = (self.cells.count, self.weight, self.moved)
        return [each[self.cells.members[at]].astype(object) for each in columns]


def _group(counts: list[int], cap: int, grouping: str) -> tuple[int, list[int], list[int]]:
    """Number of arrays, and share and arrays of each user (docs/theory/grouping.md#arrays)."""
    pieces, free, end = [], list[tuple[int, int]](), 0
    for at in sorted(range(len(counts)), key=lambda at: -counts[at]):
        records = min(counts[at], cap)
        if grouping == "best_fit":
            place = bisect_left(free, (records, 0))
            left, array = free.pop(place) if place < len(free) else (cap, len(free))
            insort(free, (left - records, array))
            pieces.append((at, array, records))
            continue
        start, end = end, end + records
        while start < end:
            stop = min(end, (start // cap + 1) * cap)
            pieces.append((at, start // cap, stop - start))
            start = stop
    number = len(free) or end // cap
    filled, share, touched = Counter[int](), [0] * len(counts), [0] * len(counts)
    for _, array, records in pieces:
        filled[array] += records
    for at, array, records in pieces:
        if array < number:
            share[at] += records * 2**_SHARE // filled[array]
            touched[at] += 1
    return number, share, touched
