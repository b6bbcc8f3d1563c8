"""Guesses the centre of unbounded values in private: coarsely and symmetrically, then finely.

Proofs: docs/theory/means.md#the-symmetric-mean and #the-threshold.
"""

import math
from dataclasses import dataclass, field
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import Annotated, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from shoal.arrays import Bools, Floats, Ints
from shoal.documents.model import Model
from shoal.means import sums
from shoal.means.sums import Exponent
from shoal.privacy.accounting import Stated, Step, account
from shoal.privacy.noise import Noise
from shoal.privacy.noisy import CAPACITY, MOST_BITS, Bits, NoisySum, Positive, unfit

# Values are kept as multiples of 2^-60 bins; offsets are odd multiples of 2^-61 bins.
FINE = 60
# Values farther from 0 than this many bins are clipped.
_FARTHEST = 2.0**61
# Within this many bins of 0, numbers may be finer than 2^-60 bins and are rounded.
_NEAR = 2.0
# The draws of one release.
_OFFSET = 4
_NOISE = 5
_TIES = 6
_MIDDLE = 8
# Floating-point probabilities are moved outward by this part.
_OUT = 1e-12
# The smallest probability that is stated.
_LEAST = 2.0**-1000
# The scale of noise has at most this many bits more than epsilon needs.
_FINEST = 20
# The score of a place where no window begins.
_NEVER = np.iinfo(np.int64).min
# Decimal numbers in which exponentials are computed.
_DIGITS = Context(prec=50, Emin=MIN_EMIN, Emax=MAX_EMAX)
# A part that covers the rounding of these.
_SURE = Fraction(1, 10**40)
# Exponents are not below minus this.
_FAR = Fraction(1000)


@dataclass(frozen=True)
class Places:
    """Private values on the line of bins: `whole` bins, and `rest` in units of 2^-60 bins."""

    whole: Ints = field(repr=False)
    rest: Ints = field(repr=False)

    @classmethod
    def of(cls, values: Floats, exponent: int) -> "Places":
        """Returns the places of finite numbers of any size, on bins of 2^exponent."""
        bins = np.clip(np.ldexp(values, -exponent), -_FARTHEST, _FARTHEST)
        floor = np.floor(bins)
        whole = floor.astype(np.int64)
        rest = np.ldexp(bins - floor, FINE).astype(np.int64)
        # Near 0, a double may be finer than 2^-60 bins, and its distance from -1 no double.
        near = np.abs(bins) < _NEAR
        fine = np.rint(np.ldexp(np.where(near, bins, 0), FINE)).astype(np.int64)
        whole = np.where(near, fine >> FINE, whole)
        rest = np.where(near, fine & ((1 << FINE) - 1), rest)
        return cls(whole, rest)


class Guess(NamedTuple):
    """The guess of each run, which lies at bin + T in bins, with T = (2 offset + 1)/2^61 - 1/2.

    An offset is from 0 to below 2^60.
    """

    bin: Ints
    offset: Ints
    failed: Bools


def exactly(guess: tuple[int, int], exponent: int) -> Fraction:
    """Returns a guess of a bin and an offset, exactly and in the value's unit."""
    place, offset = guess
    t = Fraction(2 * offset + 1, 2 ** (FINE + 1)) - Fraction(1, 2)
    return (place + t) * Fraction(2) ** exponent


class Coarse(Model):
    """The coarse step, which guesses the best window if its noisy count reaches the threshold.

    Windows have the middles (k + T) s with s = 2^exponent; every value is in the two windows whose
    middles are within s of it. A window scores m count + Z, where `per_user` is m and the noise Z
    has the scale 2^`bits`; it is taken if it scores `threshold` or more. With p = P[m + Z >=
    threshold] the step is (2m/2^bits + 2p, 2p)-private, if 2p <= 1 - exp(-m/2^bits).
    """

    users: Positive
    exponent: Exponent
    per_user: Positive
    bits: Bits
    threshold: Positive

    @model_validator(mode="after")
    def _sound(self) -> Self:
        """Refuses numbers that do not fit, or for which the loss is not proved."""
        fits = self.users * self.per_user <= 2**CAPACITY and self.per_user < self.threshold
        least = _exponential(-Fraction(self.per_user, 2**self.bits)) * (1 + _SURE)
        if not fits or self.delta > 1 - least:
            raise unfit()
        return self

    @classmethod
    def fit(cls, users: int, exponent: int, epsilon: Fraction, delta: Fraction) -> Self:
        """Returns the step of the lowest threshold for a loss, up to a few parts in 10^12."""
        # The threshold of a user's two windows also takes 2p <= delta from epsilon.
        left = epsilon - delta
        if users < 1 or min(left, delta) <= 0:
            raise unfit()
        # The scale has these bits more than epsilon needs, as many as sums of all users allow.
        spare_bits = min(_FINEST, CAPACITY - users.bit_length())
        bits = min(max(spare_bits + 1 + math.ceil(-math.log2(left)), 0), MOST_BITS)
        per_user = max(1, min(int(left * 2**bits / 2), 2**CAPACITY // users))
        scale = 2.0**bits
        p = min(delta, Fraction(-math.expm1(-per_user / scale))) / 2
        # The k = threshold - per_user with P[Z >= k] = p, rounded upwards.
        log_p = math.log(p.numerator) - math.log(p.denominator)
        steps = scale * (-log_p - math.log1p(math.exp(-1 / scale)))
        above = max(1, math.ceil(steps + (abs(steps) + scale) * 4 * _OUT))
        numbers = {"users": users, "exponent": exponent, "per_user": per_user, "bits": bits}
        coarse = cls.of(**numbers, threshold=per_user + above)
        if coarse.loss > epsilon:
            raise unfit()
        return coarse

    def steps(self, users: tuple[int, ...] = (1,)) -> list[Step]:
        """Returns the steps for the accountant; `users` is 1 for each kind that is in the step."""
        counts = NoisySum(per_unit=self.per_user, bits=self.bits)
        moves = counts.step(*(2 * each for each in users))
        return [moves, Stated(self.delta, self.delta, users)]

    @property
    def loss(self) -> Fraction:
        """The exact epsilon."""
        return account(self.steps(), self.delta).epsilon

    @cached_property
    def delta(self) -> Fraction:
        """The delta 2p = 2 exp(-k/2^j)/(1 + exp(-1/2^j)), k = h - m, upwards on all machines."""
        steps = Fraction(self.threshold - self.per_user, 2**self.bits)
        one = 1 + _exponential(-Fraction(1, 2**self.bits)) * (1 - _SURE)
        return 2 * _exponential(-min(steps, _FAR)) * (1 + _SURE) / one

    @property
    def near(self) -> float:
        """Half of s: values within this of the centre are near, in the value's unit."""
        return 2.0 ** (self.exponent - 1)

    @property
    def off(self) -> float:
        """The most that a guess is off whose window holds a near user, which is 3s/2."""
        return 3 * self.near

    def at_least(self, steps: Floats) -> Floats:
        """Returns P[Z >= k] = q^k/(1 + q), rounded upwards, with q = exp(-1/2^bits)."""
        scale = 2.0**self.bits
        # For k <= 0 it is 1 - P[Z >= 1 - k], whose tail is rounded downwards.
        upper = steps > 0
        far = np.where(upper, steps, 1 - steps) / scale
        outward = np.where(upper, 1, -1) * _OUT * (1 + far)
        tail = np.exp(-far + outward)
        tail = np.maximum(tail / (1 + math.exp(-1 / scale)), _LEAST)
        return np.where(upper, tail, 1 - tail)

    def overtakes(self, users: Floats) -> Floats:
        """Returns P[Z - Z' >= m u], rounded upwards: a window beats one with u users more."""
        scale = 2.0**self.bits
        steps = self.per_user * np.maximum(users, 0)
        gap = -math.expm1(-1 / scale)
        q = math.exp(-1 / scale)
        # P[Z - Z' = d] = ((1-q)/(1+q))^2 q^|d| (|d| + (1 + q^2)/(1 - q^2)).
        terms = gap * (steps + (1 + q * q) / (gap * (1 + q))) + q
        tail = np.exp(-steps / scale + _OUT * (1 + steps / scale)) * terms / (1 + q) ** 2
        return np.where(users > 0, tail, 1.0)

    def guess(self, places: Places, source: Noise) -> Guess:
        """Returns the best window of each data set; a fair coin decides ties.

        All data sets take the same work.
        """
        runs = len(places.whole)
        offset = (source.bits(runs, _OFFSET) >> np.uint64(64 - FINE)).astype(np.int64)
        # This is x/s - T in units of 2^-61 bins, without its whole part: it is odd, so that no
        # value lies on the border of a window.
        rest = 2 * (places.rest - offset[:, None]) - 1 + (1 << FINE)
        # Both windows of every value, in rising order, (runs, 2 users).
        below = places.whole + (rest >> (FINE + 1))
        bins = np.sort(np.concatenate([below, below + 1], axis=1), axis=1)
        first, count = _counts(bins)
        # Noise is drawn for every place, also where no window begins, so that the work is the same.
        steps: list[int] = (count * self.per_user).ravel().tolist()
        drawn = source.add_laplace(steps, self.bits, _NOISE)
        noisy = np.array(drawn, dtype=np.int64).reshape(bins.shape)
        score = np.where(first, noisy, _NEVER)
        coin = source.bits(runs, _TIES) >> np.uint64(63) == 0
        best = score.max(axis=1)
        tied = score == best[:, None]
        first_tied = tied.argmax(axis=1)
        last_tied = bins.shape[1] - 1 - tied[:, ::-1].argmax(axis=1)
        chosen = np.where(coin, first_tied, last_tied)
        best_bin = bins[np.arange(runs), chosen]
        return Guess(best_bin, offset, failed=best < self.threshold)


class SumAboutGuess(Model):
    """A noisy sum of values about a guess, in ticks of 2^-shift bins, clipped to +-half."""

    shift: Annotated[int, Field(ge=1, lt=FINE)]
    half: Annotated[int, Field(ge=1, le=2**sums.TICK_BITS)]
    noise: NoisySum

    @classmethod
    def fit(
        cls, exponent: int, width: float, epsilon: Fraction, total: int, largest: int = 1
    ) -> Self:
        """Returns the sum with the least noise for a loss, where values are clipped to +-width.

        Bins are of 2^exponent; weights of users have a total and a largest one.
        """
        # A tick is 2^tick, at most half a bin.
        _, width_exponent = math.frexp(width)
        tick = min(width_exponent - sums.TICK_BITS, exponent - 1)
        half = math.ceil(math.ldexp(width, -tick))
        noise = NoisySum.fit(2 * half * largest, half * total, epsilon)
        return cls.of(shift=exponent - tick, half=half, noise=noise)

    @property
    def loss(self) -> Fraction:
        """The exact epsilon of a user of weight 1."""
        return self.noise.loss(2 * self.half)

    def tick(self, coarse: Coarse) -> float:
        """Returns the tick in the value's unit."""
        return math.ldexp(1.0, coarse.exponent - self.shift)

    def scale(self, coarse: Coarse) -> float:
        """Returns the noise scale of the mean of the coarse step's users, in the value's unit."""
        return self.noise.scale * self.tick(coarse) / coarse.users

    def better(self, places: Places, guess: Guess, source: Noise) -> Guess:
        """Returns the next guess, which is the mean of private values to the nearest tick."""
        totals: list[int] = ticks(places, guess, self.shift, self.half).sum(axis=1).tolist()
        # What a tick of the mean is worth, in steps of the noise.
        users = places.whole.shape[1]
        unit = self.noise.per_unit * users
        moves = [round(Fraction(x, unit)) for x in self.noise.add(totals, source, _MIDDLE)]
        # Steps are clipped to whole numbers of 64 bits, so that no draw fails.
        steps = np.array([max(-(2**61), min(x, 2**61)) for x in moves], dtype=np.int64)
        return moved(guess, steps, self.shift)


def ticks(places: Places, guess: Guess, shift: int, half: int) -> Ints:
    """Returns values as ticks of 2^-shift bins from the guess, clipped to +-half.

    Mirrored values give mirrored ticks.
    """
    # Values farther than this are clipped, whatever their rest.
    far = (half >> shift) + 4
    bins = np.clip(places.whole - guess.bin[:, None], -far, far)
    # In units of 2^-61 bins, rest - T is an odd number, so that no value is halfway.
    rest = 2 * (places.rest - guess.offset[:, None]) - 1 + (1 << FINE)
    # Half a tick is added before the bits below a tick are cut off: this rounds to the nearest.
    down = FINE + 1 - shift
    rounded_rest = (rest + (1 << (down - 1))) >> down
    return np.asarray(np.clip((bins << shift) + rounded_rest, -half, half))


def moved(guess: Guess, steps: Ints, shift: int) -> Guess:
    """Returns guesses that lie `steps` ticks of 2^-shift bins further."""
    whole_bins = steps >> shift
    rest = steps & ((1 << shift) - 1)
    offset = guess.offset + (rest << (FINE - shift))
    # An offset of a bin or more is carried over to the bins.
    bins = guess.bin + whole_bins + (offset >> FINE)
    return Guess(bins, offset & ((1 << FINE) - 1), guess.failed)


def _exponential(power: Fraction) -> Fraction:
    """Returns exp of a fraction whose denominator is a power of two, to 49 digits."""
    found = _DIGITS.exp(_DIGITS.divide(Decimal(power.numerator), Decimal(power.denominator)))
    return Fraction(found)


def _counts(bins: Ints) -> tuple[Bools, Ints]:
    """Returns which places of sorted rows are the first of a window, and its number of values.

    The number is 0 at all other places.
    """
    n_places = bins.shape[1]
    first = np.ones(bins.shape, dtype=np.bool_)
    first[:, 1:] = bins[:, 1:] != bins[:, :-1]
    # Where a window begins, its own place; elsewhere the end of the row.
    begins = np.where(first, np.arange(n_places), n_places)
    # The next beginning after each place is the least of those behind it, found from the right.
    next_begin = np.full(bins.shape, n_places)
    next_begin[:, :-1] = np.minimum.accumulate(begins[:, :0:-1], axis=1)[:, ::-1]
    return first, np.where(first, next_begin - begins, 0)
