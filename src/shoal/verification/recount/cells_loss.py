"""Recounts weights, moves and losses of all users of cells by 13 mechanisms, in exact numbers."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from shoal.verification.recount import noise
from shoal.verification.recount.reading import Array, Release

# Bits of the part of records that a user counts for.
_PART = 16
# Bits of a user's share of an array.
_SHARE = 24
# Mechanisms in which users count for parts of their records.
_IN_PARTS = ("optimal", "optimal_in_range")
# The weight of a user in a selection of one cell.
_PER_CELL = 2**10
# The weight of a user in a selection of all cells together.
_FOR_ALL = 2**16


@dataclass(frozen=True, eq=False)
class Losses:
    """Weights and contributions (`moved`) of users, and the total by which each cell divides them.

    A user is in at most `arrays` arrays of a cell.
    """

    cells: Release
    weight: Array
    moved: Array
    total: list[int]
    arrays: int = 1

    @classmethod
    def of(cls, cells: Release) -> Losses:
        """Returns the losses of counts and parameters."""
        name = cells.name
        count = cells.count
        parameters = cells.parameters
        if name in ("array_averaging", "opt_array_averaging", "levy", "quantile"):
            return cls._in_arrays(cells, clipped=name in ("levy", "quantile"))
        # `counted` adds up to the totals of cells.
        weight = moved = counted = count
        if name == "akmv":
            weight = moved = np.ones_like(count)
        elif name == "worst_case_optimal":
            moved = np.minimum(count, parameters["threshold"][cells.cell])
        elif name in _IN_PARTS:
            weight = count << _PART
            moved = count * parameters["part"]
            counted = count << _PART
        elif name != "baseline":
            weight = np.minimum(count, parameters["cap"][cells.cell]) * parameters.get("kept", 1)
            moved = counted = weight
        if cells.widened:
            # Lighter users get wider ranges, so that everybody moves the sum as the heaviest does.
            moved = np.array([weight[members].max() for members in cells.members])[cells.cell]
        return cls(cells, weight, moved, [int(counted[members].sum()) for members in cells.members])

    @classmethod
    def _in_arrays(cls, cells: Release, *, clipped: bool) -> Losses:
        """Returns the losses of methods that average records in arrays."""
        weight = np.zeros_like(cells.count)
        touched = np.zeros_like(cells.count)
        total = []
        grouping = cells.settings.get("grouping", "best_fit")
        for members, cap in zip(cells.members, cells.parameters["cap"].tolist(), strict=True):
            number, share, arrays = _group(cells.count[members].tolist(), cap, grouping)
            weight[members] = share
            touched[members] = arrays
            total.append(number << _SHARE)
        # A clipped array reaches the whole range, however small a user's share of it is.
        return cls(cells, weight, touched << _SHARE if clipped else weight, total, touched.max())

    def differences(self) -> Iterator[str]:
        """Yields a sentence unless the stated loss is the true one, up to upward rounding."""
        epsilon = self.cells.epsilon
        one = 1 << self.cells.lattice_bits
        less = epsilon * (1 - Fraction(1, 10**6)) - Fraction(2 * self._most_numbers, one)
        if self.cells.delta and not self.cells.gaussian:
            yield "a delta belongs to Gaussian noise alone"
        if not self._covers(epsilon):
            yield f"the privacy loss is more than epsilon = {float(epsilon):.12g}"
        if less > self.once and self._covers(less):
            yield f"the privacy loss is less than epsilon = {float(epsilon):.12g}"

    def _covers(self, epsilon: Fraction) -> bool:
        """Returns whether the loss is at most this epsilon, and the stated delta if Gaussian."""
        rest = epsilon - self.once
        bits = self.cells.lattice_bits
        if not self.cells.gaussian or rest < 0:
            return rest >= self.largest
        return (
            noise.gaussian_delta(rest, self.largest, self._most_numbers, bits) <= self.cells.delta
        )

    @property
    def _most_numbers(self) -> int:
        """The most numbers that one user is in, counting both rounds if there are two."""
        rounds = 1 + int(np.any(self.cells.parameters.get("first_ball", 0)))
        return int(np.bincount(self.cells.user).max()) * len(self.cells.statistics) * rounds

    @cached_property
    def kinds(self) -> tuple[list[tuple[int, int]], Array]:
        """Distinct pairs of cell and contribution, and the pair of each membership."""
        cell = self.cells.cell
        code = np.unique(self.moved, return_inverse=True)[1]
        pair = cell * len(code) + code
        _, first, kind = np.unique(pair, return_index=True, return_inverse=True)
        return list(zip(cell[first].tolist(), self.moved[first].tolist(), strict=True)), kind

    @cached_property
    def largest(self) -> Fraction:
        """The largest loss of a user beside `once`; it is rho with Gaussian noise."""
        cells = self.cells
        one = 1 << self.cells.lattice_bits
        if cells.name == "user_clipped":
            # Vectors in a ball are a diameter apart (docs/theory/cells.md#centre-radius-and-noise).
            balls = [2 * int(cells.parameters.get(name, [0])[0]) for name in ("ball", "first_ball")]
            steps = sum(ball**2 for ball in balls) if cells.gaussian else sum(balls)
        else:
            pairs, kind = self.kinds
            cost = [self._cost(at, moved) for at, moved in pairs]
            total = np.zeros(int(cells.user.max()) + 1, dtype=object)
            np.add.at(total, cells.user, np.array(cost, dtype=object)[kind])
            steps = int(max(total))
        return Fraction(steps, 2 * one**2 if cells.gaussian else one)

    @cached_property
    def once(self) -> Fraction:
        """The loss by selections for all cells, and by counting the excesses that are cut off."""
        if self.cells.name not in ("adaptive", "optimal_in_range", "user_clipped"):
            return Fraction(0)
        steps = [self._ceil(2 * _FOR_ALL / Fraction(each)) for each in self.cells.selection_scale]
        parts, bits = map(int, self.cells.parameters.get("excess", (0, 0)))
        return Fraction(sum(steps), 1 << self.cells.lattice_bits) + Fraction(parts, 1 << bits)

    def moves(self, at: int, moved: int) -> list[Fraction]:
        """Returns by how many noise scales a contribution moves numbers, joint moments last."""
        cells = self.cells
        part = Fraction(moved, self.total[at])
        alone = [n for n in cells.statistics if not (cells.joint and n in ("mean", "variance"))]
        moves = [self._sensitivity(name, at, part) / cells.scale[name][at] for name in alone]
        if cells.joint:
            mean, variance = (cells.scale[name][at] for name in ("mean", "variance"))
            rate = _joint_rate(mean, variance / 4, gaussian=cells.gaussian)
            moves.append(part * rate * self._margin(27))
        return moves

    def _cost(self, at: int, moved: int) -> int:
        """Returns lattice steps of all numbers of a cell and its selection, squared if Gaussian."""
        cells = self.cells
        arrays = self.arrays
        score = {"levy": arrays, "quantile": 2 * _PER_CELL * arrays, "akmv": _PER_CELL}
        steps = [self._ceil(each) for each in self.moves(at, moved)] if moved else [0]
        if cells.joint and moved:
            # Both moments are rounded to steps.
            steps[-1] += 2 if cells.gaussian else 1
        if cells.name in score:
            steps.append(self._ceil(2 * score[cells.name] / Fraction(cells.selection_scale[at])))
        return sum(each**2 for each in steps) if cells.gaussian else sum(steps)

    def _sensitivity(self, name: str, at: int, part: Fraction) -> Fraction:
        """Returns the part of its range by which a share moves a statistic at most.

        Source: docs/theory/cells.md#variance.
        """
        if name != "variance":
            return part
        others = self.mass[at] - part
        added = others**2 / (1 - part) if part < 1 else Fraction(0)
        moved = part - max(Fraction(0), others - part) ** 2 + added
        return min(Fraction(1), moved * self._margin(20))

    def _margin(self, bits: int) -> Fraction:
        """Returns a factor for rounded means and squares, which is larger if ticks are coarse."""
        usual = 1 + Fraction(1, 2**bits) - Fraction(1, 2**45)
        tick = 1 << self.cells.tick_bits
        if not (self.moved % self.cells.count).any():
            return usual
        mean = Fraction(1, tick << 11)
        square = Fraction(1, 2 * tick**2)
        return max(usual, 1 + 8 * (mean + square + mean**2))

    def _ceil(self, scales: Fraction) -> int:
        """Returns noise scales in lattice steps, rounded upwards."""
        return math.ceil(scales * Fraction(1 << self.cells.lattice_bits))

    @cached_property
    def mass(self) -> list[Fraction]:
        """The sum of all contributions to each cell, as a part of its total."""
        sums = [int(self.moved[members].sum()) for members in self.cells.members]
        return [Fraction(each, total) for each, total in zip(sums, self.total, strict=True)]

    @cached_property
    def bias(self) -> list[Fraction]:
        """The mass by which weights and shares of records differ, or half of what is cut."""
        if self.cells.name in (*_IN_PARTS, "worst_case_optimal"):
            return [(1 - each) / 2 for each in self.mass]
        if self.cells.name == "akmv":
            # Here all of the bias is that of the selected range.
            return [Fraction(0)] * len(self.total)
        biases = []
        for at, total in enumerate(self.total):
            count, weight, _ = self._members(at)
            difference = count * total - weight * count.sum()
            larger = max(difference[difference > 0].sum(), -difference[difference < 0].sum())
            biases.append(Fraction(int(larger), int(count.sum()) * total))
        return biases

    def range_bias(self, at: int, low: int, high: int) -> Fraction:
        """Returns the most that clipping to a selected range adds to the bias of a cell."""
        name = self.cells.name
        top = self.cells.top
        middle = (low + high) // 2
        if name == "user_clipped":
            return Fraction(1)
        count, weight, moved = self._members(at)
        if name == "akmv":
            lost = np.maximum(count * top - high, 0)
        elif name == "optimal_in_range" or self.cells.widened:
            half = (high - low) * moved // (2 * weight)
            lost = weight * np.maximum(max(middle, top - middle) - half, 0)
        else:
            lost = weight * max(low, top - high, 0)
        added = Fraction(int(lost.sum()), self.total[at] * top)
        if name in _IN_PARTS:
            # The bias already has half of the mass that is cut.
            added -= self.bias[at]
        return added

    def _members(self, at: int) -> list[Array]:
        """Returns counts, weights and contributions of a cell's members, as numbers of any size."""
        columns = (self.cells.count, self.weight, self.moved)
        return [each[self.cells.members[at]].astype(object) for each in columns]


def _joint_rate(mean: Fraction, square: Fraction, *, gaussian: bool) -> Fraction:
    """Returns by how many noise scales all records together move both moments.

    If all records move the mean by a distance, they move the squares by distance (1 - distance).
    """
    if not gaussian:
        distance = min(Fraction(1), (1 + square / mean) / 2)
        return distance / mean + distance * (1 - distance) / square
    ratio = float(square / mean) ** 2
    if ratio >= 1 / 11:
        return 1 / mean
    distance = Fraction((3 - math.sqrt(1 - 8 * ratio)) / 4)
    of_square = distance * (1 - distance) * mean / square
    both = float(max(Fraction(1), distance**2 + of_square**2))
    return Fraction(math.sqrt(both)) * (1 + Fraction(1, 2**50)) / mean


def _group(counts: list[int], cap: int, grouping: str) -> tuple[int, list[int], list[int]]:
    """Returns the number of arrays, then for each user its share and the number of its arrays.

    Source: docs/theory/cells.md#arrays-and-caps.
    """
    pieces = []
    free = list[tuple[int, int]]()
    end = 0
    for at in sorted(range(len(counts)), key=lambda at: -counts[at]):
        records = min(counts[at], cap)
        if grouping == "best_fit":
            place = bisect_left(free, (records, 0))
            left, array = free.pop(place) if place < len(free) else (cap, len(free))
            insort(free, (left - records, array))
            pieces.append((at, array, records))
            continue
        start = end
        end = end + records
        while start < end:
            stop = min(end, (start // cap + 1) * cap)
            pieces.append((at, start // cap, stop - start))
            start = stop
    number = len(free) or end // cap
    filled = Counter[int]()
    share = [0] * len(counts)
    touched = [0] * len(counts)
    for _, array, records in pieces:
        filled[array] += records
    for at, array, records in pieces:
        if array < number:
            share[at] += records * 2**_SHARE // filled[array]
            touched[at] += 1
    return number, share, touched
