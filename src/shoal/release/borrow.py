"""Borrowing strength: every cell's estimate shrunk towards what all released cells have in common.

Post-processing of released numbers, so it costs no privacy. It is another estimate, named as what
it is: biased towards the common mean and usually far closer to the truth where noise is large. It
never takes the place of the plain estimate, and is in no manifest (Theory 2, section 6).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import InputError
from shoal.release.numbers import check_confidence
from shoal.theory import shrinkage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.release.numbers import Numbers
    from shoal.theory.shrinkage import Prior

_FEWEST = 3


@dataclass(frozen=True, eq=False)
class Borrowed:
    """Estimates that borrow from each other, in the order of released cells.

    Attributes:
        value: Posterior means, in the value's unit.
        low: Lower ends of posterior intervals.
        high: Upper ends.
        prior: What the cells have in common: a mean and a spread.
    """

    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    prior: Prior


def borrow(numbers: Numbers, confidence: float) -> Borrowed:
    """Shrink the estimates of all released cells towards their common mean by empirical Bayes.

    The prior N(m, t^2) is fitted to the noisy numbers; an estimate is the mean of its posterior
    under Laplace noise, widened by what exchangeable users leave of the bias. Intervals are
    posterior quantiles under a prior that is wider by the standard errors of m and t^2; over the
    cells together they cover as often as they say if the cells' true means are about normal.

    Args:
        numbers: What was released.
        confidence: Of the intervals.

    Raises:
        InputError: Fewer than three cells, or confidence is no probability strictly between 0
            and 1.
    """
    check_confidence(confidence)
    estimate, scale = numbers.unclamped, numbers.noise_scale
    if len(estimate) < _FEWEST:
        raise InputError(
            f"{len(estimate)} released cells", f"at least {_FEWEST}", "there is nothing to borrow"
        )
    # A Laplace scale with the variance of noise and of the users' deviation together.
    whole = np.sqrt(scale**2 + numbers.deviation**2 / 2)
    prior = shrinkage.fit_prior(estimate, 2 * whole**2)
    low, high = numbers.range
    miss = (1 - confidence) / 2
    wide = replace(prior, deviation=shrinkage.widened(prior, 2 * whole**2))
    value = np.clip(shrinkage.posterior_mean(estimate, whole, prior), low, high)
    bounds = numbers.plan.bounds
    ends = [
        np.clip(shrinkage.posterior_quantile(estimate, whole, wide, level), bounds.lo, bounds.hi)
        for level in (miss, 1 - miss)
    ]
    return Borrowed(value, np.minimum(ends[0], value), np.maximum(ends[1], value), prior)
