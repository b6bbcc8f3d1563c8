"""What a planning method sees: the cells still in play and how each user moves each of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Parts = tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int32]]


@dataclass(frozen=True, eq=False)
class Problem:
    """Sparse sensitivities, users by numbers, over the width.

    Attributes:
        user: User of each entry.
        number: Column of each entry, 0..n_numbers-1: one number to release each.
        sensitivity: Most that the user moves the number, over its unit.
        n_users: Rows.
        weight: Public importance of each number, above 0.
    """

    user: NDArray[np.int64]
    number: NDArray[np.int64]
    sensitivity: NDArray[np.float64]
    n_users: int
    weight: NDArray[np.float64]

    @property
    def n_numbers(self) -> int:
        """Columns."""
        return len(self.weight)

    @property
    def by_user(self) -> sp.csr_array:
        """The matrix with users as rows; anew each time, as parts of a matrix can be exchanged."""
        return sp.csr_array(self._rows, shape=(self.n_users, self.n_numbers))

    @property
    def by_number(self) -> sp.csr_array:
        """The transpose, with numbers as rows."""
        return sp.csr_array(self._columns, shape=(self.n_numbers, self.n_users))

    @cached_property
    def _rows(self) -> Parts:
        shape = (self.n_users, self.n_numbers)
        return _parts(sp.csr_array((self.sensitivity, (self.user, self.number)), shape=shape))

    @cached_property
    def _columns(self) -> Parts:
        return _parts(sp.csr_array(self.by_user.T))

    @cached_property
    def largest(self) -> NDArray[np.float64]:
        """The sensitivity of each number: that of its heaviest user."""
        top = np.zeros(self.n_numbers)
        np.maximum.at(top, self.number, self.sensitivity)
        return top

    @cached_property
    def most_numbers(self) -> int:
        """G_1: most numbers that one user is in."""
        return int(np.bincount(self.user, minlength=self.n_users).max())

    def loss(self, noise_scale: NDArray[np.float64]) -> NDArray[np.float64]:
        """Privacy loss of each user: sum of sensitivity over noise scale."""
        return np.asarray(self.by_user @ (1 / noise_scale))


def _parts(matrix: sp.csr_array) -> Parts:
    return matrix.data, matrix.indices, matrix.indptr


@dataclass(frozen=True, eq=False)
class Allocation:
    """A method's answer at a loss of 1: noise scales over the width, and how good they are.

    Attributes:
        noise_scale: b over U of each number when the method's loss is 1.
        duals: What a unit of each user's loss is worth, a proof of near-optimality that anyone can
            check; None where the method is a closed form.
    """

    noise_scale: NDArray[np.float64]
    duals: NDArray[np.float64] | None = None
