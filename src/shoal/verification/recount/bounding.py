"""What each user counts for and can move in each cell, by 13 mechanisms, in whole numbers."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from shoal.verification.recount.reading import Array, Cells

PART, _SHARE = 16, 24
_IN_PARTS = ("optimal", "optimal_in_range")
_ARRAYS = ("array_averaging", "opt_array_averaging", "levy", "quantile")


@dataclass(frozen=True, eq=False)
class Bounding:
    """Weights in the estimate and contributions, as parts of a total of each cell.

    `arrays` is the largest number of arrays that one user is in.
    """

    cells: Cells
    weight: Array
    moved: Array
    total: list[int]
    arrays: int = 1

    @classmethod
    def of(cls, cells: Cells) -> Bounding:
        """From counts and parameters."""
        name, count, parameters = cells.name, cells.count, cells.parameters
        if name in _ARRAYS:
            return cls._in_arrays(cells)
        records = [int(count[members].sum()) for members in cells.members]
        if name == "akmv":
            return cls(cells, np.ones_like(count), np.ones_like(count), records)
        if name == "baseline":
            return cls(cells, count, count, records)
        if name == "worst_case_optimal":
            return cls(
                cells, count, np.minimum(count, parameters["threshold"][cells.cell]), records
            )
        if name in _IN_PARTS:
            total = [each << PART for each in records]
            return cls(cells, count << PART, count * parameters["part"], total)
        weight = np.minimum(count, parameters["cap"][cells.cell])
        if name == "clip_user":
            weight = weight * parameters["kept"]
        moved, total = weight, [int(weight[members].sum()) for members in cells.members]
        if parameters.get("widened") == [1]:
            # Lighter users get wider ranges: everybody moves the sum as the heaviest one does.
            moved = np.array([weight[members].max() for members in cells.members])[cells.cell]
        return cls(cells, weight, moved, total)

    @classmethod
    def _in_arrays(cls, cells: Cells) -> Bounding:
        weight, touched, total = np.zeros_like(cells.count), np.zeros_like(cells.count), []
        for members, cap in zip(cells.members, cells.parameters["cap"].tolist(), strict=True):
            number, share, arrays = _group(cells.count[members].tolist(), cap, cells.grouping)
            weight[members], touched[members] = share, arrays
            total.append(number << _SHARE)
        # A clipped array reaches the whole range, however small a user's share of it is.
        clipped = cells.name in ("levy", "quantile")
        return cls(
            cells, weight, touched << _SHARE if clipped else weight, total, int(touched.max())
        )

    @cached_property
    def kinds(self) -> list[Counter[tuple[int, int, int]]]:
        """How many members of each cell have the same count, weight and contribution."""
        columns = (self.cells.count, self.weight, self.moved)
        return [
            Counter(zip(*(column[members].tolist() for column in columns), strict=True))
            for members in self.cells.members
        ]

    @cached_property
    def mass(self) -> list[Fraction]:
        """Sum of all contributions to each cell."""
        return [
            Fraction(sum(moved * many for (_, _, moved), many in kinds.items()), total)
            for kinds, total in zip(self.kinds, self.total, strict=True)
        ]

    def missing(self, at: int) -> Fraction:
        """Mass that counts for nobody, and is taken to lie in the middle of the bounds."""
        return 1 - self.mass[at] if self.cells.name in _IN_PARTS else Fraction(0)

    def bias(self, at: int) -> Fraction:
        """Most that bounding moves a mean over the width in any data set.

        The mass by which weights and shares of records differ, or half of what is cut
        (docs/theory/grouping.md#linear-estimators-and-their-bias).
        """
        if self.cells.name in _IN_PARTS:
            return self.missing(at) / 2
        if self.cells.name in ("akmv", "baseline"):
            return Fraction(0)
        kinds, total = self.kinds[at], self.total[at]
        records = sum(count * many for (count, _, _), many in kinds.items())
        if self.cells.name == "worst_case_optimal":
            cut = sum((count - moved) * many for (count, _, moved), many in kinds.items())
            return Fraction(cut, 2 * records)
        apart = [(count * total - w * records) * many for (count, w, _), many in kinds.items()]
        more = max(sum(x for x in apart if x > 0), -sum(x for x in apart if x < 0))
        return Fraction(more, records * total)

    def range_bias(self, at: int, low: int, high: int) -> Fraction:
        """Most that clipping to a selected range adds to that."""
        name, top, middle = self.cells.name, self.cells.top, (low + high) // 2
        if name == "user_clipped":
            return Fraction(1)
        kinds, lost = self.kinds[at].items(), 0
        for (count, weight, moved), many in kinds:
            if name == "akmv":
                lost += many * max(count * top - high, 0)
            elif name == "optimal_in_range" or self.cells.parameters.get("widened") == [1]:
                half = (high - low) * moved // (2 * weight)
                lost += many * weight * max(middle - half, top - middle - half, 0)
            else:
                lost += many * weight * max(low, top - high, 0)
        return Fraction(lost, self.total[at] * top) - self.missing(at) / 2


def _group(counts: list[int], cap: int, grouping: str) -> tuple[int, list[int], list[int]]:
    """Number of arrays, and share and arrays of each user (docs/theory/grouping.md#arrays)."""
    order = sorted(range(len(counts)), key=lambda at: -counts[at])
    pieces: list[tuple[int, int, int]] = []
    if grouping == "best_fit":
        free: list[tuple[int, int]] = []
        for at in order:
            records = min(counts[at], cap)
            place = bisect_left(free, (records, 0))
            left, array = free.pop(place) if place < len(free) else (cap, len(free))
            insort(free, (left - records, array))
            pieces.append((at, array, records))
        number = len(free)
    else:
        end = 0
        for at in order:
            start, end = end, end + min(counts[at], cap)
            while start < end:
                stop = min(end, (start // cap + 1) * cap)
                pieces.append((at, start // cap, stop - start))
                start = stop
        number = end // cap
        pieces = [piece for piece in pieces if piece[1] < number]
    filled, share, touched = [0] * number, [0] * len(counts), [0] * len(counts)
    for _, array, records in pieces:
        filled[array] += records
    for at, array, records in pieces:
        share[at] += records * 2**_SHARE // filled[array]
        touched[at] += 1
    return number, share, touched
