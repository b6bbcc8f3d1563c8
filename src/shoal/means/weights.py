"""Public counts of records, and whole-number weights of users."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from shoal import checks
from shoal.errors import InputError
from shoal.privacy.noise import Noise

# Sums of 2^22 ticks a user, times weights, keep 2^8 noise steps a tick below 2^61.
MOST_WEIGHT = 2**30


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights w_l from 1, ascending, shape (users,): the estimate is of sum_l w_l x_l / W.

    For independent users of one mean it has that mean, and variance at most `squares` times theirs.

    Example:
        >>> found = Weights(np.array([1, 1, 2]))
        >>> found.total, found.share, found.squares
        (4, Fraction(1, 2), Fraction(3, 8))
    """

    number: NDArray[np.int64]

    def __post_init__(self) -> None:
        if int(self.number.sum()) > MOST_WEIGHT:
            raise InputError(
                f"weights of users that sum to more than {MOST_WEIGHT}",
                'give equal weights, or a smaller cap with weights="counts"',
            )

    @classmethod
    def equal(cls, users: int) -> Weights:
        """The same weight for everybody."""
        return cls(np.ones(users, dtype=np.int64))

    @property
    def users(self) -> int:
        """The number of users."""
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
        """Q = sum_l w_l^2 / W^2: 1/n for equal weights."""
        # Weights that sum to 2^30 have squares that sum to 2^60 at most.
        return Fraction(int((self.number**2).sum()), self.total**2)

    @property
    def count_as_two(self) -> bool:
        """Whether users count as two equal ones at least: fewer say nothing of how values vary."""
        return self.squares <= Fraction(1, 2)

    def shuffled(self, source: Noise, draw: int) -> NDArray[np.int64]:
        """Places of all users in ascending weights, those of one weight in random order.

        Users are sorted by 128 fair bits each: two are alike with a chance of at most 2^-69, and
        only then, and for these two, does the order of rows count.
        """
        words = source.bits(2 * self.users, draw)
        return np.lexsort((words[: self.users], words[self.users :], self.number))

    def after(self, users: int) -> Weights:
        """All but the first, lightest users."""
        return Weights(self.number[users:])


def counts_of(counts: object) -> NDArray[np.int64]:
    """Public counts, ascending: of so many users with a record each, or one count a user.

    Example:
        >>> counts_of(3).tolist(), counts_of([2, 1]).tolist()
        ([1, 1, 1], [1, 2])
    """
    if isinstance(counts, Integral) and not isinstance(counts, bool):
        users = checks.whole(counts, "users", least=1, most=MOST_WEIGHT, example=1000)
        return Weights.equal(users).number
    found = checks.array(counts)
    if (
        found is None
        or (found.ndim != 1 or found.size == 0 or found.dtype.kind not in "iu")
        or (found.min() < 1 or found.max() > MOST_WEIGHT)
    ):
        raise InputError(
            "counts that are not usable",
            "give the number of users, or whole numbers from 1, one a user: for example 1000",
        )
    return np.sort(found.astype(np.int64))
