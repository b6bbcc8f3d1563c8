"""Released numbers of clusters, again: what one outcome moves, and what the numbers tell.

Nothing is imported from other packages, as in `verify`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.documents import Document
from shoal.verification.strict import integers, real, rounded_up, whole
from shoal.verification.trials.facts import Facts

NAMES = {"noisy_horvitz_thompson", "noisy_histogram"}
HISTOGRAM = {"sizes", "arms", "levels", "weight", "lattice_bits"}
PARTS = {"noisy_histogram": HISTOGRAM, "noisy_horvitz_thompson": HISTOGRAM | {"spread_weight"}}
RELEASED = {"kind", "numbers"}
_MOST_BITS, _LARGEST = 60, 2**61


@dataclass(frozen=True, eq=False)
class Contrast:
    """An arm against the control: differences of clusters and what is known of their variances.

    Attributes:
        arm: From 1.
        difference: Of each cluster, in the outcome's unit.
        noise: Variance of the differences by the mechanism.
        fourth: Fourth cumulants of that noise.
        sampling: Told sampling variance of the clusters that are not pooled; NaN if nothing is.
        loose: Variance of that by the mechanism.
    """

    arm: int
    difference: NDArray[np.float64]
    noise: NDArray[np.float64]
    fourth: NDArray[np.float64]
    sampling: float
    loose: float


@dataclass(frozen=True, eq=False)
class Aggregate:
    """What an aggregate mechanism released.

    Attributes:
        facts: Levels and groups.
        weight: Steps of the outcome's move across the width (Horvitz-Thompson) or of a count.
        spread: Steps that the sampling variance moves by at most; 0 if it is not released.
        bits: Noise has the scale of 2^bits steps.
        numbers: What was released.
        same: Whether the mechanism speaks of the trial's groups and levels.
    """

    facts: Facts
    weight: int
    spread: int
    bits: int
    numbers: list[int]
    same: bool

    @classmethod
    def of(cls, facts: Facts, mechanism: Document, released: Document) -> Aggregate:
        """Read and check; ValueError, KeyError or TypeError if something is wrong."""
        told = mechanism["aggregate"]
        histogram = facts.mechanism == "noisy_histogram"
        if released["kind"] != "clusters":
            raise ValueError
        sizes = integers(told["sizes"], "sizes", facts.sizes.size)
        levels = [real(level) for level in told["levels"]]
        arms = whole(told["arms"], 1, facts.sizes.size)
        same = arms == facts.sizes.shape[1] and bool((sizes == facts.sizes.ravel()).all())
        return cls(
            facts=facts,
            weight=whole(told["weight"], 1, _LARGEST),
            spread=0 if histogram else whole(told["spread_weight"], 0, _LARGEST),
            bits=whole(told["lattice_bits"], 1, _MOST_BITS),
            numbers=[whole(each, -(2**63), 2**63) for each in released["numbers"]],
            same=same and levels == facts.levels.tolist(),
        )

    @property
    def step_variance(self) -> float:
        """Of discrete Laplace noise, in squared steps: 2 r/(1 - r)^2 at r = exp(-2^-bits)."""
        return 2 * math.exp(-(2.0**-self.bits)) / math.expm1(-(2.0**-self.bits)) ** 2

    @property
    def count(self) -> int:
        """How many numbers are released."""
        raise NotImplementedError

    @property
    def fewest(self) -> int:
        """How many there are at least, without looking at any group."""
        raise NotImplementedError

    @property
    def moved(self) -> int:
        """Most steps that one outcome moves all numbers by, together."""
        raise NotImplementedError

    def contrasts(self) -> list[Contrast]:
        """Every arm against the control."""
        raise NotImplementedError

    def loss_holds(self, stated: Fraction) -> tuple[bool, str]:
        """Whether the stated loss of one outcome is the true one, rounded up."""
        true = Fraction(self.moved, 2**self.bits)
        found = f"{float(true):.6g}, {self.moved} steps at a scale of 2^{self.bits}"
        return rounded_up(stated, true), found

    def parameters_hold(self) -> tuple[bool, str]:
        """Whether the mechanism is about this trial, without a delta, and its noise fits."""
        reach = 2 * (self.weight + self.spread) * (self.facts.units + 1)
        holds = self.same and self.facts.delta == 0 and reach <= 2 * _LARGEST
        return holds, f"{self.facts.mechanism}, {self.weight} steps"

    def numbers_hold(self) -> tuple[bool, str]:
        """Whether there are as many numbers as the mechanism releases."""
        found = len(self.numbers)
        return found == self.count, f"{found} numbers of {self.facts.sizes.shape[0]} clusters"


class Histogram(Aggregate):
    """Noisy counts of every level of every group."""

    @property
    def count(self) -> int:
        """One number a level and group."""
        return self.facts.sizes.size * len(self.facts.levels)

    @property
    def fewest(self) -> int:
        """The same."""
        return self.count

    @property
    def moved(self) -> int:
        """One bin goes down by a count and one up."""
        return 2 * self.weight

    def contrasts(self) -> list[Contrast]:
        """Every arm against the control, from unbiased means and sample variances of groups."""
        n, weight = self.facts.sizes.astype(np.float64), self.facts.weight[:, None]
        mean, noise, s2, loose = self._moments()
        used = (n > 1) & ~joined(self.facts.sizes)[:, None]
        known = np.where(used, weight**2 * s2 / n, 0.0)
        unsure = np.where(used, weight**4 * loose / n**2, 0.0)
        fourth = self._shape * noise**2
        return [
            Contrast(
                arm,
                mean[:, arm] - mean[:, 0],
                noise[:, arm] + noise[:, 0],
                fourth[:, arm] + fourth[:, 0],
                float((known[:, arm] + known[:, 0]).sum()),
                float((unsure[:, arm] + unsure[:, 0]).sum()),
            )
            for arm in range(1, n.shape[1])
        ]

    @property
    def _away(self) -> NDArray[np.float64]:
        """Levels from their plain mean, from which noise counts least."""
        y = self.facts.levels - self.facts.levels[0]
        return np.asarray(y - y.mean())

    @property
    def _shape(self) -> float:
        """Fourth cumulant of a mean's noise over its squared variance, 3 sum d^4/(sum d^2)^2."""
        away = self._away
        return 3 * float((away**4).sum()) / float((away**2).sum()) ** 2

    def _moments(self) -> tuple[NDArray[np.float64], ...]:
        """Mean, its noise variance, sample variance and that one's noise variance of groups.

        With shares h of noise variance v each, from the plain mean d of levels: m = sum d h, and
        n/(n - 1) (mean d^2 + sum (d^2 - mean d^2) h - m^2 + V), V = v sum d^2, has the expectation
        s2; its noise variance is estimated by that of its linear part at m, with 2 V^2 and the
        fourth cumulant for the squared noise of m.
        """
        n, away = self.facts.sizes.astype(np.float64), self._away
        h = np.array(self.numbers, dtype=np.float64).reshape(*n.shape, len(away))
        h = h / (self.weight * n[:, :, None])
        v = self.step_variance / (self.weight * n) ** 2
        m, noise = h @ away, v * float((away**2).sum())
        bent = away**2 - (away**2).mean()
        raised = np.divide(n, n - 1, out=np.full(n.shape, np.nan), where=n > 1)
        s2 = raised * ((away**2).mean() + h @ bent - m**2 + noise)
        apart = (away - m[:, :, None]) ** 2
        linear = v * len(away) * apart.var(axis=2)
        loose = raised**2 * (linear + (2 + self._shape) * noise**2)
        return m, noise, s2, loose


def joined(sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Clusters with a group of one unit, of which a lone one takes the nearest of the others along.

    Nearest in units, the first of equals; a single cluster in all stays apart.
    """
    alone: NDArray[np.bool_] = np.asarray(sizes.min(axis=1) == 1)
    if len(alone) == 1:
        return np.array([False])
    if int(alone.sum()) == 1:
        units = sizes.sum(axis=1)
        far = np.abs(units - units[alone]) + np.where(alone, int(units.sum()), 0)
        alone[int(np.argmin(far))] = True
    return alone
