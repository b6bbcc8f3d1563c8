"""Noisy histogram: private counts of every level in every cluster and arm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal import documents
from shoal.errors import InputError
from shoal.privacy.noise import Noise
from shoal.trials.aggregate_lattice import (
    check_counts,
    check_sizes,
    fit_lattice,
    pooled,
    read_design,
    step_variance,
    ticks,
)
from shoal.trials.aggregates import Contrast, Sampling, contrast

_SIDES = 2


@dataclass(frozen=True, eq=False)
class NoisyHistogram:
    """Every level's share of every group plus Laplace noise of scale 2/(n epsilon).

    A changed outcome moves two bins of one group by one each, so the noise is twice what
    Proposition A.3 prints (erratum 15). Counts weigh whole steps and groups share no units: the
    loss is 2 weight/2^j, exactly.

    The shares of a group add up to 1, so levels are taken from a public centre, their plain mean:
    mean = centre + sum (y - centre) noisy share is unbiased, and its noise has the variance
    2 (2/(n epsilon))^2 sum (y - centre)^2, the least over all centres; the paper's sum of y^2 is
    that of the centre 0. The same numbers give the means of squares, and so unbiased sample
    variances, at no further cost. Standard errors are those of Neyman with all the noise known.

    Attributes:
        sizes: Units, clusters x arms, control first.
        levels: Of the outcome, rising.
        weight: Steps a count.
        lattice_bits: j; noise has the scale of 2^j steps.

    Example:
        >>> from shoal.privacy.noise import Simulated
        >>> sizes = np.array([[300, 300], [500, 400]])
        >>> plan = NoisyHistogram.plan(sizes, (0.0, 1.0), Fraction(1))
        >>> plan.exact_epsilon <= 1, plan.exact_epsilon > Fraction(999_999, 1_000_000)
        (True, True)
        >>> counts = np.array([[[200, 100], [100, 200]], [[250, 250], [100, 300]]])
        >>> effect = plan.effects(plan.draw(counts, Simulated(1)))[0]
        >>> abs(effect.value - 0.2833) < 4 * effect.standard_error
        True
    """

    sizes: NDArray[np.int64]
    levels: tuple[float, ...]
    weight: int
    lattice_bits: int

    @classmethod
    def plan(
        cls, sizes: NDArray[np.int64], levels: Sequence[float], epsilon: Fraction
    ) -> NoisyHistogram:
        """The least noise at a loss of at most epsilon for one outcome.

        Args:
            sizes: Units, clusters x arms, control first, all from 1.
            levels: Of the outcome, rising.
            epsilon: Loss of one outcome in all.

        Raises:
            InputError: Unusable sizes, levels or epsilon.
        """
        found = check_sizes(sizes)
        ticks(levels)
        bits, steps = fit_lattice(_SIDES, int(found.sum()), epsilon)
        return cls(found, tuple(map(float, levels)), steps // _SIDES, bits)

    @property
    def exact_epsilon(self) -> Fraction:
        """The loss of an outcome: two bins, `weight` steps each, over 2^j."""
        return Fraction(_SIDES * self.weight, 2**self.lattice_bits)

    @property
    def width(self) -> float:
        """From the lowest level to the highest."""
        return self.levels[-1] - self.levels[0]

    @property
    def count_variance(self) -> float:
        """Of a noisy count, exact."""
        return step_variance(self.lattice_bits) / self.weight**2

    @property
    def mean_variance(self) -> NDArray[np.float64]:
        """Of a group's mean, by the mechanism, clusters x arms, in squared units; exact."""
        square = float((self._away**2).sum())
        return np.asarray(self.count_variance * square / self.sizes.astype(np.float64) ** 2)

    @property
    def noise_variance(self) -> NDArray[np.float64]:
        """Of each cluster's difference, clusters x (arms - 1), in squared units; exact."""
        parts = self.mean_variance
        return np.asarray(parts[:, 1:] + parts[:, :1])

    def draw(self, counts: NDArray[np.int64], noise: Noise, draw: int = 0) -> list[int]:
        """The released whole numbers: every level of every arm of every cluster, in order.

        Formal guarantee: one changed outcome changes the probability of every result by a factor of
        at most exp(`exact_epsilon`).

        Args:
            counts: Outcomes by level, clusters x arms x levels, that add up to `sizes`. Private.
            noise: The source of randomness.
            draw: Tells the vectors of one release apart.

        Raises:
            DataError: Other counts.
        """
        check_counts(counts, self.sizes, len(self.levels))
        return noise.add_laplace((counts * self.weight).ravel().tolist(), self.lattice_bits, draw)

    def shares(self, released: list[int]) -> NDArray[np.float64]:
        """Unbiased shares of the levels, clusters x arms x levels; they may lie below 0.

        Raises:
            InputError: Another number of numbers.
        """
        shape = (*self.sizes.shape, len(self.levels))
        if len(released) != math.prod(shape):
            raise InputError(
                f"{len(released)} numbers", f"{math.prod(shape)}", "give what was drawn"
            )
        whole = np.array(released, dtype=np.float64).reshape(shape)
        return np.asarray(whole / (self.weight * self.sizes.astype(np.float64)[:, :, None]))

    def effects(self, released: list[int]) -> list[Contrast]:
        """Every arm against the control, with the parts of its variance.

        Args:
            released: What `draw` gave.

        Raises:
            InputError: Another number of numbers.
        """
        mean, s2, loose = self._moments(released)
        weight = self.sizes.sum(axis=1) / self.sizes.sum()
        parts, noise = s2 / self.sizes, self.mean_variance
        # A level's noise has the fourth cumulant of its squared variance times 3.
        fourth = noise**2 * self._shape
        used = (self.sizes > 1) & ~pooled(self.sizes)[:, None]
        found = []
        for arm in range(1, self.sizes.shape[1]):
            pair = [arm, 0]
            known = (weight[:, None] ** 2 * parts)[:, pair][used[:, pair]]
            unsure = (weight[:, None] ** 4 * loose / self.sizes**2)[:, pair][used[:, pair]]
            sampling = Sampling(float(known.sum()), float(unsure.sum()))
            found.append(
                contrast(
                    arm,
                    sizes=self.sizes,
                    width=self.width,
                    difference=mean[:, arm] - mean[:, 0],
                    noise_variance=noise[:, pair].sum(axis=1),
                    fourth=fourth[:, pair].sum(axis=1),
                    sampling=sampling,
                    cluster_error=np.sqrt(
                        np.maximum(parts[:, pair], 0).sum(axis=1) + noise[:, pair].sum(axis=1)
                    ),
                )
            )
        return found

    def to_document(self) -> documents.Document:
        """The description as a JSON object."""
        return {
            "sizes": documents.pack_integers(self.sizes.ravel()),
            "arms": self.sizes.shape[1],
            "levels": list(self.levels),
            "weight": self.weight,
            "lattice_bits": self.lattice_bits,
        }

    @classmethod
    def from_document(cls, document: documents.Document) -> NoisyHistogram:
        """The inverse of `to_document`.

        Raises:
            DocumentError: A part is missing or damaged.
        """
        sizes, levels, numbers = read_design(document, ("weight", "lattice_bits"))
        return cls(sizes, levels, *numbers)

    @property
    def _away(self) -> NDArray[np.float64]:
        """Levels from their centre: taken from the lowest first, as all may lie far from 0."""
        above = np.array(self.levels) - self.levels[0]
        return np.asarray(above - above.mean())

    @property
    def _shape(self) -> float:
        """Fourth cumulant of a mean's noise over its squared variance."""
        square = self._away**2
        return 3 * float((square**2).sum()) / float(square.sum()) ** 2

    def _moments(
        self, released: list[int]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Unbiased means from the centre, sample variances, and their variance by the mechanism.

        s2 = n/(n - 1) (mean of squares - mean^2 + noise variance of the mean), with squares from
        the centre. One unit has no s2: NaN.
        """
        share = self.shares(released)
        away = self._away
        square = away**2
        mean, noise = share @ away, self.mean_variance
        # The sum of shares is 1, so that a constant taken off the squares is added without noise.
        second = square.mean() + share @ (square - square.mean())
        size = self.sizes.astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            bias = np.where(size > 1, size / (size - 1), np.nan)
        s2 = bias * (second - mean**2 + noise)
        loose = bias**2 * (self._loose(mean) + 2 * noise**2 + self._shape * noise**2)
        return mean, s2, loose

    def _loose(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """Noise variance of sum (y - mean)^2 share, levels and means from the centre."""
        apart = (self._away - mean[:, :, None]) ** 2
        apart -= apart.mean(axis=2, keepdims=True)
        scale = self.count_variance / self.sizes.astype(np.float64) ** 2
        return np.asarray(scale * (apart**2).sum(axis=2))
