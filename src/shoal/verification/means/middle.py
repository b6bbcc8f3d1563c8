"""How far a second, finer guess at a centre is off: concentration, with exact binomial tails."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.verification.means.coarse import binomial_tail
from shoal.verification.means.facts import Facts

# Each rare case has the chance exp(-x) for one of these x.
_LOGS = np.arange(8, 60.25, 0.25)


@dataclass(frozen=True)
class Middle:
    """A noisy mean of the first users, clipped around the first guess.

    Attributes:
        users: How many.
        half: Half the width to which they are clipped, in the value's unit.
        tick: To which they and the guess are rounded.
        scale: Of the noise on the mean, in the value's unit.
    """

    users: int
    half: float
    tick: float
    scale: float

    @classmethod
    def of(cls, facts: Facts) -> Middle:
        """From parameters that hold."""
        numbers = facts.parameters
        tick = math.ldexp(1.0, numbers["coarse_exponent"] - numbers["middle_shift"])
        steps = math.ldexp(1.0, numbers["middle_bits"]) / numbers["middle_per_unit"]
        users = numbers["coarse_users"]
        return cls(users, tick * numbers["middle_half"], tick, steps * tick / users)

    @property
    def most(self) -> float:
        """Root of the mean square of what it moves the first guess by, at most."""
        return self.half + self.tick + math.sqrt(2) * self.scale

    def offs(
        self, first: float, deviation: float, far_chance: float, last: float
    ) -> list[tuple[float, float]]:
        """Pairs: how far the guess is off but for rare cases, and what these add to a square error.

        Values within t = half - first of the mean are never clipped; the others are wrong by twice
        `first` at most, if there are f of n, by 2 first f/n. The mean of values clipped at t is
        within v but for a chance of 2 exp(-n v^2/(2 (sd^2 + t v/3))) (Bernstein).

        Args:
            first: Most that the first guess is off.
            deviation: Of a value, at most.
            far_chance: Most chance of a value farther than t.
            last: Half-width of the last step, a tick included.
        """
        inside = self.half - first
        if inside <= 0:
            return [(math.inf, 0.0)]
        both = _LOGS + math.log(2)
        linear = both * inside / 3
        mean = (linear + np.sqrt(linear**2 + 2 * self.users * both * deviation**2)) / self.users
        far = _most_far(self.users, far_chance) / self.users
        noise = self.scale * both
        off = mean + 2 * first * far + noise + self.tick
        start = first + self.half + self.tick + last
        # Two rare cases of the values, one of the noise, which then goes on as from the start.
        values = 2 * (start + math.sqrt(2) * self.scale) ** 2
        rare = np.exp(-_LOGS) * (values + (start + noise + self.scale) ** 2 + self.scale**2)
        return list(zip(off.tolist(), rare.tolist(), strict=True))


def _most_far(n: int, chance: float) -> NDArray[np.int64]:
    """The least f with P[F > f] <= exp(-x) for each x, F binomial."""
    rare = np.exp(-_LOGS)
    few, many = np.full(rare.shape, -1), np.full(rare.shape, n)
    while bool((many - few > 1).any()):
        middle = (few + many) // 2
        enough = binomial_tail(n, middle + 1, chance) <= rare
        many, few = np.where(enough, middle, many), np.where(enough, few, middle)
    return np.asarray(many)
