"""Who has how many records in which cell, without names of users or keys of cells."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from shoal.arrays import Ints


@dataclass(frozen=True, eq=False)
class Memberships:
    """Pairs of a user and a cell with records; public or private, as the counts are.

    Attributes:
        user: User of each membership, from 0 to n_users - 1, shape (memberships,).
        cell: Cell of each membership, from 0 to n_cells - 1, the same shape.
        count: Records of the membership, at least 1, the same shape.
        n_users: How many users there are.
        n_cells: How many cells there are, those without a user among them.
    """

    user: Ints = field(repr=False)
    cell: Ints = field(repr=False)
    count: Ints = field(repr=False)
    n_users: int = field(repr=False)
    n_cells: int

    @cached_property
    def totals(self) -> Ints:
        """The records of each cell, shape (cells,)."""
        # Exact: all records together are below 2^53.
        return np.bincount(self.cell, self.count, minlength=self.n_cells).astype(np.int64)

    @cached_property
    def users_per_cell(self) -> Ints:
        """Users of each cell, shape (cells,)."""
        return np.bincount(self.cell, minlength=self.n_cells).astype(np.int64)

    @cached_property
    def cells_per_user(self) -> Ints:
        """Cells of each user, shape (users,)."""
        return np.bincount(self.user, minlength=self.n_users).astype(np.int64)
