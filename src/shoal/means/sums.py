"""Draws one weighted sum of ticks with discrete Laplace noise, and squares for a normal interval.

Source: docs/theory/means.md#squares-beside-the-sum and #a-normal-interval.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from shoal.arrays import Floats, Ints
from shoal.documents.model import Model
from shoal.errors import InputError
from shoal.intervals import half_width
from shoal.means.users import UserWeights
from shoal.privacy.accounting import NoisyVector
from shoal.privacy.noise import Noise
from shoal.privacy.noisy import CAPACITY, MOST_BITS, Bits, NoisySum, Positive, unfit

# The largest exponent of a tick or bin, of either sign.
MOST_EXPONENT = 400
# A grid has up to about 2^TICK_BITS ticks, and more than half as many.
TICK_BITS = 22
# The largest end of a grid, in ticks.
_MOST_EDGE = 2**52
# The draw of noise for squares.
_SQUARES = 10
# The noise scale of squares has at most this many bits fewer than that of the sum.
_FINEST = 10
# They are half of the bits of the number of steps that a tick is worth, less this many bits.
_KEPT = 4

Exponent = Annotated[int, Field(ge=-MOST_EXPONENT, le=MOST_EXPONENT)]
_Edge = Annotated[int, Field(ge=-_MOST_EDGE, le=_MOST_EDGE)]


class Grid(Model):
    """The interval [low, high] * 2^exponent, in the value's unit, cut into ticks of 2^exponent."""

    exponent: Exponent
    low: _Edge
    high: _Edge

    @model_validator(mode="after")
    def _sound(self) -> Self:
        """Refuses a grid without ticks, or with too many."""
        if not 0 < self.ticks <= 2**TICK_BITS + 2:
            raise _bad_interval()
        return self

    @classmethod
    def around(cls, low: float, high: float) -> "Grid":
        """Returns the smallest grid of 2^21 to 2^22 + 2 ticks that holds an interval."""
        width = high - low
        if not 2.0 ** (TICK_BITS - MOST_EXPONENT) < width < 2.0**MOST_EXPONENT:
            raise _bad_interval()
        _, width_exponent = math.frexp(width)
        exponent = width_exponent - TICK_BITS
        low_in_ticks = math.ldexp(low, -exponent)
        high_in_ticks = math.ldexp(high, -exponent)
        # One tick less than the largest edge, as ends are rounded outwards.
        if max(abs(low_in_ticks), abs(high_in_ticks)) > _MOST_EDGE - 1:
            raise _bad_interval()
        return cls(exponent=exponent, low=math.floor(low_in_ticks), high=math.ceil(high_in_ticks))

    @property
    def ticks(self) -> int:
        """The most ticks that one value moves."""
        return self.high - self.low

    @property
    def most(self) -> int:
        """The most ticks from the middle."""
        return self.ticks // 2 + 1

    @property
    def middle(self) -> int:
        """The tick from which ticks are counted, so that sums stay small."""
        return (self.low + self.high) // 2

    @property
    def tick(self) -> Fraction:
        """The tick in the value's unit."""
        return Fraction(2) ** self.exponent

    @property
    def edges(self) -> tuple[float, float]:
        """The interval in the value's unit."""
        return math.ldexp(self.low, self.exponent), math.ldexp(self.high, self.exponent)

    def whole(self, values: Floats, words: NDArray[np.uint64]) -> Ints:
        """Returns clipped values as ticks from the middle, rounded at random by fair words."""
        places = np.ldexp(np.clip(values, *self.edges), -self.exponent)
        # The whole part is towards 0, so that the rest of a tiny negative number is not 1.
        whole = np.trunc(places)
        rest = np.abs(places - whole)
        away = words < (rest * 2.0**64).astype(np.uint64)
        ticks = whole.astype(np.int64) + np.where(away, np.sign(places), 0).astype(np.int64)
        return ticks - self.middle


def _bad_interval() -> InputError:
    return InputError(
        "the interval is too narrow or too large to be divided into ticks",
        "give moderate numbers whose difference is above 2^-30 of the larger: interval=(0, 100)",
    )


class NoisySquares(Model):
    """The release of a sum of squares: in steps of `step` squared units, with noise 2^bits."""

    step: Positive
    bits: Bits


@dataclass(frozen=True, eq=False)
class SumAboutCentre:
    """A noisy weighted sum of whole numbers y from -R to R about a middle, and squares beside it.

    `reach` is R. A `tick`, in the value's unit, has c `parts`, and is worth u steps of the noise,
    whose scale is 2^i steps. The sum of w^2 y^2 is released in steps of s, rounded upwards, with
    noise of the scale 2^j. It costs nothing if c ((2R - 1) w + s) 2^i <= u s 2^j for the largest
    weight w.
    """

    noise: NoisySum
    weights: UserWeights
    reach: int
    parts: int
    tick: Fraction
    # The middle less the value from which the sum is counted, in the value's unit.
    off: Fraction = Fraction(0)

    def check(self, squares: NoisySquares | None) -> None:
        """Refuses squares that cost something, do not fit the sampler, or say nothing."""
        if squares is None:
            return
        if not self.weights.count_as_two:
            raise InputError(
                "weights are too uneven for a normal interval: they count as fewer than two users",
                'ask for interval_by="certified", or give more users',
            )
        price = self.parts * ((2 * self.reach - 1) * self.weights.largest + squares.step)
        free = price << self.noise.bits <= self.noise.per_unit * squares.step << squares.bits
        squared_weights = int(self.weights.squares * self.weights.total**2)
        largest_steps = -(-squared_weights * self.reach**2 // squares.step)
        if not free or largest_steps > 2**CAPACITY:
            raise unfit()

    def fit(self) -> NoisySquares:
        """Returns squares with the least noise that costs nothing, to about a part in 500."""
        fewer_bits = min(_FINEST, (self.noise.per_unit.bit_length() - _KEPT) // 2)
        bits = max(0, self.noise.bits - fewer_bits)
        # c (2R - 1) w 2^i <= s (u 2^j - c 2^i), with both sides divided by the smaller power.
        smaller_bits = min(bits, self.noise.bits)
        price = self.parts * 2 ** (self.noise.bits - smaller_bits)
        left = self.noise.per_unit * 2 ** (bits - smaller_bits) - price
        if left <= 0 or bits > MOST_BITS:
            raise unfit()
        moved = (2 * self.reach - 1) * self.weights.largest
        return NoisySquares(step=max(1, -(-price * moved // left)), bits=bits)

    def release(
        self, ticks: Ints, squares: NoisySquares | None, source: Noise, draw: int
    ) -> tuple[list[int], list[int] | list[None]]:
        """Returns noisy sums and noisy squares in steps, one for each row of private ticks."""
        weight = self.weights.number
        steps = self.noise.add((ticks @ weight).tolist(), source, draw)
        if squares is None:
            return steps, [None] * len(ticks)
        # Whole numbers of Python, as sums of squares may not fit 64 bits.
        y = (ticks * self.parts - int(self.off / self.tick * self.parts)).astype(object)
        sums: list[int] = (y**2 @ weight.astype(object) ** 2).tolist()
        rounded_up = [-(-each // squares.step) for each in sums]
        return steps, source.add_laplace(rounded_up, squares.bits, _SQUARES)

    @property
    def moved(self) -> int:
        """The most that the heaviest user moves the weighted sum by, in ticks."""
        return 2 * self.reach // self.parts * self.weights.largest

    @property
    def step(self) -> NoisyVector:
        """The noisy vector for the accountant."""
        return self.noise.step(self.moved)

    @property
    def variance(self) -> float:
        """The variance of the noise on the mean, in the value's squared unit."""
        return self.noise.variance * (float(self.tick) / self.weights.total) ** 2

    @property
    def scale(self) -> Fraction:
        """The scale b1 of the noise on the mean, in the value's unit."""
        return Fraction(2**self.noise.bits, self.noise.per_unit) * self.tick / self.weights.total

    def mean(self, steps: int) -> Fraction:
        """Returns the released mean less the value from which it is counted, in its unit."""
        return Fraction(steps, self.noise.per_unit * self.weights.total) * self.tick

    def variance_of(self, squares: NoisySquares, released: int, steps: int) -> tuple[float, float]:
        """Returns the variance (S/W^2 - Q (m^2 - 2 b1^2))/(1 - Q) and the mean m, in units of b1.

        S is the released sum of squares, W the total weight and Q the sum of squared shares.
        """
        share = self.weights.squares
        mean = (self.mean(steps) - self.off) / self.scale
        variance = released * squares.step * self._unit**2 - share * (mean**2 - 2)
        return float(variance / (1 - share)), float(mean)

    def half(
        self, squares: NoisySquares, confidence: float, variance: float, mean: float = 0.0
    ) -> float:
        """Returns half a normal interval without bias, for a variance and a mean in units of b1."""
        # Q, which is 1 divided by the number of users if they are equal.
        share = self.weights.squares
        degrees = float(1 / share - 1)
        # The scales of the noise that squares and the squared mean bring into the variance.
        of_squares = float((squares.step << squares.bits) * self._unit**2 / (1 - share))
        part = float(share / (1 - share))
        # The noise of the squared mean (m + Z)^2 is 2 m Z + Z^2. For Z of scale 1, Z^2 has a
        # standard deviation of sqrt(20); a scale is a standard deviation divided by sqrt(2).
        variance_noise = math.hypot(of_squares, 2 * part * mean, math.sqrt(10) * part)
        half = half_width(
            confidence,
            variance,
            noise=2.0,
            terms=1.0,
            variance_noise=variance_noise,
            degrees=degrees,
        )
        return half * float(self.scale)

    @property
    def _unit(self) -> Fraction:
        """A unit of y, divided by W b1."""
        return Fraction(self.noise.per_unit, self.parts * 2**self.noise.bits)
