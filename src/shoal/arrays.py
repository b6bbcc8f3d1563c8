"""Types of arrays, and sums and largest numbers by group."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]


def add(at: Ints, amount: Ints, size: int) -> Ints:
    """Returns exact sums of whole numbers by group."""
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, at, amount)
    return total


def largest(at: Ints, amount: NDArray[Any], size: int) -> NDArray[Any]:
    """Returns the largest amount of each group, and 0 for an empty one."""
    top = np.zeros(size, dtype=amount.dtype)
    np.maximum.at(top, at, amount)
    return top


def by_cell(cell: Ints, size: int) -> list[Ints]:
    """Returns the positions of the members of each cell."""
    order = np.argsort(cell, kind="stable")
    return np.split(order, np.cumsum(np.bincount(cell, minlength=size))[:-1])
