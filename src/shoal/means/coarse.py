"""A coarse guess at the centre of unbounded values: symmetric, private, public only if it is safe.

Noisy counts of sliding windows with a random offset, and the best of them if it is above a
threshold (after paper 004, Algorithm 1, and Karwa and Vadhan 2018, which have bins).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from shoal.documents.model import Model
from shoal.means.noisy_sum import CAPACITY, MOST_BITS, Bits, Exponent, Positive, unfit
from shoal.privacy.noise import Noise

# Values are kept as multiples of 2^-60 bins; offsets are odd multiples of half of that.
FINE = 60
FARTHEST = 2.0**61
_NEVER = np.iinfo(np.int64).min
_OFFSET, _NOISE, _TIES = 4, 5, 6
Floats = NDArray[np.float64]
_OUT, _LEAST = 1e-12, 2.0**-1000
_FINEST = 20
_NEAR = 2.0
_WINDOWS = 2
_DIGITS = Context(prec=50, Emin=MIN_EMIN, Emax=MAX_EMAX)
_SURE, _FAR = Fraction(1, 10**40), 1000


@dataclass(frozen=True)
class Places:
    """Private values on the line of bins: `whole` bins, and `rest` in units of 2^-60 bins.

    Values are read as the nearest multiple of 2^-60 bins, which doubles from 2^-8 bins on are
    already, and beyond 2^61 bins as 2^61; both are odd in the value. Shape (runs, users).
    """

    whole: NDArray[np.int64] = field(repr=False)
    rest: NDArray[np.int64] = field(repr=False)

    @classmethod
    def of(cls, values: NDArray[np.float64], exponent: int) -> Places:
        """Of finite numbers of any size, on bins of 2^exponent.

        Example:
            >>> Places.of(np.array([[-0.75]]), 0).whole.tolist()
            [[-1]]
        """
        bins = np.clip(np.ldexp(values, -exponent), -FARTHEST, FARTHEST)
        floor = np.floor(bins)
        whole, rest = floor.astype(np.int64), np.ldexp(bins - floor, FINE).astype(np.int64)
        # Near 0 a double may be finer, and its distance from -1 no double.
        near = np.abs(bins) < _NEAR
        fine = np.rint(np.ldexp(np.where(near, bins, 0), FINE)).astype(np.int64)
        return cls(
            np.where(near, fine >> FINE, whole), np.where(near, fine & ((1 << FINE) - 1), rest)
        )


@dataclass(frozen=True)
class Guess:
    """What a coarse step gives, one entry a run: (k + T) bins, T = (2t + 1)/2^61 - 1/2.

    Attributes:
        bin: k.
        offset: t, from 0 to below 2^60.
        failed: Whether there is none; the other entries are 0 then.
    """

    bin: NDArray[np.int64]
    offset: NDArray[np.int64]
    failed: NDArray[np.bool_]


def exactly(guess: tuple[int, int], exponent: int) -> Fraction:
    """A guess, as bin and offset, in the value's unit."""
    off = Fraction(2 * guess[1] + 1, 2 ** (FINE + 1)) - Fraction(1, 2)
    return (guess[0] + off) * Fraction(2) ** exponent


class Coarse(Model):
    """The best of the windows around (k + T) s, s = 2^exponent, if m count + Z is at least h.

    Every value is in the two windows whose middles are within s of it: values within s/2 of the
    centre share one. Z is discrete Laplace noise of scale 2^j steps, one for each occupied window.
    With p = P[m + Z >= h] the outcome is (2m/2^j + 2p, 2p)-private, if 2p <= 1 - exp(-m/2^j); it is
    symmetric and equivariant. Proofs: docs/theory/unbiased.md#the-coarse-step.

    Attributes:
        users: How many values.
        exponent: s = 2^exponent, in the value's unit; windows are 2s wide.
        per_user: m, the steps that a user is worth.
        bits: j.
        threshold: h, in steps.

    Example:
        >>> coarse = Coarse.fit(1000, 3, Fraction(1, 2), Fraction(1, 10**6))
        >>> float(coarse.loss) <= 0.5, coarse.delta <= 1e-6
        (True, True)
        >>> round(coarse.threshold / coarse.per_user, 2)
        56.26
    """

    users: Positive
    exponent: Exponent
    per_user: Positive
    bits: Bits
    threshold: Positive

    @model_validator(mode="after")
    def _sound(self) -> Self:
        fits = self.users * self.per_user <= 2**CAPACITY and self.per_user < self.threshold
        least = exponential(-Fraction(self.per_user, 2**self.bits)) * (1 + _SURE)
        if not fits or self.delta > 1 - least:
            raise unfit()
        return self

    @classmethod
    def fit(cls, users: int, exponent: int, epsilon: Fraction, delta: Fraction) -> Self:
        """The lowest threshold for a loss; a few parts in 10^12 cover the logarithms."""
        # Two windows also lose 2p <= delta of epsilon.
        left = epsilon - delta
        if users < 1 or min(left, delta) <= 0:
            raise unfit()
        fine = min(_FINEST, CAPACITY - users.bit_length())
        bits = fine + 1 + math.ceil(_log(1 / left) / math.log(2))
        bits = min(max(bits, 0), MOST_BITS)
        per_user = max(1, min(int(left * 2**bits / 2), 2**CAPACITY // users))
        scale = 2.0**bits
        log = min(_log(delta), math.log(-math.expm1(-per_user / scale))) - math.log(_WINDOWS)
        steps = scale * (-log - math.log1p(math.exp(-1 / scale)))
        above = max(1, math.ceil(steps + (abs(steps) + scale) * 4 * _OUT))
        found = cls.of(
            users=users,
            exponent=exponent,
            per_user=per_user,
            bits=bits,
            threshold=per_user + above,
        )
        if found.loss > epsilon:
            raise unfit()
        return found

    @property
    def loss(self) -> Fraction:
        """The exact epsilon: a user's worth of steps up and down, and 2p."""
        return Fraction(2 * self.per_user, 2**self.bits) + self.delta

    @cached_property
    def delta(self) -> Fraction:
        """2p, rounded upwards: exp(-k/2^j)/(1 + exp(-1/2^j)) twice, k = h - m."""
        steps = Fraction(self.threshold - self.per_user, 2**self.bits)
        one = 1 + exponential(-Fraction(1, 2**self.bits)) * (1 - _SURE)
        return _WINDOWS * exponential(-min(steps, Fraction(_FAR))) * (1 + _SURE) / one

    @property
    def off(self) -> float:
        """R: how far a guess is off whose window holds a near user, in the value's unit."""
        return self.near + 2.0**self.exponent

    @property
    def near(self) -> float:
        """s/2: values within this of the centre are near, in the value's unit."""
        return 2.0 ** (self.exponent - 1)

    def at_least(self, steps: Floats) -> Floats:
        """P[Z >= k] = q^k/(1 + q), q = exp(-1/2^j), for each k, rounded upwards."""
        scale = 2.0**self.bits
        far = np.where(steps > 0, steps, 1 - steps) / scale
        tail = np.exp(-far + np.where(steps > 0, 1, -1) * _OUT * (1 + far))
        tail = np.maximum(tail / (1 + math.exp(-1 / scale)), _LEAST)
        return np.where(steps > 0, tail, 1 - tail)

    def overtakes(self, users: Floats) -> Floats:
        """P[Z - Z' >= m u] for each u, rounded upwards: a window beats one of u users more.

        The difference of two independent noises has P[D = d] = ((1-q)/(1+q))^2 q^|d| (|d| + A),
        A = (1 + q^2)/(1 - q^2).
        """
        scale = 2.0**self.bits
        steps = self.per_user * np.maximum(users, 0)
        gap, q = -math.expm1(-1 / scale), math.exp(-1 / scale)
        terms = gap * (steps + (1 + q * q) / (gap * (1 + q))) + q
        tail = np.exp(-steps / scale + _OUT * (1 + steps / scale)) * terms / (1 + q) ** 2
        return np.where(users > 0, tail, 1.0)

    def guess(self, places: Places, source: Noise) -> Guess:
        """The best window, for several data sets at once, on the line of bins of this exponent.

        Work, shapes and draws are the same for all data of one size: every user's slots get noise,
        and slots that are not the first of their window cannot win.
        """
        runs = len(places.whole)
        offset = (source.bits(runs, _OFFSET) >> np.uint64(64 - FINE)).astype(np.int64)
        # x/s - T in units of 2^-61 bins, without its whole part: an odd number, so no integer.
        rest = 2 * (places.rest - offset[:, None]) - 1 + (1 << FINE)
        below = places.whole + (rest >> (FINE + 1))
        bins = np.sort(np.concatenate([below, below + 1], axis=1), axis=1)
        first, count = _counts(bins)
        # The sampler adds to numbers from 0 on.
        middle = 2**CAPACITY
        flat: list[int] = (count * self.per_user + middle).ravel().tolist()
        drawn = source.add_laplace(flat, self.bits, _NOISE)
        score = np.array(drawn, dtype=np.int64).reshape(bins.shape)
        score[~first] = _NEVER
        coin = source.bits(runs, _TIES) >> np.uint64(63) == 0
        best = score.max(axis=1)
        tied = score == best[:, None]
        last = bins.shape[1] - 1 - tied[:, ::-1].argmax(axis=1)
        at = np.where(coin, tied.argmax(axis=1), last)
        failed = best < self.threshold + middle
        found = np.where(failed, 0, bins[np.arange(runs), at])
        return Guess(found, np.where(failed, 0, offset), failed)


def exponential(power: Fraction) -> Fraction:
    """Exp of a fraction whose denominator is a power of two, to 49 digits on every machine."""
    found = _DIGITS.exp(_DIGITS.divide(Decimal(power.numerator), Decimal(power.denominator)))
    return Fraction(found)


def _counts(bins: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Where each window begins in sorted rows, and from there how many are in it."""
    users = bins.shape[1]
    first = np.ones(bins.shape, dtype=np.bool_)
    first[:, 1:] = bins[:, 1:] != bins[:, :-1]
    places = np.arange(users)
    begins = np.where(first, places, users)
    # The next beginning after each place: least of those behind it.
    after = np.full(bins.shape, users)
    after[:, :-1] = np.minimum.accumulate(begins[:, :0:-1], axis=1)[:, ::-1]
    return first, np.where(first, after - places, 0)


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)
