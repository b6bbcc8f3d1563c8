"""Decides how much every user counts in every planned cell, by one function for each rule.

Weights are public. The estimator of a cell, as a part of the width, is
sum_p weight_p clip(Y_p, low_p, high_p) / total in whole numbers, where Y_p in 0..1 is the mean of a
user or of a group (docs/theory/cells.md#linear-estimators).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from shoal.arrays import Floats, Ints, add, by_cell, largest
from shoal.data.counts import Counts
from shoal.errors import InputError
from shoal.theory.sensitivity import OUTWARD

# Public whole numbers of a plan by name.
Parameters = dict[str, Ints]


class Limit(NamedTuple):
    """The number of values of a parameter, the least and the largest one.

    `size` is None for any number of them. `most` may be the records of each cell's heaviest user,
    or the width of the bounds in units of 2^-FINE ticks.
    """

    size: Literal["cells", "members"] | int | None
    least: int
    most: Literal["records", "width"] | int | tuple[int, ...]


Grouping = Literal["best_fit", "wrap_around"]
# Means of users are whole multiples of 2^-FINE ticks.
FINE = 10
# Of a mean of a group of records, a member has a share that is a whole multiple of 2^-SHARE.
SHARE = 24
# Parts of users' shares are whole multiples of 2^-PART.
PART = 16


@dataclass(frozen=True, eq=False)
class Groups:
    """Records of members that are averaged in groups.

    Each entry says how many `records` of a `member` are in a `group`. `cell` and `filled` have the
    cell and the number of records of each group.
    """

    member: Ints
    group: Ints
    records: Ints
    cell: Ints
    filled: Ints


@dataclass(frozen=True, eq=False)
class Weights:
    """Weight and reach of every member, which is a user in a planned cell.

    Attributes:
        cells: The planned cells.
        member: The positions of the members among the counts.
        cell: The cell of each member, as a position in `cells`.
        total: The number by which weights and reaches of each cell are divided.
        reach: The most that a member moves its cell, as a part of the range times `total`.
        groups: Groups of records whose means are clipped; None if users' means are clipped.
        window: (near, whole): each mean is clipped to the range's middle -+ near/(2 whole) of the
            range; None if it is clipped to the range (docs/theory/cells.md#limits-of-means).
        widened: Whether lighter users have wider ranges, so that all reach equally far.
        sums: Whether sums of users are clipped instead of means.
    """

    counts: Counts
    cells: Ints
    member: Ints
    cell: Ints
    weight: Ints
    total: Ints
    reach: Ints
    groups: Groups | None = None
    window: tuple[Ints, Ints] | None = None
    widened: bool = False
    sums: bool = False

    @property
    def n_cells(self) -> int:
        """How many cells are planned."""
        return len(self.cells)

    @cached_property
    def user(self) -> Ints:
        """User of each member."""
        return self.counts.user[self.member]

    @cached_property
    def n_users(self) -> int:
        """How many users are in a planned cell."""
        return int(np.count_nonzero(np.bincount(self.user)))

    @cached_property
    def count(self) -> Ints:
        """Records of each member."""
        return self.counts.count[self.member]

    @property
    def pieces(self) -> Ints:
        """The number of means in each cell that are clipped one by one: of groups, or of users."""
        piece_cell = self.cell if self.groups is None else self.groups.cell
        return np.bincount(piece_cell, minlength=self.n_cells).astype(np.int64)

    @property
    def touched(self) -> int:
        """The most pieces of one cell that one user touches."""
        return 1 if self.groups is None else int(np.bincount(self.groups.member).max())

    @cached_property
    def share(self) -> Floats:
        """The share of each member: its records divided by its cell's records."""
        return np.asarray(self.count / self.counts.totals[self.cells][self.cell])

    @cached_property
    def part(self) -> Floats:
        """The most that each member moves its cell, as a part of the range, rounded upwards."""
        return np.minimum(1.0, self.reach / self.total[self.cell] * OUTWARD)

    @cached_property
    def largest(self) -> Floats:
        """The largest part of each cell."""
        return largest(self.cell, self.part, self.n_cells)

    @cached_property
    def heaviest(self) -> Ints:
        """The largest weight of each cell."""
        return largest(self.cell, self.weight, self.n_cells)

    @cached_property
    def missing(self) -> Floats:
        """The mass of each cell that windows leave in the middle of the range."""
        if self.window is None:
            return np.zeros(self.n_cells)
        return np.asarray((self.total - add(self.cell, self.reach, self.n_cells)) / self.total)

    @cached_property
    def kept(self) -> Floats:
        """The mass that is not missing in each member's cell, rounded upwards."""
        return np.minimum(1.0, (1 - self.missing) * OUTWARD)[self.cell]

    @cached_property
    def distance(self) -> Floats:
        """The mass by which weights and shares of a cell differ, or that windows leave out."""
        if self.window is not None:
            return self.missing
        difference = self.share - self.weight / self.total[self.cell]
        # A difference this small comes from rounding: weight and share are equal.
        difference = np.where(np.abs(difference) < self.share * 2.0**-45, 0.0, difference)
        too_light = np.bincount(self.cell, np.maximum(difference, 0), minlength=self.n_cells)
        too_heavy = np.bincount(self.cell, np.maximum(-difference, 0), minlength=self.n_cells)
        # Both sums are equal but for rounding.
        return np.maximum(too_light, too_heavy)

    @property
    def bias(self) -> Floats:
        """Bias of each cell in the worst data set, as a part of the width, without a range."""
        if self.sums:
            return np.zeros(self.n_cells)
        return self.missing / 2 if self.window is not None else self.distance


class Arrays(NamedTuple):
    """User, array and number of records of each piece, and the number of arrays that count."""

    user: Ints
    array: Ints
    records: Ints
    number: int


def members(counts: Counts, cells: Ints) -> tuple[Ints, Ints]:
    """Returns the memberships in the given cells, and each one's cell as a position in `cells`."""
    place = np.full(counts.n_cells, -1)
    place[cells] = np.arange(len(cells))
    at = place[counts.cell]
    member = np.flatnonzero(at >= 0)
    return member, at[member]


def linear(counts: Counts, cells: Ints, weight: Ints, total: Ints | None = None) -> Weights:
    """Returns weights with equal reaches; `total` is the sum of the weights if it is None."""
    member, cell = members(counts, cells)
    total = add(cell, weight, len(cells)) if total is None else total
    return Weights(counts, cells, member, cell, weight, total, weight)


def every_record(counts: Counts, cells: Ints) -> Weights:
    """Returns shares as weights: no bias (docs/theory/privacy.md#sensitivity; paper 002, III-B)."""
    member, _ = members(counts, cells)
    return linear(counts, cells, counts.count[member])


def capped(counts: Counts, cells: Ints, cap: Ints, *, widened: bool = False) -> Weights:
    """Returns counts up to the cap as weights, perhaps with equal reaches of all users of a cell.

    Source: docs/theory/cells.md#adaptive-mean.
    """
    member, cell = members(counts, cells)
    weights = linear(counts, cells, np.minimum(counts.count[member], cap[cell]))
    if widened:
        return replace(weights, widened=True, reach=weights.heaviest[cell])
    return weights


def kept_users(counts: Counts, cells: Ints, cap: Ints, kept: Ints) -> Weights:
    """Returns counts up to the cap as weights of kept members, else 0 (paper 000, section V)."""
    member, cell = members(counts, cells)
    weight = np.where(kept > 0, np.minimum(counts.count[member], cap[cell]), 0)
    return linear(counts, cells, weight)


def truncated(counts: Counts, cells: Ints, threshold: Ints) -> Weights:
    """Returns weights whose means are clipped to the middle -+ threshold/(2 count) of the range.

    They have the least worst-case error (paper 001, Theorem III.1).
    """
    member, cell = members(counts, cells)
    count = counts.count[member]
    near = np.minimum(count, threshold[cell])
    return replace(linear(counts, cells, count), reach=near, window=(near, count))


def parts(counts: Counts, cells: Ints, part: Ints) -> Weights:
    """Returns weights of users who count in multiples of 2^-PART of their shares.

    Source: docs/theory/cells.md#optimal-plan.
    """
    member, _ = members(counts, cells)
    count = counts.count[member]
    whole = np.array([1 << PART])
    weights = linear(counts, cells, count << PART)
    return replace(weights, reach=count * part, window=(part, whole))


def user_sums(counts: Counts, cells: Ints) -> Weights:
    """Returns weights for sums of users, which are clipped instead of means (paper 001, IV)."""
    member, cell = members(counts, cells)
    total = add(cell, counts.count[member], len(cells))
    return replace(linear(counts, cells, np.ones(len(member), np.int64), total), sums=True)


def arrays(counts: Counts, cells: Ints, cap: Ints, grouping: Grouping, *, clipped: bool) -> Weights:
    """Returns weights of users in the mean of the means of arrays.

    If arrays are `clipped` one by one, each user in an array may move it by the whole range
    (docs/theory/cells.md#arrays-and-caps; errata 7 and 8).
    """
    member, cell = members(counts, cells)
    count = counts.count[member]
    # The arrays of all cells are numbered one cell after another.
    n_arrays = 0
    arrays_of_cell = np.zeros(len(cells), dtype=np.int64)
    pieces: list[tuple[Ints, ...]] = []
    for at, inside in enumerate(by_cell(cell, len(cells))):
        in_cell = GROUPINGS[grouping](count[inside], int(cap[at]))
        pieces.append((inside[in_cell.user], in_cell.array + n_arrays, in_cell.records))
        arrays_of_cell[at] = in_cell.number
        n_arrays += in_cell.number
    # A piece is the records of one member in one array.
    piece_member, array, records = (np.concatenate(column) for column in zip(*pieces, strict=True))
    filled = add(array, records, n_arrays)
    weight = add(piece_member, (records << SHARE) // filled[array], len(member))
    averaged = linear(counts, cells, weight, arrays_of_cell << SHARE)
    if not clipped:
        return averaged
    array_cell = np.repeat(np.arange(len(cells)), arrays_of_cell)
    groups = Groups(piece_member, array, records, array_cell, filled)
    touched = np.bincount(piece_member, minlength=len(member)).astype(np.int64)
    return replace(averaged, reach=touched << SHARE, groups=groups)


def wrap_around(count: Ints, cap: int) -> Arrays:
    """Fills arrays one after another by falling count, and returns those that are full.

    Source: docs/theory/cells.md#arrays-and-caps.
    """
    order, size = _by_falling_size(count, cap)
    # Users' records lie one after another; every `cap` of them are an array.
    stop = np.cumsum(size)
    start = stop - size
    number = int(stop[-1]) // cap
    if not number:
        raise InputError(
            f"at a cap of {cap} the {int(stop[-1])} records do not fill one array",
            f"choose a smaller cap, at most the largest count, {int(count.max())}",
        )
    # No user has more than `cap` records, and so none is in more than two arrays.
    in_first = np.minimum(size, cap - start % cap)
    user = np.concatenate([order, order])
    array = np.concatenate([start // cap, start // cap + 1])
    records = np.concatenate([in_first, size - in_first])
    full = (records > 0) & (array < number)
    return Arrays(user[full], array[full], records[full], number)


def best_fit(count: Ints, cap: int) -> Arrays:
    """Puts users into the fullest array that holds them, and returns all arrays.

    Source: docs/theory/cells.md#arrays-and-caps.
    """
    order, size = _by_falling_size(count, cap)
    array_of_user = []
    n_arrays = 0
    # The free space and the number of each array that is not full, by rising space.
    free = list[tuple[int, int]]()
    for records in size.tolist():
        # The first array with enough space: no array has a number below 0.
        at = bisect_left(free, (records, -1))
        if at < len(free):
            space, array = free.pop(at)
        else:
            space = cap
            array = n_arrays
            n_arrays += 1
        array_of_user.append(array)
        if space > records:
            insort(free, (space - records, array))
    return Arrays(order, np.array(array_of_user, dtype=np.int64), size, n_arrays)


def _by_falling_size(count: Ints, cap: int) -> tuple[Ints, Ints]:
    """Returns users by falling count, equal counts by position, and the records each one keeps."""
    if cap < 1:
        raise InputError(f"a cap of {cap} is below 1", "give a whole number, for example cap=1")
    order = np.argsort(-count, kind="stable")
    return order, np.minimum(count[order], cap)


GROUPINGS: dict[str, Callable[[Ints, int], Arrays]] = {
    "best_fit": best_fit,
    "wrap_around": wrap_around,
}


def largest_counts(counts: Counts, cells: Ints) -> Ints:
    """Returns the records of the heaviest user of each given cell."""
    return np.asarray(largest(counts.cell, counts.count, counts.n_cells)[cells])
