"""Noisy Horvitz-Thompson, again: which numbers there are, what an outcome moves, what they tell.

Nothing is imported from other packages, as in `verify`.
"""

import math
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.verification.trials.aggregates import Aggregate, Contrast, joined

_PAIR = 2
# What sums of floating-point numbers may be off by, and far more.
_NEAR = 1e-12


class HorvitzThompson(Aggregate):
    """Noisy differences, or means, of clusters, and noisy sampling variances."""

    @cached_property
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
        direct = (low >= 1) & _quieter(f, treated, control)
        both = np.hstack([np.zeros_like(control)[:, None], f])
        return np.asarray(np.where(direct[:, None], both, sizes))

    @property
    def count(self) -> int:
        """One number a difference or mean, and those of the sampling variance."""
        return int((self.factor > 0).sum()) + self._spreads

    @property
    def fewest(self) -> int:
        """A difference or mean of each treated group."""
        clusters, arms = self.facts.sizes.shape
        return int(clusters * (arms - 1))

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

    @cached_property
    def _shares(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """n_c and n_{c,a} without common factors; 0 and 1 where no number has the variance.

        Replacing an outcome moves (n_c/n)^2 s2/n_{c,a} by the square of their ratio.
        """
        sizes = self.facts.sizes
        units = np.broadcast_to(sizes.sum(axis=1, keepdims=True), sizes.shape)
        common = np.gcd(units, sizes)
        return np.where(self._used, units // common, 0), np.where(self._used, sizes // common, 1)

    @cached_property
    def _most(self) -> list[Fraction]:
        """The largest share of the groups of each number; 1 if there is none."""
        units, sizes = self._shares
        if self._spreads == 1:
            return [_largest(units.ravel(), sizes.ravel())]
        return [_largest(units[:, a], sizes[:, a]) for a in range(self._spreads)]

    def _spread_moved(self) -> NDArray[Any]:
        """Steps that an outcome of each group moves its number by at most."""
        if not self._spreads:
            return np.zeros(self.facts.sizes.shape, dtype=object)
        up, down = (part.astype(object) for part in self._shares)
        most_up = np.array([each.numerator for each in self._most], dtype=object)
        most_down = np.array([each.denominator for each in self._most], dtype=object)
        return np.asarray(-(-self.spread * (up * most_down) ** 2 // (down * most_up) ** 2))

    def _told(self, arm: int) -> tuple[float, float]:
        """The sampling variance of an arm's contrast and its variance by the mechanism."""
        if not self._spreads:
            return math.nan, 0.0
        mine = [0] if self._spreads == 1 else [0, arm]
        numbers, most = self.numbers[len(self.numbers) - self._spreads :], self._most
        unit = [(self.facts.width * float(most[at] / self.facts.units)) ** 2 for at in mine]
        told = sum(each / self.spread * numbers[at] for each, at in zip(unit, mine, strict=True))
        return told, sum((each / self.spread) ** 2 * self.step_variance for each in unit)


def _quieter(
    f: NDArray[np.int64], treated: NDArray[np.int64], control: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether differences have less noise than means, sum 1/f^2 < sum (1/n_a^2 + 1/n_0^2).

    Exactly: what floating-point numbers cannot tell apart is compared in whole numbers, once for
    all rows with the same groups in some order.
    """
    one = (1.0 / f.astype(np.float64) ** 2).sum(axis=1)
    of_control = treated.shape[1] / control.astype(np.float64) ** 2
    other = (1.0 / treated.astype(np.float64) ** 2).sum(axis=1) + of_control
    less = one < other
    near = np.flatnonzero(np.abs(one - other) <= _NEAR * other)
    rows = np.hstack([control[near, None], np.sort(treated[near]), np.sort(f[near])])
    different, place = np.unique(rows, axis=0, return_inverse=True)
    exact = [_quieter_exactly(row, treated.shape[1]) for row in different.tolist()]
    less[near] = np.array(exact, dtype=np.bool_)[place.ravel()]
    return np.asarray(less)


def _quieter_exactly(row: list[int], arms: int) -> bool:
    """The same of one control, treated groups and factors."""
    common = math.lcm(*row) ** 2
    control, *squares = (common // number**2 for number in row)
    return sum(squares[arms:]) < sum(squares[:arms]) + arms * control


def _largest(up: NDArray[np.int64], down: NDArray[np.int64]) -> Fraction:
    """The largest of fractions in lowest terms, exactly; 1 if all are 0."""
    ratio = up / down
    near = ratio >= (1 - _NEAR) * ratio.max()
    pairs = np.unique(np.stack([up[near], down[near]], axis=1), axis=0)
    return max(Fraction(*pair) for pair in pairs.tolist()) or Fraction(1)
