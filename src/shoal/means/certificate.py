"""Finds the symmetric mean with the smallest certified error.

The error depends on how far guesses are off, and on how often there is none.
Source: docs/theory/means.md#the-certificate-of-the-symmetric-mean.
"""

import itertools
import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special

from shoal.arrays import Floats
from shoal.errors import InputError
from shoal.means.guess import Coarse, SumAboutGuess
from shoal.means.request import Request
from shoal.means.sums import TICK_BITS
from shoal.means.users import UserWeights
from shoal.theory import clipping
from shoal.theory.clipping import Moments

# Parts of the users that are tried as the part of far users.
_FAR_PARTS = np.arange(1, 67) / 200
# Logarithms of 1 divided by the probability of rare middle guesses that are tried.
_LOGS = np.array([10.0, 13, 16, 19, 23, 30, 40])
# The largest probability that a coarse step fails.
MOST_FAILURE = 1e-6
# Exponents k of bins that are tried, which are about 2^k standard deviations wide.
_SCALES = range(-1, 7)
# Parts of the users for the first steps, in units of 2^-16: two to an octave from 2^-7 to 1/2, and
# three above.
_SHARES = (
    *(round(2.0 ** (16 - k / 2)) for k in range(2, 15)),
    *(2**16 * k // 8 for k in (5, 6, 7)),
)
# Parts of the first users' epsilon for the middle step.
_MIDDLES = tuple(Fraction(k, 16) for k in (0, 1, 2, 3, 4, 6, 8, 10))
# Half-widths of a middle step beyond the first guess that are tried, in standard deviations.
_BEYOND = (1.0, 2.0, 3.0, 4.0, 6.0, 10.0, 16.0, 32.0)
# Logarithm of 1 divided by the probability of rare cases, for the choice of a middle step.
_USUAL = 20.0
# Half-widths of the last step beyond the guess that are tried, in standard deviations.
_ROUGH = tuple(2.0 ** (k / 2) for k in range(-4, 15))


def binomial_tail(n: int, least: Floats, chance: float) -> Floats:
    """Returns Chernoff's bound exp(-n KL(k/n || chance)) of P[B >= k], for a binomial B.

    `least` holds the k, from 1 on; the bound is at most 1.
    """
    if not 0 < chance < 1:
        return np.full(least.shape, chance)
    x = np.minimum(least / max(n, 1), 1.0)
    kl = x * np.log(x / chance) + special.xlogy(1 - x, (1 - x) / (1 - chance))
    # The factor covers the rounding of KL.
    tail = np.exp(-n * kl * (1 - 2.0**-40))
    tail = np.where(least > n, 0.0, tail)
    return np.where(x <= chance, 1.0, tail)


class FailureBounds(NamedTuple):
    """Bounds for a coarse step: `fail` bounds the probability that there is no guess.

    `far_squares` bounds E[sum over far users of g(X_i)^2; bad guess] divided by E g(X)^2, for any
    g >= 0.
    """

    far_squares: float
    fail: float


@lru_cache(maxsize=4096)
def failure_bounds(coarse: Coarse, moments: Moments) -> FailureBounds:
    """Returns the smallest bounds over several numbers f of far users.

    More than f far users count both as a bad guess and as no guess.
    """
    n = coarse.users
    chance = clipping.tail(moments, coarse.near)
    far = np.maximum(1.0, np.floor(_FAR_PARTS * n))
    too_many_far = binomial_tail(n - 1, far, chance)
    # With threshold h and N near users of weight m, Z < h - m N is as likely as Z >= m N - h + 1.
    fails = coarse.at_least(coarse.per_user * (n - far) - coarse.threshold + 1) + too_many_far
    bad_guesses = n * (2 * coarse.overtakes(n - 2 * far) + too_many_far)
    return FailureBounds(
        far_squares=min(float(n), float(bad_guesses.min())), fail=min(1.0, float(fails.min()))
    )


@dataclass(frozen=True)
class GuessError:
    """A bound on how far a guess is off: by `most`, except in three rare cases.

    Two are of the values and one of the noise; each has at most the probability `chance`. In every
    case the guess is off by at most `start` plus noise of the scale `scale`, whose rare case begins
    at `noise`. All are in the value's unit.
    """

    most: float
    chance: float = 0.0
    start: float = 0.0
    noise: float = 0.0
    scale: float = 0.0

    def rare(self, c: float) -> float:
        """Bounds E[(error of the last step)^2; a rare case]: it errs by at most start + |Z| + c."""
        if self.chance == 0:
            return 0.0
        reach = self.start + c
        values = 2 * (reach + math.sqrt(2) * self.scale) ** 2
        noise = (reach + self.noise + self.scale) ** 2 + self.scale**2
        return self.chance * (values + noise)


@lru_cache(maxsize=4096)
def middle_errors(
    coarse: Coarse, middle: SumAboutGuess, moments: Moments
) -> tuple[GuessError, ...]:
    """Returns bounds on how far a middle guess is off after a good first one.

    There is one for each probability of rare cases.
    """
    tick = middle.tick(coarse)
    scale = middle.scale(coarse)
    c = middle.half * tick
    if c <= coarse.off:
        # The window about the first guess may miss the centre: nothing is bounded.
        return ()
    # Values within t of the centre are never clipped.
    t = c - coarse.off
    sd = clipping.deviation(moments)
    n = coarse.users
    tail = clipping.tail(moments, t)
    rare = np.exp(-_LOGS)
    start = coarse.off + c + tick
    bounds = []
    for chance, far in zip(rare.tolist(), _most_far(n, tail, rare).tolist(), strict=True):
        log_two_sided = math.log(2 / chance)
        noise = scale * log_two_sided
        # Values err by chance, and clipping moves far ones by at most twice what the guess is off.
        of_values = _bernstein(n, sd, t, log_two_sided) + 2 * coarse.off * far / n
        bounds.append(GuessError(of_values + noise + tick, chance, start, noise, scale))
    return tuple(bounds)


@dataclass(frozen=True)
class Certificate:
    """The certificate of a symmetric mean for all half-widths c.

    `squares` is Q, the sum of squared weights; `unit` is the scale of the noise for c = 1.
    """

    coarse: Coarse
    middle: SumAboutGuess | None
    moments: Moments
    squares: float
    unit: float = 0.0

    @property
    def failure(self) -> float:
        """Largest probability that the coarse step fails."""
        return failure_bounds(self.coarse, self.moments).fail

    @cached_property
    def guess_errors(self) -> tuple[GuessError, ...]:
        """Bounds on how far the last step's middle is off, each with its rare cases."""
        if self.middle is None:
            return (GuessError(self.coarse.off),)
        return middle_errors(self.coarse, self.middle, self.moments)

    @cached_property
    def finest(self) -> float:
        """The smallest of the bounds on how far the last step's middle is off."""
        return min((each.most for each in self.guess_errors), default=math.inf)

    @cached_property
    def least(self) -> float:
        """A lower bound of `error` for every width, by values, noise and bad guesses."""
        square = self.squares * clipping.deviation(self.moments) ** 2 + self._bad(0.0)
        return square + 2 * (self.unit * self.finest) ** 2

    def error(self, beyond: float) -> float:
        """Returns the variance for a half-width `beyond` the guess, with continuous noise."""
        c = self.finest + beyond
        return self.variance(c, 2 * (self.unit * c) ** 2, math.ldexp(c, 1 - TICK_BITS))

    def variance(self, c: float, noise: float, tick: float) -> float:
        """Returns the largest variance of a released estimate for half-width c, noise and tick."""
        if self.failure >= 1:
            return math.inf
        # After a good first guess, each of these bounds holds; the smallest is taken.
        good = math.inf
        for each in self.guess_errors:
            usual = (self._good(c, each.most) + tick / 2) ** 2
            good = min(good, usual + each.rare(c + tick))
        square = good + noise + self._bad(c + tick)
        return square / (1 - self.failure)

    def _bad(self, c: float) -> float:
        """Bounds E[error^2; a bad first guess], by |X_i - mu| plus a bin for the window's users."""
        reach = clipping.deviation(self.moments) + 2 * self.coarse.near + c
        if self.middle is not None:
            reach += (self.middle.half + 1) * self.middle.tick(self.coarse)
            reach += math.sqrt(2) * self.middle.scale(self.coarse)
        return failure_bounds(self.coarse, self.moments).far_squares * reach**2

    def _good(self, c: float, off: float) -> float:
        """Returns the root mean square error if the guess is off by at most `off`.

        Rounding and noise are not in it.
        """
        if c <= off:
            return math.inf
        root = math.sqrt(self.squares) * clipping.deviation(self.moments)
        return math.hypot(root, clipping.symmetric_bias(self.moments, off, c))


def _bernstein(n: int, sd: float, t: float, log: float) -> float:
    """Returns v with n v^2 = 2 log (sd^2 + t v/3), which bounds a mean of n values.

    It fails with probability 2 exp(-log) at most.
    """
    part = 2 * log * t / 3
    return (part + math.sqrt(part**2 + 8 * n * log * sd**2)) / (2 * n)


def _most_far(n: int, chance: float, rare: Floats) -> Floats:
    """Returns the smallest f with P[F > f] <= each of `rare` by Chernoff's bound, F binomial."""
    few = np.full(rare.shape, -1.0)
    many = np.full(rare.shape, float(n))
    while bool((many - few > 1).any()):
        middle = (few + many) // 2
        enough = binomial_tail(n, middle + 1, chance) <= rare
        few = np.where(enough, few, middle)
        many = np.where(enough, middle, many)
    return many


def best_steps(request: Request, weights: UserWeights) -> tuple[Certificate, float]:
    """Returns the first steps and the half-width with the smallest certified error.

    First steps are chosen from a grid; a half-width may be any number.
    """
    size = clipping.deviation(request.moments)
    best = None
    smallest = math.inf
    for certificate in sorted(_first_steps(request, weights), key=lambda each: each.least):
        # Neither this one nor any later one can have a smaller error.
        if certificate.least >= smallest:
            break
        error = min(certificate.error(size * beyond) for beyond in _ROUGH)
        if error < smallest:
            best = certificate
            smallest = error
    if best is None:
        raise InputError(
            "the symmetric mean cannot be planned: its coarse step would fail too often",
            "ask for a larger epsilon or delta, for more users, or use clipped_mean",
        )
    beyond = clipping.least(best.error, 2.0**-6 * size, 2.0**12 * size)
    return best, best.finest + beyond


def _first_steps(request: Request, weights: UserWeights) -> Iterator[Certificate]:
    """Yields first steps of all sizes that do not fail too often, with and without a middle."""
    moments = request.moments
    epsilon = request.epsilon
    delta = request.delta
    _, exponent = math.frexp(clipping.deviation(moments))
    for share, middle_part in itertools.product(_SHARES, _MIDDLES):
        users = len(weights.number) * share // 2**16
        # Steps that no noise fits are left out.
        with suppress(InputError):
            # The width of the bins changes neither noise nor loss.
            at_exponent_0 = Coarse.fit(users, 0, epsilon * (1 - middle_part), delta)
            last = UserWeights(weights.number[users:])
            unit = 2 * float(last.share / epsilon)
            for scale in _SCALES:
                coarse = at_exponent_0.model_copy(update={"exponent": exponent + scale})
                if failure_bounds(coarse, moments).fail > MOST_FAILURE:
                    continue
                middle = None
                if middle_part:
                    middle = _middle(coarse, moments, epsilon - coarse.loss)
                yield Certificate(coarse, middle, moments, float(last.squares), unit)


def _middle(coarse: Coarse, moments: Moments, epsilon: Fraction) -> SumAboutGuess:
    """Returns the middle step whose guess is roughly the least off, by noise and far users."""
    n = coarse.users
    off = coarse.off
    sd = clipping.deviation(moments)
    unit = 2 * _USUAL / (n * float(epsilon))

    def roughly_off(t: float) -> float:
        """Returns about how far the guess is off: by noise, far users, and the spread of values."""
        return unit * (off + t) + 2 * off * clipping.tail(moments, t) + _USUAL * t / n

    t = min((sd * beyond for beyond in _BEYOND), key=roughly_off)
    return SumAboutGuess.fit(coarse.exponent, off + t, epsilon, n)
