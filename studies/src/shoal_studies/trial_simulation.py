"""Experiments simulated at the level of histograms: assignment, noise, priors and responses.

Units on one level of one group are alike, so that counts are enough: hypergeometric for the
assignment, the noisy counts themselves for the prior, binomial and multinomial for the responses.
The distribution of the estimate is that of the real mechanism (tested).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.theory import randomised_response, trial_variance
from shoal.trials.parameters import ONE, Parameters
from shoal.trials.response import prior_of
from shoal_studies.trial_setting import Population

if TYPE_CHECKING:
    Floats = NDArray[np.float64]
    Counts = NDArray[np.int64]

_SIDES = 2


@dataclass(frozen=True, eq=False)
class Draws:
    """Assignments of one population.

    Attributes:
        population: Its units; half of each cluster is treated.
        counts: Observed outcomes, realisations x clusters x 2 x K, control first.
    """

    population: Population
    counts: Counts = field(repr=False)

    @cached_property
    def share(self) -> Floats:
        """What the variance of one unit counts in that of the effect: (n_c/n)^2/n_{c,a}."""
        return np.asarray(self.population.weight[:, None] ** 2 / self.population.sizes)

    @cached_property
    def effect(self) -> Floats:
        """The non-private estimate of each realisation."""
        return self.estimate(self.counts @ self.population.levels / self.population.sizes)

    @property
    def variance(self) -> float:
        """Of the non-private estimate over assignments; exact."""
        spread = self.population.spread
        both = np.column_stack([spread, spread])
        none = np.zeros((len(spread), 1))
        return float(trial_variance.of_assignment(both, none, self.population.sizes)[0])

    def estimate(self, mean: Floats) -> Floats:
        """The effect from means of groups, realisations x clusters x 2."""
        return np.asarray((mean[..., 1] - mean[..., 0]) @ self.population.weight)


def assign(population: Population, realisations: int, random: np.random.Generator) -> Draws:
    """Treat half of each cluster, completely at random.

    Example:
        >>> from shoal_studies.trial_setting import Mixture
        >>> random = np.random.default_rng(1)
        >>> found = assign(Mixture(4.5, (4, 6)).population((0,)), 3, random)
        >>> found.counts.sum(axis=-1)[0].tolist()
        [[2, 2], [3, 3]]
    """
    control = population.control
    shape = (realisations, len(control))
    rest = np.broadcast_to(control.sum(axis=1), shape).copy()
    open_places = np.broadcast_to(population.sizes[:, 1], shape).copy()
    chosen = np.zeros((*shape, control.shape[1]), dtype=np.int64)
    # A multivariate hypergeometric variable, one level after the other for all realisations.
    for level in range(control.shape[1]):
        here = np.broadcast_to(control[:, level], shape)
        rest -= here
        chosen[..., level] = random.hypergeometric(here, rest, open_places)
        open_places -= chosen[..., level]
    treated = np.roll(chosen, population.shift, axis=-1)
    return Draws(population, np.stack([control - chosen, treated], axis=2))


class Mechanism(Protocol):
    """What releases an estimate."""

    def loss(self, delta: Fraction) -> float:
        """The true epsilon of one outcome at this delta."""
        ...

    def draw(self, draws: Draws, random: np.random.Generator) -> tuple[Floats, Floats]:
        """Estimates, and what the mechanism adds to the variance of each, given its prior."""
        ...


@dataclass(frozen=True)
class NonPrivate:
    """The stratified difference of means itself."""

    def loss(self, delta: Fraction) -> float:
        """Without bound."""
        return math.inf

    def draw(self, draws: Draws, random: np.random.Generator) -> tuple[Floats, Floats]:
        """No noise."""
        return draws.effect, np.zeros(len(draws.counts))


@dataclass(frozen=True)
class Randomised:
    """Cluster-DP, cluster-free (pooled) and uniform prior, on all levels or some.

    Attributes:
        parameters: The mechanism's whole numbers.
        pooled: Whether clusters share the histogram of an arm.
    """

    parameters: Parameters
    pooled: bool = False

    def loss(self, delta: Fraction) -> float:
        """2/sigma and that of a response."""
        return float(self.parameters.epsilon(delta))

    def draw(self, draws: Draws, random: np.random.Generator) -> tuple[Floats, Floats]:
        """Round, tabulate, add noise, respond, debias."""
        counts, rounding = self._rounded(draws, random)
        levels = draws.population.levels[list(self.parameters.kept)]
        prior = self._prior(draws, counts, random)
        lam, sizes = self.parameters.lam, draws.population.sizes
        kept = random.binomial(counts, 1 - lam)
        drawn = random.multinomial(sizes - kept.sum(axis=-1), prior)
        response = (kept + drawn) @ levels / sizes
        debiased = (response - lam * (prior @ levels)) / (1 - lam)
        unit = randomised_response.given_prior(counts.astype(np.float64), prior, levels, lam)
        added = ((unit + rounding) * draws.share).sum(axis=(1, 2))
        return draws.estimate(debiased), added

    def _rounded(self, draws: Draws, random: np.random.Generator) -> tuple[Counts, Floats]:
        """Counts on the levels in use, and the mean variance that rounding adds in each group."""
        levels, kept = draws.population.levels, list(self.parameters.kept)
        sizes = draws.population.sizes
        if len(kept) == len(levels):
            return draws.counts, np.zeros(draws.counts.shape[:-1])
        used = levels[kept]
        below = np.clip(np.searchsorted(used, levels, side="right") - 1, 0, len(used) - 2)
        gap = np.diff(used)[below]
        share = (levels - used[below]) / gap
        up = random.binomial(draws.counts, share)
        onto = np.eye(len(used), dtype=np.int64)
        found = (draws.counts - up) @ onto[below] + up @ onto[below + 1]
        return found, draws.counts @ (gap**2 * share * (1 - share)) / sizes

    def _prior(self, draws: Draws, counts: Counts, random: np.random.Generator) -> Floats:
        sizes = draws.population.sizes
        if self.pooled:
            counts, sizes = counts.sum(axis=1, keepdims=True), sizes.sum(axis=0, keepdims=True)
        steps = counts * self.parameters.weight
        if self.parameters.weight:
            steps = steps + discrete_laplace(random, self.parameters.lattice_bits, steps.shape)
        units = np.broadcast_to(sizes, steps.shape[:-1])
        flat = steps.reshape(-1, steps.shape[-1])
        return prior_of(flat, units.ravel(), self.parameters).reshape(steps.shape) / ONE


@dataclass(frozen=True)
class NoisyDifferences:
    """Noisy Horvitz-Thompson: Laplace noise of scale width/(min(n_0, n_1) epsilon) a cluster.

    Attributes:
        epsilon: The loss that is claimed.
        part: Of the width that noise is made for: 1, or max |y|/width as printed (erratum 14).
    """

    epsilon: float
    part: float = 1.0

    def loss(self, delta: Fraction) -> float:
        """More than the claimed one where noise is made for a part of the width."""
        return self.epsilon / self.part

    def draw(self, draws: Draws, random: np.random.Generator) -> tuple[Floats, Floats]:
        """One number a cluster."""
        levels, sizes = draws.population.levels, draws.population.sizes
        width = self.part * float(levels[-1] - levels[0])
        scale = width / sizes.min(axis=1) / self.epsilon
        noise = random.laplace(0.0, scale, (len(draws.counts), len(scale)))
        added = trial_variance.of_noisy_differences(sizes, width, self.epsilon)
        return draws.effect + noise @ draws.population.weight, np.full(len(draws.counts), added)


@dataclass(frozen=True)
class NoisyHistograms:
    """Laplace noise of scale 2/(n epsilon) on every share of every group.

    As printed the scale is 1/(n epsilon), and levels count from 0 (erratum 15). Ours count from
    their mean, which estimates the same effect with less noise.

    Attributes:
        epsilon: The loss that is claimed.
        printed: Whether it is done as printed.
    """

    epsilon: float
    printed: bool = False

    def loss(self, delta: Fraction) -> float:
        """Twice the claimed one as printed."""
        return self._loss

    @property
    def _loss(self) -> float:
        return self.epsilon * (_SIDES if self.printed else 1)

    def draw(self, draws: Draws, random: np.random.Generator) -> tuple[Floats, Floats]:
        """One number a level and group."""
        levels, sizes = draws.population.levels, draws.population.sizes
        if not self.printed:
            levels = levels - levels.mean()
        scale = _SIDES / (sizes * self._loss)
        noise = random.laplace(0.0, scale[..., None], draws.counts.shape) @ levels
        added = trial_variance.of_noisy_histograms(sizes, levels, self._loss)
        return draws.effect + draws.estimate(noise), np.full(len(draws.counts), added)


def discrete_laplace(
    random: np.random.Generator, lattice_bits: int, shape: tuple[int, ...]
) -> Counts:
    """Whole numbers of scale 2^lattice_bits: the difference of two geometric variables."""
    chance = -np.expm1(-(2.0**-lattice_bits))
    return np.asarray(random.geometric(chance, shape) - random.geometric(chance, shape))
