"""A coarse guess at the centre of unbounded values: symmetric, private, public only if it is safe.

A histogram with random offset over the occupied bins, noise on every count, and the best bin if
it is above a threshold (paper 004, Algorithm 1; Karwa and Vadhan 2018).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.means.estimators.noisy_sum import MOST_BITS
from shoal.privacy.noise import Noise

# Values are kept as multiples of 2^-60 bins; offsets are odd multiples of half of that.
FINE = 60
FARTHEST = 2.0**61
MOST_EXPONENT = 400
_NEVER = np.iinfo(np.int64).min
_OFFSET, _NOISE, _TIES = 4, 5, 6
_OUT = 1e-12
# Smaller probabilities are given as this: a float near 0 may be rounded downwards.
_LEAST = 2.0**-1000
_FINEST = 20
_NEAR = 2.0
_WINDOWS = (1, 2)


@dataclass(frozen=True)
class Places:
    """Values on the line of bins: the whole part and the rest in units of 2^-60 bins. Private.

    Values are read as the nearest multiple of 2^-60 bins, which doubles from 2^-8 bins on are
    already, and beyond 2^61 bins as 2^61; both are odd in the value.

    Attributes:
        whole: floor(x / 2^exponent), shape (runs, users).
        rest: What is left, from 0 to below 2^60.
    """

    whole: NDArray[np.int64] = field(repr=False)
    rest: NDArray[np.int64] = field(repr=False)

    @classmethod
    def of(cls, values: NDArray[np.float64], exponent: int) -> Places:
        """Of finite numbers of any size.

        Args:
            values: Shape (runs, users).
            exponent: Bins are 2^exponent wide.

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
    """What a coarse step gives, one entry a run; the offset and the bin are public.

    Attributes:
        offset: t from 0 to below 2^60; T = (2t + 1)/2^61 - 1/2 is the offset in bins.
        bin: k; the guess is (k + T) 2^exponent.
        failed: Whether there is none; the other entries are 0 then.
    """

    offset: NDArray[np.int64]
    bin: NDArray[np.int64]
    failed: NDArray[np.bool_]

    def exactly(self, run: int, exponent: int) -> Fraction:
        """The guess in the value's unit."""
        off = Fraction(2 * int(self.offset[run]) + 1, 2 ** (FINE + 1)) - Fraction(1, 2)
        return (int(self.bin[run]) + off) * Fraction(2) ** exponent


@dataclass(frozen=True)
class Coarse:
    r"""The best bin of round(x/s - T), if m count + Z is at least a threshold h; s = 2^exponent.

    With `windows` = 2 there are sliding windows instead of bins: every value is in the two that are
    2s wide and whose middles (k + T) s are within s of it. Values within s/2 of the centre then
    share a window, where bins may part them into halves: half as many users are enough.

    Z is discrete Laplace noise of scale 2^j steps, one for each occupied bin, and a user is worth
    m steps. Let p = P[m + Z >= h] = q^(h-m)/(1+q), q = exp(-2^-j), be the chance that a bin of one
    user alone is above the threshold. **One bin each: the outcome is (2m/2^j, p)-private**, for
    neighbours in which one user moves from bin A to bin B (T is independent of the values):

    - A and B are occupied without that user: the scores of both move by m.
    - A is the user's alone, B is not. Let C be the mechanism without A. Outcomes other than A are
      C's, so P(S) <= P_C(S) + p, and P(S) >= (1 - p) P_C(S) since A, independent of the rest, is
      mostly below h. The neighbour differs from C by m in one score: a factor exp(m/2^j). So the
      loss is at most (m/2^j, p) one way, and exp(m/2^j)/(1-p) the other way, which is at most
      exp(2m/2^j) if p <= 1 - exp(-m/2^j): checked here.
    - A and B are both the user's alone: P(S) <= P_C(S) + p <= P'(S)/(1-p) + p, both ways.

    **Two windows each: (2m/2^j + 2p, 2p).** Let U, U' be the windows that are occupied in one of
    the neighbours D, D' only, at most two each, and C, C' the mechanisms without these. Then
    P(S) <= P_C(S) + |U| p and P'(S) >= (1-p)^|U'| P_C'(S), as above. C and C' have the same
    windows, whose scores differ by at most m, no more than two of them upwards and two downwards.
    Given all other noise, a window wins if its noise is above a number that moves by at most 2m,
    whatever the number of windows; no guess is a product of chances, of which those that a D' with
    higher scores makes smaller are two at most: a factor exp(2m/2^j) for both. If |U'| = 2 no score
    of C' is higher than C's, and the factor is exp(m/2^j) only, which leaves room for (1-p)^2 as p
    is at most (1 - exp(-m/2^j))/2; if |U'| = 1, 1/(1-p) <= exp(2p) for p <= 1/2.

    With p = delta and a loss of epsilon, h - m is (2/epsilon) ln(1/(2 delta)) users' worth, where
    the paper has (2/epsilon) ln(1/delta) and one user more.

    **The guess is symmetric and equivariant.** Values are multiples of 2^-60 bins and T is uniform
    on the odd multiples of 2^-61 in (-1/2, 1/2): x/s - T is never halfway between integers, nor an
    integer, so mirroring all values mirrors all bins for the offset -T, as likely as T; shifting by
    a multiple of 2^-60 bins shifts the grid of offsets and bins onto itself. Ties of the best score
    are given to the lowest or to the highest of the tied bins by one fair coin, which mirroring
    swaps; a tied bin that does not win can be left out without changing the outcome, so that the
    proof above holds for every outcome of the coin.

    Attributes:
        users: How many values.
        exponent: Bins are s = 2^exponent wide, in the value's unit, and windows 2s.
        per_user: m.
        bits: j.
        threshold: h, in steps.
        windows: 1 for bins, 2 for sliding windows.

    Raises:
        InputError: The numbers do not fit 2^61 steps, or p is too large for the proof.

    Example:
        >>> coarse = Coarse.fit(1000, 3, Fraction(1, 2), Fraction(1, 10**6))
        >>> float(coarse.loss) <= 0.5, coarse.delta <= 1e-6
        (True, True)
        >>> round(coarse.threshold / coarse.per_user, 2)
        53.49
    """

    users: int
    exponent: int
    per_user: int
    bits: int
    threshold: int
    windows: int = 1

    def __post_init__(self) -> None:
        numbers = (self.users, self.per_user, self.bits, self.threshold, self.windows)
        sound = (
            all(type(x) is int and x >= 0 for x in (*numbers, abs(self.exponent)))
            and abs(self.exponent) <= MOST_EXPONENT
            and self.windows in _WINDOWS
            and self.per_user > 0
            and 0 < self.users * self.per_user <= 2**FINE
            and self.bits <= MOST_BITS
            and self.per_user < self.threshold <= 2**FINE
        )
        # The slack of the comparison covers the roundings of both sides.
        if not sound or self.delta * (1 + _OUT) > -math.expm1(-self.per_user / 2.0**self.bits):
            raise _unfit()

    @classmethod
    def fit(
        cls, users: int, exponent: int, epsilon: Fraction, delta: Fraction, windows: int = 1
    ) -> Coarse:
        """The lowest threshold for a loss; a few parts in 10^12 cover the logarithms.

        Raises:
            InputError: The loss does not fit the lattice.
        """
        # Two windows also lose 2p <= delta of epsilon.
        epsilon -= delta * (windows - 1)
        if users < 1 or min(epsilon, delta) <= 0:
            raise _unfit()
        fine = min(_FINEST, FINE - users.bit_length())
        bits = fine + 1 + math.ceil(_log(1 / epsilon) / math.log(2))
        bits = min(max(bits, 0), MOST_BITS)
        per_user = max(1, min(int(epsilon * 2**bits / 2), 2**FINE // users))
        scale = 2.0**bits
        log = min(_log(delta), math.log(-math.expm1(-per_user / scale))) - math.log(windows)
        steps = scale * (-log - math.log1p(math.exp(-1 / scale)))
        above = max(1, math.ceil(steps + (abs(steps) + scale) * 4 * _OUT))
        found = cls(users, exponent, per_user, bits, per_user + above, windows)
        if found.loss > epsilon + delta * (windows - 1):
            raise _unfit()
        return found

    @property
    def loss(self) -> Fraction:
        """The exact epsilon: a user's worth of steps up and down, and 2p with windows."""
        return Fraction(2 * self.per_user, 2**self.bits) + (self.windows - 1) * Fraction(self.delta)

    @property
    def delta(self) -> float:
        """P times `windows`, rounded upwards: the delta of the coarse step."""
        return self.windows * self.at_least(self.threshold - self.per_user)

    @property
    def width(self) -> float:
        """Of a bin or a window, in the value's unit."""
        return self.windows * 2.0**self.exponent

    @property
    def near(self) -> float:
        """s/2: values within this of the centre are near, in the value's unit."""
        return 2.0 ** (self.exponent - 1)

    def together(self, users: int) -> int:
        """So many of the near users share a bin, at least: half of them, or a window, all."""
        return users if self.windows > 1 else (users + 1) // 2

    def at_least(self, steps: int) -> float:
        """P[Z >= steps], rounded upwards."""
        if steps <= 0:
            return 1.0 - self.at_least(1 - steps) * (1 - 2 * _OUT)
        scale = 2.0**self.bits
        rounded = _OUT * (1 + steps / scale)
        return max(_LEAST, math.exp(-steps / scale + rounded) / (1 + math.exp(-1 / scale)))

    def overtakes(self, users: int) -> float:
        """P[Z - Z' >= m users], rounded upwards: some bin beats one that has so many users more.

        The difference of two independent noises has P[D = d] = ((1-q)/(1+q))^2 q^|d| (|d| + A),
        A = (1 + q^2)/(1 - q^2).
        """
        if users <= 0:
            return 1.0
        scale, steps = 2.0**self.bits, self.per_user * users
        gap, q = -math.expm1(-1 / scale), math.exp(-1 / scale)
        middle = (1 + q * q) / (gap * (1 + q))
        terms = gap * (steps + middle) + q
        rounded = _OUT * (1 + steps / scale)
        return math.exp(-steps / scale + rounded) * terms / (1 + q) ** 2

    def guess(self, places: Places, source: Noise) -> Guess:
        """Draw the best bin, for several data sets at once.

        Work, shapes and draws are the same for all data of one size: every user's slot gets noise,
        and slots that are not the first of their bin cannot win.

        Args:
            places: On the line of bins of this exponent.
            source: Of randomness.
        """
        runs = len(places.whole)
        offset = (source.bits(runs, _OFFSET) >> np.uint64(64 - FINE)).astype(np.int64)
        bins = np.sort(self._bins(places, offset[:, None]), axis=1)
        first, count = _runs_of(bins)
        flat: list[int] = (count * self.per_user).ravel().tolist()
        middle = 2**FINE
        drawn = source.add_laplace([x + middle for x in flat], self.bits, _NOISE)
        score = np.array(drawn, dtype=np.int64).reshape(bins.shape) - middle
        score[~first] = _NEVER
        coin = source.bits(runs, _TIES) >> np.uint64(63) == 0
        best = score.max(axis=1)
        tied = score == best[:, None]
        last = bins.shape[1] - 1 - tied[:, ::-1].argmax(axis=1)
        at = np.where(coin, tied.argmax(axis=1), last)
        failed = best < self.threshold
        found = np.where(failed, 0, bins[np.arange(runs), at])
        return Guess(np.where(failed, 0, offset), found, failed)

    def _bins(self, places: Places, offset: NDArray[np.int64]) -> NDArray[np.int64]:
        """The bin of every value, or its two windows: the two next to x/s - T."""
        if self.windows == 1:
            return np.asarray(places.whole + (places.rest > offset))
        # x/s - T in units of 2^-61 bins, without its whole part: an odd number, so no integer.
        rest = 2 * (places.rest - offset) - 1 + (1 << FINE)
        below = places.whole + (rest >> (FINE + 1))
        return np.concatenate([below, below + 1], axis=1)


def _runs_of(bins: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Where each bin begins in sorted rows, and from there how many are in it."""
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


def _unfit() -> InputError:
    return InputError(
        "a coarse step that does not fit its lattice, or whose threshold is too low",
        "a moderate epsilon and delta",
        "ask for a larger epsilon, and for a delta above 0",
    )
