"""A second, finer guess at a centre: a noisy clipped mean around the first guess, odd about it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.means.estimators.coarse import FINE, Guess, Places
from shoal.means.estimators.noisy_sum import NoisySum
from shoal.privacy.noise import Noise

MOST_TICKS = 2**22
TICK_BITS = 22
_MIDDLE = 8


@dataclass(frozen=True)
class Middle:
    """Mean of values clipped to guess -+ c', plus noise, to the nearest tick: the next guess.

    Its noise is of size 2c'/(n epsilon'), far below the bins of the first guess, so that the last
    step can be clipped closer: little epsilon for much less noise. Values and noise are mirrored
    about the guess, ticks are counted from it and rounding is odd (ties to even), so the next guess
    is as symmetric and equivariant as the first; it moves by whole ticks, multiples of 2^-59 bins,
    and stays an odd multiple of 2^-61 bins. Given the first guess it is epsilon'-private; both may
    be public, so losses add up.

    Attributes:
        users: How many values, each of weight 1: those of the first guess.
        shift: A tick is 2^-shift bins, 1 to 59.
        half: c', in ticks.
        noise: On the sum of ticks.

    Raises:
        InputError: The parts do not fit each other.
    """

    users: int
    shift: int
    half: int
    noise: NoisySum

    def __post_init__(self) -> None:
        sound = (
            type(self.shift) is int
            and type(self.half) is int
            and 1 <= self.shift < FINE
            and 0 < self.half <= MOST_TICKS
            and self.noise.sensitivity == 2 * self.half
            and self.noise.most == self.half * self.users
        )
        if not sound:
            raise InputError(
                "parts of a middle step that do not fit each other", "a plan's", "plan anew"
            )

    @classmethod
    def fit(cls, users: int, exponent: int, width: float, epsilon: Fraction) -> Middle:
        """The least noise of a loss.

        Args:
            users: Of the first guess.
            exponent: Of its bins.
            width: c', in the value's unit.
            epsilon: Largest loss.

        Raises:
            InputError: epsilon is too small for the lattice.

        Example:
            >>> from fractions import Fraction
            >>> found = Middle.fit(1000, 3, 12.0, Fraction(1, 8))
            >>> found.width(3), round(found.scale(3), 3)
            (12.0, 0.192)
        """
        shift, half = lattice(exponent, width)
        return cls(users, shift, half, NoisySum.fit(2 * half, half * users, epsilon))

    @property
    def loss(self) -> Fraction:
        """The exact epsilon."""
        return self.noise.loss

    def tick(self, exponent: int) -> float:
        """In the value's unit."""
        return math.ldexp(1.0, exponent - self.shift)

    def width(self, exponent: int) -> float:
        """c', in the value's unit."""
        return self.half * self.tick(exponent)

    def scale(self, exponent: int) -> float:
        """Of the noise on the mean, in the value's unit."""
        return self.noise.scale * self.tick(exponent) / self.users

    def better(self, places: Places, guess: Guess, source: Noise) -> Guess:
        """The next guesses, one a run; where there was none there is none.

        Args:
            places: Of the values of the first guess. Private.
            guess: The first.
            source: Of randomness.
        """
        sums: list[int] = ticks(places, guess, self.shift, self.half).sum(axis=1).tolist()
        noisy = self.noise.add(sums, source, _MIDDLE)
        steps = np.array([round(x / self.users) for x in noisy], dtype=np.int64)
        return moved(guess, steps, self.shift)


def lattice(exponent: int, width: float) -> tuple[int, int]:
    """A tick of 2^-shift bins and a half-width of 2^21 to 2^22 ticks, or finer ones.

    Example:
        >>> lattice(3, 12.0)
        (21, 3145728)
    """
    tick = min(math.frexp(width)[1] - TICK_BITS, exponent - 1)
    return exponent - tick, math.ceil(math.ldexp(width, -tick))


def ticks(places: Places, guess: Guess, shift: int, half: int) -> NDArray[np.int64]:
    """Values as ticks of 2^-shift bins from the guess, clipped to +-half; odd under mirroring."""
    # Farther than this all is clipped, whatever the rest.
    far = (half >> shift) + 4
    bins = np.clip(places.whole - guess.bin[:, None], -far, far)
    # (rest - T - 1/2 + 1/2) in units of 2^-61 bins: an odd number, so never halfway.
    rest = 2 * (places.rest - guess.offset[:, None]) - 1 + (1 << FINE)
    down = FINE + 1 - shift
    found = (bins << shift) + ((rest + (1 << (down - 1))) >> down)
    return np.asarray(np.clip(found, -half, half))


def moved(guess: Guess, steps: NDArray[np.int64], shift: int) -> Guess:
    """Guesses that are so many ticks of 2^-shift bins further.

    Example:
        >>> first = Guess(np.array([2**59]), np.array([3]), np.array([False]))
        >>> found = moved(first, np.array([-3]), 1)
        >>> found.exactly(0, 0) - first.exactly(0, 0)
        Fraction(-3, 2)
    """
    whole, part = steps >> shift, steps & ((1 << shift) - 1)
    offset = guess.offset + (part << (FINE - shift))
    return Guess(offset & ((1 << FINE) - 1), guess.bin + whole + (offset >> FINE), guess.failed)
