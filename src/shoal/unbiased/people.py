"""One value and one public count for every user, in an order that says nothing of who they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from shoal.errors import DataError
from shoal.mechanisms.unbiased.grid import saturated
from shoal.records import keys
from shoal.roles import check_arrays

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import ArrayLike, NDArray

    Users: TypeAlias = "Sequence[Any] | NDArray[Any] | pa.Array[Any]"


@dataclass(frozen=True, eq=False)
class People:
    """Users in ascending order of their counts; equal counts stay in order of appearance.

    Attributes:
        value: Mean of each user's values, shape (users,). Private.
        count: Records of each user, ascending. Public.
    """

    value: NDArray[np.float64] = field(repr=False)
    count: NDArray[np.int64]

    @classmethod
    def of(cls, values: ArrayLike, users: Users | None = None) -> People:
        """Gather records by user.

        Args:
            values: One number a record; beyond +-2^500 they are read as +-2^500.
            users: Whose record it is; by default each record is a user's only one.

        Raises:
            DataError: No records, lengths differ, or a value is missing, infinite or no number.

        Example:
            >>> People.of([1.0, 5.0, 3.0], ["a", "b", "a"]).value.tolist()
            [5.0, 2.0]
        """
        check_arrays({"value": values}, {"user": users})
        numbers = _numbers(values)
        if users is None:
            return cls(saturated(numbers), np.ones(len(numbers), dtype=np.int64))
        who = keys.encode(keys.as_array(users, "user"), "user")
        if len(numbers) != len(who):
            raise DataError(
                f"{len(numbers)} values for {len(who)} users' keys",
                "one value and one user for each record",
                "give two columns of the same length",
            )
        count = np.bincount(who).astype(np.int64)
        ordered = saturated(numbers)[np.argsort(who, kind="stable")]
        mean = np.add.reduceat(ordered, np.cumsum(count) - count) / count
        order = np.argsort(count, kind="stable")
        return cls(mean[order], count[order])


def _numbers(values: ArrayLike) -> NDArray[np.float64]:
    try:
        found = np.asarray(values)
        numbers = found.astype(np.float64) if found.dtype.kind in "biuf" else None
    except (TypeError, ValueError, OverflowError):
        # The text of NumPy's error may hold a value.
        numbers = None
    if numbers is None or numbers.ndim != 1:
        raise DataError(
            "values that are no column of real numbers", "one number a record", "convert them"
        )
    if numbers.size == 0:
        raise DataError("no records", "at least one record", "give a value for each user")
    # NumPy reads what is behind a mask.
    if np.ma.is_masked(values) or not np.isfinite(numbers).all():
        raise DataError(
            "missing or infinite values",
            "finite numbers",
            "drop such records beforehand if whether a value is present is public",
        )
    return numbers
