"""Gathers one value, one public count and one weight for every user, in any order of rows."""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from shoal import checks
from shoal.arrays import Floats, Ints
from shoal.data.columns_in_memory import Users, array, column_of_numbers, paired, user_codes
from shoal.errors import InputError
from shoal.privacy.noise import Noise

# Larger values are replaced by this, a public rule that keeps every number finite.
LARGEST = 2.0**500
# Sums of 2^22 ticks a user, times weights, keep 2^8 noise steps a tick below 2^61.
MOST_WEIGHT = 2**30


@dataclass(frozen=True, eq=False)
class UserValues:
    """The private mean of each user's values, and their public number.

    Users are sorted by this number, and then by their keys. Without keys, each row is a user and
    keeps its place: no distribution depends on the order of rows.
    """

    value: Floats = field(repr=False)
    count: Ints

    @classmethod
    def of(cls, values: ArrayLike, users: "Users | None" = None) -> "UserValues":
        """Gathers records by user; without users, each row is one."""
        paired({"value": values}, {"user": users})
        numbers = np.clip(column_of_numbers(values), -LARGEST, LARGEST)
        if users is None:
            return cls(numbers, np.ones(len(numbers), dtype=np.int64))
        who = user_codes(users, len(numbers))
        count = np.bincount(who).astype(np.int64)

        def sums(values: Floats) -> Floats:
            """Returns the sum of each user's values, which are added up by rising size."""
            order = np.lexsort((values, np.abs(values), who))
            return np.add.reduceat(values[order], np.cumsum(count) - count)

        # The mean is the same to the last bit in any order of records, and mirrored values have the
        # mirrored mean.
        mean = (sums(numbers) - sums(-numbers)) / (2 * count)
        order = np.argsort(count, kind="stable")
        return cls(mean[order], count[order])


@dataclass(frozen=True, eq=False)
class UserWeights:
    """Weights w_l from 1, ascending, shape (users,), of the estimated mean sum_l w_l x_l / W."""

    number: Ints

    def __post_init__(self) -> None:
        if self.total > MOST_WEIGHT:
            raise InputError(
                f"the weights of the users sum to more than {MOST_WEIGHT}",
                'give equal weights, or a smaller cap with weights="counts"',
            )

    @cached_property
    def total(self) -> int:
        """The sum W of all weights."""
        return int(self.number.sum())

    @property
    def largest(self) -> int:
        """The heaviest user's weight."""
        return int(self.number[-1])

    @property
    def share(self) -> Fraction:
        """The heaviest user's share max_l w_l / W, which is 1/n for equal weights."""
        return Fraction(self.largest, self.total)

    @cached_property
    def squares(self) -> Fraction:
        """The sum of squared shares Q = sum_l w_l^2 / W^2, which is 1/n for equal weights."""
        # Weights that sum to 2^30 have squares that sum to 2^60 at most.
        return Fraction(int((self.number**2).sum()), self.total**2)

    @property
    def count_as_two(self) -> bool:
        """Whether users count as two equal ones or more: fewer do not show how values vary."""
        return self.squares <= Fraction(1, 2)

    def shuffled(self, source: Noise, draw: int) -> Ints:
        """Returns places of users by ascending weight, in random order where weights are equal."""
        users = len(self.number)
        words = source.bits(2 * users, draw)
        return np.lexsort((words[:users], words[users:], self.number))


def counts_of(counts: object) -> Ints:
    """Returns public counts, ascending, from counts or a number of users with one record each."""
    if isinstance(counts, Integral) and not isinstance(counts, bool):
        users = checks.whole(counts, "users", least=1, most=MOST_WEIGHT, example=1000)
        return np.ones(users, dtype=np.int64)
    given = array(counts)
    refused = InputError(
        "the counts are not usable",
        "give the number of users, such as 1000, or the number of records of each user, from 1",
    )
    if given is None or given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu":
        raise refused
    if given.min() < 1 or given.max() > MOST_WEIGHT:
        raise refused
    return np.sort(given.astype(np.int64))
