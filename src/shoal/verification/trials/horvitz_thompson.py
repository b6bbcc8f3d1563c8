"""Noisy Horvitz-Thompson, again: which numbers there are, what an outcome moves, what they tell.

Nothing is imported from other packages, as in `verify`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.verification.trials.aggregates import Aggregate, Contrast, joined

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PAIR = 2


class HorvitzThompson(Aggregate):
    """Noisy differences, or means, of clusters, and noisy sampling variances."""

    @property
    def factor(self) -> NDArray[np.int64]:
        """Units whose share in the width makes a number's step, clusters x arms; 0 for none.

        A difference of an arm has f = min(n_a, theta), the largest theta with sum f <= n_0 that
        the control's outcomes can afford; where means have less noise each has its own n.
        """
        sizes = self.facts.sizes
        control, treated = sizes[:, 0], sizes[:, 1:]
        low, high = np.zeros_like(control), treated.max(axis=1)
        for _ in range(64):
            middle = low + (high - low + 1) // 2
            fits = np.minimum(treated, middle[:, None]).sum(axis=1) <= control
            low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
        f = np.minimum(treated, np.maximum(low, 1)[:, None])
        means = _inverse_squares(treated) + treated.shape[1] * _inverse_squares(control[:, None])
        direct = (low >= 1) & (_inverse_squares(f) < means)
        both = np.hstack([np.zeros_like(control)[:, None], f])
        return np.asarray(np.where(direct[:, None], both, sizes))

    @property
    def count(self) -> int:
        """One number a difference or mean, and those of the sampling variance."""
        return int((self.factor > 0).sum()) + self._spreads

    @property
    def moved(self) -> int:
        """Most steps over all groups: a mean moves by width/n, a rounded number by whole steps."""
        n, f = self.facts.sizes.astype(object), self.factor.astype(object)
        direct = f[:, 0] == 0
        own = -(-self.weight * f // n)
        shared = (-(-self.weight * f[:, 1:] // n[:, :1])).sum(axis=1)
        own[:, 0] = np.where(direct, shared, self.weight)
        return int((own + self._spread_moved()).max())

    def contrasts(self) -> list[Contrast]:
        """Every arm against the control, from differences raised by the width, or from means."""
        width, f = self.facts.width, self.factor
        step = np.divide(width, self.weight * f.astype(np.float64), where=f > 0, out=f * 0.0)
        place = np.zeros(f.shape)
        place[f > 0] = self.numbers[: int((f > 0).sum())]
        mean, noise = place * step, self.step_variance * step**2
        base = np.where(f[:, 0] == 0, width, mean[:, 0])
        return [
            Contrast(
                arm,
                mean[:, arm] - base,
                noise[:, arm] + noise[:, 0],
                3 * (noise[:, arm] ** 2 + noise[:, 0] ** 2),
                *self._told(arm),
            )
            for arm in range(1, f.shape[1])
        ]

    @property
    def _spreads(self) -> int:
        """Numbers of the sampling variance: one for two arms, as each outcome is in one term."""
        arms = self.facts.sizes.shape[1]
        return 0 if not self.spread else 1 if arms == _PAIR else arms

    @property
    def _used(self) -> NDArray[np.bool_]:
        """Groups whose variance is in a number."""
        sizes = self.facts.sizes
        return np.asarray((sizes > 1) & ~joined(sizes)[:, None])

    def _shares(self) -> NDArray[Any]:
        """n_c/n_{c,a}, exact: replacing an outcome moves (n_c/n)^2 s2/n_{c,a} by its square."""
        sizes = self.facts.sizes.astype(object)
        found: NDArray[Any] = Fraction(1) * sizes.sum(axis=1, keepdims=True) / sizes
        return np.asarray(found * self._used.astype(object))

    def _most(self) -> list[Fraction]:
        """The largest share of the groups of each number; 1 if there is none."""
        shares = self._shares()
        columns = [shares] if self._spreads == 1 else [shares[:, [a]] for a in range(self._spreads)]
        return [Fraction(column.max()) or Fraction(1) for column in columns]

    def _spread_moved(self) -> NDArray[Any]:
        """Steps that an outcome of each group moves its number by at most."""
        if not self._spreads:
            return np.zeros(self.facts.sizes.shape, dtype=object)
        ratio = self.spread * (self._shares() / np.array(self._most(), dtype=object)) ** 2
        return np.asarray(np.frompyfunc(math.ceil, 1, 1)(ratio))

    def _told(self, arm: int) -> tuple[float, float]:
        """The sampling variance of an arm's contrast and its variance by the mechanism."""
        if not self._spreads:
            return math.nan, 0.0
        mine = [0] if self._spreads == 1 else [0, arm]
        numbers, most = self.numbers[len(self.numbers) - self._spreads :], self._most()
        unit = [(self.facts.width * float(most[at] / self.facts.units)) ** 2 for at in mine]
        told = sum(each / self.spread * numbers[at] for each, at in zip(unit, mine, strict=True))
        return told, sum((each / self.spread) ** 2 * self.step_variance for each in unit)


def _inverse_squares(sizes: NDArray[np.int64]) -> NDArray[Any]:
    """Exact sums of 1/n^2 of rows."""
    found: NDArray[Any] = (Fraction(1) / sizes.astype(object) ** 2).sum(axis=1)
    return found
