"""What every user contributes to the mean of every released cell: public facts only.

The estimator of a cell is, over the width U and with Y in 0..1 for the mean of a group of records,

    sum_p weight_p clip(Y_p, low_p, high_p) / total ,

where the range [low, high] is the whole width or was chosen by a private selection. Its range is
high - low; noise scales are relative to it, so that accounting does not depend on the range.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shoal.theory.sensitivity import OUTWARD

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.data.occupancy import Counts

# Means of users are kept in ticks over 2^FINE.
FINE = 10
# Shares of arrays are whole numbers of 2^-SHARE.
SHARE = 24


@dataclass(frozen=True, eq=False)
class Groups:
    """Records of several users averaged together before they are clipped.

    Attributes:
        member: Position of the membership of each piece, in the design's members.
        group: Group of each piece.
        records: Records of each piece.
        number: Number (released cell) of each group, ascending.
        filled: Records of each group.
    """

    member: NDArray[np.int64]
    group: NDArray[np.int64]
    records: NDArray[np.int64]
    number: NDArray[np.int64]
    filled: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Interval:
    """Where the mean of each member is clipped: the range's middle -+ near/(2 whole) of its range.

    The range is the whole width, or was selected.

    Attributes:
        near: Whole number of each member, at most `whole`.
        whole: The same, or one for all.
    """

    near: NDArray[np.int64]
    whole: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Design:
    """Weights and contributions of every membership in the released cells.

    Attributes:
        occupancy: The counts.
        cells: The released cells; position in here is the `number` of a cell.
        member: Memberships in these cells.
        number: Number of each member.
        weight: Whole weight of each member's mean.
        total: What weights and contributions of each number are divided by.
        contribution: Most that a member moves the estimator, as a part of the range times `total`.
        groups: Groups of records that are clipped as one, or None if each user is.
        interval: Where means of users are clipped, if each to an own part of the range; a user
            then reaches near/whole of its weight. A linear estimator with these contributions as
            weights, and the missing mass in the middle, has the same error in the worst case
            (docs/theory/limits.md#means).
        widened: Whether lighter users have wider ranges, so that all reach equally far.
        sums: Whether sums of users are clipped instead of means.
    """

    occupancy: Counts
    cells: NDArray[np.int64]
    member: NDArray[np.int64]
    number: NDArray[np.int64]
    weight: NDArray[np.int64]
    total: NDArray[np.int64]
    contribution: NDArray[np.int64]
    groups: Groups | None = None
    interval: Interval | None = None
    widened: bool = False
    sums: bool = False

    @property
    def n_numbers(self) -> int:
        """How many cells are released."""
        return len(self.cells)

    @property
    def user(self) -> NDArray[np.int64]:
        """User of each member."""
        return self.occupancy.user[self.member]

    @property
    def count(self) -> NDArray[np.int64]:
        """Records of each member."""
        return self.occupancy.count[self.member]

    @property
    def pieces(self) -> NDArray[np.int64]:
        """Means of each number that are clipped one by one: of groups, or of users."""
        of = self.number if self.groups is None else self.groups.number
        return np.bincount(of, minlength=self.n_numbers).astype(np.int64)

    @property
    def touched(self) -> int:
        """Most pieces of one number that one user touches."""
        return 1 if self.groups is None else int(np.bincount(self.groups.member).max())

    @cached_property
    def largest(self) -> NDArray[np.float64]:
        """The largest part of each number."""
        top = np.zeros(self.n_numbers)
        np.maximum.at(top, self.number, self.part)
        return top

    @cached_property
    def heaviest(self) -> NDArray[np.int64]:
        """The largest weight of each number."""
        top = np.zeros(self.n_numbers, dtype=np.int64)
        np.maximum.at(top, self.number, self.weight)
        return top

    @cached_property
    def share(self) -> NDArray[np.float64]:
        """The share m/n of each member."""
        return np.asarray(self.count / self.occupancy.totals[self.cells][self.number])

    @cached_property
    def bias(self) -> NDArray[np.float64]:
        """Bias over all data sets before anything is clipped, over U.

        Source: docs/theory/grouping.md#linear-estimators-and-their-bias.

        max( sum (v-w)^+, sum (w-v)^+ ) with w = weight/total; with public intervals half the
        missing mass (section 6). What a selected range adds is `range_bias`.
        """
        if self.sums:
            return np.zeros(self.n_numbers)
        if self.interval is not None:
            return self.missing / 2
        short, over = self._apart
        return np.asarray(np.maximum(short, over))

    @cached_property
    def missing(self) -> NDArray[np.float64]:
        """1 - W of each number, with W the sum of contributions: what own intervals leave out."""
        if self.interval is None:
            return np.zeros(self.n_numbers)
        beyond = self.total - add_by(self.number, self.contribution, self.n_numbers)
        return np.asarray(beyond / self.total)

    @cached_property
    def distance(self) -> NDArray[np.float64]:
        """Mass by which weights, with what is missing, and shares differ."""
        if self.interval is not None:
            return self.missing
        return np.asarray(np.maximum(*self._apart))

    @cached_property
    def part(self) -> NDArray[np.float64]:
        """Most that each member moves its number, as a part of the range, rounded upwards."""
        return np.minimum(1.0, self.contribution / self.total[self.number] * OUTWARD)

    @cached_property
    def kept(self) -> NDArray[np.float64]:
        """W of the number of each member, rounded upwards."""
        return np.minimum(1.0, (1 - self.missing) * OUTWARD)[self.number]

    @property
    def _apart(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Sums of (v-w)^+ and of (w-v)^+."""
        apart = self.share - self.weight / self.total[self.number]
        # Equal in exact arithmetic, different by a rounding: no bias.
        apart = np.where(np.abs(apart) < self.share * 2.0**-45, 0.0, apart)
        short = np.bincount(self.number, np.maximum(apart, 0), minlength=self.n_numbers)
        over = np.bincount(self.number, np.maximum(-apart, 0), minlength=self.n_numbers)
        return np.asarray(short, dtype=np.float64), np.asarray(over, dtype=np.float64)


def members(
    occupancy: Counts, cells: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Memberships in the given cells, and the number of the cell of each."""
    place = np.full(occupancy.n_cells, -1)
    place[cells] = np.arange(len(cells))
    number = place[occupancy.cell]
    member = np.flatnonzero(number >= 0)
    return member, number[member]


def linear(
    occupancy: Counts,
    cells: NDArray[np.int64],
    weight: NDArray[np.int64],
    total: NDArray[np.int64],
) -> Design:
    """A design in which every user's own mean has a weight and reaches as far as it weighs.

    Args:
        occupancy: The counts.
        cells: The released cells.
        weight: Of each membership in these cells, in the order of `members`.
        total: Divisor of each number.
    """
    member, number = members(occupancy, cells)
    return Design(
        occupancy=occupancy,
        cells=cells,
        member=member,
        number=number,
        weight=weight,
        total=total,
        contribution=weight,
    )


def capped(occupancy: Counts, cells: NDArray[np.int64], cap: NDArray[np.int64]) -> Design:
    """A linear design with weights min(m_l, cap) over their sum.

    Args:
        occupancy: The counts.
        cells: The released cells.
        cap: Of each of them.
    """
    member, number = members(occupancy, cells)
    weight = np.minimum(occupancy.count[member], cap[number])
    return linear(occupancy, cells, weight, add_by(number, weight, len(cells)))


def add_by(number: NDArray[np.int64], amount: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Exact sums of whole numbers by group."""
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, number, amount)
    return total
