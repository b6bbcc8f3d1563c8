"""Recounts weights, moves and losses of all users of cells by 13 mechanisms, in exact numbers."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

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
# What is stated is rounded up to twelve digits, so by less than this part of it.
ROUNDED = Fraction(1, 10**11)
# The weight of a user in a selection of all cells together.
_FOR_ALL = 2**16


@dataclass(frozen=True, eq=False)
class Losses:
    """Weights and contributions (`moved`) of users, and the total by which each cell divides them.

    Both have an entry for each pair of a user and a cell. A user is in at most `arrays` arrays of a
    cell.
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
        if name in ("array_averaging", "opt_array_averaging", "levy", "quantile"):
            return cls._in_arrays(cells, clipped=name in ("levy", "quantile"))
        weight, moved, counted = COUNTED[name](cells)
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
        if self.cells.delta and self.cells.law is noise.LAPLACE:
            yield "a delta belongs to Gaussian noise alone"
        if not self._covers(epsilon):
            yield f"the privacy loss is more than epsilon = {float(epsilon):.12g}"
        if less > self.once and self._covers(less):
            yield f"the privacy loss is less than epsilon = {float(epsilon):.12g}"

    @property
    def loss(self) -> Fraction:
        """The loss; with normal noise the stated one less its rounding to twelve digits."""
        if self.cells.law is noise.LAPLACE:
            return self.once + self.largest
        return self.cells.epsilon * (1 - ROUNDED)

    def _covers(self, epsilon: Fraction) -> bool:
        """Returns whether the loss is at most this epsilon, and the stated delta if Gaussian."""
        rest = epsilon - self.once
        bits = self.cells.lattice_bits
        if self.cells.law is noise.LAPLACE or rest < 0:
            return rest >= self.largest
        return (
            noise.gaussian_delta(rest, self.largest, self._most_numbers, bits) <= self.cells.delta
        )

    @property
    def _most_numbers(self) -> int:
        """The most numbers that one user is in, counting both rounds if there are two."""
        rounds = 1 + int(np.any(self.cells.parameters.get("first_ball", 0)))
        most_cells = int(np.bincount(self.cells.user).max())
        return most_cells * len(self.cells.statistics) * rounds

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
        power = cells.law.power
        one = 1 << cells.lattice_bits
        if cells.name == "user_clipped":
            # Vectors in a ball are a diameter apart (docs/theory/cells.md#centre-radius-and-noise).
            radii = [int(cells.parameters.get(name, [0])[0]) for name in ("ball", "first_ball")]
            steps = sum((2 * each) ** power for each in radii)
        else:
            pairs, kind = self.kinds
            cost = [self._cost(at, moved) for at, moved in pairs]
            of_users = np.zeros(int(cells.user.max()) + 1, dtype=object)
            np.add.at(of_users, cells.user, np.array(cost, dtype=object)[kind])
            steps = int(max(of_users))
        return Fraction(steps, power * one**power)

    @cached_property
    def once(self) -> Fraction:
        """The loss by selections for all cells, and by counting the excesses that are cut off."""
        if self.cells.name not in ("adaptive", "optimal_in_range", "user_clipped"):
            return Fraction(0)
        steps = [self._ceil(2 * _FOR_ALL / Fraction(each)) for each in self.cells.selection_scale]
        parts, bits = map(int, self.cells.parameters.get("excess", (0, 0)))
        by_selections = Fraction(sum(steps), 1 << self.cells.lattice_bits)
        return by_selections + Fraction(parts, 1 << bits)

    def moves(self, at: int, moved: int) -> list[Fraction]:
        """Returns by how many noise scales a contribution moves numbers, joint moments last."""
        cells = self.cells
        part = Fraction(moved, self.total[at])
        together = ("mean", "variance") if cells.joint else ()
        alone = [name for name in cells.statistics if name not in together]
        moves = [self._sensitivity(name, at, part) / cells.scale[name][at] for name in alone]
        if cells.joint:
            mean, variance = (cells.scale[name][at] for name in ("mean", "variance"))
            rate = cells.law.joint_rate(mean, variance / 4)
            moves.append(part * rate * self._margin(27))
        return moves

    def _cost(self, at: int, moved: int) -> int:
        """Returns lattice steps of all numbers of a cell and its selection, squared if Gaussian."""
        cells = self.cells
        arrays = self.arrays
        # By how much a user changes the scores of the ranges among which a cell selects.
        scores = {"levy": arrays, "quantile": 2 * _PER_CELL * arrays, "akmv": _PER_CELL}
        steps = [self._ceil(each) for each in self.moves(at, moved)] if moved else [0]
        if cells.joint and moved:
            # Both moments are rounded to steps.
            steps[-1] += cells.law.rounding
        if cells.name in scores:
            steps.append(self._ceil(2 * scores[cells.name] / Fraction(cells.selection_scale[at])))
        return sum(each**cells.law.power for each in steps)

    def _sensitivity(self, name: str, at: int, part: Fraction) -> Fraction:
        """Returns by which part of its range a user with this part of a cell moves a statistic.

        Source: docs/theory/cells.md#variance.
        """
        if name != "variance":
            return part
        others = self.mass[at] - part
        added = others**2 / (1 - part) if part < 1 else Fraction(0)
        moved = part - max(Fraction(0), others - part) ** 2 + added
        return min(Fraction(1), moved * self._margin(20))

    def _margin(self, bits: int) -> Fraction:
        """Returns a factor for rounded means and squares, which is larger if ticks are coarse.

        Plans have the factor 1 + 2^-bits at least, times numbers in floating point: 2^-45 leaves
        room for the rounding of these.
        """
        usual = 1 + Fraction(1, 2**bits) - Fraction(1, 2**45)
        ticks = 1 << self.cells.tick_bits
        if not (self.moved % self.cells.count).any():
            # Users count for whole records, whose sums are exact in ticks.
            return usual
        # By so much a user's mean and mean square are rounded, as parts of the range: means are
        # kept in 2^11 parts of a tick. Eight times as much is more than any move of theirs.
        mean = Fraction(1, ticks << 11)
        square = Fraction(1, 2 * ticks**2)
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
        if name == "user_clipped":
            return Fraction(1)
        count, weight, moved = self._members(at)
        if name == "akmv":
            # Sums of users are clipped, not their means.
            lost = np.maximum(count * top - high, 0)
        elif name == "optimal_in_range" or self.cells.widened:
            # A user's values are clipped to a range of its own, of this half width.
            middle = (low + high) // 2
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
        """Returns counts, weights and contributions of a cell's members, as Python's integers."""
        columns = (self.cells.count, self.weight, self.moved)
        return [each[self.cells.members[at]].astype(object) for each in columns]


class Counted(NamedTuple):
    """Weights, contributions, and what adds up to the totals of cells, of all memberships."""

    weight: Array
    moved: Array
    counted: Array


def _every_record(cells: Release) -> Counted:
    """Returns records as weights."""
    return Counted(cells.count, cells.count, cells.count)


def _capped(cells: Release) -> Counted:
    """Returns records up to the cap of a cell, of users who are kept."""
    cap = cells.parameters["cap"][cells.cell]
    weight = np.minimum(cells.count, cap) * cells.parameters.get("kept", 1)
    return Counted(weight, weight, weight)


def _truncated(cells: Release) -> Counted:
    """Returns records as weights, which move a cell by the threshold at most."""
    threshold = cells.parameters["threshold"][cells.cell]
    return Counted(cells.count, np.minimum(cells.count, threshold), cells.count)


def _in_parts(cells: Release) -> Counted:
    """Returns records as weights, of which a part moves the cell."""
    records = cells.count << _PART
    return Counted(records, cells.count * cells.parameters["part"], records)


def _sums(cells: Release) -> Counted:
    """Returns a weight of 1 for each user's sum."""
    one = np.ones_like(cells.count)
    return Counted(one, one, cells.count)


# How users count by the mechanism, for all that do not average arrays.
COUNTED: dict[str, Callable[[Release], Counted]] = {
    "baseline": _every_record,
    "clip_user": _capped,
    "worst_case_optimal": _truncated,
    "optimal": _in_parts,
    "optimal_in_range": _in_parts,
    "akmv": _sums,
    "adaptive": _capped,
    "user_clipped": _capped,
}


class _Piece(NamedTuple):
    """Records of a user in one array."""

    user: int
    array: int
    records: int


class _Arrays(NamedTuple):
    """The number of arrays, and of each user the sum of its shares and the number of its arrays."""

    number: int
    share: list[int]
    touched: list[int]


def _best_fit(counts: list[int], cap: int) -> tuple[list[_Piece], int]:
    """Returns each user's records, in the fullest array with room for them, and how many arrays.

    Users with the most records come first.
    """
    pieces = []
    # The room that is left in each array, and its number.
    free = list[tuple[int, int]]()
    for user in sorted(range(len(counts)), key=lambda user: -counts[user]):
        records = min(counts[user], cap)
        place = bisect_left(free, (records, 0))
        room, array = free.pop(place) if place < len(free) else (cap, len(free))
        insort(free, (room - records, array))
        pieces.append(_Piece(user, array, records))
    return pieces, len(free)


def _wrapped(counts: list[int], cap: int) -> tuple[list[_Piece], int]:
    """Returns users' records, which fill one array after the other, and how many arrays are full.

    Users with the most records come first, and may be in two arrays.
    """
    pieces = []
    end = 0
    for user in sorted(range(len(counts)), key=lambda user: -counts[user]):
        start = end
        end += min(counts[user], cap)
        while start < end:
            array = start // cap
            stop = min(end, (array + 1) * cap)
            pieces.append(_Piece(user, array, stop - start))
            start = stop
    return pieces, end // cap


def _group(counts: list[int], cap: int, grouping: str) -> _Arrays:
    """Returns how users, who count for `cap` records at most, share arrays of `cap` records.

    Source: docs/theory/cells.md#arrays-and-caps.
    """
    pieces, number = (_best_fit if grouping == "best_fit" else _wrapped)(counts, cap)
    filled = Counter[int]()
    for each in pieces:
        filled[each.array] += each.records
    share = [0] * len(counts)
    touched = [0] * len(counts)
    for user, array, records in pieces:
        # The last array, if it is not full, is left out.
        if array < number:
            share[user] += records * 2**_SHARE // filled[array]
            touched[user] += 1
    return _Arrays(number, share, touched)
