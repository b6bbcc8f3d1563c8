"""Computes the private whole numbers of a release exactly: means of users and sums of cells."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from shoal.arrays import Ints, add
from shoal.cells.mechanisms.cell_statistics import Fractions
from shoal.cells.mechanisms.weights import FINE, SHARE, Weights
from shoal.data.aggregate import Aggregate, exact_sums

# The lower bits of a factor that are multiplied apart from the upper ones.
_HALF_OF_PRODUCT = 20


@dataclass(frozen=True, eq=False)
class Interval:
    """The range to which each cell was clipped, in units of 2^-FINE ticks; public once selected."""

    low: Ints
    high: Ints

    @property
    def width(self) -> Ints:
        """`high` minus `low`."""
        return self.high - self.low


class Pieces(NamedTuple):
    """What is clipped and added up: cell, public weight and private value of each piece."""

    cell: Ints
    weight: Ints
    value: Ints


def ends(weights: Weights, cell: Ints, chosen: Interval) -> tuple[Ints, Ints]:
    """Returns the ends to which pieces are clipped: the range, a wider one, or a window."""
    if weights.window is not None:
        near, whole = weights.window
    elif weights.widened:
        # The lighter a member is, the wider its range: so all members move a cell equally far.
        near = weights.heaviest[cell]
        whole = weights.weight
    else:
        return chosen.low[cell], chosen.high[cell]
    half = chosen.width[cell] * near // (2 * whole)
    middle = (chosen.low + chosen.high)[cell] // 2
    return middle - half, middle + half


@dataclass(frozen=True, eq=False)
class PrivateMeans:
    """The private means of values or of a measure, in units of 2^-FINE ticks, and their sums."""

    weights: Weights
    aggregate: Aggregate = field(repr=False)
    measure: str = ""

    @property
    def top(self) -> int:
        """The upper bound in units of 2^-FINE ticks; the lower bound is 0."""
        return 1 << (self.aggregate.lattice.bits + FINE)

    @cached_property
    def means(self) -> Ints:
        """Mean of each member, rounded to the nearest."""
        sums = self.aggregate.sums_of(self.measure)[self.weights.member]
        return rounded_means(sums, self.weights.count, FINE)

    @cached_property
    def pieces(self) -> Pieces:
        """The means of groups or of users, or the sums of users."""
        weights = self.weights
        groups = weights.groups
        if groups is not None:
            # All groups weigh the same.
            weight = np.full(len(groups.cell), 1 << SHARE)
            total = add(groups.group, groups.records * self.means[groups.member], len(groups.cell))
            means = np.asarray((2 * total + groups.filled) // (2 * groups.filled))
            return Pieces(groups.cell, weight, means)
        if weights.sums:
            sums = self.aggregate.sums_of(self.measure)[weights.member] << FINE
            return Pieces(weights.cell, weights.weight, sums)
        return Pieces(weights.cell, weights.weight, self.means)

    def add_up(self, chosen: Interval | None) -> list[int]:
        """Returns each cell's exact sum of weight times clipped piece, in units of 2^-FINE ticks.

        Without a chosen range, windows are parts of the bounds, and nothing else is clipped.
        """
        weights = self.weights
        if chosen is None:
            if weights.window is None:
                return self._unclipped()
            lows = np.zeros(weights.n_cells, dtype=np.int64)
            chosen = Interval(lows, lows + self.top)
        cell, weight, value = self.pieces
        return self._weighted(cell, weight, np.clip(value, *ends(weights, cell, chosen)))

    def _unclipped(self) -> list[int]:
        """Returns each cell's exact sum of weight times mean, where values need no range."""
        weights = self.weights
        # If a mean weighs as much as it has records, the sum is used, which is not rounded.
        exact = weights.weight == weights.count
        sums = self.aggregate.sums_of(self.measure)[weights.member]
        ticks = np.where(exact, sums, weights.weight * (self.means >> FINE))
        rest = np.where(exact, 0, weights.weight * (self.means & ((1 << FINE) - 1)))
        return self._sums(weights.cell, ticks, rest)

    def _weighted(self, cell: Ints, weight: Ints, means: Ints) -> list[int]:
        """Returns each cell's exact sum of weight times mean."""
        ticks = means >> FINE
        rest = means & ((1 << FINE) - 1)
        return self._sums(cell, weight * ticks, weight * rest)

    def _sums(self, cell: Ints, ticks: Ints, rest: Ints) -> list[int]:
        """Returns each cell's exact sum of whole ticks and of a rest in units of 2^-FINE ticks."""
        of_ticks = exact_sums(cell, ticks, self.weights.n_cells)
        of_rest = exact_sums(cell, rest, self.weights.n_cells)
        return [(whole << FINE) + part for whole, part in zip(of_ticks, of_rest, strict=True)]


@dataclass(frozen=True, eq=False)
class WeightedMoments:
    """First and second moments of centred values in which users weigh as much as their reach.

    Missing mass lies at 0. If not `linear`, means come from values clipped to windows instead.
    """

    weights: Weights
    aggregate: Aggregate = field(repr=False)
    linear: bool = False

    @property
    def _top(self) -> int:
        """The width of the bounds in units of 2^-FINE ticks."""
        return 1 << (self.aggregate.lattice.bits + FINE)

    @cached_property
    def _total(self) -> list[int]:
        """The total of each cell's weights, as a whole number of Python."""
        total: list[int] = self.weights.total.tolist()
        return total

    def mean(self, measure: str) -> Fractions:
        """Returns each cell's mean as a part of the width, or of a measure's range."""
        if measure or not self.linear:
            sums = PrivateMeans(self.weights, self.aggregate, measure).add_up(None)
            return [(x, total * self._top) for x, total in zip(sums, self._total, strict=True)]
        return [
            (2 * first + total * self._top, 2 * total * self._top)
            for first, total in zip(self._first, self._total, strict=True)
        ]

    def second_moment(self) -> Fractions:
        """Returns four times each cell's weighted mean of squared centred values."""
        ticks = 1 << (2 * self.aggregate.lattice.bits)
        return [
            (4 * second, total * ticks)
            for second, total in zip(self._second, self._total, strict=True)
        ]

    def variance(self) -> Fractions:
        """Returns 4 (sum w y^2 - (sum w y)^2) plus the middle of what missing mass may add."""
        weights = self.weights
        missing_mass = np.zeros(weights.n_cells, dtype=np.int64)
        if weights.window is not None:
            missing_mass = weights.total - add(weights.cell, weights.reach, weights.n_cells)
        # Numbers and ranges are multiplied by the squares of the total and of units.
        fine = 1 << (2 * FINE)
        square = self._top**2
        fractions = []
        for first, second, total, missing in zip(
            self._first, self._second, self._total, missing_mass.tolist(), strict=True
        ):
            moments = 4 * (second * total * fine - first**2)
            # With missing mass d it is d (1 - d), and beyond d = 1/2 it is 1/2 - d (1 - d)
            # (docs/theory/cells.md#variance).
            added = missing * (total - missing)
            if 2 * missing > total:
                added = total**2 // 2 - added
            number = moments + added * square
            largest = total**2 * square
            # The number may be outside of its range by the rounding of users' means, which is less
            # than the margin of the sensitivity.
            fractions.append((min(max(number, 0), largest), largest))
        return fractions

    @cached_property
    def _first(self) -> list[int]:
        """Each cell's sum of reach times centred mean, in units of 2^-FINE ticks."""
        return self._weighted(self.aggregate.centred, FINE)

    @cached_property
    def _second(self) -> list[int]:
        """Each cell's sum of reach times mean square, in squared ticks."""
        squares = self.aggregate.squares
        assert squares is not None
        return self._weighted(squares, 0)

    def _weighted(self, sums: Ints, fine: int) -> list[int]:
        """Returns each cell's sum of reach times mean, in units of 2^-fine.

        It is exact for members whose reach is a multiple of their count.
        """
        weights = self.weights
        member_sums = sums[weights.member]
        count = weights.count
        # A reach of k counts times the mean is k times the sum, which is not rounded.
        multiple, rest = np.divmod(weights.reach, count)
        exact = rest == 0
        of_exact = self._product(np.where(exact, multiple, 0), member_sums)
        mean = rounded_means(member_sums, count, fine)
        of_rounded = self._product(np.where(exact, 0, weights.reach), mean)
        pairs = zip(of_exact, of_rounded, strict=True)
        return [(whole << fine) + rounded for whole, rounded in pairs]

    def _product(self, weight: Ints, amount: Ints) -> list[int]:
        """Returns each cell's sum of products that may not fit 64 bits."""
        cell = self.weights.cell
        size = self.weights.n_cells
        upper = exact_sums(cell, weight * (amount >> _HALF_OF_PRODUCT), size)
        lower = exact_sums(cell, weight * (amount & ((1 << _HALF_OF_PRODUCT) - 1)), size)
        return [(up << _HALF_OF_PRODUCT) + down for up, down in zip(upper, lower, strict=True)]


def rounded_means(sums: Ints, count: Ints, fine: int) -> Ints:
    """Returns sums divided by counts, in units of 2^-fine and rounded to the nearest."""
    whole, rest = np.divmod(sums, count)
    return np.asarray((whole << fine) + ((rest << fine) + count // 2) // count)
