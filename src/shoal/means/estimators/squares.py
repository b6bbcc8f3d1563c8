"""A sum of squares beside a noisy sum about a middle: it costs nothing, in whole numbers.

Values are whole numbers y within -R..R about a middle. A move of one of them by d moves y^2 by at
most d (2R - d): nothing where it moves the sum most.

Source: docs/theory/unbiased.md#squares-beside-the-sum.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.means.estimators.noisy_sum import MOST_BITS, NoisySum
from shoal.means.estimators.weights import Weights
from shoal.privacy.noise import Noise

_CAPACITY = 60
_SQUARES = 10
# Squares of up to 45 binary places are added up in parts, weights' squares of 60 in halves.
_PART, _HALF, _PARTS = 15, 30, 3
_FINEST, _KEPT = 10, 4


@dataclass(frozen=True)
class NoisySquares:
    """How the sum of squares is released: in steps of s, with noise of scale 2^j steps.

    Attributes:
        step: s, a whole number of squared units.
        bits: j.

    Raises:
        InputError: The numbers are not usable.
    """

    step: int
    bits: int

    def __post_init__(self) -> None:
        whole = type(self.step) is int and type(self.bits) is int
        if not whole or self.step < 1 or not 0 <= self.bits <= MOST_BITS:
            raise unfit()


@dataclass(frozen=True, eq=False)
class Centred:
    """A noisy weighed sum of whole numbers y about a middle, and squares beside it.

    The sum moves by at most d w u/c steps of scale 2^i where a user of weight w moves by d, u being
    the steps of a tick and c the units in it. Released is the sum of w^2 y^2 in steps of s, rounded
    upwards, with noise of scale 2^j steps.

    **It costs nothing if c ((2R - 1) w + s) 2^i <= u s 2^j for the largest weight w.** A user who
    moves by d = 2R, from end to end, does not move the squares. One who moves by d <= 2R - 1 moves
    them by at most ceil(w^2 d (2R - d)/s) steps: with what it moves the sum by it loses at most
    d w u/(c 2^i) + (w^2 d (2R - d)/s + 1)/2^j, which is at most 2R w u/(c 2^i), what the sum costs
    this user at most, where w d/s + 1/(w (2R - d)) <= u 2^j/(c 2^i). The left side is at most
    (2R - 1) w/s + 1 for every d and every weight up to the largest. So the pair loses exactly what
    the sum loses alone, roundings included.

    Attributes:
        noise: On the weighed sum of ticks.
        weights: Of the users.
        reach: R, in units.
        parts: c, units of a tick.
        tick: In the value's unit.
    """

    noise: NoisySum
    weights: Weights
    reach: int
    parts: int
    tick: Fraction

    def is_free(self, squares: NoisySquares) -> bool:
        """Whether squares released in this way cost nothing and fit the sampler.

        Args:
            squares: Steps and noise.
        """
        moved = (2 * self.reach - 1) * self.weights.largest + squares.step
        price = self.parts * moved << self.noise.bits
        most = -(-self._heavy * self.reach**2 // squares.step)
        free = price <= self.noise.per_unit * squares.step << squares.bits
        return free and most <= 2**_CAPACITY

    def fit(self) -> NoisySquares:
        """The least noise that costs nothing, to about a part in 500.

        Raises:
            InputError: It does not fit the lattice.
        """
        coarser = min(_FINEST, (self.noise.per_unit.bit_length() - _KEPT) // 2)
        bits = max(0, self.noise.bits - coarser)
        # c (2R - 1) w 2^i <= s (u 2^j - c 2^i), both sides over the smaller power.
        least = min(bits, self.noise.bits)
        price = self.parts * 2 ** (self.noise.bits - least)
        left = self.noise.per_unit * 2 ** (bits - least) - price
        if left <= 0 or bits > MOST_BITS:
            raise unfit()
        moved = (2 * self.reach - 1) * self.weights.largest
        found = NoisySquares(max(1, -(-price * moved // left)), bits)
        if not self.is_free(found):
            raise unfit()
        return found

    def in_steps(self, whole: NDArray[np.int64], squares: NoisySquares) -> list[int]:
        """Sums of w^2 y^2 in steps, rounded upwards: one a run, exactly.

        Args:
            whole: y, shape (runs, users). Private.
            squares: Steps and noise.
        """
        square = whole**2
        heavy = self.weights.number**2
        halves = np.stack([heavy & (2**_HALF - 1), heavy >> _HALF], axis=1)
        total = [0] * len(square)
        for at in range(_PARTS):
            part = (square >> (_PART * at)) & (2**_PART - 1)
            # Weights that sum to 2^30 have squares whose halves sum to 2^46 and 2^30.
            found: list[list[int]] = (part @ halves).tolist()
            for run, (low, high) in enumerate(found):
                total[run] += (low + (high << _HALF)) << (_PART * at)
        return [-(-each // squares.step) for each in total]

    def release(
        self, whole: NDArray[np.int64], squares: NoisySquares, source: Noise
    ) -> list[Fraction]:
        """Sums of squares with noise, in the value's squared unit.

        Args:
            whole: y, shape (runs, users). Private.
            squares: Steps and noise.
            source: Of randomness.
        """
        middle = 2**_CAPACITY
        before = [each + middle for each in self.in_steps(whole, squares)]
        drawn = source.add_laplace(before, squares.bits, _SQUARES)
        unit = squares.step * (self.tick / self.parts) ** 2
        return [(each - middle) * unit for each in drawn]

    @cached_property
    def scale(self) -> Fraction:
        """b1, of the noise on the mean, in the value's unit."""
        steps = Fraction(2**self.noise.bits, self.noise.per_unit)
        return steps * self.tick / self.weights.total

    def loose(self, squares: NoisySquares) -> Fraction:
        """Scale of the noise of the sum of squares over W^2, in b1^2."""
        ratio = Fraction(self.noise.per_unit, self.parts * 2**self.noise.bits)
        return (squares.step << squares.bits) * ratio**2

    @property
    def _heavy(self) -> int:
        """Sum of w^2."""
        return int(self.weights.squares * self.weights.total**2)


def unfit() -> InputError:
    """The error of squares that cannot be released at no cost."""
    return InputError(
        "a sum of squares that does not fit the lattice, or would cost something",
        "steps and noise that cost nothing beside the sum",
        "plan anew, or ask for certified intervals",
    )


def few_users() -> InputError:
    """The error of users that count as fewer than two: they say nothing of how values spread."""
    return InputError(
        "a normal interval of users that count as fewer than two equal ones",
        "weights of which no user has most",
        'ask for interval_by="certified", or give more users',
    )


def counts_as_two(weights: Weights) -> bool:
    """Whether users count as two equal ones at least.

    Args:
        weights: Of the last step.
    """
    return weights.squares <= Fraction(1, 2)
