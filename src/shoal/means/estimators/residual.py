"""Clipped mean plus sampled residuals: exactly unbiased, little noise, and it publishes values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.means.estimators.base import OUTWARD, Drawn
from shoal.means.estimators.clipped import (
    Clipped,
    Interval,
    check_interval,
    clipped_means,
    clipped_variance,
    clipping_parameters,
    noise_for,
)
from shoal.means.estimators.grid import Grid
from shoal.means.estimators.sampled import Chance, sampled_means
from shoal.means.estimators.weights import Weights
from shoal.privacy.budget import Budget
from shoal.privacy.noise import Noise
from shoal.theory import clipping

_LEAST_MARGIN, _MOST_MARGIN = 2.0**-10, 2.0**30


@dataclass(frozen=True, eq=False)
class Residual(Clipped):
    """Clip, add noise, and add the sampled mean of x - clip(x): (epsilon, delta).

    Clipped values are rounded to ticks at random, with the right expectation, so that the residual
    of a value inside is exactly 0 and nobody inside is ever published. The parts of
    estimate - mu are uncorrelated: the mean itself, rounding, sampling and noise. So the mean
    squared error is at most
    sum w^2/W^2 (sd^2 + tick^2/4 + (1/delta - 1) E(|X - mu| - t)+^2) + noise,
    where the paper has 2/n for the first and a closed form for the margin; here the margin is
    the one for which this certificate is least.

    Source: paper 004, Proposition 3.0.3.

    Attributes:
        chance: delta, a multiple of 2^-64.

    Example:
        >>> from fractions import Fraction
        >>> from shoal.means.estimators.weights import Weights
        >>> moments = (clipping.Moment(2, 1), clipping.Moment(8, 1.8))
        >>> chance = Chance.at_most(Fraction(1, 10**5))
        >>> found = Residual.best(Weights.equal(10**5), moments, (0, 1), Fraction(1), chance)
        >>> found.bias_bound, round(found.rmse_bound * 10**2.5, 3)
        (0.0, 1.014)
    """

    chance: Chance
    name: ClassVar[str] = "clipped_plus_residual"

    @classmethod
    def best(
        cls,
        weights: Weights,
        moments: clipping.Moments,
        interval: Interval,
        epsilon: Fraction,
        chance: Chance,
    ) -> Residual:
        """The margin of the least certificate.

        Raises:
            InputError: An interval or epsilon that is not usable.
        """
        low, high = check_interval(interval)
        size = clipping.deviation(moments)
        noise = 2 * (float(weights.share) / float(epsilon)) ** 2
        often = float(weights.squares) * float(1 / chance.exact - 1)

        def error(t: float) -> float:
            return often * clipping.excess_square(moments, t) + noise * (high - low + 2 * t) ** 2

        t = clipping.least(error, _LEAST_MARGIN * size, _MOST_MARGIN * size)
        grid = Grid.around(low - t, high + t)
        return cls(
            weights,
            moments,
            (low, high),
            grid,
            noise_for(weights, grid.ticks, epsilon),
            chance,
        )

    @cached_property
    def loss(self) -> Budget:
        """Epsilon of the noise and delta of the sample: independent draws add up."""
        return Budget(self.noise.loss, self.chance.exact)

    @cached_property
    def parameters(self) -> Mapping[str, int | str]:
        """Grid, noise and probability."""
        inner = clipping_parameters(self.grid, self.noise)
        found: Mapping[str, int | str] = {**inner, "sampling_words": str(self.chance.words)}
        return found

    @property
    def centred(self) -> None:
        """None: squares of the clipped part say nothing of the residuals that are sampled."""
        return

    @property
    def bias_bound(self) -> float:
        """None."""
        return 0.0

    @cached_property
    def variance_bound(self) -> float:
        """Of values, rounding, sampling and noise."""
        often = float(1 / self.chance.exact - 1)
        square = clipping.excess_square(self.moments, self.margin)
        return (clipped_variance(self) + float(self.weights.squares) * often * square) * OUTWARD

    def _draw(self, values: NDArray[np.float64], source: Noise) -> list[Drawn]:
        inside = clipped_means(self, values, source)
        # Both terms are exact, so that so is their difference.
        terms = values, -self.grid.clip(values)
        beyond = sampled_means(self.weights, self.chance, terms, source)
        return [Drawn(a + b) for a, b in zip(inside, beyond, strict=True)]
