"""What one pass over the records leaves: exact integers for each user and cell. Private."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from shoal.arrays import Floats, Ints
from shoal.data.counts import Counts
from shoal.data.value_lattice import Lattice

_HALF = 26


@dataclass(frozen=True, eq=False)
class Aggregate:
    """Integer sums of each membership, aligned with its counts; only that is public.

    Attributes:
        counts: The counts.
        lattice: What a tick is.
        centred: Sum of (ticks - 2^(bits-1)) of each membership, shape (memberships,).
        squares: Sum of their squares, shape (memberships,); None if nobody asked for them.
        measures: Sums of what statistics measure besides, in ticks from 0, by name, each of shape
            (memberships,).
    """

    counts: Counts
    lattice: Lattice
    centred: Ints = field(repr=False)
    squares: Ints | None = field(repr=False)
    measures: Mapping[str, Ints] = field(default_factory=dict, repr=False)

    def sums_of(self, measure: str) -> Ints:
        """Returns whole ticks of a measure by its name, or of the values, shape (memberships,)."""
        return self.measures[measure] if measure else self.sums

    @property
    def sums(self) -> Ints:
        """Sum of ticks of each membership, shape (memberships,)."""
        return self.centred + (self.counts.count << (self.lattice.bits - 1))

    def __repr__(self) -> str:
        return f"<Aggregate of {self.counts.n_users} users, {self.counts.n_cells} cells>"

    def cell_sums(self) -> list[int]:
        """Returns the sum of ticks of each cell, exactly."""
        amounts = self.sums
        # Two halves in floating point stay exact where one 64-bit sum could overflow.
        halves = (
            np.bincount(self.counts.cell, part) for part in (amounts >> _HALF, amounts % 2**_HALF)
        )
        high, low = (half.astype(np.int64).astype(object) for half in halves)
        return list(high * 2**_HALF + low)

    def cell_means(self) -> Floats:
        """Returns each cell's mean, in the value's unit, shape (cells,): for simulations."""
        share = np.array(self.cell_sums(), dtype=np.float64) / self.counts.totals
        bounds = self.lattice.bounds
        return np.asarray(bounds.lo + share * 2.0**-self.lattice.bits * float(bounds.width))
