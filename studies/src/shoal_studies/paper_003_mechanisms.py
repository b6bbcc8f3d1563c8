"""Mechanisms of paper 003, simulated by histogram.

Units on one level of one group are alike, so that counts are enough: hypergeometric for the
assignment, the noisy counts themselves for the prior, binomial and multinomial for the responses.
The distribution of the estimate is that of the product's plans (tested).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.privacy.accounting import account
from shoal.privacy.budget import Budget
from shoal.privacy.noisy import NoisySum
from shoal.trials.cluster_prior import (
    ClusterPrior,
    PriorChoice,
    choice_of,
    prior_of,
)
from shoal.trials.domain import Domain
from shoal.trials.expected import Expected
from shoal.trials.randomiser import PART, even, replaced_for
from shoal.trials.unit_table import uniform_table

Floats: TypeAlias = "NDArray[np.float64]"
Counts: TypeAlias = "NDArray[np.int64]"

DELTA = Fraction(1, 10_000)


@dataclass(frozen=True, eq=False)
class Population:
    """Units on each of K even levels without treatment, clusters x K; all are lifted by `shift`."""

    levels: Floats
    control: Counts = field(repr=False)
    shift: int

    @property
    def domain(self) -> Domain:
        """The levels as a public outcome domain."""
        return Domain(tuple(self.levels.tolist()))

    @cached_property
    def sizes(self) -> Counts:
        """Half of each cluster is treated: clusters x 2, control first."""
        units = self.control.sum(axis=1)
        return np.column_stack([units - units // 2, units // 2])

    @property
    def weight(self) -> Floats:
        """Of a cluster in the effect, n_c/n."""
        return np.asarray(self.sizes.sum(axis=1) / self.sizes.sum())

    @property
    def spread(self) -> Floats:
        """Sample variance of a cluster's outcomes, the same in both arms, clusters x 2."""
        units = self.control.sum(axis=1)
        mean = self.control @ self.levels / units
        square = (self.control * (self.levels - mean[:, None]) ** 2).sum(axis=1)
        return np.column_stack([square / (units - 1)] * 2)

    @property
    def variance(self) -> float:
        """Of the non-private estimate over assignments; exact."""
        return self.variance_of(self.spread)

    def variance_of(self, unit: Floats) -> float:
        """Of the effect, if units of each group have independent errors of these variances."""
        return float(self.weight**2 @ (unit / self.sizes).sum(axis=1))

    @property
    def merged(self) -> Population:
        """The same units without clusters."""
        return Population(self.levels, self.control.sum(axis=0, keepdims=True), self.shift)

    def part(self, sizes: Sequence[int], random: np.random.Generator) -> Population:
        """Some units of each cluster, drawn without replacement."""
        pairs = zip(self.control, sizes, strict=True)
        found = [random.multivariate_hypergeometric(*each) for each in pairs]
        return Population(self.levels, np.array(found), self.shift)

    def assigned(self, realisations: int, random: np.random.Generator) -> Counts:
        """Observed outcomes of random assignments, realisations x clusters x 2 x K."""
        shape = (realisations, len(self.control))
        rest = np.broadcast_to(self.control.sum(axis=1), shape).copy()
        places = np.broadcast_to(self.sizes[:, 1], shape).copy()
        chosen = np.zeros((*shape, len(self.levels)), dtype=np.int64)
        # A multivariate hypergeometric variable, one level after the other for all realisations.
        for level, here in enumerate(self.control.T):
            rest -= here
            chosen[..., level] = random.hypergeometric(np.broadcast_to(here, shape), rest, places)
            places -= chosen[..., level]
        treated = np.roll(chosen, self.shift, axis=-1)
        return np.stack([self.control - chosen, treated], axis=2)

    def estimate(self, mean: Floats) -> Floats:
        """The effect from means of groups, realisations x clusters x 2."""
        return np.asarray((mean[..., 1] - mean[..., 0]) @ self.weight)

    def effect(self, counts: Counts) -> Floats:
        """The non-private estimate of each realisation."""
        return self.estimate(counts @ self.levels / self.sizes)


@dataclass(frozen=True)
class NoisyDifferences:
    """Laplace noise of scale U/(min(n_0, n_1) loss) a cluster (Proposition A.2, erratum 14)."""

    loss: float

    def draw(
        self, units: Population, counts: Counts, random: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """One number a cluster."""
        width = float(units.levels[-1] - units.levels[0])
        scale = width / units.sizes.min(axis=1) / self.loss
        noise = random.laplace(0.0, scale, (len(counts), len(scale)))
        added = 2 * float(((units.weight * scale) ** 2).sum())
        return units.effect(counts) + noise @ units.weight, np.full(len(counts), added)


@dataclass(frozen=True)
class NoisyHistograms:
    """Laplace noise of scale 2/(n loss) on every share (Proposition A.3, erratum 15)."""

    loss: float
    centred: bool = True

    def draw(
        self, units: Population, counts: Counts, random: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """One number a level and group."""
        levels = units.levels - (units.levels.mean() if self.centred else 0.0)
        scale = 2 / (units.sizes * self.loss)
        noise = random.laplace(0.0, scale[..., None], counts.shape) @ levels
        added = 2 * float(((units.weight[:, None] * scale) ** 2).sum() * (levels**2).sum())
        return units.effect(counts) + units.estimate(noise), np.full(len(counts), added)


@dataclass(frozen=True)
class Randomised:
    """Algorithm 2: Cluster-DP, cluster-free (pooled: one histogram an arm), or a uniform prior."""

    chosen: PriorChoice
    pooled: bool = False

    @property
    def loss(self) -> float:
        """2/sigma and that of a response."""
        return float(account(self.chosen.steps(DELTA), DELTA).epsilon)

    @property
    def numbers(self) -> tuple[float, float, float]:
        """gamma, sigma (infinite where there is no histogram) and lambda."""
        given = self.chosen
        sigma = given.counts.scale if given.counts.per_unit else math.inf
        return given.floor / PART, sigma, given.replaced / PART

    def __str__(self) -> str:
        """The parameters."""
        gamma, sigma, lam = self.numbers
        return f"K={len(self.chosen.kept)} gamma={gamma:.6g} sigma={sigma:.6g} lambda={lam:.8g}"

    def draw(
        self, units: Population, counts: Counts, random: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Round, tabulate, add noise, respond, debias."""
        used = units.levels[self.chosen.kept]
        lam = self.numbers[2]
        sizes = units.sizes
        rounding = np.zeros(counts.shape[:-1])
        if len(used) < len(units.levels):
            moved = units.domain.moved_to(self.chosen.kept.tolist())
            rounding = counts @ (moved @ used**2 - (moved @ used) ** 2) / sizes
            counts = random.multinomial(counts, moved).sum(axis=-2)
        prior = self._prior(sizes, counts, random)
        kept = random.binomial(counts, 1 - lam)
        drawn = random.multinomial(sizes - kept.sum(axis=-1), prior)
        response = (kept + drawn) @ used / sizes
        debiased = (response - lam * (prior @ used)) / (1 - lam)
        unit = given_prior(counts, prior, used, lam)
        added = ((unit + rounding) / sizes).sum(axis=2) @ units.weight**2
        return units.estimate(debiased), added

    def _prior(self, sizes: Counts, counts: Counts, random: np.random.Generator) -> Floats:
        """Of each group, by the product's rule; uniform where no histogram is paid for."""
        if self.pooled:
            counts = counts.sum(axis=1, keepdims=True)
            sizes = sizes.sum(axis=0, keepdims=True)
        chance = -math.expm1(-(2.0**-self.chosen.counts.bits))
        # Laplace noise on the lattice is the difference of two geometric variables.
        noise = random.geometric(chance, counts.shape) - random.geometric(chance, counts.shape)
        if not self.chosen.counts.per_unit:
            return np.broadcast_to(even(len(self.chosen.kept)) / PART, counts.shape)
        units = np.broadcast_to(sizes, counts.shape[:-1]).ravel()
        steps = counts * self.chosen.counts.per_unit + noise
        found = prior_of(steps.reshape(-1, steps.shape[-1]), units, self.chosen)
        return np.asarray(found.reshape(steps.shape) / PART)


# Of the noise of counts, and of a uniform prior, for which no histogram is made.
_BITS = 20
_NOTHING = NoisySum.model_construct(per_unit=0, bits=_BITS)
Mechanism: TypeAlias = NoisyDifferences | NoisyHistograms | Randomised


def calibrated(
    kept: Sequence[int], epsilon: float, floor: float, sigma: float, *, printed: bool = False
) -> PriorChoice | None:
    """Parameters at a loss, claimed (1/sigma for the histogram) or true; None if there are none."""
    allowed = (Budget.of(epsilon) + Budget.of(1 / sigma if printed else 0)).epsilon
    try:
        if math.isfinite(sigma):
            return choice_of(ClusterPrior(floor, sigma), tuple(kept), allowed, DELTA)
        least = PART // len(kept)
        replaced = replaced_for(allowed, DELTA, least)
        return PriorChoice.model_construct(
            kept=np.array(kept), floor=least, replaced=replaced, counts=_NOTHING
        )
    except InputError:
        return None


def replacing(levels: int, lam: float, *, floor: float, sigma: float) -> PriorChoice:
    """Parameters with a given lambda, on all levels."""
    counts = NoisySum.model_construct(per_unit=int(2**_BITS / sigma), bits=_BITS)
    return PriorChoice.model_construct(
        kept=np.arange(levels),
        floor=min(int(floor * PART), PART // levels),
        replaced=round(lam * PART),
        counts=counts,
    )


def public_choice(
    units: Population, epsilon: float, levels: str = "auto", expected: Expected | None = None
) -> PriorChoice:
    """The product's uniform prior, on levels that it chooses from public facts alone."""
    allowed = Budget.of(epsilon).epsilon
    kept = uniform_table(units.domain, allowed, DELTA, levels, expected).kept
    found = calibrated(tuple(kept), epsilon, 1, math.inf)
    assert found is not None
    return found


def printed(sizes: Counts, levels: Floats, given: Randomised) -> list[Floats]:
    """A(x) in three forms (erratum 16): theorem 3.5, appendix A.1, and the proof."""
    (gamma, sigma, lam), size = given.numbers, len(levels)
    away = sigma / sizes * (np.exp(-gamma * sizes / sigma) - np.exp(-sizes / sigma))
    largest = float(np.abs(levels).max() ** 2)
    norm = float((levels**2).sum())
    root = (lam * size**0.5 + 1) ** 2
    kept = (1 - lam) ** 2
    rest = norm * (1 - lam * (size - 1) * gamma)
    factors = (
        2 * largest + (3 * largest + root + rest) / kept,
        largest * (3 / kept + 2) + root / kept * rest,
        largest * (3 / kept + 2 + root / kept * rest),
    )
    return [np.asarray(2 * size * (gamma + away) * factor) for factor in factors]


def given_prior(counts: Counts | Floats, prior: Floats, levels: Floats, lam: float) -> Floats:
    """Mean variance of debiased responses over the units of each group, given its prior: exact."""
    mean = prior @ levels
    apart = (levels - mean[..., None]) ** 2
    units = (counts * apart).sum(axis=-1) / counts.sum(axis=-1)
    own = (prior * apart).sum(axis=-1)
    return np.asarray(lam / (1 - lam) * units + lam / (1 - lam) ** 2 * own)


def with_any_prior(levels: Floats, lam: float, floor: float) -> float:
    """Largest such variance over all outcomes and all priors with a least share: attained.

    For the outcome 0 of levels up to U it is a m^2 + b (e - m^2), a = lambda/(1 - lambda) and
    b = a/(1 - lambda), concave in the prior's mean m with its top at U/(2 lambda), as close as the
    floor lets m come with all it can move on the outer levels; U is its mirror image.
    """
    width = float(levels[-1] - levels[0])
    free = max(0.0, 1 - len(levels) * floor)
    found = []
    for above in (levels - levels[0], levels[-1] - levels):
        least = floor * float(above.sum())
        mean = min(max(width / (2 * lam), least), least + free * width)
        second = floor * float((above**2).sum()) + width * (mean - least)
        found.append(lam / (1 - lam) * mean**2 + lam / (1 - lam) ** 2 * (second - mean**2))
    return max(found)


def prior_distance(sizes: Counts, levels: int, floor: float, sigma: float) -> Floats:
    """At least the expected total variation distance of a group's prior from its histogram.

    In place of A(x) (erratum 16): docs/theory/experiments.md#a-bound-from-public-numbers.
    """
    b = sigma / np.asarray(sizes, dtype=np.float64)
    low = floor + b / 2 * np.exp(-floor / b)
    apart = (levels - 1) * low + b / 2 + b * (levels / 2) ** 0.5
    k = np.arange(1, levels + 1)
    share = np.minimum(1 / k, (1 + floor) / 2)
    wide = b[..., None]
    high = wide / 2 * (2 - np.exp(-(1 - share) / wide) - np.exp(-(share - floor) / wide))
    together = ((levels - k) * low[..., None] + k * high).max(axis=-1)
    # Rounding of priors to whole numbers moves at most one part a level.
    return np.asarray(np.minimum(1 - floor, np.minimum(apart, together) + levels / PART))


def at_most(
    sizes: Counts, levels: Floats, *, lam: float, floor: float, sigma: float, spread: Floats
) -> Floats:
    """At least the mean variance of debiased responses of each group, on average over priors."""
    width = float(levels[-1] - levels[0])
    kept = (1 - lam) ** 2
    distance = prior_distance(sizes, len(levels), floor, sigma)
    priced = (1 / kept - 1) * spread + lam / kept * width**2 * distance
    return np.asarray(np.minimum(priced, with_any_prior(levels, lam, floor)))
