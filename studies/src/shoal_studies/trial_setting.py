"""Finite populations of made-up experiments: counts of units on levels, a constant effect.

Source: paper 003, section 4 (Gaussian mixture, and communities of a social network);
docs/explanation/studies-trials.md#the-gaussian-mixture.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.data.outcome_space import Space

_HALF = 2
# The paper's: outcomes from -5 to 6, variance 5 before they are put on levels.
REACH, SPREAD = 5, 5.0
SIZES, SUPER = (500, 1000, 2000), 5
# The 50 largest communities: 22,179 users, the smallest with 199.
COMMUNITIES, USERS, SMALLEST = 50, 22_179, 199
# Levels from -1 to 2.5 in steps of a half: an effect of 1 is two levels.
_LOW, _GAP, _LEVELS, _TWO = -1.0, 0.5, 8, 2
_NOISE = 0.1
# Friends of a user within the community and outside: log-normal over communities.
_INSIDE, _OUTSIDE, _VARIED = 4.0, 12.0, 0.5


@dataclass(frozen=True, eq=False)
class Population:
    """Units of an experiment; the treatment lifts every outcome by the same number of levels.

    Attributes:
        levels: The K levels, evenly spaced.
        control: Units on each level without treatment, clusters x K.
        shift: Levels by which the treatment lifts an outcome.
    """

    levels: NDArray[np.float64]
    control: NDArray[np.int64] = field(repr=False)
    shift: int

    @property
    def space(self) -> Space:
        """The levels as a public outcome space."""
        return Space(tuple(self.levels.tolist()))

    @property
    def treated(self) -> NDArray[np.int64]:
        """Units on each level with treatment, clusters x K."""
        return np.roll(self.control, self.shift, axis=1)

    @property
    def effect(self) -> float:
        """What is estimated, in the outcome's unit."""
        return float(self.levels[self.shift] - self.levels[0])

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Half of each cluster is treated: clusters x 2, control first."""
        units = self.control.sum(axis=1)
        return np.column_stack([units - units // _HALF, units // _HALF])

    @property
    def weight(self) -> NDArray[np.float64]:
        """Of a cluster in the effect, n_c/n."""
        return np.asarray(self.sizes.sum(axis=1) / self.sizes.sum())

    @property
    def spread(self) -> NDArray[np.float64]:
        """Sample variance of a cluster's outcomes, the same in both arms."""
        units = self.control.sum(axis=1)
        mean = self.control @ self.levels / units
        square = (self.control * (self.levels - mean[:, None]) ** 2).sum(axis=1)
        return np.asarray(square / (units - 1))

    def merged(self) -> Population:
        """The same units without clusters."""
        return Population(self.levels, self.control.sum(axis=0, keepdims=True), self.shift)

    def part(self, sizes: NDArray[np.int64], random: np.random.Generator) -> Population:
        """Some units of each cluster, drawn without replacement."""
        found = [
            random.multivariate_hypergeometric(row, int(size))
            for row, size in zip(self.control, sizes, strict=True)
        ]
        return Population(self.levels, np.array(found), self.shift)


class Setting(Protocol):
    """Makes populations."""

    def population(self, seed: tuple[int, ...]) -> Population:
        """The population of a seed."""
        ...


@dataclass(frozen=True)
class Mixture:
    """Outcomes sqrt(beta) mu_c + sqrt(5 - beta) w_i, rounded to -5, ..., 5 in steps of 2 sqrt(5)/5.

    The effect is 1, so that there are K = 12 levels. Centres mu_c are standard normal: three
    numbers decide much, and every population of this study has its own.

    Attributes:
        beta: Variance between clusters, of 5.
        sizes: Units of the clusters.

    Example:
        >>> found = Mixture(4.5).population((0, 0))
        >>> found.sizes.tolist(), found.effect, found.space.size
        ([[250, 250], [500, 500], [1000, 1000]], 1.0, 12)
    """

    beta: float
    sizes: tuple[int, ...] = SIZES

    def population(self, seed: tuple[int, ...]) -> Population:
        """Units drawn from a super-population five times as large."""
        random = np.random.default_rng(seed)
        whole = self.super_population(random)
        return whole.part(np.array(self.sizes), random)

    def super_population(self, random: np.random.Generator) -> Population:
        """Five times the sizes."""
        sizes = SUPER * np.array(self.sizes)
        centre = np.repeat(random.standard_normal(len(sizes)), sizes)
        own = random.standard_normal(int(sizes.sum()))
        outcome = self.beta**0.5 * centre + (SPREAD - self.beta) ** 0.5 * own
        step = 2 * SPREAD**0.5 / REACH
        code = np.clip(np.rint(outcome / step), -REACH, REACH).astype(np.int64) + REACH
        levels = np.arange(-REACH, REACH + 2, dtype=np.float64)
        return Population(levels, _tabulate(code, sizes, len(levels)), shift=1)


@dataclass(frozen=True)
class Communities:
    """Fifty communities of a made-up network, with the sizes that are published.

    The network is a stochastic block model: sizes follow a power of the rank, users have a
    log-normal number of friends within and outside. Outcomes are the sum of the community's four
    features (users, edges within, edges leaving, density), each of mean 0 and norm 1 over
    communities, and normal noise of deviation 0.1, on the nearest of the levels -1, -0.5, ..., 1.5;
    treatment adds 1.

    Example:
        >>> found = Communities().population((0, 0))
        >>> int(found.sizes.sum()), int(found.sizes.sum(axis=1).min()), found.space.size
        (22179, 199, 8)
    """

    def population(self, seed: tuple[int, ...]) -> Population:
        """A network of its own, and outcomes."""
        random = np.random.default_rng(seed)
        sizes = community_sizes()
        effect = np.repeat(features(sizes, random).sum(axis=0), sizes)
        outcome = effect + _NOISE * random.standard_normal(len(effect))
        code = np.rint((outcome - _LOW) / _GAP).astype(np.int64)
        code = np.clip(code, 0, _LEVELS - 1 - _TWO)
        levels = _LOW + _GAP * np.arange(_LEVELS, dtype=np.float64)
        return Population(levels, _tabulate(code, sizes, _LEVELS), _TWO)


def community_sizes() -> NDArray[np.int64]:
    """Users of each community: 199 (50/rank)^a with the a that gives 22,179 users.

    Example:
        >>> found = community_sizes()
        >>> found.sum(), found.min(), len(found)
        (np.int64(22179), np.int64(199), 50)
    """
    rank = np.arange(1, COMMUNITIES + 1)
    low, high = 0.0, 2.0
    for _ in range(60):
        middle = (low + high) / 2
        total = (SMALLEST * (COMMUNITIES / rank) ** middle).sum()
        low, high = (middle, high) if total < USERS else (low, middle)
    sizes = np.rint(SMALLEST * (COMMUNITIES / rank) ** low).astype(np.int64)
    # The largest takes what rounding left over.
    sizes[0] += USERS - sizes.sum()
    return sizes


def features(sizes: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.float64]:
    """Users, edges within, edges leaving and density of each community: 4 x communities.

    Edges of a stochastic block model are binomial; each row has mean 0 and norm 1.
    """
    inside, outside = _VARIED * random.standard_normal((2, len(sizes)))
    pairs = sizes * (sizes - 1) // 2
    chance = np.minimum(1.0, _INSIDE * np.exp(inside) / (sizes - 1))
    within = random.binomial(pairs, chance)
    # Users meet users of other communities in proportion to both communities' sociability.
    social = np.exp(outside)
    likely = _OUTSIDE * np.outer(social, social) / sizes.sum()
    upper = np.triu(random.binomial(np.outer(sizes, sizes), np.minimum(1.0, likely)), 1)
    leaving = upper.sum(axis=0) + upper.sum(axis=1)
    found = np.array([sizes, within, leaving, within / pairs], dtype=np.float64)
    found -= found.mean(axis=1, keepdims=True)
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


def _tabulate(code: NDArray[np.int64], sizes: NDArray[np.int64], levels: int) -> NDArray[np.int64]:
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    flat = np.bincount(cluster * levels + code, minlength=len(sizes) * levels)
    return flat.reshape(len(sizes), levels)
