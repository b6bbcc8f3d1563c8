"""Noisy Horvitz-Thompson: private differences of group means, cluster by cluster."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal import documents
from shoal.errors import InputError
from shoal.privacy.noise import Noise
from shoal.trials import student
from shoal.trials.aggregate_lattice import (
    TOP,
    check_counts,
    check_sizes,
    fit_lattice,
    popoviciu,
    read_design,
    step_variance,
    ticks,
)
from shoal.trials.aggregates import Contrast, contrast
from shoal.trials.sampling_numbers import SamplingNumbers

# Shares of epsilon for the sampling variance that are compared, and the outcomes' standard
# deviation within groups over the width that they are compared at. A wrong guess costs precision.
_SHARES = tuple(Fraction(k, 64) for k in (0, 1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32))
_GUESS = 0.1
_CONFIDENCE = 0.95
_PAIR = 2
# Sums of reciprocal squares in floating-point numbers are much nearer to the truth.
_NEAR = 1e-12


@dataclass(frozen=True, eq=False)
class NoisyHorvitzThompson:
    """Differences of group means plus Laplace noise: unbiased, whatever the outcomes.

    In a cluster with two arms the difference of the means is released; one outcome of a group of n
    moves it by at most width/n, so the noise has the scale width/(min(n_0, n_1) epsilon): the whole
    width, as max|y| is too small when levels have both signs (erratum 14; Proposition A.2).

    With more arms an outcome of the control moves all differences of its cluster. They share: arm
    a's difference gets the noise width/(f_a epsilon) with f_a = min(n_a, theta) and the largest
    whole theta with sum of f_a <= n_0. Or the means themselves are released, each with the noise
    width/(n epsilon), as one outcome moves one of them. Each cluster takes what has less variance.

    Levels are whole ticks of width/2^20, sums are exact, and each number is rounded to its step
    width/(weight f_a): one outcome moves it by whole steps at most, so the loss is exact.

    Attributes:
        sizes: Units, clusters x arms, control first.
        levels: Of the outcome, rising.
        weight: Steps that an outcome's move across the width is worth.
        spread_weight: The same for the sampling variance; 0 if it is not released.
        lattice_bits: j; noise has the scale of 2^j steps.

    Example:
        >>> from shoal.privacy.noise import Simulated
        >>> sizes = np.array([[300, 300], [500, 400]])
        >>> plan = NoisyHorvitzThompson.plan(sizes, (0.0, 1.0), Fraction(1))
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
    spread_weight: int
    lattice_bits: int

    @classmethod
    def plan(
        cls,
        sizes: NDArray[np.int64],
        levels: Sequence[float],
        epsilon: Fraction,
        spread_share: Fraction | None = None,
    ) -> NoisyHorvitzThompson:
        """The least noise at a loss of at most epsilon for one outcome.

        Args:
            sizes: Units, clusters x arms, control first, all from 1.
            levels: Of the outcome, rising.
            epsilon: Loss of one outcome in all.
            spread_share: Part of epsilon that buys the sampling variance, 0 or more and below 1;
                with 0 its public bound stands in. None for what makes intervals shortest if
                outcomes within groups have a standard deviation of a tenth of the width. Nothing
                is spent where every cluster is pooled.

        Raises:
            InputError: Unusable sizes, levels or numbers.
        """
        found = check_sizes(sizes)
        ticks(levels)
        arms = found.shape[1]
        bits, steps = fit_lattice(arms, int(found.sum()), epsilon)
        all_in = cls(found, tuple(map(float, levels)), steps, steps, bits)
        if not all_in.spread.used.any():
            share = Fraction(0)
        elif spread_share is None:
            share = all_in._best_share()
        else:
            share = Fraction(spread_share)
        spread_weight = math.floor(steps * share)
        # Each difference of a control that is shared is rounded on its own.
        weight = steps - spread_weight - (arms - _PAIR)
        if share < 0 or weight < 1:
            raise InputError(
                f"a spread_share of {float(share):g}", "0 or more and below 1", "leave it out"
            )
        made = cls(found, tuple(map(float, levels)), weight, spread_weight, bits)
        return made._spent(steps)

    def _spent(self, steps: int) -> NoisyHorvitzThompson:
        """With as much weight as the steps allow: a lone unit moves no variance, only means."""
        low, high = self.weight, steps + 1
        if self._most_moved(low + 1) > steps:
            return self
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._most_moved(middle) <= steps else (low, middle)
        return replace(self, weight=low)

    @property
    def width(self) -> float:
        """From the lowest level to the highest."""
        return self.levels[-1] - self.levels[0]

    @cached_property
    def spread(self) -> SamplingNumbers:
        """The numbers of the sampling variance."""
        return SamplingNumbers(self.sizes, self.spread_weight, self.lattice_bits)

    @cached_property
    def _shares(self) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        return shared(self.sizes)

    @property
    def direct(self) -> NDArray[np.bool_]:
        """Clusters whose differences are released, not their means."""
        return self._shares[0]

    @cached_property
    def _kept(self) -> NDArray[np.bool_]:
        """Where a number stands, clusters x arms: none for the control of differences."""
        kept = np.ones(self.sizes.shape, dtype=np.bool_)
        kept[self.direct, 0] = False
        return kept

    @cached_property
    def exact_epsilon(self) -> Fraction:
        """The largest loss of an outcome: steps that it moves all numbers by, over 2^j."""
        return Fraction(self._most_moved(self.weight), 2**self.lattice_bits)

    def _most_moved(self, weight: int) -> int:
        """The most steps that one outcome moves all numbers by, with any weight of the means."""
        factor, n = self._shares[1].astype(object), self.sizes.astype(object)
        direct = self.direct[:, None]
        moved = np.where(direct, -(-weight * factor // n), weight)
        shared_control = (-(-weight * factor[:, 1:] // n[:, :1])).sum(axis=1)
        moved[:, 0] = np.where(self.direct, shared_control, weight)
        return int((moved + self.spread.reach).max())

    @cached_property
    def noise_variance(self) -> NDArray[np.float64]:
        """Of each cluster's difference, clusters x (arms - 1), in squared units; exact."""
        parts = self._parts()
        return np.asarray(np.where(self.direct[:, None], parts[:, 1:], parts[:, 1:] + parts[:, :1]))

    def draw(self, counts: NDArray[np.int64], noise: Noise, draw: int = 0) -> list[int]:
        """The released whole numbers: clusters' numbers in order, then those of the spread.

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
        tick = ticks(self.levels)
        linear = (counts @ tick).astype(object)
        square = (counts.astype(object) * (tick.astype(object) ** 2)).sum(axis=2)
        steps = self._steps(linear)
        return noise.add_laplace(steps + self.spread.steps(linear, square), self.lattice_bits, draw)

    def effects(self, released: list[int]) -> list[Contrast]:
        """Every arm against the control, with the parts of its variance.

        Args:
            released: What `draw` gave.

        Raises:
            InputError: Another number of numbers.
        """
        numbers = int(self._kept.sum())
        if len(released) != numbers + self.spread.count:
            raise InputError(
                f"{len(released)} numbers", f"{numbers + self.spread.count}", "give what was drawn"
            )
        grid = np.zeros(self.sizes.shape)
        grid[self._kept] = released[:numbers]
        grid *= self.width / (self.weight * self._shares[1].astype(np.float64))
        control = np.where(self.direct, self.width, grid[:, 0])
        fourths = 3 * self._parts() ** 2
        fourths[self.direct, 0] = 0
        return [
            contrast(
                arm,
                sizes=self.sizes,
                width=self.width,
                difference=grid[:, arm] - control,
                noise_variance=self.noise_variance[:, arm - 1],
                fourth=fourths[:, arm] + fourths[:, 0],
                sampling=self.spread.read(released[numbers:], arm, self.width),
            )
            for arm in range(1, self.sizes.shape[1])
        ]

    def to_document(self) -> documents.Document:
        """The description as a JSON object."""
        return {
            "sizes": documents.pack_integers(self.sizes.ravel()),
            "arms": self.sizes.shape[1],
            "levels": list(self.levels),
            "weight": self.weight,
            "spread_weight": self.spread_weight,
            "lattice_bits": self.lattice_bits,
        }

    @classmethod
    def from_document(cls, document: documents.Document) -> NoisyHorvitzThompson:
        """The inverse of `to_document`.

        Raises:
            DocumentError: A part is missing or damaged.
        """
        sizes, levels, numbers = read_design(document, ("weight", "spread_weight", "lattice_bits"))
        return cls(sizes, levels, *numbers)

    def _steps(self, linear: NDArray[np.object_]) -> list[int]:
        """Means or shifted differences of sums of ticks, rounded to steps, halves upwards."""
        n = self.sizes.astype(object)
        direct, factor = self.direct[:, None], self._shares[1].astype(object)
        # A difference may be below 0, where noise is not added: it is raised by the width.
        raised = linear * n[:, :1] + (TOP * n[:, :1] - linear[:, :1]) * n
        above = self.weight * factor * np.where(direct, raised, linear)
        below = np.where(direct, n * n[:, :1], n) * TOP
        steps = (2 * above + below) // (2 * below)
        return [int(number) for number in steps[self._kept]]

    def _parts(self) -> NDArray[np.float64]:
        """Noise variance of every number, clusters x arms."""
        step = self.width / (self.weight * self._shares[1].astype(np.float64))
        return np.asarray(step_variance(self.lattice_bits) * step**2)

    def _best_share(self) -> Fraction:
        """The share of epsilon for the spread with the shortest intervals at the guess.

        This object spends all of epsilon on the effects, and again all of it on the spread.
        """
        share = np.array([float(each) for each in _SHARES[1:]])
        square = (self.sizes.sum(axis=1) / self.sizes.sum()) ** 2
        bound = popoviciu(self.sizes, self.width)
        length = np.zeros(len(_SHARES))
        for arm in range(1, self.sizes.shape[1]):
            pair = [arm, 0]
            apart = square[:, None] / self.sizes[:, pair]
            noise = float(square @ self.noise_variance[:, arm - 1])
            unsure = self.spread.read([0] * self.spread.count, arm, self.width).noise
            total = float(apart.sum()) * (_GUESS * self.width) ** 2 + noise / (1 - share) ** 2
            degrees = np.maximum(2 * total**2 * share**2 / unsure, 1).tolist()
            wide = [student.quantile(each, _CONFIDENCE) for each in degrees]
            most = math.sqrt(float((apart * bound[:, pair]).sum()) + noise)
            length += np.append(student.quantile(math.inf, _CONFIDENCE) * most, wide * total**0.5)
        return _SHARES[int(length.argmin())]


def shared(sizes: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Clusters that release differences, and the factor f of every number, clusters x arms.

    The largest theta with sum_a min(n_a, theta) <= n_0 is the largest over i of
    (n_0 - sum of the i smallest) // (arms - i), as the sum is the least of these lines.

    Example:
        >>> shared(np.array([[10, 4], [10, 10]]))[1].tolist()
        [[10, 4], [10, 10]]
        >>> direct, factor = shared(np.array([[10, 10, 10], [30, 10, 10]]))
        >>> direct.tolist(), factor.tolist()
        ([False, True], [[10, 10, 10], [30, 10, 10]])
    """
    control, treated = sizes[:, :1], np.sort(sizes[:, 1:], axis=1)
    below = np.cumsum(treated, axis=1) - treated
    theta = ((control - below) // np.arange(treated.shape[1], 0, -1)).max(axis=1)
    all_fit = control[:, 0] >= treated.sum(axis=1)
    theta = np.where(all_fit, treated[:, -1], theta)
    factor = np.minimum(sizes[:, 1:], np.maximum(theta, 1)[:, None])
    direct = (theta >= 1) & _less_noise(factor, sizes)
    return direct, np.hstack([control, np.where(direct[:, None], factor, sizes[:, 1:])])


def _less_noise(factor: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether differences have less noise than means of arms, sum 1/f^2 < sum 1/n_a^2 + 1/n_0^2.

    Clusters whose sums floating-point numbers cannot tell apart are compared exactly.
    """
    squares = 1 / sizes.astype(np.float64) ** 2
    apart = (squares[:, 1:] + squares[:, :1]).sum(axis=1)
    together = (1 / factor.astype(np.float64) ** 2).sum(axis=1)
    less: NDArray[np.bool_] = np.asarray(together < apart)
    for cluster in np.flatnonzero(np.abs(apart - together) <= _NEAR * apart).tolist():
        control, *treated = sizes[cluster].tolist()
        exact = sum(Fraction(1, n * n) + Fraction(1, control * control) for n in treated)
        less[cluster] = sum(Fraction(1, f * f) for f in factor[cluster].tolist()) < exact
    return less
