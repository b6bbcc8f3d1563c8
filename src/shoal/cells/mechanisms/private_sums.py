"""Private whole numbers of a release: means of users, and weighted moments of cells, all exact."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from shoal.arrays import Ints, add
from shoal.cells.mechanisms.cell_statistics import Fractions
from shoal.cells.mechanisms.weights import FINE, SHARE, Weights
from shoal.data.aggregate import Aggregate, exact_sums

_HALF_OF_PRODUCT = 20


@dataclass(frozen=True, eq=False)
class Interval:
    """Where what counts in each cell was clipped, in ticks over 2^FINE; public once selected."""

    low: Ints
    high: Ints

    @property
    def width(self) -> Ints:
        """High - low."""
        return self.high - self.low


def ends(weights: Weights, chosen: Interval) -> tuple[Ints, Ints]:
    """Where the mean of each member is clipped: in the range, wider, or in a window of it."""
    cell = weights.cell
    if weights.window is not None:
        near, whole = weights.window
        half = chosen.width[cell] * near // (2 * whole)
    elif weights.widened:
        half = chosen.width[cell] * weights.heaviest[cell] // (2 * weights.weight)
    else:
        return chosen.low[cell], chosen.high[cell]
    middle = (chosen.low + chosen.high)[cell] // 2
    return middle - half, middle + half


@dataclass(frozen=True, eq=False)
class PrivateMeans:
    """The private means that weights average, of values or a measure, in ticks over 2^FINE."""

    weights: Weights
    aggregate: Aggregate = field(repr=False)
    measure: str = ""

    @property
    def top(self) -> int:
        """The upper bound in ticks over 2^FINE; the lower one is 0."""
        return 1 << (self.aggregate.lattice.bits + FINE)

    @cached_property
    def means(self) -> Ints:
        """Mean of each member, rounded to the nearest."""
        own = self.aggregate.sums_of(self.measure)[self.weights.member]
        return rounded_means(own, self.weights.count, FINE)

    @cached_property
    def sums(self) -> Ints:
        """Sum of each member."""
        return self.aggregate.sums_of(self.measure)[self.weights.member] << FINE

    @cached_property
    def group_means(self) -> Ints:
        """Mean of each group, rounded to the nearest."""
        groups = self.weights.groups
        if groups is None:
            return self.means
        total = add(groups.group, groups.records * self.means[groups.member], len(groups.cell))
        return np.asarray((2 * total + groups.filled) // (2 * groups.filled))

    @property
    def group_cell(self) -> Ints:
        """Cell of each group."""
        groups = self.weights.groups
        return self.weights.cell if groups is None else groups.cell

    def add_up(self, chosen: Interval | None) -> list[int]:
        """Exact sum of weight times clipped mean of each cell, in ticks over 2^FINE."""
        weights = self.weights
        if weights.window is not None:
            whole = Interval(
                np.zeros(weights.n_cells, dtype=np.int64), np.full(weights.n_cells, self.top)
            )
            clipped = np.clip(self.means, *ends(weights, chosen or whole))
            return self._weighted(weights.cell, weights.weight, clipped)
        if chosen is None:
            # Where a mean weighs as many records as it is of, the sum is taken as it is.
            exact = weights.weight == weights.count
            own = self.aggregate.sums_of(self.measure)[weights.member]
            high = np.where(exact, own, weights.weight * (self.means >> FINE))
            low = np.where(exact, 0, weights.weight * (self.means & ((1 << FINE) - 1)))
            return self._sums(weights.cell, high, low)
        if weights.sums:
            clipped = np.minimum(self.sums, chosen.high[weights.cell])
            return self._weighted(weights.cell, weights.weight, clipped)
        if weights.groups is None:
            clipped = np.clip(self.means, *ends(weights, chosen))
            return self._weighted(weights.cell, weights.weight, clipped)
        cell = weights.groups.cell
        clipped = np.clip(self.group_means, chosen.low[cell], chosen.high[cell])
        return self._weighted(cell, np.full(len(cell), 1 << SHARE), clipped)

    def _weighted(self, cell: Ints, weight: Ints, means: Ints) -> list[int]:
        return self._sums(cell, weight * (means >> FINE), weight * (means & ((1 << FINE) - 1)))

    def _sums(self, cell: Ints, high: Ints, low: Ints) -> list[int]:
        ups, downs = (exact_sums(cell, each, self.weights.n_cells) for each in (high, low))
        return [(up << FINE) + down for up, down in zip(ups, downs, strict=True)]


@dataclass(frozen=True, eq=False)
class WeightedMoments:
    """First and second moments of centred values, users weighed by their reach, missing mass at 0.

    If not `linear`, windows clip means instead.
    """

    weights: Weights
    aggregate: Aggregate = field(repr=False)
    linear: bool = False

    @property
    def _top(self) -> int:
        return 1 << (self.aggregate.lattice.bits + FINE)

    @cached_property
    def _total(self) -> list[int]:
        total: list[int] = self.weights.total.tolist()
        return total

    def mean(self, measure: str) -> Fractions:
        """Mean of each cell over the width (of a measure: over its ticks)."""
        if measure or not self.linear:
            sums = PrivateMeans(self.weights, self.aggregate, measure).add_up(None)
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
        """4 (sum w y^2 - (sum w y)^2), and the middle of what missing mass may add to it."""
        weights = self.weights
        found = []
        lost = np.zeros(weights.n_cells, dtype=np.int64)
        if weights.window is not None:
            lost = weights.total - add(weights.cell, weights.reach, weights.n_cells)
        fine = 1 << (2 * FINE)
        square = self._top**2
        for first, second, whole, missing in zip(
            self._first, self._second, self._total, lost.tolist(), strict=True
        ):
            moments = 4 * (second * whole * fine - first**2)
            added = missing * (whole - missing)
            if 2 * missing > whole:
                added = whole**2 // 2 - added
            # Means of users are rounded: by less than the margin of the sensitivity.
            number = moments + added * square
            most = whole**2 * square
            found.append((min(max(number, 0), most), most))
        return found

    @cached_property
    def _first(self) -> list[int]:
        """Sum of reach times centred mean, in ticks over 2^FINE."""
        return self._weighted(self.aggregate.centred, FINE)

    @cached_property
    def _second(self) -> list[int]:
        """Sum of reach times mean square, in squared ticks."""
        squares = self.aggregate.squares
        assert squares is not None
        return self._weighted(squares, 0)

    def _weighted(self, sums: Ints, fine: int) -> list[int]:
        """Sum over members of reach times mean, in 2^-fine; exact where it is a multiple."""
        weights = self.weights
        own = sums[weights.member]
        count = weights.count
        times, rest = np.divmod(weights.reach, count)
        exact = rest == 0
        high = self._product(np.where(exact, times, 0), own)
        mean = rounded_means(own, count, fine)
        low = self._product(np.where(exact, 0, weights.reach), mean)
        return [(up << fine) + down for up, down in zip(high, low, strict=True)]

    def _product(self, weight: Ints, amount: Ints) -> list[int]:
        """Sums by cell of a product that may pass 64 bits."""
        cell = self.weights.cell
        size = self.weights.n_cells
        high = exact_sums(cell, weight * (amount >> _HALF_OF_PRODUCT), size)
        low = exact_sums(cell, weight * (amount & ((1 << _HALF_OF_PRODUCT) - 1)), size)
        return [(up << _HALF_OF_PRODUCT) + down for up, down in zip(high, low, strict=True)]


def rounded_means(sums: Ints, count: Ints, fine: int) -> Ints:
    """Returns sums over counts in 2^-fine, rounded to the nearest."""
    whole, rest = np.divmod(sums, count)
    return np.asarray((whole << fine) + ((rest << fine) + count // 2) // count)
