"""One value and one public count for every user, in an order that no row and no value decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.checks import different, private_numbers
from shoal.data import keys
from shoal.errors import DataError
from shoal.means.noisy_sum import saturated

if TYPE_CHECKING:
    import pyarrow as pa

Users: TypeAlias = "Sequence[Any] | NDArray[Any] | pa.Array[Any]"


@dataclass(frozen=True, eq=False)
class UserValues:
    """Users in ascending order of their counts, equal counts in the order of their public keys.

    A user's mean does not depend on the order of its records, to the last bit. Without keys rows
    are users and come as they are: their order may follow the values, and no estimator's
    distribution depends on it.

    Attributes:
        value: Mean of each user's values, shape (users,). Private.
        count: Records of each user, ascending. Public.
    """

    value: NDArray[np.float64] = field(repr=False)
    count: NDArray[np.int64]

    @classmethod
    def of(cls, values: ArrayLike, users: Users | None = None) -> UserValues:
        """Gather records by user.

        Args:
            values: One number a record; beyond +-2^500 they are read as +-2^500.
            users: Whose record it is; by default each record is a user's only one.

        Raises:
            DataError: No records, lengths differ, or a value is missing, infinite or no number.

        Example:
            >>> UserValues.of([1.0, 5.0, 3.0], ["a", "b", "a"]).value.tolist()
            [5.0, 2.0]
        """
        different({"value": values}, {"user": users})
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
        mean = _means(saturated(numbers), who, count)
        order = np.argsort(count, kind="stable")
        return cls(mean[order], count[order])


def _means(
    values: NDArray[np.float64], who: NDArray[np.int64], count: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Mean of each user's values, the same to the last bit in any order, and odd in them."""
    starts = np.cumsum(count) - count

    def sums(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        order = np.lexsort((numbers, np.abs(numbers), who))
        return np.add.reduceat(numbers[order], starts)

    return (sums(values) - sums(-values)) / (2 * count)


def _numbers(values: ArrayLike) -> NDArray[np.float64]:
    if np.ma.is_masked(values):
        raise _missing()
    numbers = private_numbers(values)
    if numbers is None or numbers.ndim != 1:
        raise DataError(
            "values that are no column of real numbers",
            "one number a record, all of one type",
            "convert them first, for example with astype(float)",
        )
    if numbers.size == 0:
        raise DataError("no records", "at least one record", "give a value for each user")
    if not np.isfinite(numbers).all():
        raise _missing()
    return numbers


def _missing() -> DataError:
    return DataError(
        "missing or infinite values",
        "finite numbers",
        "drop such records beforehand if whether a value is present is public",
    )
