"""Which sums of questions are released, and which part of the loss tells how outcomes differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.theory.questions.noisy_variance import half_width
from shoal.theory.questions.weights import scaled
from shoal.trials.questions.asked import REGRESSION, Asked, Block, stacked
from shoal.trials.questions.columns import ARM, Columns
from shoal.trials.questions.disjoint import disjoint_parts
from shoal.trials.questions.extremes import released_sums
from shoal.trials.questions.groups import (
    candidates,
    codes_of,
    group_means,
    means_needed,
    usable,
)
from shoal.trials.questions.numbers import ANSWERED, Numbers
from shoal.trials.questions.variances import Fit, fit_of

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
# Of the loss, for means of groups where no question tells them. The first that is best is taken.
SHARES = (0.05, 0.1, 0.15)
# Finer groups may widen predicted intervals by this factor: what they tell is worth it.
_DEARER = 1.05
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Expectations:
    """Public numbers by which plans are compared.

    Attributes:
        width: Of the outcome's range.
        spread: Standard deviation of outcomes within groups, in the same unit.
        epsilon: Privacy loss.
    """

    width: float
    spread: float
    epsilon: Fraction

    @property
    def away(self) -> float:
        """The square of how far a mean may be from the middle: U^2/4 - sigma^2."""
        return max(self.width**2 / 4 - self.spread**2, 0.0)

    @property
    def loss(self) -> float:
        """Privacy loss, in floating point."""
        return float(self.epsilon)


def numbers_of(columns: Columns, blocks: Sequence[Block], expected: Expectations) -> Numbers:
    """Whole numbers whose loss is at most epsilon, from which all questions follow.

    Sums of the questions with a small total noise, or of disjoint parts of them, and, unless means
    of groups follow from them, sums of the groups with a small part of the loss: what has the least
    noise in the answers (docs/theory/questions.md#noise-for-many-questions).

    Raises:
        InputError: Questions that nearly depend on others, or an epsilon that leaves nothing.
    """
    rows = stacked(blocks)
    vectors = scaled(rows, expected.width)
    sums, parts = [released_sums(vectors) @ vectors], disjoint_parts(rows)
    if parts is not None:
        sums.append(parts)
    ways = [_Ways.of(columns, blocks, each / expected.width, expected) for each in sums]
    # Of equal ones the first: sums of the questions themselves.
    best = min(ways, key=_Ways.noise)
    main, by = best.numbers()
    return Numbers.of(main, expected.width, expected.epsilon, by)


@dataclass(frozen=True, eq=False)
class _Ways:
    """How wide intervals are predicted to be, by what is released beside the questions.

    Attributes:
        columns: Of the units.
        blocks: The questions, entry by entry.
        main: Their sums, of a loss of 1.
        inverse: Of `main`.
        expected: Public numbers.
    """

    columns: Columns
    blocks: Sequence[Block]
    main: Floats
    inverse: Floats
    expected: Expectations

    @classmethod
    def of(
        cls, columns: Columns, blocks: Sequence[Block], main: Floats, expected: Expectations
    ) -> _Ways:
        """With the inverse of the sums."""
        inverse = np.asarray(np.linalg.pinv(main, rcond=1e-12), dtype=np.float64)
        return cls(columns, blocks, main, inverse, expected)

    @property
    def asked(self) -> list[Asked]:
        """The entries."""
        return [each.asked for each in self.blocks]

    def noise(self) -> float:
        """The sum over questions of noise variances, each over the question's squared length."""
        total = 0.0
        for block in self.blocks:
            squares = ((block.rows @ self.inverse) ** 2).sum(axis=1)
            total += float((squares / (block.rows**2).sum(axis=1)).sum())
        return total / (1 - self.best(())[0]) ** 2

    def numbers(self) -> tuple[Floats, tuple[str, ...]]:
        """Rows of a loss of 1, with those of groups, and the columns that make groups."""
        by: tuple[str, ...] = ()
        share, plain = self.best(by)
        for name in candidates(self.columns, self.asked):
            if usable(codes_of(self.columns, [ARM, *by, name])):
                own, total = self.best((*by, name))
                if total <= _DEARER * plain:
                    by, share = (*by, name), own
        means = means_needed(self.columns, self.asked, by)
        if share and means is not None:
            sums = (group_means(means) > 0) / self.expected.width
            return np.concatenate([(1 - share) * self.main, share * sums]), by
        return self.main, by

    def best(self, by: tuple[str, ...]) -> tuple[float, float]:
        """The share of means of groups with the least sum of relative widths, and that sum."""
        needed = means_needed(self.columns, self.asked, by)
        if needed is None or self._follow(group_means(needed)):
            return 0.0, self._total(by, 0.0, None)
        totals = {share: self._total(by, share, needed) for share in SHARES}
        share = min(totals, key=totals.__getitem__)
        return share, totals[share]

    def _follow(self, rows: Floats) -> bool:
        off = np.linalg.norm(rows @ self.inverse @ self.main - rows, axis=1)
        return bool((off <= ANSWERED * np.linalg.norm(rows, axis=1)).all())

    def _total(self, by: tuple[str, ...], share: float, means: Whole | None) -> float:
        """The sum over questions of half widths, each over the question's length.

        Noise of means of groups matters by 2|mean - middle| times it: outcomes of standard
        deviation sigma within a range U have a mean within sqrt(U^2/4 - sigma^2) of the middle.
        """
        fine = codes_of(self.columns, [ARM, *by])
        return math.fsum(self._widths(each, by, share, means, fine) for each in self.blocks)

    def _widths(
        self, block: Block, by: tuple[str, ...], share: float, means: Whole | None, fine: Whole
    ) -> float:
        expected, rows = self.expected, block.rows
        fit = fit_of(self.columns, block.asked, by)
        noise = self._noise(block, fit, share, means)
        # Second moments of a group are sums of those of finer ones.
        finer = np.bincount(fit.codes[np.unique(fine, return_index=True)[1]])
        moved = np.sqrt(finer) * expected.width**2 / expected.loss
        sums = fit.sums(rows)
        loose = sums.doubt(moved, fit.flat * math.sqrt(expected.away), noise)
        scale = np.linalg.norm(rows @ self.inverse, axis=1) / expected.loss / (1 - share)
        lengths, few = np.linalg.norm(rows, axis=1), fit.inflation(sums, _CONFIDENCE)
        total = 0.0
        for at, length in enumerate(lengths.tolist()):
            variance = np.array([(expected.spread * length) ** 2])
            known = float(scale[at]), float(loose[at])
            half = half_width(_CONFIDENCE, variance, *known, inflation=float(few[at]))
            total += float(half[0]) / length
        return total

    def _noise(self, block: Block, fit: Fit, share: float, means: Whole | None) -> Floats:
        """Covariance of the noise of a fit; Laplace noise of scale b has the variance 2 b^2."""
        expected = self.expected
        if means is None or block.asked.kind == REGRESSION:
            told = fit.weights @ self.inverse / (expected.loss * (1 - share))
            return np.asarray(2 * told @ told.T)
        first = np.unique(means, return_index=True)[1]
        finer = np.bincount(fit.codes[first])
        sizes = np.bincount(fit.codes)
        scale = expected.width / (share * expected.loss)
        return np.diag(2 * finer * (scale / sizes) ** 2)
