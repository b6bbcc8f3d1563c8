"""How far a middle guess may be off, from public facts."""

import math
from dataclasses import dataclass
from functools import lru_cache

from shoal.means.estimators.binomial_tail import binomial_tail
from shoal.means.estimators.coarse import Coarse
from shoal.means.estimators.middle import Middle
from shoal.theory import clipping
from shoal.theory.clipping import Moments

# Logarithms of the chances that are tried.
_LOGS = (10.0, 13.0, 16.0, 19.0, 23.0, 30.0, 40.0)


@dataclass(frozen=True)
class Off:
    """A bound on how far a guess is off, and what it costs when it does not hold.

    Attributes:
        most: r, in the value's unit: most that the guess is off, but for rare cases.
        chance: Bounds the chance of each of three rare cases: two of the values, one of the noise.
        start: Most that the guess is off in every case, besides noise.
        noise: Where the rare case of the noise begins, in the value's unit.
        scale: Of the noise, in the value's unit.
    """

    most: float
    chance: float = 0.0
    start: float = 0.0
    noise: float = 0.0
    scale: float = 0.0

    def rare(self, c: float) -> float:
        """Bounds E[(error of the last step)^2; a rare case] for its half-width c.

        The error is at most start + |Z| + c. Rare values do not depend on Z, and E Z^2 <= 2 scale^2
        (Minkowski). P[|Z| >= z + u] <= chance exp(-u/scale), so |Z| - z counts with moments of at
        most scale and 2 scale^2.
        """
        if self.chance == 0:
            return 0.0
        most = self.start + c
        values = 2 * (most + math.sqrt(2) * self.scale) ** 2
        noise = (most + self.noise + self.scale) ** 2 + self.scale**2
        return self.chance * (values + noise)


@lru_cache(maxsize=4096)
def middle_offs(coarse: Coarse, middle: Middle, moments: Moments) -> tuple[Off, ...]:
    """Bounds on how far a middle guess is off given a good first one, for several chances.

    Let the first guess g be off by at most R, t = c' - R, V_i = X_i - mu clipped to +-t, and F of
    the n users farther than t from mu. Clipping about g keeps [mu - t, mu + t] and reaches at most
    2R beyond, so the sum of values clipped about g differs by at most 2R F from that of the V_i,
    whatever g. Over all g at once, then, the next guess is off by at most
    |mean V| + 2R F/n + |Z| + a tick (half for rounding values, half for the guess). By symmetry
    E V = 0: Bernstein bounds the mean by variance and t, Chernoff the binomial F, and Z is
    discrete Laplace noise. Each of the three has the chance exp(-x) to be beyond its bound.

    Args:
        coarse: The first step.
        middle: The second.
        moments: Public bounds.

    Example:
        >>> from fractions import Fraction
        >>> from shoal.means.estimators.coarse import Coarse
        >>> from shoal.means.estimators.middle import Middle
        >>> coarse = Coarse.fit(2000, 3, Fraction(1, 2), Fraction(1, 10**6))
        >>> middle = Middle.fit(2000, 3, 12.0, Fraction(1, 4))
        >>> found = middle_offs(coarse, middle, (clipping.Moment(8, 1.8),))
        >>> round(found[0].most, 2), round(found[0].chance, 6)
        (0.82, 4.5e-05)
    """
    first, c = coarse.near + coarse.width / 2, middle.width(coarse.exponent)
    tick, scale = middle.tick(coarse.exponent), middle.scale(coarse.exponent)
    if c <= first:
        return ()
    t, sd, n = c - first, clipping.deviation(moments), coarse.users
    tail = clipping.tail(moments, t)
    found = []
    for log in _LOGS:
        both = log + math.log(2)
        mean = _bernstein(n, sd, t, both)
        far = 2 * first * _most_far(n, tail, log) / n
        noise = scale * both
        most = mean + far + noise + tick
        found.append(Off(most, math.exp(-log), first + c + tick, noise, scale))
    return tuple(found)


def _bernstein(n: int, sd: float, t: float, log: float) -> float:
    """Bound on |mean V| but for 2 exp(-log): v with n v^2 = 2 log (sd^2 + t v/3)."""
    part = 2 * log * t / 3
    return (part + math.sqrt(part**2 + 8 * n * log * sd**2)) / (2 * n)


def _most_far(n: int, chance: float, log: float) -> int:
    """The least f with P[F > f] <= exp(-log) by Chernoff's bound, for F binomial."""
    few, many, rare = -1, n, math.exp(-log)
    while many - few > 1:
        middle = (few + many) // 2
        if binomial_tail(n, middle + 1, chance) <= rare:
            many = middle
        else:
            few = middle
    return many
