"""The variance that an effect will have, before anything private is read: a prior prediction."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.data.outcome_space import Space
from shoal.theory.randomised_response import given_prior, with_uniform_prior
from shoal.trials.expected import Kinds
from shoal.trials.parameters import ONE, Parameters
from shoal.trials.response import prior_of

Floats = NDArray[np.float64]
# Histogram sizes that stand for all others, and simulated histograms for each size and kind.
_SIZES, _DRAWS = 6, 24
# The prediction is a function of its arguments: the same numbers in every run.
_SEED = 20_240_913


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of one cluster and one arm, in a few sizes.

    The variance of an effect is the sum over groups of (n_c/n)^2/n_{c,a} times a variance of one
    unit; with several arms, the mean over their effects.

    Attributes:
        size: Units behind a histogram, rising: those of a group, or of an arm if pooled.
        weight: Sum of (n_c/n)^2/n_{c,a} over the groups with such a histogram.
        pooled: Whether the clusters share the histogram of an arm.
    """

    size: NDArray[np.int64]
    weight: Floats
    pooled: bool

    @property
    def total(self) -> float:
        """The sum of the weights: the variance of an effect for a variance of 1 a unit."""
        return float(self.weight.sum())


def group_weights(sizes: NDArray[np.int64]) -> Floats:
    """What the variance of one unit counts in that of the mean effect: clusters x arms.

    (n_c/n)^2/n_{c,a}, divided by the number of effects for arms other than the control, which is
    part of all of them.

    Example:
        >>> group_weights(np.array([[5, 5]])).tolist()
        [[0.2, 0.2]]
    """
    clusters = sizes.sum(axis=1, keepdims=True)
    part = np.ones(sizes.shape[1])
    part[1:] /= sizes.shape[1] - 1
    return np.asarray((clusters / clusters.sum()) ** 2 / sizes * part)


def cluster_weights(sizes: NDArray[np.int64]) -> Floats:
    """What the variance of one unit counts in that of a cluster's effect: clusters x arms.

    1/n_{c,a} for each cluster, as the mean over clusters and over effects.

    Example:
        >>> cluster_weights(np.array([[5, 5], [10, 5]])).tolist()
        [[0.1, 0.1], [0.05, 0.1]]
    """
    part = np.ones(sizes.shape[1])
    part[1:] /= sizes.shape[1] - 1
    return np.asarray(part / sizes / len(sizes))


def represent(sizes: NDArray[np.int64], *, pooled: bool, weight: Floats | None = None) -> Groups:
    """At most six sizes of histograms that stand for all, with their weights.

    Args:
        sizes: Units of each group, clusters x arms.
        pooled: Whether the clusters share the histogram of an arm.
        weight: Of the groups; those of the mean effect unless given.

    Example:
        >>> found = represent(np.array([[5, 5], [10, 10]]), pooled=False)
        >>> found.size.tolist(), round(found.total, 6)
        ([5, 10], 0.133333)
    """
    weight = group_weights(sizes) if weight is None else weight
    if pooled:
        return Groups(sizes.sum(axis=0), weight.sum(axis=0), pooled)
    size, place = np.unique(sizes.ravel(), return_inverse=True)
    summed: Floats = np.bincount(place.ravel(), weight.ravel()).astype(np.float64)
    if len(size) > _SIZES:
        # Cut into equal parts of the weight; a part has the geometric mean of its sizes.
        middle = (np.cumsum(summed) - summed / 2) / summed.sum()
        part = np.unique((middle * _SIZES).astype(int), return_inverse=True)[1]
        whole = np.bincount(part, summed)
        logs = np.bincount(part, summed * np.log(size)) / whole
        size, summed = np.rint(np.exp(logs)).astype(np.int64), whole.astype(np.float64)
    return Groups(size, summed, pooled)


@dataclass(frozen=True, eq=False)
class Distribution:
    """Outcomes on the levels in use, as expected.

    Attributes:
        levels: The L levels in use.
        share: Share of the units in each kind of histogram; 1 in all for an expectation.
        outcomes: Share of their outcomes on each level, kinds x L.
        first: The first kind of each expectation.
        rounding: Variance that rounding to these levels adds to an outcome, by expectation.
    """

    levels: Floats
    share: Floats
    outcomes: Floats
    first: NDArray[np.int64]
    rounding: Floats

    @cached_property
    def mean(self) -> Floats:
        """Of each kind."""
        return np.asarray(self.outcomes @ self.levels)

    @cached_property
    def variance(self) -> Floats:
        """Of the outcomes of each kind."""
        return np.asarray(self.outcomes @ self.levels**2 - self.mean**2)

    def average(self, by_kind: Floats) -> Floats:
        """Of each expectation, over its kinds, which are the first axis."""
        share = self.share.reshape(-1, *[1] * (by_kind.ndim - 1))
        return np.asarray(np.add.reduceat(share * by_kind, self.first))

    def mean_of(self, variances: Floats) -> Floats:
        """What responses with these variances, one a level, add to that of one outcome. Exact."""
        return self.average(self.outcomes @ variances) + self.rounding

    def unit_variance(self, lam: float) -> Floats:
        """What a uniform prior adds to the variance of one outcome. Exact.

        lambda/(1-lambda) mean (y - q1)^2 + lambda/(1-lambda)^2 Var(q) and rounding's own.
        """
        square = self.outcomes @ self.levels**2
        added = with_uniform_prior(self.mean, square, self.levels, lam)
        return self.average(added) + self.rounding

    def least(self, parameters: Parameters) -> Floats:
        """What any prior with this floor adds at least: q is gamma K parts uniform."""
        odds = parameters.lam / (1 - parameters.lam)
        uniform = parameters.gamma * len(self.levels)
        own = odds * (1 + odds) * uniform * float(self.levels.var())
        return odds * self.average(self.variance) + own + self.rounding


@dataclass(frozen=True, eq=False)
class Scene:
    """What is expected of the outcomes of one design, once or in several ways.

    Attributes:
        groups: The design.
        space: Levels of the outcome.
        kinds: Clusters under each expectation.
    """

    groups: Groups
    space: Space
    kinds: Kinds
    _distributions: dict[tuple[int, ...], Distribution] = field(default_factory=dict, repr=False)
    _drawn: dict[tuple[tuple[int, ...], int], tuple[Floats, Floats]] = field(
        default_factory=dict, repr=False
    )

    @cached_property
    def _plain(self) -> Distribution:
        # Levels less their middle: variances stay, and squares do not cancel far from 0.
        levels = self.space.array
        centred = levels - (levels[0] + (levels[-1] - levels[0]) / 2)
        kinds = self.kinds
        return Distribution(
            centred, kinds.share, kinds.levels, kinds.first, np.zeros(len(kinds.first))
        )

    @cached_property
    def sampling(self) -> Floats:
        """Variance of the effect without privacy, at a constant effect, over the assignment."""
        return self.groups.total * self._plain.average(self._plain.variance)

    def variance(self, parameters: Parameters) -> Floats:
        """Variance of the effect over assignment and mechanism, in the outcome's unit squared.

        A uniform prior's is exact for the expected outcomes. That of a histogram is the mean over
        simulated histograms and their noise, the same ones in every call.

        Returns:
            One number an expectation.
        """
        if parameters.weight == 0:
            distribution = self.distribution(parameters.kept)
            return self.sampling + self.groups.total * distribution.unit_variance(parameters.lam)
        return np.array([self._simulated(at, parameters) for at in range(len(self.sampling))])

    def below(self, parameters: Parameters, limit: Floats) -> Floats | None:
        """The variances with a histogram, or None once one is not below its limit."""
        if (self.least(parameters) >= limit).any():
            return None
        found = np.empty(len(limit))
        for at, most in enumerate(limit):
            found[at] = self._simulated(at, parameters)
            if found[at] >= most:
                return None
        return found

    def least(self, parameters: Parameters) -> Floats:
        """Not above `variance`, at no cost."""
        return self.sampling + self.groups.total * self.distribution(parameters.kept).least(
            parameters
        )

    def distribution(self, kept: tuple[int, ...]) -> Distribution:
        """Outcomes on the levels in use."""
        if kept not in self._distributions:
            self._distributions[kept] = self._distribution(kept)
        return self._distributions[kept]

    def _distribution(self, kept: tuple[int, ...]) -> Distribution:
        plain, levels = self._plain, self._plain.levels[list(kept)]
        outcomes = plain.outcomes @ moved_to(self.space.array, kept)
        moved = Distribution(levels, plain.share, outcomes, plain.first, plain.rounding)
        added = np.maximum(0.0, plain.average(moved.variance - plain.variance))
        if not self.groups.pooled:
            return replace(moved, rounding=added)
        # One histogram holds all kinds, as many clusters do: the mean of (y - q1)^2 over them is
        # that of their mixture. Of few clusters it is less, as their own mean is closer to q1.
        number = len(added)
        return Distribution(
            levels, np.ones(number), plain.average(outcomes), np.arange(number), added
        )

    def _histograms(
        self, at: int, kept: tuple[int, ...], outcomes: Floats
    ) -> tuple[Floats, Floats]:
        """Counts of simulated groups and their noise of scale 1, draws x sizes x kinds x L."""
        if (kept, at) not in self._drawn:
            random = np.random.Generator(np.random.PCG64(_SEED))
            shape = (_DRAWS, len(self.groups.size), len(outcomes))
            size = np.broadcast_to(self.groups.size[:, None], shape)
            counts = random.multinomial(size, outcomes / outcomes.sum(1, keepdims=True))
            self._drawn[kept, at] = counts.astype(float), random.laplace(size=counts.shape)
        return self._drawn[kept, at]

    def _simulated(self, at: int, parameters: Parameters) -> float:
        """The variance under one expectation, with histograms."""
        distribution = self.distribution(parameters.kept)
        kinds = slice(
            distribution.first[at], [*distribution.first, len(distribution.share)][at + 1]
        )
        counts, noise = self._histograms(at, parameters.kept, distribution.outcomes[kinds])
        size = np.broadcast_to(self.groups.size[:, None], counts.shape[:-1])
        steps = np.rint(counts * parameters.weight + noise * 2.0**parameters.lattice_bits)
        flat = steps.astype(np.int64).reshape(-1, len(distribution.levels))
        prior = prior_of(flat, size.ravel(), parameters).reshape(counts.shape) / ONE
        unit = given_prior(counts, prior, distribution.levels, parameters.lam)
        # A histogram's own spread is replaced by what is expected, which has no error of drawing.
        drawn = (counts * (distribution.levels - distribution.mean[kinds][:, None]) ** 2).sum(
            axis=-1
        ) / size
        unit += parameters.lam / (1 - parameters.lam) * (distribution.variance[kinds] - drawn)
        mean = unit.mean(axis=0) @ distribution.share[kinds] + distribution.rounding[at]
        return float(self.sampling[at] + self.groups.weight @ mean)


def moved_to(levels: Floats, kept: tuple[int, ...]) -> Floats:
    """Where random rounding moves each level of the space: K x L, rows summing to 1.

    Example:
        >>> moved_to(np.array([0.0, 1.0, 4.0]), (0, 2)).tolist()
        [[1.0, 0.0], [0.75, 0.25], [0.0, 1.0]]
    """
    used = levels[list(kept)]
    below = np.clip(np.searchsorted(used, levels, side="right") - 1, 0, len(used) - 2)
    share = (levels - used[below]) / np.diff(used)[below]
    found = np.zeros((len(levels), len(used)))
    rows = np.arange(len(levels))
    found[rows, below] = 1 - share
    found[rows, below + 1] += share
    return found
