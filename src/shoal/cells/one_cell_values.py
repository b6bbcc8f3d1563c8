"""Values of one cell in memory, added up by user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from shoal.checks import different, private_numbers
from shoal.data import keys
from shoal.data.aggregate import Aggregate
from shoal.data.occupancy import build
from shoal.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from shoal.data.value_lattice import Lattice

Users: TypeAlias = "Sequence[Any] | NDArray[Any] | pa.Array[Any]"
_CONVERT = "convert them first, for example with astype(float)"


def numbers_of(values: ArrayLike) -> NDArray[np.float64]:
    """Values as floating-point numbers.

    Raises:
        DataError: They are no real numbers.
    """
    if np.ma.is_masked(values):
        # NumPy would read what is behind the mask.
        raise DataError(
            "masked values",
            "a number in every row",
            "drop such records beforehand if whether a value is present is public",
        )
    numbers = private_numbers(values)
    if numbers is None:
        raise DataError("values that are no real numbers", "one number a record", _CONVERT)
    return numbers


def aggregate_of(values: ArrayLike, users: Users, lattice: Lattice) -> Aggregate:
    """Sums of ticks of every user of one cell.

    Args:
        values: One number a record.
        users: Whose record it is.
        lattice: Bounds and ticks.

    Raises:
        DataError: Lengths differ, nothing is there, or a value is missing or not finite.
    """
    different({"value": values}, {"user": users})
    numbers = numbers_of(values)
    if numbers.size == 0:
        raise DataError("no records", "at least one record", "give a value and a user for each")
    who = keys.encode(keys.as_array(users, "user"), "user")
    if numbers.ndim != 1 or len(numbers) != len(who):
        raise DataError(
            f"values of shape {numbers.shape} for {len(who)} users' keys",
            "one value and one user for each record",
            "give two columns of the same length",
        )
    if not np.isfinite(numbers).all():
        raise DataError(
            "missing or infinite values",
            "finite numbers",
            "drop such records beforehand if whether a value is present is public",
        )
    order = np.argsort(who, kind="stable")
    counts = np.bincount(who)
    sums = np.add.reduceat(lattice.ticks(numbers)[order], np.cumsum(counts) - counts)
    cells = pa.table({"cell": pa.array(["all"] * len(counts))})
    occupancy, rows = build(pa.array(np.arange(len(counts))), cells, counts.astype(np.int64))
    centred = sums[rows] - (occupancy.count << (lattice.bits - 1))
    # Squares serve the variance, which these mechanisms do not release.
    return Aggregate(occupancy, lattice, centred, np.zeros_like(centred))
