"""Released responses, again: priors, counts, and the means and variances they give.

Nothing is imported from other packages, as in `verify`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.documents import Document
from shoal.verification.strict import integers, whole
from shoal.verification.trials.facts import Facts
from shoal.verification.trials.privacy import ONE, units_hold

# Whether all clusters share the priors of an arm.
POOLED = {"cluster_dp": False, "cluster_free": True, "uniform_prior": True}
PARAMETERS = {"kept", "floor", "replaced", "weight", "lattice_bits"}
RELEASED = {"kind", "prior", "counts", "responses"}
_MOST_BITS, _LARGEST = 60, 2**61
_STEEPEST = 64


@dataclass(frozen=True, eq=False)
class Responses:
    """What a unit-level mechanism released.

    Attributes:
        facts: Levels and groups.
        kept: Positions of the levels in use.
        floor: gamma in parts of 2^-32.
        replaced: lambda in parts of 2^-32.
        weight: Steps a count of the histogram, 0 for none.
        bits: Noise has the scale of 2^bits steps.
        pooled: Whether all clusters share the priors of an arm.
        prior: Parts of 2^-32, clusters (or 1) x arms x levels in use.
        counts: Responses, clusters x arms x levels in use.
        codes: Response of every named unit, or None.
    """

    facts: Facts
    kept: list[int]
    floor: int
    replaced: int
    weight: int
    bits: int
    pooled: bool
    prior: NDArray[np.int64]
    counts: NDArray[np.int64]
    codes: NDArray[np.int64] | None

    @classmethod
    def of(cls, facts: Facts, mechanism: Document, released: Document) -> Responses:
        """Read and check; ValueError, KeyError or TypeError if something is wrong."""
        told, pooled = mechanism["parameters"], mechanism["pooled"]
        if type(pooled) is not bool or released["kind"] != "units":
            raise ValueError
        kept = [whole(at, 0, len(facts.levels) - 1) for at in told["kept"]]
        clusters, arms = facts.sizes.shape
        rows = arms * (1 if pooled else clusters)
        given = released["responses"]
        if (given is not None) != facts.named:
            raise ValueError
        return cls(
            facts=facts,
            kept=kept,
            floor=whole(told["floor"], 1, ONE),
            replaced=whole(told["replaced"], 1, ONE - 1),
            weight=whole(told["weight"], 0, _LARGEST),
            bits=whole(told["lattice_bits"], 1, _MOST_BITS),
            pooled=pooled,
            prior=integers(released["prior"], "prior", rows * len(kept)).reshape(
                -1, arms, len(kept)
            ),
            counts=integers(released["counts"], "counts", facts.sizes.size * len(kept)).reshape(
                clusters, arms, len(kept)
            ),
            codes=None if given is None else integers(given, "responses", facts.units),
        )

    @property
    def stretch(self) -> float:
        """How much further debiased outcomes differ than outcomes do."""
        return ONE / (ONE - self.replaced)

    def loss_holds(self, stated: Fraction) -> tuple[bool, str]:
        """Whether the stated loss of one outcome is the true one."""
        return units_hold(
            stated,
            self.facts.delta,
            replaced=self.replaced,
            floor=self.floor,
            weight=self.weight,
            bits=self.bits,
        )

    def parameters_hold(self) -> tuple[bool, str]:
        """Whether parameters are in their ranges and fit the mechanism's name."""
        levels, name = len(self.kept), self.facts.mechanism
        most = max(levels, 2)
        holds = (
            levels >= most
            and self.kept[0] == 0
            and self.kept[-1] == len(self.facts.levels) - 1
            and all(low < high for low, high in zip(self.kept, self.kept[1:], strict=False))
            and self.floor <= ONE // most
            and (self.weight > 0 or self.floor == ONE // most)
            and (self.weight == 0 or name != "uniform_prior")
            and self.weight <= _STEEPEST << self.bits
            and self.weight * self.facts.units <= _LARGEST
            and POOLED[name] == self.pooled
        )
        share = self.replaced / ONE
        return holds, f"{name}, {levels} levels, replaces {share:.6g}, floor {self.floor / ONE:.6g}"

    def priors_hold(self) -> tuple[bool, str]:
        """Whether every prior sums to 1 and is at least the floor; uniform without a histogram."""
        total = self.prior.astype(object).sum(axis=2)
        holds = bool((total == ONE).all()) and int(self.prior.min()) >= self.floor
        if not self.weight:
            # What 2^32 leaves over is on the first level: one place that says nothing.
            even = np.full(len(self.kept), self.floor)
            even[0] += ONE - self.floor * len(self.kept)
            holds = holds and bool((self.prior == even).all())
        kind = "from histograms" if self.weight else "uniform"
        return holds, f"{total.size} {kind}, least share {int(self.prior.min()) / ONE:.6g}"

    def counts_hold(self) -> tuple[bool, str]:
        """Whether counts add up to the groups, and are those of the named units' responses."""
        sizes, levels = self.facts.sizes, len(self.kept)
        holds = bool((self.counts.astype(object).sum(axis=2) == sizes).all())
        if self.codes is not None:
            group = np.repeat(np.arange(sizes.size), sizes.ravel())
            within = int(self.codes.max()) < levels
            place = group * levels + np.minimum(self.codes, levels - 1)
            tallied = np.bincount(place, minlength=self.counts.size)
            holds = holds and within and bool((tallied == self.counts.ravel()).all())
        return holds, f"{self.facts.units} units, {'named' if self.facts.named else 'not named'}"

    def moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean above the lowest level and variance of debiased outcomes of groups.

        Variances have the divisor d - 1 and are NaN for one unit.

        Within a group (y - lambda q1)/(1 - lambda) is a straight line: the mean goes through it and
        the variance is that of the responses over (1 - lambda)^2. With a small lambda the prior's
        mean q1 is a small part of it, however far the highest level lies.

        Returns:
            Clusters x arms each.
        """
        y, n = self._above(), self.facts.sizes
        keep, answer, moved = self._parts()
        mean = (answer - moved) / keep
        squares = (self.counts * (y - answer[:, :, None]) ** 2).sum(axis=2)
        spread = np.where(n > 1, squares / np.maximum(n - 1, 1) / keep**2, np.nan)
        return mean, spread

    def magnitude(self) -> NDArray[np.float64]:
        """What the means of groups are sums and differences of, at most: clusters x arms."""
        keep, answer, moved = self._parts()
        return np.asarray((answer + moved) / keep)

    def _above(self) -> NDArray[np.float64]:
        """Distances from the lowest level: they keep their digits, wherever the levels are."""
        return np.asarray(self.facts.levels[self.kept] - self.facts.levels[0])

    def _parts(self) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """1 - lambda, mean responses of groups, and lambda times the means of their priors."""
        y, replaced = self._above(), self.replaced / ONE
        answer, guess = self.counts @ y / self.facts.sizes, self.prior @ y / ONE
        return (ONE - self.replaced) / ONE, answer, replaced * guess
