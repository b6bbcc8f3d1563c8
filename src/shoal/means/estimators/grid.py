"""A public interval cut into ticks by powers of two: values become integers without bias."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError

TICK_BITS = 22
# Larger values are read as these, everywhere: a public rule that keeps every number finite.
LARGEST = 2.0**500
_MOST_EXPONENT = 400
_MOST_EDGE = 2**52


@dataclass(frozen=True)
class Grid:
    """The interval [low, high] * 2^exponent, in the value's unit.

    Dividing by a power of two, taking the whole part and the rest are exact in floating point. A
    clipped value goes on to the next tick, away from 0, with the rest as its probability, by 64
    fair bits, so that its expectation is the clipped value: exactly if the rest has 64 binary
    places, else to 2^-64 of a tick. Rounding adds a variance of at most a quarter of a tick's
    square.

    Attributes:
        exponent: A tick is 2^exponent.
        low: Lower edge, in ticks.
        high: Upper edge, in ticks.

    Raises:
        InputError: Edges that are not whole numbers up to 2^52 in ascending order.

    Example:
        >>> grid = Grid.around(0.1, 0.9)
        >>> grid.edges[0] <= 0.1 < 0.9 <= grid.edges[1]
        True
        >>> 2**21 <= grid.ticks <= 2**22 + 2
        True
    """

    exponent: int
    low: int
    high: int

    def __post_init__(self) -> None:
        whole = all(type(x) is int for x in (self.exponent, self.low, self.high))
        if not whole or abs(self.exponent) > _MOST_EXPONENT or not self._fits():
            raise _bad()

    def _fits(self) -> bool:
        narrow = 0 < self.high - self.low <= 2**TICK_BITS + 2
        return narrow and max(abs(self.low), abs(self.high)) <= _MOST_EDGE

    @classmethod
    def around(cls, low: float, high: float) -> Grid:
        """The least grid of 2^21 to 2^22 + 2 ticks that holds an interval.

        Raises:
            InputError: The interval is empty, not finite, or too narrow for where it lies.
        """
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise _bad()
        width = high - low
        if not 2.0 ** (TICK_BITS - _MOST_EXPONENT) < width < 2.0**_MOST_EXPONENT:
            raise _bad()
        exponent = math.frexp(width)[1] - TICK_BITS
        ends = math.ldexp(low, -exponent), math.ldexp(high, -exponent)
        return cls(exponent, math.floor(ends[0]), math.ceil(ends[1]))

    @property
    def ticks(self) -> int:
        """How many: the most that one value moves."""
        return self.high - self.low

    @property
    def middle(self) -> int:
        """A tick in the middle, from which ticks are counted so that sums stay small."""
        return (self.low + self.high) // 2

    @property
    def edges(self) -> tuple[float, float]:
        """The interval in the value's unit."""
        return math.ldexp(self.low, self.exponent), math.ldexp(self.high, self.exponent)

    def clip(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values within the edges, which are exact in floating point."""
        return np.clip(values, *self.edges)

    def whole(self, values: NDArray[np.float64], words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Clipped values as ticks from the middle, rounded at random.

        Args:
            values: Finite numbers, any shape. Private.
            words: 64 fair bits each, of the same shape.

        Example:
            >>> grid = Grid(0, 0, 4)
            >>> grid.whole(np.array([-9.0, 2.5, 2.5]), np.array([0, 0, 2**63], np.uint64)).tolist()
            [-2, 1, 0]
        """
        places = np.ldexp(self.clip(values), -self.exponent)
        # Towards zero, so that the rest of a tiny negative number is not rounded to 1.
        whole = np.trunc(places)
        rest = np.abs(places - whole)
        away = words < (rest * 2.0**64).astype(np.uint64)
        ticks = whole.astype(np.int64) + np.where(away, np.sign(places), 0).astype(np.int64)
        return np.asarray(ticks - self.middle)

    def halves(self, whole: NDArray[np.int64]) -> NDArray[np.int64]:
        """Ticks from `middle` as half ticks from halfway between the edges: -ticks to ticks.

        Args:
            whole: Ticks, any shape. Private.

        Example:
            >>> Grid(0, 0, 3).halves(np.array([-1, 2])).tolist()
            [-3, 3]
        """
        return np.asarray(2 * whole + (2 * self.middle - self.low - self.high))


def saturated(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values beyond +-2^500 as +-2^500.

    Example:
        >>> saturated(np.array([-1e300, 3.0])).tolist() == [-LARGEST, 3.0]
        True
    """
    return np.clip(values, -LARGEST, LARGEST)


def _bad() -> InputError:
    return InputError(
        "an interval that cannot be cut into ticks",
        "low < high, moderate numbers, the width above 2^-30 of the larger edge",
        "give for example interval=(0, 100)",
    )
