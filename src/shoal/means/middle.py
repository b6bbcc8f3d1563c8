"""A second, finer guess at a centre: a noisy clipped mean around the first guess, odd about it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from shoal.documents.model import Model
from shoal.means.coarse import FINE, Coarse, Guess, Places
from shoal.means.noisy_sum import TICK_BITS, NoisySum
from shoal.privacy.noise import Noise

_MIDDLE, _FARTHEST = 8, 2**61
Shift = Annotated[int, Field(ge=1, lt=FINE)]
Half = Annotated[int, Field(ge=1, le=2**TICK_BITS)]


class Middle(Model):
    """Mean of values clipped to guess -+ c', plus noise, to the nearest tick: the next guess.

    Little epsilon buys a guess far finer than the windows of the first, so that the last step can
    be clipped closer. It is odd about the first guess and moves it by whole ticks, so the next is
    as symmetric and equivariant (docs/theory/unbiased.md#the-middle-step). Given the first guess it
    is epsilon'-private; both may be public, so losses add up.

    Attributes:
        shift: A tick is 2^-shift bins.
        half: c', in ticks.
        noise: On the sum of ticks.

    Example:
        >>> found = Middle.fit(1000, 3, 12.0, Fraction(1, 8))
        >>> coarse = Coarse.fit(1000, 3, Fraction(1, 2), Fraction(1, 10**6))
        >>> found.half * found.tick(coarse), round(found.scale(coarse), 3)
        (12.0, 0.192)
    """

    shift: Shift
    half: Half
    noise: NoisySum

    @classmethod
    def fit(cls, users: int, exponent: int, width: float, epsilon: Fraction) -> Middle:
        """The least noise of a loss for so many users, bins of 2^exponent, and c' = width."""
        shift, half = lattice(exponent, width)
        return cls.of(shift=shift, half=half, noise=NoisySum.fit(2 * half, half * users, epsilon))

    @property
    def loss(self) -> Fraction:
        """The exact epsilon."""
        return self.noise.loss(2 * self.half)

    def tick(self, coarse: Coarse) -> float:
        """In the value's unit."""
        return math.ldexp(1.0, coarse.exponent - self.shift)

    def scale(self, coarse: Coarse) -> float:
        """Of the noise on the mean, in the value's unit."""
        return self.noise.scale * self.tick(coarse) / coarse.users

    def better(self, places: Places, guess: Guess, source: Noise) -> Guess:
        """The next guesses from the private values of the first, one a run; none stays none."""
        users = places.whole.shape[1]
        sums: list[int] = ticks(places, guess, self.shift, self.half).sum(axis=1).tolist()
        noisy = self.noise.add(sums, source, _MIDDLE)
        steps = [round(Fraction(x, self.noise.per_unit * users)) for x in noisy]
        within = [max(-_FARTHEST, min(each, _FARTHEST)) for each in steps]
        return moved(guess, np.array(within, dtype=np.int64), self.shift)


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
    """Guesses that are so many ticks of 2^-shift bins further; failed ones stay 0."""
    whole, part = steps >> shift, steps & ((1 << shift) - 1)
    offset = guess.offset + (part << (FINE - shift))
    bins = guess.bin + whole + (offset >> FINE)
    return Guess(bins, offset & ((1 << FINE) - 1), guess.failed)
