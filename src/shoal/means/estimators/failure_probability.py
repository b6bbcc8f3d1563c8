"""How likely a coarse guess is bad or missing, from public facts."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

from shoal.means.estimators.binomial_tail import binomial_tail
from shoal.means.estimators.coarse import Coarse
from shoal.means.estimators.middle import Middle
from shoal.means.estimators.middle_failure import Off, middle_offs
from shoal.theory import clipping
from shoal.theory.clipping import Moments

_SHARES = tuple(i / 200 for i in range(1, 67))


@dataclass(frozen=True)
class FailureBounds:
    """Bounds on what a coarse step may do to a symmetric mean.

    Attributes:
        near: a, in the value's unit: users within a of the mean are near, a <= s/2.
        far_squares: Bounds E[sum over far users of g(X_i)^2; bad guess] over E g(X)^2, g >= 0.
        fail: Bounds the probability of no guess, given any one user's value.
    """

    near: float
    far_squares: float
    fail: float


@lru_cache(maxsize=4096)
def failure_bounds(coarse: Coarse, moments: Moments) -> FailureBounds:
    """Bounds by counting far users, whose number is binomial with a chance of at most tail(a).

    Near users fill at most two bins of width 2a, and the fuller one has half of them; or they share
    a sliding window (`Coarse.together`). Let f be any number. Given at most f far users, a bin of
    far users alone beats the fuller one only if the noise overtakes ceil((n-f)/2) - f users, or
    n - 2f and twice as often with two windows each, and no guess needs noise below the threshold.
    More than f far users have a Chernoff bound; leaving out the one user whose value is given,
    n - 1 and f - 1 remain. The bin of the best score holds a near user, or it is bad: then it is
    off by at most |X_i - mu| + half a bin for each of its users i, all far, so that a sum over far
    users bounds it.
    The least over several f is taken for each of the two.

    Args:
        coarse: The coarse step.
        moments: Public bounds.

    Example:
        >>> from fractions import Fraction
        >>> from shoal.means.estimators.coarse import Coarse
        >>> coarse = Coarse.fit(2000, 3, Fraction(1, 2), Fraction(1, 10**6))
        >>> failure_bounds(coarse, (clipping.Moment(8, 1.8),)).fail < 1e-40
        True
    """
    n, near = coarse.users, coarse.near
    chance = clipping.tail(moments, near)
    far_squares, fail = float(n), 1.0
    for share in _SHARES:
        far = max(1, math.floor(share * n))
        many = binomial_tail(n - 1, far, chance)
        wins = coarse.windows * coarse.overtakes(coarse.together(n - far) - far)
        far_squares = min(far_squares, n * (wins + many))
        low = coarse.threshold - coarse.per_user * coarse.together(n - far)
        # Z < h - m N is Z >= m N - h + 1 by symmetry.
        fail = min(fail, coarse.at_least(1 - low) + many)
    return FailureBounds(near, far_squares, fail)


@dataclass(frozen=True)
class Setting:
    """What the certificate of a symmetric mean depends on, but for c and the noise.

    Attributes:
        coarse: The first step.
        moments: Public bounds.
        squares: Q, the sum of w^2/W^2 in the final step.
        reuse: Whether the users of the first step are in the final one.
        chance: With which values are sampled if the first fails.
        farthest: The mean is at most this, in absolute value.
        middle: The second step, if there is one.
    """

    coarse: Coarse
    moments: Moments
    squares: float
    reuse: bool
    chance: float
    farthest: float
    middle: Middle | None = None

    @cached_property
    def sd(self) -> float:
        """Largest standard deviation of a value."""
        return clipping.deviation(self.moments)

    @cached_property
    def failure_bounds(self) -> FailureBounds:
        """Of the first step."""
        return failure_bounds(self.coarse, self.moments)

    @cached_property
    def first(self) -> float:
        """R = a + half a bin: a good first guess is in a bin with a near user."""
        return self.failure_bounds.near + self.coarse.width / 2

    @cached_property
    def offs(self) -> tuple[Off, ...]:
        """How far the last step's middle is off: several bounds, each with its rare cases."""
        if self.middle is None:
            return (Off(self.first),)
        return middle_offs(self.coarse, self.middle, self.moments)

    @cached_property
    def finest(self) -> float:
        """The least of the bounds on how far the last step's middle is off."""
        return min((off.most for off in self.offs), default=math.inf)

    @property
    def least(self) -> float:
        """Below `variance` for every width: values as they are, bad and missing guesses."""
        return self.squares * self.sd**2 + self._bad(0.0) + self._fail

    def variance(self, c: float, noise: float, tick: float) -> float:
        """Largest variance of the estimate, in the value's unit squared.

        Let the guess be off by at most r, t = c - r, and sd the standard deviation.

        - A good guess, fresh users: given the guess, off by e, clipped values have variance sd^2
          at most and bias `clipping.symmetric_bias`: Q sd^2 + bias^2.
        - A good guess, users reused: clip(X) = X - R with |R| <= (|X - mu| - t)+ for every good
          guess; with Y = |X - mu|, the root is at most
          sqrt(Q) sd + sqrt((E(Y - t)+)^2 + Q E(Y - t)+^2) (Minkowski).
        - Rounding to ticks adds half a tick to either root; noise adds its variance.
        - A rare case of the middle step after a good first guess: `Off.rare`.
        - A bad guess, off by e, gives an error of |e| + c at most; |e| is |X_i - mu| + half a bin
        for a
          user i of its bin: `FailureBounds.far_squares` bounds what their squares add up to. A
          middle step adds at most its own half-width, a tick and its noise.
        - No guess: the sampled mean has at most sd^2 + Q (sd^2 + mu^2)/chance in the mean of
          squares, times the probability to fail given any one user's value.

        Args:
            c: Half-width of the final step, in the value's unit; infinite variance up to r.
            noise: Variance of its noise.
            tick: Its tick.
        """
        good = min(
            ((self._good(c, off.most) + tick / 2) ** 2 + off.rare(c + tick) for off in self.offs),
            default=math.inf,
        )
        return good + noise + self._bad(c + tick) + self._fail

    def _bad(self, c: float) -> float:
        """E[error^2; a bad first guess]."""
        return self.failure_bounds.far_squares * (self._farthest_guess + c) ** 2

    @cached_property
    def _farthest_guess(self) -> float:
        """How far off a guess from a bad first one is, besides `FailureBounds.far_squares`."""
        further = 0.0
        if self.middle is not None:
            at = self.coarse.exponent
            further = self.middle.width(at) + self.middle.tick(at)
            further += math.sqrt(2) * self.middle.scale(at)
        return self.sd + self.coarse.width / 2 + further

    @cached_property
    def _fail(self) -> float:
        """E[error^2; no guess]."""
        missing = self.sd**2 + self.squares * (self.sd**2 + self.farthest**2) / self.chance
        return self.failure_bounds.fail * missing

    def _good(self, c: float, off: float) -> float:
        """Root of the variance, rounding and noise aside, if the guess is off by at most `off`."""
        if c <= off:
            return math.inf
        t = c - off
        if self.reuse:
            cut = clipping.excess(self.moments, t) ** 2
            cut += self.squares * clipping.excess_square(self.moments, t)
            return math.sqrt(self.squares) * self.sd + math.sqrt(cut)
        bias = clipping.symmetric_bias(self.moments, off, c)
        return math.hypot(math.sqrt(self.squares) * self.sd, bias)
