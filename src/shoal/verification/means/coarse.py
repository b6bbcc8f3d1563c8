"""How often a coarse guess is bad or missing, with exact binomial tails."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.verification.means.facts import Facts

_PARTS = 600
_THIRD = _PARTS // 3


@dataclass(frozen=True)
class Coarse:
    """The best of the noisy counts of bins, if it is above a threshold.

    Attributes:
        users: How many.
        bin: s, in the value's unit.
        windows: Which share a user: 1 for bins, 2 for windows of twice their width, which overlap.
        worth: Steps that a user is worth.
        scale: Of the noise, in steps.
        threshold: In steps.
    """

    users: int
    bin: float
    windows: int
    worth: int
    scale: float
    threshold: int

    @classmethod
    def of(cls, facts: Facts) -> Coarse:
        """From parameters that hold."""
        numbers = facts.parameters
        return cls(
            numbers["coarse_users"],
            math.ldexp(1.0, numbers["coarse_exponent"]),
            numbers["coarse_windows"],
            numbers["coarse_per_user"],
            math.ldexp(1.0, numbers["coarse_bits"]),
            numbers["coarse_threshold"],
        )

    @property
    def sensitivity(self) -> float:
        """Most that a guess is from a user of its bin or window."""
        return self.bin * self.windows / 2

    @property
    def off(self) -> float:
        """Most that a guess is off whose bin has a user within s/2 of the mean."""
        return self.sensitivity + self.bin / 2

    def failure_bounds(self, far_chance: float) -> tuple[float, float]:
        """Bounds of bad guesses, as a sum over far users, and of no guess.

        Users within s/2 of the mean are near and fill two bins at most, or share a window. For any
        f: if at most f are far, the fuller bin of near ones has half of the others, rounded up (the
        window has all), and a bin without a near user at most f. It wins if the difference of two
        noises is as large; nothing wins if the fuller bin's noise leaves it below the threshold.
        More than f are far, given that one is (or given any one value), if f of the others are.

        Args:
            far_chance: Most probability that a user is far.
        """
        far = _thresholds(self.users)
        many = binomial_tail(self.users - 1, far, far_chance)
        near = self.users - far
        half = near if self.windows > 1 else (near + 1) // 2
        lead = np.where(half > far, half - far, 0)
        wins = np.where(lead > 0, self._difference(self.worth * lead.astype(np.float64)), 1.0)
        short = float(self.threshold) - self.worth * half.astype(np.float64)
        # Noise is below `short` whole steps: at least 1 - short on the other side.
        low = self._tail(1 - short)
        far_squares = min(1.0, float((self.windows * wins + many).min()))
        return self.users * far_squares, min(1.0, float((low + many).min()))

    def _tail(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        """P[Z >= k]."""
        q = math.exp(-1 / self.scale)
        up = np.exp(-np.maximum(steps, 0) / self.scale) / (1 + q)
        down = 1 - np.exp(-np.maximum(1 - steps, 0) / self.scale) / (1 + q)
        return np.asarray(np.where(steps >= 0, up, down))

    def _difference(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        """P[Z - Z' >= d], d > 0: the sum of ((1-q)/(1+q))^2 q^k (k + (1+q^2)/(1-q^2)) from d on."""
        q, gap = math.exp(-1 / self.scale), -math.expm1(-1 / self.scale)
        terms = gap * steps + (1 + q + 2 * q * q) / (1 + q)
        return np.asarray(np.exp(-steps / self.scale) * terms / (1 + q) ** 2)


def binomial_tail(n: int, least: NDArray[np.int64], chance: float) -> NDArray[np.float64]:
    """P[B >= k] for B binomial, exactly: an incomplete beta function; 0 for k > n.

    Example:
        >>> binomial_tail(2, np.array([1, 2, 3]), 0.5).tolist()
        [0.75, 0.25, 0.0]
    """
    from scipy.special import betainc

    if chance >= 1:
        return np.where(least <= n, 1.0, 0.0)
    inside = np.clip(least, 1, max(n, 1)).astype(np.float64)
    found = betainc(inside, max(n, 1) + 1 - inside, chance)
    return np.asarray(np.where(least > n, 0.0, np.where(least <= 0, 1.0, found)))


def _thresholds(users: int) -> NDArray[np.int64]:
    """Numbers of far users to try: parts of all, at least 1."""
    parts = users * np.arange(1, _THIRD + 1, dtype=np.int64) // _PARTS
    return np.unique(np.maximum(np.concatenate([parts, parts - 1]), 1))
