"""The variance that an effect will have, before anything private is read: a prior prediction."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shoal.theory.response_variance import given_prior, with_uniform_prior
from shoal.trials.parameters import ONE
from shoal.trials.response import prior_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.data.outcome_space import Space
    from shoal.trials.expected import Expected
    from shoal.trials.parameters import Parameters

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


def represent(sizes: NDArray[np.int64], *, pooled: bool) -> Groups:
    """At most six sizes of histograms that stand for all, with their weights.

    Example:
        >>> found = represent(np.array([[5, 5], [10, 10]]), pooled=False)
        >>> found.size.tolist(), round(found.total, 6)
        ([5, 10], 0.133333)
    """
    weight = group_weights(sizes)
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
class Law:
    """Outcomes on the levels in use, as expected.

    Attributes:
        levels: The L levels in use.
        share: Share of the units in each kind of histogram.
        outcomes: Share of their outcomes on each level, kinds x L.
        rounding: Variance that rounding to these levels adds to an outcome.
    """

    levels: Floats
    share: Floats
    outcomes: Floats
    rounding: float

    @cached_property
    def mean(self) -> Floats:
        """Of each kind."""
        return np.asarray(self.outcomes @ self.levels)

    @cached_property
    def variance(self) -> Floats:
        """Of the outcomes of each kind."""
        return np.asarray(self.outcomes @ self.levels**2 - self.mean**2)

    def unit_variance(self, parameters: Parameters) -> float:
        """What a uniform prior adds to the variance of one outcome. Exact.

        lambda/(1-lambda) mean (y - q1)^2 + lambda/(1-lambda)^2 Var(q) and rounding's own.
        """
        square = self.outcomes @ self.levels**2
        added = with_uniform_prior(self.mean, square, self.levels, parameters.lam)
        return float(self.share @ added) + self.rounding

    def least(self, parameters: Parameters) -> float:
        """What any prior with this floor adds at least: q is gamma K parts uniform."""
        odds = parameters.lam / (1 - parameters.lam)
        uniform = parameters.gamma * len(self.levels)
        inside = odds * float(self.share @ self.variance)
        own = odds * (1 + odds) * uniform * float(self.levels.var())
        return inside + own + self.rounding


@dataclass(frozen=True, eq=False)
class Scene:
    """One expectation of the outcomes of one design.

    Attributes:
        groups: The design.
        space: Levels of the outcome.
        expected: What is expected of outcomes.
    """

    groups: Groups
    space: Space
    expected: Expected
    _laws: dict[tuple[int, ...], Law] = field(default_factory=dict, repr=False)
    _drawn: dict[tuple[int, ...], tuple[Floats, Floats]] = field(default_factory=dict, repr=False)

    @cached_property
    def _plain(self) -> Law:
        kinds = self.expected.kinds(self.space)
        return Law(self._centred, kinds.share, kinds.levels, 0.0)

    @cached_property
    def _centred(self) -> Floats:
        """Levels less their middle: variances stay, and squares do not cancel far from 0."""
        return self.space.array - (self.space.levels[0] + self.space.width / 2)

    @cached_property
    def sampling(self) -> float:
        """Variance of the effect without privacy, at a constant effect, over the assignment."""
        return self.groups.total * float(self._plain.share @ self._plain.variance)

    def variance(self, parameters: Parameters) -> float:
        """Variance of the effect over assignment and mechanism, in the outcome's unit squared.

        A uniform prior's is exact for the expected outcomes. That of a histogram is the mean over
        simulated histograms and their noise, the same ones in every call.
        """
        law = self.law(parameters.kept)
        if parameters.weight == 0:
            return self.sampling + self.groups.total * law.unit_variance(parameters)
        return self.sampling + self._simulated(law, parameters)

    def least(self, parameters: Parameters) -> float:
        """Not above `variance`, at no cost."""
        return self.sampling + self.groups.total * self.law(parameters.kept).least(parameters)

    def law(self, kept: tuple[int, ...]) -> Law:
        """Outcomes on the levels in use."""
        if kept not in self._laws:
            self._laws[kept] = self._law(kept)
        return self._laws[kept]

    def _law(self, kept: tuple[int, ...]) -> Law:
        plain, levels = self._plain, self._centred[list(kept)]
        moved = Law(levels, plain.share, plain.outcomes @ _rounding(self.space, kept), 0.0)
        added = max(0.0, float(plain.share @ (moved.variance - plain.variance)))
        if not self.groups.pooled:
            return Law(levels, moved.share, moved.outcomes, added)
        # One histogram holds all kinds, as many clusters do: the mean of (y - q1)^2 over them is
        # that of their mixture. Of few clusters it is less, as their own mean is closer to q1.
        return Law(levels, np.ones(1), (plain.share @ moved.outcomes)[None], added)

    def _histograms(self, law: Law, kept: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Counts of simulated groups and their noise of scale 1, draws x sizes x kinds x L."""
        if kept not in self._drawn:
            random = np.random.Generator(np.random.PCG64(_SEED))
            shape = (_DRAWS, len(self.groups.size), len(law.share))
            size = np.broadcast_to(self.groups.size[:, None], shape)
            counts = random.multinomial(size, law.outcomes / law.outcomes.sum(1, keepdims=True))
            self._drawn[kept] = counts.astype(float), random.laplace(size=counts.shape)
        return self._drawn[kept]

    def _simulated(self, law: Law, parameters: Parameters) -> float:
        counts, noise = self._histograms(law, parameters.kept)
        size = np.broadcast_to(self.groups.size[:, None], counts.shape[:-1])
        steps = np.rint(counts * parameters.weight + noise * 2.0**parameters.lattice_bits)
        flat = steps.astype(np.int64).reshape(-1, len(law.levels))
        prior = prior_of(flat, size.ravel(), parameters).reshape(counts.shape) / ONE
        unit = given_prior(counts, prior, law.levels, parameters.lam)
        # A histogram's own spread is replaced by what is expected, which has no error of drawing.
        drawn = (counts * (law.levels - law.mean[:, None]) ** 2).sum(axis=-1) / size
        unit += parameters.lam / (1 - parameters.lam) * (law.variance - drawn)
        return float(self.groups.weight @ (unit.mean(axis=0) @ law.share + law.rounding))


def _rounding(space: Space, kept: tuple[int, ...]) -> Floats:
    """Where random rounding moves each level of the space: K x L, rows summing to 1."""
    levels = space.array
    used = levels[list(kept)]
    below = np.clip(np.searchsorted(used, levels, side="right") - 1, 0, len(used) - 2)
    share = (levels - used[below]) / np.diff(used)[below]
    found = np.zeros((len(levels), len(used)))
    rows = np.arange(len(levels))
    found[rows, below] = 1 - share
    found[rows, below + 1] += share
    return found
