"""Which sums of questions are released, and which part of the loss tells how outcomes differ."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from shoal.theory.questions.laplace_strategy import laplace_strategy
from shoal.theory.questions.noisy_variance import half_width
from shoal.theory.questions.weights import arm_means, scaled
from shoal.trials.questions.numbers import Numbers

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from shoal.trials.questions.columns import Columns

    Floats = NDArray[np.float64]

# Of the loss, for means of arms where no question tells them. The first that is best is taken.
SHARES = (0.05, 0.1, 0.15)
# A question that is off by less than this part of its length is answered.
ANSWERED = 1e-9
_CONFIDENCE = 0.95


def numbers_of(
    columns: Columns, rows: Floats, width: float, spread: float, epsilon: Fraction
) -> Numbers:
    """Whole numbers whose loss is at most epsilon, from which all questions follow.

    Sums of the questions with a small total noise, and, unless means of arms follow from them, sums
    of the arms with a small part of the loss (docs/theory/questions.md#noise-for-many-questions).

    Raises:
        InputError: Questions that nearly depend on others, or an epsilon that leaves nothing.
    """
    vectors = scaled(rows, width)
    found = laplace_strategy(vectors)
    main = found.released @ vectors / width
    means = arm_means(columns.arm)
    if answered(main, means):
        return Numbers.of(main, width, epsilon)
    share = _best_share(columns, rows, main, width, spread, float(epsilon))
    arms = (means > 0) / width
    return Numbers.of(np.concatenate([(1 - share) * main, share * arms]), width, epsilon)


def recover(released: Floats, rows: Floats) -> Floats:
    """Least squares estimates of rows from released ones, shape (questions, numbers).

    Noise has about one scale in all numbers: no linear unbiased estimate has less variance.

    Args:
        released: Shape (numbers, units).
        rows: Shape (questions, units).
    """
    return np.asarray(rows @ np.linalg.pinv(released, rcond=1e-12))


def answered(released: Floats, rows: Floats) -> bool:
    """Whether rows are sums of multiples of released ones, to 1e-9 of their length."""
    off = recover(released, rows) @ released - rows
    return bool((np.linalg.norm(off, axis=1) <= ANSWERED * np.linalg.norm(rows, axis=1)).all())


def _best_share(
    columns: Columns,
    rows: Floats,
    main: Floats,
    width: float,
    spread: float,
    epsilon: float,
) -> float:
    """The part of the loss with the least sum of predicted interval widths, of the stated spread.

    Noise of means of arms matters by 2|mean - middle| times it: outcomes of standard deviation
    sigma within a range U have a mean within sqrt(U^2/4 - sigma^2) of the middle.
    """
    norms = np.linalg.norm(rows, axis=1)
    noise = np.linalg.norm(recover(main, rows), axis=1) / epsilon
    sizes = np.bincount(columns.arm)
    away = math.sqrt(max(width**2 / 4 - spread**2, 0.0))

    def total(share: float) -> float:
        means = width / (share * epsilon * sizes)
        off = np.hypot(2 * away * means, math.sqrt(10) * means**2)
        loose = float(np.max(np.hypot(off, width**2 / (epsilon * sizes))))
        return sum(
            float(half_width(_CONFIDENCE, np.array([spread**2]), scale, loose)[0])
            for scale in (noise / (1 - share) / norms).tolist()
        )

    return min(SHARES, key=total)
