"""Public whole-number weights of users, and what one of them can move."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.privacy.noise import Noise

# Sums of 2^22 ticks a user, times weights, keep 2^8 noise steps a tick below 2^61.
MOST_WEIGHT = 2**30


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights w_l in ascending order; the estimate is of sum_l w_l x_l / W, W their sum.

    For independent users of one mean it has that mean, and variance at most `squares` times theirs.

    Attributes:
        number: w_l >= 1, shape (users,), ascending; W at most 2^30.

    Raises:
        InputError: No users, or weights that are no such numbers.

    Example:
        >>> found = Weights(np.array([1, 1, 2]))
        >>> found.total, found.share, found.squares
        (4, Fraction(1, 2), Fraction(3, 8))
    """

    number: NDArray[np.int64]

    def __post_init__(self) -> None:
        number = self.number
        sound = (
            isinstance(number, np.ndarray)
            and number.ndim == 1
            and number.dtype == np.int64
            and 0 < len(number) <= MOST_WEIGHT
            and int(number[0]) >= 1
            and bool((np.diff(number) >= 0).all())
            and int(number[-1]) <= MOST_WEIGHT
            and int(number.sum()) <= MOST_WEIGHT
        )
        if not sound:
            raise InputError(
                "weights of users that are not usable",
                f"at least one user, weights from 1, their sum at most {MOST_WEIGHT}",
                'give equal weights, or a smaller cap with weights="counts"',
            )

    @classmethod
    def equal(cls, users: int) -> Weights:
        """The same weight for everybody.

        Example:
            >>> Weights.equal(3).total
            3
        """
        if not 0 < users <= MOST_WEIGHT:
            raise InputError(f"{users} users", f"from 1 to {MOST_WEIGHT}", "give more values")
        return cls(np.ones(users, dtype=np.int64))

    @property
    def users(self) -> int:
        """How many."""
        return len(self.number)

    @cached_property
    def total(self) -> int:
        """W."""
        return int(self.number.sum())

    @property
    def largest(self) -> int:
        """The heaviest user's weight."""
        return int(self.number[-1])

    @property
    def share(self) -> Fraction:
        """max_l w_l / W: 1/n for equal weights."""
        return Fraction(self.largest, self.total)

    @cached_property
    def squares(self) -> Fraction:
        """sum_l w_l^2 / W^2: 1/n for equal weights."""
        # Weights below 2^30 that sum to 2^30 have squares that sum to 2^60 at most.
        return Fraction(int((self.number**2).sum()), self.total**2)

    def shuffled(self, source: Noise, draw: int) -> NDArray[np.int64]:
        """Places of all users in ascending weights, those of one weight in random order.

        Users are sorted by 128 fair bits each: two are alike with a chance of users^2 / 2^129, at
        most 2^-69. Only then, and for these two, does the order of rows count.

        Args:
            source: Of randomness.
            draw: Tells the vectors of one release apart.

        Example:
            >>> from shoal.privacy.noise import Simulated
            >>> found = Weights(np.array([1, 1, 1, 2])).shuffled(Simulated(1), 0)
            >>> sorted(found[:3].tolist()), found[3]
            ([0, 1, 2], np.int64(3))
        """
        words = source.bits(2 * self.users, draw)
        return np.lexsort((words[: self.users], words[self.users :], self.number))

    def after(self, users: int) -> Weights:
        """All but the first, lightest users.

        Example:
            >>> Weights(np.array([1, 1, 2])).after(2).number.tolist()
            [2]
        """
        return Weights(self.number[users:])
