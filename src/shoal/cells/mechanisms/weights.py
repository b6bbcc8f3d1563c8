"""How much of every user counts in every planned cell: public facts, one function a rule.

The estimator of a cell is, over the width and with Y in 0..1 for the mean of a user or a group,
sum_p weight_p clip(Y_p, low_p, high_p) / total, all in whole numbers
(docs/theory/cells.md#linear-estimators).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from shoal.arrays import Floats, Ints, add, by_cell, largest
from shoal.data.counts import Counts
from shoal.errors import InputError
from shoal.theory.sensitivity import OUTWARD

# Public whole numbers of a plan by name.
Parameters = dict[str, Ints]
Grouping = Literal["best_fit", "wrap_around"]
# Means of users are kept in ticks over 2^FINE; shares of arrays are whole numbers of 2^-SHARE,
# parts of users whole numbers of 2^-PART.
FINE = 10
SHARE = 24
PART = 16


@dataclass(frozen=True, eq=False)
class Groups:
    """Records of members averaged in groups; `cell` and `filled` (records) are of each group."""

    member: Ints
    group: Ints
    records: Ints
    cell: Ints
    filled: Ints


@dataclass(frozen=True, eq=False)
class Weights:
    """Weight and reach of every member, which is a user in a planned cell.

    Attributes:
        cells: The planned cells; a position in here is a `cell` below.
        member: Memberships of the counts in these cells.
        total: What weights and reaches of each cell are divided by.
        reach: Most that a member moves its cell, as a part of the range times `total`.
        groups: Groups of records that are clipped as one; None if each user is.
        window: (near, whole): each mean is clipped to the range's middle -+ near/(2 whole) of it;
            None if to all of it (docs/theory/cells.md#limits-of-means).
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
        """How many users have a member."""
        return int(np.count_nonzero(np.bincount(self.user)))

    @cached_property
    def count(self) -> Ints:
        """Records of each member."""
        return self.counts.count[self.member]

    @property
    def pieces(self) -> Ints:
        """Means of each cell that are clipped one by one: of groups, or of users."""
        of = self.cell if self.groups is None else self.groups.cell
        return np.bincount(of, minlength=self.n_cells).astype(np.int64)

    @property
    def touched(self) -> int:
        """Most pieces of one cell that one user touches."""
        return 1 if self.groups is None else int(np.bincount(self.groups.member).max())

    @cached_property
    def share(self) -> Floats:
        """The share m/n of each member."""
        return np.asarray(self.count / self.counts.totals[self.cells][self.cell])

    @cached_property
    def part(self) -> Floats:
        """Most that each member moves its cell, as a part of the range, rounded upwards."""
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
        """Mass of each cell that windows leave in the middle of the range."""
        if self.window is None:
            return np.zeros(self.n_cells)
        return np.asarray((self.total - add(self.cell, self.reach, self.n_cells)) / self.total)

    @cached_property
    def kept(self) -> Floats:
        """What is not missing of the cell of each member, rounded upwards."""
        return np.minimum(1.0, (1 - self.missing) * OUTWARD)[self.cell]

    @cached_property
    def distance(self) -> Floats:
        """Mass by which weights, with what is missing, and shares of each cell differ."""
        if self.window is not None:
            return self.missing
        apart = self.share - self.weight / self.total[self.cell]
        # Equal in exact arithmetic, different by a rounding: no bias.
        apart = np.where(np.abs(apart) < self.share * 2.0**-45, 0.0, apart)
        short, over = (
            np.bincount(self.cell, np.maximum(each, 0), minlength=self.n_cells)
            for each in (apart, -apart)
        )
        return np.maximum(short, over)

    @property
    def bias(self) -> Floats:
        """Bias of each cell in the worst data set over the width, without a private range."""
        if self.sums:
            return np.zeros(self.n_cells)
        return self.missing / 2 if self.window is not None else self.distance


def members(counts: Counts, cells: Ints) -> tuple[Ints, Ints]:
    """Memberships in the given cells, and the place of the cell of each among these."""
    place = np.full(counts.n_cells, -1)
    place[cells] = np.arange(len(cells))
    at = place[counts.cell]
    member = np.flatnonzero(at >= 0)
    return member, at[member]


def linear(counts: Counts, cells: Ints, weight: Ints, total: Ints | None = None) -> Weights:
    """Weights with which every member reaches as far as it weighs; `total` is their sum if None."""
    member, cell = members(counts, cells)
    total = add(cell, weight, len(cells)) if total is None else total
    return Weights(counts, cells, member, cell, weight, total, weight)


def every_record(counts: Counts, cells: Ints) -> Weights:
    """Returns w = m/n, without bias (docs/theory/privacy.md#sensitivity; paper 002, III-B)."""
    return linear(counts, cells, counts.count[members(counts, cells)[0]])


def capped(counts: Counts, cells: Ints, cap: Ints, *, widened: bool = False) -> Weights:
    """Returns w = min(m, cap)/sum, perhaps widened (docs/theory/cells.md#adaptive-mean)."""
    member, cell = members(counts, cells)
    found = linear(counts, cells, np.minimum(counts.count[member], cap[cell]))
    return replace(found, widened=True, reach=found.heaviest[cell]) if widened else found


def kept_users(counts: Counts, cells: Ints, cap: Ints, kept: Ints) -> Weights:
    """Returns w = min(m, cap) over their sum, of who is kept (paper 000, section V)."""
    member, cell = members(counts, cells)
    weight = np.where(kept > 0, np.minimum(counts.count[member], cap[cell]), 0)
    return linear(counts, cells, weight)


def truncated(counts: Counts, cells: Ints, threshold: Ints) -> Weights:
    """Means clipped to the middle -+ T/(2m), the least worst-case error (paper 001, III.1)."""
    member, cell = members(counts, cells)
    count = counts.count[member]
    near = np.minimum(count, threshold[cell])
    return replace(linear(counts, cells, count), reach=near, window=(near, count))


def parts(counts: Counts, cells: Ints, part: Ints) -> Weights:
    """Weights of users who count in parts of 2^-PART (docs/theory/cells.md#optimal-plan)."""
    count = counts.count[members(counts, cells)[0]]
    found = linear(counts, cells, count << PART)
    return replace(found, reach=count * part, window=(part, np.array([1 << PART])))


def user_sums(counts: Counts, cells: Ints) -> Weights:
    """One sum a user, which reaches the whole threshold (paper 001, section IV)."""
    member, cell = members(counts, cells)
    total = add(cell, counts.count[member], len(cells))
    return replace(linear(counts, cells, np.ones(len(member), np.int64), total), sums=True)


def arrays(counts: Counts, cells: Ints, cap: Ints, grouping: Grouping, *, clipped: bool) -> Weights:
    """Weights of users in the mean of means of arrays (docs/theory/cells.md#arrays-and-caps).

    Clipped one by one, an array reaches the whole range for everybody in it (errata 7 and 8).
    """
    member, cell = members(counts, cells)
    count = counts.count[member]
    first = 0
    pieces: list[tuple[Ints, ...]] = []
    number = np.zeros(len(cells), dtype=np.int64)
    for at, own in enumerate(by_cell(cell, len(cells))):
        who, array, records, number[at] = GROUPINGS[grouping](count[own], int(cap[at]))
        pieces.append((own[who], array + first, records))
        first += int(number[at])
    who, group, records = (np.concatenate(column) for column in zip(*pieces, strict=True))
    filled = add(group, records, first)
    weight = add(who, (records << SHARE) // filled[group], len(member))
    found = linear(counts, cells, weight, number << SHARE)
    if not clipped:
        return found
    groups = Groups(who, group, records, np.repeat(np.arange(len(cells)), number), filled)
    touched = np.bincount(who, minlength=len(member)).astype(np.int64)
    return replace(found, reach=touched << SHARE, groups=groups)


def wrap_around(count: Ints, cap: int) -> tuple[Ints, Ints, Ints, int]:
    """Fills arrays one after another by falling count (docs/theory/cells.md#arrays-and-caps).

    Returns user, array and records of each piece, and the number of full arrays, which are kept.
    """
    order, size = _by_falling_size(count, cap)
    stop = np.cumsum(size)
    start = stop - size
    number = int(stop[-1]) // cap
    if not number:
        raise InputError(
            f"at a cap of {cap} the {int(stop[-1])} records do not fill one array",
            f"choose a smaller cap, at most the largest count, {int(count.max())}",
        )
    first = np.minimum(size, cap - start % cap)
    user = np.concatenate([order, order])
    array = np.concatenate([start // cap, start // cap + 1])
    records = np.concatenate([first, size - first])
    full = (records > 0) & (array < number)
    return user[full], array[full], records[full], number


def best_fit(count: Ints, cap: int) -> tuple[Ints, Ints, Ints, int]:
    """Puts users into the fullest array that holds them (docs/theory/cells.md#arrays-and-caps).

    Returns user, array and records of each piece, and the number of arrays, all of which count.
    """
    order, size = _by_falling_size(count, cap)
    array = []
    number = 0
    free = list[tuple[int, int]]()
    for each in size.tolist():
        at = bisect_left(free, (each, -1))
        space, where = free.pop(at) if at < len(free) else (cap, number)
        number += where == number
        array.append(where)
        if space > each:
            insort(free, (space - each, where))
    return order, np.array(array, dtype=np.int64), size, number


def _by_falling_size(count: Ints, cap: int) -> tuple[Ints, Ints]:
    """Users by falling count, ties by position, and what each of them keeps."""
    if cap < 1:
        raise InputError(f"a cap of {cap} is below 1", "give a whole number, for example cap=1")
    order = np.argsort(-count, kind="stable")
    return order, np.minimum(count[order], cap)


GROUPINGS: dict[str, Callable[[Ints, int], tuple[Ints, Ints, Ints, int]]] = {
    "best_fit": best_fit,
    "wrap_around": wrap_around,
}


def largest_counts(counts: Counts, cells: Ints) -> Ints:
    """Records of the heaviest user of each of some cells."""
    return np.asarray(largest(counts.cell, counts.count, counts.n_cells)[cells])
