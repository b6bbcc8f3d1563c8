"""Distributions to try mechanisms on. Assumptions of whoever asks, never fitted to records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from shoal import checks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Sums and products of values this large are numbers.
_LARGEST = 1e280


class Distribution(Protocol):
    """What draws a value for every record."""

    def __call__(
        self, rng: np.random.Generator, user: NDArray[np.int64], cell: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """One value a record.

        Args:
            rng: Source of randomness.
            user: User of each record.
            cell: Cell of each record.
        """
        ...


@dataclass(frozen=True)
class Normal:
    """Normal values, with parts of the variance between users and between cells.

    Source: docs/theory/adaptive.md#the-cap, where users are exchangeable in the same way.

    Args:
        mean: Mean of all values, in the value's unit.
        deviation: Standard deviation of one record of a cell, in the value's unit.
        between: Part of that variance that lies between users, 0 to 1.
        cells: Standard deviation of the means of cells, in the value's unit.

    Raises:
        InputError: A deviation below 0 or a part outside 0 to 1.

    Example:
        >>> import numpy as np
        >>> users, cells = np.repeat([0, 1], 5000), np.zeros(10000, np.int64)
        >>> values = Normal(20.0, 10.0, between=1.0)(np.random.default_rng(1), users, cells)
        >>> len(np.unique(values))
        2
    """

    mean: float
    deviation: float
    between: float = 0.0
    cells: float = 0.0

    def __post_init__(self) -> None:
        for name, least, most in (
            ("mean", -_LARGEST, _LARGEST),
            ("deviation", 0, _LARGEST),
            ("between", 0, 1),
            ("cells", 0, _LARGEST),
        ):
            found = checks.number(getattr(self, name), name, least=least, most=most)
            object.__setattr__(self, name, found)

    def __str__(self) -> str:
        """In words, with six significant digits."""
        parts = [f"standard deviation {self.deviation:g}"]
        parts += [f"{self.between:.3g} of the variance between users"] if self.between else []
        parts += [f"means of cells with {self.cells:g}"] if self.cells else []
        return f"normal values of mean {self.mean:g}, {', '.join(parts)}"

    def __call__(
        self, rng: np.random.Generator, user: NDArray[np.int64], cell: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """One value a record; a user has one deviation in all cells."""
        values = self.mean + self.deviation * math.sqrt(1 - self.between) * rng.standard_normal(
            len(user)
        )
        if self.between:
            of_user = rng.standard_normal(int(user.max()) + 1)
            values += self.deviation * math.sqrt(self.between) * of_user[user]
        if self.cells:
            values += self.cells * rng.standard_normal(int(cell.max()) + 1)[cell]
        return values
