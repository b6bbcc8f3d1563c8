"""The sampled mean: exactly unbiased, and it publishes values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.means.estimators.base import OUTWARD, Drawn, Estimator
from shoal.means.estimators.clipped import Interval, check_interval
from shoal.means.estimators.weights import Weights
from shoal.privacy.budget import Budget
from shoal.privacy.noise import Noise
from shoal.theory import clipping

_WORD = 2**64
_SAMPLING = 3


@dataclass(frozen=True)
class Chance:
    """A probability words/2^64 that fair bits keep exactly.

    Attributes:
        words: From 1 to 2^64.

    Raises:
        InputError: Out of range.

    Example:
        >>> Chance.at_most(Fraction(1, 3)).exact < Fraction(1, 3)
        True
    """

    words: int

    def __post_init__(self) -> None:
        if type(self.words) is not int or not 1 <= self.words <= _WORD:
            raise InputError(
                "a delta that is too small to sample with",
                "from 2^-64 to 1",
                "ask for a larger delta",
            )

    @classmethod
    def at_most(cls, delta: Fraction) -> Chance:
        """The largest that is not above delta."""
        return cls(int(delta * _WORD))

    @property
    def exact(self) -> Fraction:
        """The probability; its inverse is the weight of what is sampled."""
        return Fraction(self.words, _WORD)

    def happens(self, words: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which words of fair bits are below."""
        return np.asarray(words <= np.uint64(self.words - 1))


@dataclass(frozen=True, eq=False)
class Sampled(Estimator):
    """Each value with probability delta, weighted 1/delta: (0, delta).

    The estimate is c + sum_l w_l (x_l - c) B_l / (W delta) about the middle c of a public interval
    [a, b] for the mean; B_l is 1 with probability delta. Exactly unbiased whatever the interval.
    Its variance is sum w^2/W^2 (E(X - mu)^2 + (1 - delta)(mu - c)^2)/delta. A change of one
    user's values shows only if that user is sampled: with probability delta. But then it may show
    entirely, so it "names and shames": with probability delta a user's value is published.

    Source: paper 004, Proposition 3.0.2.

    Attributes:
        interval: Public [a, b]; the certificate holds for means in it.
        chance: delta, a multiple of 2^-64.

    Example:
        >>> from shoal.means.estimators.weights import Weights
        >>> found = Sampled(Weights.equal(100), (clipping.Moment(2, 1),), (-1, 1), Chance(2**63))
        >>> found.loss.delta, round(found.rmse_bound, 4)
        (Fraction(1, 2), 0.1732)
    """

    interval: Interval
    chance: Chance
    name: ClassVar[str] = "sampled_mean"

    def __post_init__(self) -> None:
        check_interval(self.interval)
        self._check_squares()

    @property
    def centre(self) -> float:
        """c, where values are counted from."""
        return (self.interval[0] + self.interval[1]) / 2

    @cached_property
    def loss(self) -> Budget:
        """Delta alone."""
        return Budget(Fraction(0), self.chance.exact)

    @cached_property
    def parameters(self) -> Mapping[str, int | str]:
        """The probability."""
        found: Mapping[str, int | str] = {"sampling_words": str(self.chance.words)}
        return found

    @property
    def noise_scale(self) -> float:
        """There is no noise."""
        return 0.0

    @property
    def bias_bound(self) -> float:
        """None."""
        return 0.0

    @cached_property
    def variance_bound(self) -> float:
        """At the end of the interval."""
        low, high = self.interval
        off = max(high - self.centre, self.centre - low)
        chance = float(self.chance.exact)
        one = clipping.deviation(self.moments) ** 2 + (1 - chance) * off**2
        return float(self.weights.squares) * one / chance * OUTWARD

    def _draw(self, values: NDArray[np.float64], source: Noise) -> list[Drawn]:
        centre = Fraction(self.centre)
        terms = values, np.full(values.shape, -self.centre)
        found = sampled_means(self.weights, self.chance, terms, source)
        return [Drawn(centre + each) for each in found]


def sampled_means(
    weights: Weights,
    chance: Chance,
    terms: tuple[NDArray[np.float64], NDArray[np.float64]],
    source: Noise,
) -> list[Fraction]:
    """Sampled and weighted means of the sums of two terms, one a row, rounded once.

    Every row is added up exactly (Shewchuk), so that order, sizes and roundings tell nothing; a
    user who is not sampled adds 0 and takes the same time.
    """
    one, other = terms
    words = source.bits(one.size, _SAMPLING).reshape(one.shape)
    factor = np.where(chance.happens(words), weights.number, 0).astype(np.float64)
    scale = weights.total * chance.exact
    both = np.concatenate([one * factor, other * factor], axis=1)
    return [Fraction(math.fsum(row)) / scale for row in both]
