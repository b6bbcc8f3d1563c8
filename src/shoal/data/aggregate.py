"""What one pass over the records leaves: exact integers for each user and cell. Private."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from shoal.data.occupancy import Occupancy
    from shoal.data.value_lattice import Lattice

_HALF = 26


@dataclass(frozen=True, eq=False)
class Aggregate:
    """Integer sums of each membership, aligned with its occupancy.

    Only the occupancy is public; the sums never appear in a text or a message.

    Attributes:
        occupancy: The counts.
        lattice: What a tick is.
        centred: Sum of (ticks - 2^(bits-1)) of each membership, shape (memberships,).
        squares: Sum of their squares, shape (memberships,).
        measures: Sums of what statistics measure besides, in ticks from 0, by name, each of shape
            (memberships,).
    """

    occupancy: Occupancy
    lattice: Lattice
    centred: NDArray[np.int64] = field(repr=False)
    squares: NDArray[np.int64] = field(repr=False)
    measures: Mapping[str, NDArray[np.int64]] = field(default_factory=dict, repr=False)

    def sums_of(self, measure: str) -> NDArray[np.int64]:
        """Sum of a measure of each membership; of the values themselves without a name.

        Args:
            measure: A name in `measures`, or no name for the values.

        Returns:
            Whole ticks, shape (memberships,).
        """
        return self.measures[measure] if measure else self.sums

    @property
    def sums(self) -> NDArray[np.int64]:
        """Sum of ticks of each membership, shape (memberships,)."""
        return self.centred + (self.occupancy.count << (self.lattice.bits - 1))

    def __repr__(self) -> str:
        """Public counts only."""
        return f"<Aggregate of {self.occupancy.n_users} users, {self.occupancy.n_cells} cells>"

    def cell_sums(self) -> list[int]:
        """Sum of ticks of each cell, exactly.

        Returns:
            One whole number of ticks a cell.
        """
        amounts = self.sums
        # Two halves in floating point stay exact where one 64-bit sum could overflow.
        cells, size = self.occupancy.cell, self.occupancy.n_cells
        high = np.bincount(cells, amounts >> _HALF, minlength=size)
        low = np.bincount(cells, amounts & (2**_HALF - 1), minlength=size)
        return [
            (int(up) << _HALF) + int(down)
            for up, down in zip(high.tolist(), low.tolist(), strict=True)
        ]

    def cell_means(self) -> NDArray[np.float64]:
        """Mean of the values of each cell's records: what simulations compare estimates with.

        Returns:
            In the value's unit, shape (cells,).
        """
        share = np.array(self.cell_sums(), dtype=np.float64) / self.occupancy.totals
        bounds = self.lattice.bounds
        return np.asarray(bounds.lo + share * 2.0**-self.lattice.bits * float(bounds.width))
