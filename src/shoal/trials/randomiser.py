"""Randomises outcomes by a table of whole numbers.

A level k gives response j with probability numbers[j, k]/2^62. Each response is a number, and their
mean under level k is that level. Source: docs/theory/experiments.md#what-it-costs.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.arrays import Floats, Ints
from shoal.errors import InputError
from shoal.theory.randomised_response import ratio_epsilon, replacement_for, response_epsilon

# Probabilities are whole numbers of 2^-62, drawn by the upper bits of one fair word.
BITS = 62
ONE: int = 1 << BITS
# The probabilities that an outcome is replaced, and by which level, are whole numbers of 2^-31, so
# that their product is a whole number of 2^-62.
PART_BITS = BITS // 2
PART: int = 1 << PART_BITS
_SHIFT = np.uint64(64 - BITS)
# With a larger epsilon, a response costs less than epsilon however it is drawn.
_ENOUGH = Fraction(700)
# In floating point, means may miss the levels by this part of the width.
_BIAS = 1e-12


@dataclass(frozen=True, eq=False)
class ResponseTable:
    """The responses under every level, with exact probabilities.

    Attributes:
        levels: The levels in use, rising, shape (K,), in the outcome's unit.
        above: Each response less the lowest level, as all levels may lie far from 0; in the
            outcome's unit, shape (J,).
        numbers: Whole numbers, shape (J, K), each column summing to 2^62.
    """

    levels: Floats
    above: Floats
    numbers: Ints

    def __post_init__(self) -> None:
        shape = len(self.above), len(self.levels)
        sums = {sum(column) for column in self.numbers.T.tolist()}
        if self.numbers.shape != shape or int(self.numbers.min()) < 1 or sums != {ONE}:
            raise InputError("the table of responses is not valid", "have it made by shoal")
        width = self.levels[-1] - self.levels[0]
        outcomes = self.levels - self.levels[0]
        bias = (self.numbers / ONE).T @ (self.above / width) - outcomes / width
        if not float(np.abs(bias).max()) <= _BIAS * (1 + float(np.abs(self.above).max()) / width):
            raise InputError("the responses have a bias", "have the table made by shoal")

    @classmethod
    def uniform(cls, levels: Floats, epsilon: Fraction, delta: Fraction) -> "ResponseTable":
        """Returns the table that keeps an outcome, or replaces it by one of all K levels."""
        prior = even(len(levels))
        return with_prior(levels, replaced_for(epsilon, delta, int(prior.min())), prior)

    def epsilon(self, delta: Fraction) -> Fraction:
        """Returns the loss of one outcome, rounded upwards.

        It is the logarithm of the largest ratio of two probabilities of a response. A delta is
        first taken off the larger one, which is done only if there is one such response at most for
        each pair of levels.
        """
        if not delta:
            rows = self.numbers.tolist()
            return ratio_epsilon(max(Fraction(max(row), min(row)) for row in rows))
        found = Fraction(0)
        for level, of_level in enumerate(self.numbers.T):
            # Responses that are likelier under this level than under another: (responses, levels).
            likelier = of_level[:, None] > self.numbers
            if int(likelier.sum(axis=0).max()) > 1:
                raise InputError("this table of responses takes no delta", "leave delta out")
            for response, other in np.argwhere(likelier).tolist():
                least = Fraction(int(self.numbers[response, other]), ONE)
                more = Fraction(int(self.numbers[response, level]), ONE) - least
                found = max(found, response_epsilon(more, least, delta))
        return found

    @property
    def variances(self) -> Floats:
        """Variances of a response under each level, shape (K,), in the outcome's squared unit."""
        squares = (self.above[:, None] - (self.levels - self.levels[0])) ** 2
        return np.asarray((self.numbers / ONE * squares).sum(axis=0))

    @cached_property
    def ends(self) -> Ints:
        """Cumulated numbers of each level, filled up to a power of 2 with 2^62."""
        size = 1 << len(self.above).bit_length()
        found = np.full((len(self.levels), size), ONE, dtype=np.int64)
        found[:, : len(self.above)] = np.cumsum(self.numbers.T, axis=1)
        return found

    def respond(self, codes: Ints, words: NDArray[np.uint64]) -> Ints:
        """Draws a response for each unit, by the private position of its level and a fair word.

        All units take the same steps, so that how long it takes reveals nothing.
        """
        value = (words >> _SHIFT).astype(np.int64)
        found = np.zeros(len(codes), dtype=np.int64)
        step = self.ends.shape[1] // 2
        # A search by halves without branches counts the ends that are not above the value.
        while step:
            found += step * (self.ends[codes, found + (step - 1)] <= value)
            step //= 2
        return found


def even(levels: int) -> Ints:
    """Returns a uniform prior in parts of 2^-31; the first levels get what is left over."""
    return PART // levels + (np.arange(levels) < PART % levels)


def with_prior(levels: Floats, replaced: int, prior: Ints) -> ResponseTable:
    """Returns the table that keeps an outcome, or draws from a prior with probability `replaced`.

    The prior and its probability are in parts of 2^-31.
    """
    numbers = np.outer(prior * replaced, np.ones(len(levels), dtype=np.int64))
    numbers[np.diag_indices(len(levels))] += (PART - replaced) * PART
    outcomes = levels - levels[0]
    share = replaced / PART
    mean = float(prior / PART @ outcomes)
    return ResponseTable(levels, (outcomes - share * mean) / (1 - share), numbers)


def replaced_for(epsilon: Fraction, delta: Fraction, floor: int) -> int:
    """Returns the smallest lambda, in parts of 2^-31, that costs at most epsilon and delta."""
    found = replacement_for(min(epsilon, _ENOUGH), delta, Fraction(floor, PART), PART_BITS)
    if found >= PART:
        raise InputError(
            f"epsilon {float(epsilon):.3g} and floor {floor / PART:.3g} replace every outcome",
            "raise epsilon or the floor",
        )
    return max(found, 1)
