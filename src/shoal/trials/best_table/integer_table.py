"""A table of whole numbers: which response a level is given, how often, and what it says."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal import documents
from shoal.errors import InputError
from shoal.theory.randomised_response import ratio_epsilon

# Probabilities are whole numbers of 2^-62: the upper bits of one fair word.
BITS = 62
ONE: int = 1 << BITS
_SHIFT = np.uint64(64 - BITS)


@dataclass(frozen=True, eq=False)
class IntegerTable:
    """Responses of every level with exact probabilities, unbiased to the last digit.

    A level k gives response j with probability numbers[j, k]/2^62, and response j says
    levels[0] + shift[j]: sum_j numbers[j, k] shift[j] = 2^62 (levels[k] - levels[0]) in fractions.

    Attributes:
        levels: Of the outcome that are in use, rising, shape (K,), in its unit.
        shift: What each response says above the lowest level, rising, shape (responses,).
        numbers: Whole numbers above 0, shape (responses, K), each column summing to 2^62.

    Raises:
        InputError: Columns that do not sum to 2^62, numbers below 1, or responses with a bias.

    Example:
        >>> table = IntegerTable(
        ...     np.array([0.0, 1.0]), np.array([-0.5, 1.5]),
        ...     np.array([[3, 1], [1, 3]]) * (ONE // 4),
        ... )
        >>> round(float(table.epsilon), 6) == round(math.log(3), 6), table.variances
        (True, (Fraction(3, 4), Fraction(3, 4)))
    """

    levels: NDArray[np.float64]
    shift: NDArray[np.float64]
    numbers: NDArray[np.int64]

    def __post_init__(self) -> None:
        if not (self._is_stochastic() and self._is_unbiased()):
            raise InputError(
                "a table of responses that is none",
                "whole numbers above 0, columns that sum to 2^62, responses without bias",
                "have it made by trials.BestTable",
            )

    @property
    def responses(self) -> int:
        """The number of responses."""
        return len(self.shift)

    @cached_property
    def epsilon(self) -> Fraction:
        """The loss of one outcome, rounded upwards: the logarithm of the largest ratio."""
        rows = self.numbers.tolist()
        return ratio_epsilon(max(Fraction(max(row), min(row)) for row in rows))

    @cached_property
    def variances(self) -> tuple[Fraction, ...]:
        """The exact variance of a response of each level, in the squared unit of the outcome."""
        squares = [Fraction(each) ** 2 for each in self.shift.tolist()]
        return tuple(
            sum((n * square for n, square in zip(column, squares, strict=True)), Fraction(0)) / ONE
            - above**2
            for column, above in zip(self.numbers.T.tolist(), self._above, strict=True)
        )

    @cached_property
    def debiased(self) -> NDArray[np.float64]:
        """What each response says, in the outcome's unit: the nearest floating-point numbers."""
        return np.asarray(self.levels[0] + self.shift)

    def respond(self, codes: NDArray[np.int64], words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Draw a response for the level of each unit; the same steps whatever the levels are.

        Args:
            codes: Level of each unit among those in use, shape (units,). Private.
            words: One fair word for each, of the same shape.

        Returns:
            A response for each unit: private no more.
        """
        value = (words >> _SHIFT).astype(np.int64)
        found = np.zeros(len(codes), dtype=np.int64)
        ends, step = self._ends, self._ends.shape[1] // 2
        # Halving without branches: how many ends of the own level are not above the value.
        while step:
            found += step * (ends[codes, found + (step - 1)] <= value)
            step //= 2
        return found

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        """Cumulated numbers of each level, filled up to a power of 2 with what no value reaches."""
        size = 1 << self.responses.bit_length()
        found = np.full((len(self.levels), size), ONE, dtype=np.int64)
        found[:, : self.responses] = np.cumsum(self.numbers.T, axis=1)
        return found

    @cached_property
    def _above(self) -> tuple[Fraction, ...]:
        return above_lowest(self.levels.tolist())

    def _is_stochastic(self) -> bool:
        shape = (len(self.shift), len(self.levels))
        if self.numbers.shape != shape or not shape[0] or int(self.numbers.min()) < 1:
            return False
        return all(sum(column) == ONE for column in self.numbers.T.tolist())

    def _is_unbiased(self) -> bool:
        says = self.shift.tolist()
        if not all(map(math.isfinite, says)) or (np.diff(self.shift) <= 0).any():
            return False
        exact = [Fraction(each) for each in says]
        return all(
            sum(n * each for n, each in zip(column, exact, strict=True)) == ONE * above
            for column, above in zip(self.numbers.T.tolist(), self._above, strict=True)
        )

    def to_document(self) -> documents.Document:
        """What responses say and their numbers, as a JSON object."""
        return {
            "shift": self.shift.tolist(),
            "numbers": documents.pack_integers(self.numbers.ravel()),
        }


def above_lowest(levels: Sequence[float]) -> tuple[Fraction, ...]:
    """Exact distances of levels from the lowest.

    Example:
        >>> above_lowest([0.5, 1.0])
        (Fraction(0, 1), Fraction(1, 2))
    """
    return tuple(Fraction(each) - Fraction(levels[0]) for each in levels)
