"""Borrowing strength: every cell's estimate shrunk towards what all released cells have in common.

Post-processing of released numbers, so it costs no privacy. It is another estimate, named as what
it is: biased towards the common mean and usually far closer to the truth where noise is large. It
never takes the place of the plain estimate, and is in no manifest (docs/theory/shrinkage.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.statistics.mean import Mean
from shoal.checks import check_confidence
from shoal.errors import InputError
from shoal.theory import shrinkage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from shoal.cells.estimates import Numbers
    from shoal.theory.shrinkage import Prior


@dataclass(frozen=True, eq=False)
class Shrunken:
    """Estimates that are shrunk together, in the order of released cells.

    Attributes:
        plain: The means as released, in the value's unit.
        value: Posterior means.
        low: Lower ends of posterior intervals.
        high: Upper ends.
    """

    plain: NDArray[np.float64]
    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def shrink(numbers: Numbers, confidence: float, group: NDArray[np.int64] | None = None) -> Shrunken:
    """Shrink the means of released cells towards what they have in common: empirical Bayes.

    The prior N(m, t^2) is fitted to the noisy numbers, without what public weights put into the
    middle; an estimate is the mean of its posterior under Laplace noise, widened by what
    exchangeable users leave of the bias. Intervals are posterior quantiles under a prior that is
    wider by the standard errors of m and t^2; over the cells together they cover as often as they
    say if the cells' true means are about normal. Groups of cells have priors of their own; cells
    of a group of fewer than three share that of all cells.

    Args:
        numbers: What was released.
        confidence: Of the intervals.
        group: Of each released cell, from 0; all cells are one group without it.

    Raises:
        InputError: No means, fewer than three cells, Gaussian noise, or confidence is no
            probability strictly between 0 and 1.
    """
    confidence = check_confidence(confidence)
    plan = numbers.plan
    if Mean() not in plan.statistics or plan.gaussian:
        raise InputError(
            "a release without means, or with Gaussian noise",
            "means with Laplace noise",
            "use the plain estimates",
        )
    first = plan.statistics.index(Mean()) * len(plan.released)
    means = slice(first, first + len(plan.released))
    # Weights of squares of values near either end of what numbers reach would be no numbers.
    unit = 2.0 ** math.frexp(plan.bounds.width)[1]
    estimate, scale, deviation = (found / unit for found in numbers.unshrunk())
    fewest = plan.parts.shrinkage.fewest
    if len(estimate) < fewest:
        raise InputError(
            f"{len(estimate)} released cells",
            f"at least {fewest}",
            "there is no common mean",
        )
    # A Laplace scale with the variance of noise and of the users' deviation together.
    whole = np.sqrt(scale**2 + deviation**2 / 2)
    value, low, high = (np.zeros(len(estimate)) for _ in range(3))
    for inside, sources in _groups(len(estimate), group, fewest):
        prior = shrinkage.fit_prior(estimate[sources], 2 * whole[sources] ** 2)
        found = _posterior(estimate[inside], whole[inside], prior, confidence, whole[sources])
        value[inside], low[inside], high[inside] = found
    least, most = (ends[means] for ends in numbers.range)
    bounds, value = plan.bounds, np.clip(value * unit, least, most)
    low, high = low * unit, high * unit
    low, high = np.clip(low, bounds.lo, bounds.hi), np.clip(high, bounds.lo, bounds.hi)
    plain = numbers.value[means]
    return Shrunken(plain, value, np.minimum(low, value), np.maximum(high, value))


def _groups(
    size: int, group: NDArray[np.int64] | None, fewest: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Cells of each group, and those its prior is fitted to."""
    everyone = np.arange(size)
    if group is None:
        yield everyone, everyone
        return
    order = np.argsort(group, kind="stable")
    for inside in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        yield inside, inside if len(inside) >= fewest else everyone


def _posterior(
    estimate: NDArray[np.float64],
    scale: NDArray[np.float64],
    prior: Prior,
    confidence: float,
    sources: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    miss = (1 - confidence) / 2
    wide = replace(prior, deviation=shrinkage.widened(prior, 2 * sources**2))
    return (
        shrinkage.posterior_mean(estimate, scale, prior),
        shrinkage.posterior_quantile(estimate, scale, wide, miss),
        shrinkage.posterior_quantile(estimate, scale, wide, 1 - miss),
    )
