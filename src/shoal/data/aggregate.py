"""What one pass over the records leaves: exact integers for each user and cell. Private."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from shoal.arrays import Floats, Ints
from shoal.data.memberships import Memberships
from shoal.data.value_lattice import Lattice

_HALF = 26


@dataclass(frozen=True, eq=False)
class Aggregate:
    """Integer sums of each membership, in the order of the memberships.

    Attributes:
        memberships: Who has how many records in which cell.
        lattice: What a tick is.
        centred: Sum of (ticks - 2^(bits-1)) of each membership, shape (memberships,).
        squares: Sum of their squares, shape (memberships,); None if nobody asked for them.
        measures: Sums of what statistics measure besides, in ticks from 0, by name, each of shape
            (memberships,).
    """

    memberships: Memberships
    lattice: Lattice
    centred: Ints = field(repr=False)
    squares: Ints | None = field(repr=False)
    measures: Mapping[str, Ints] = field(default_factory=dict, repr=False)

    def sums_of(self, measure: str) -> Ints:
        """Returns whole ticks of a measure by its name, or of the values, shape (memberships,)."""
        return self.measures[measure] if measure else self.sums

    def scaled(self, memberships: Memberships) -> Aggregate:
        """Returns sums of as many records as other counts have, with the same means.

        They are rounded to whole ticks, far below what one record can be.
        """
        old = self.memberships.count
        new = memberships.count

        def sums(own: Ints) -> Ints:
            # Products of the whole part and of the rest fit 64 bits.
            whole, rest = np.divmod(own, old)
            return np.asarray(whole * new + (2 * rest * new + old) // (2 * old))

        squares = None if self.squares is None else sums(self.squares)
        measures = {name: sums(each) for name, each in self.measures.items()}
        return Aggregate(memberships, self.lattice, sums(self.centred), squares, measures)

    @property
    def sums(self) -> Ints:
        """Sum of ticks of each membership, shape (memberships,)."""
        return self.centred + (self.memberships.count << (self.lattice.bits - 1))

    def cell_sums(self) -> list[int]:
        """Returns the sum of ticks of each cell, exactly."""
        return exact_sums(self.memberships.cell, self.sums, self.memberships.n_cells)

    def cell_means(self) -> Floats:
        """Returns each cell's mean, in the value's unit, shape (cells,): for simulations."""
        share = np.array(self.cell_sums(), dtype=np.float64) / self.memberships.totals
        bounds = self.lattice.bounds
        return np.asarray(bounds.lo + share * 2.0**-self.lattice.bits * float(bounds.width))


@dataclass(frozen=True, eq=False)
class Tally:
    """Records of each membership by what a measure gives them. Private.

    Attributes:
        whole: All records of each membership.
        member: The membership of each entry.
        part: What the measure gives the records of each entry.
        records: How many records these are.
    """

    whole: Ints = field(repr=False)
    member: Ints = field(repr=False)
    part: Ints = field(repr=False)
    records: Ints = field(repr=False)

    def up_to(self, ends: Ints) -> Ints:
        """Returns the records of each membership up to each of the rising ends.

        The shape is (memberships, ends).
        """
        places = len(ends) + 1
        place = self.member * places + np.searchsorted(ends, self.part)
        size = len(self.whole) * places
        inside = np.bincount(place, self.records, size).astype(np.int64)
        return np.asarray(np.cumsum(inside.reshape(-1, places), axis=1)[:, :-1])


def exact_sums(cell: Ints, amounts: Ints, n_cells: int) -> list[int]:
    """Returns sums by cell as Python integers, where one 64-bit sum could overflow."""
    # Sums of two halves are exact in floating point.
    high = np.bincount(cell, amounts >> _HALF, minlength=n_cells)
    low = np.bincount(cell, amounts & (2**_HALF - 1), minlength=n_cells)
    return [
        (int(up) << _HALF) + int(down) for up, down in zip(high.tolist(), low.tolist(), strict=True)
    ]
