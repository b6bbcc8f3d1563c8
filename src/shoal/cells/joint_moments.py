"""Variances from noisy first and second moments that were released together.

Over the ranges (U and U^2/4), with s1 and s2 the noisy numbers, b1 the noise scale of the first and
c what bounding may add in the middle: variance = s2 - 4 (s1 - 1/2)^2 + 4 E[noise1^2] + c, unbiased
but for bounding (docs/theory/variance.md#mean-and-second-moment-together).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.plan_facts import PlanFacts


def rows(plan: PlanFacts) -> tuple[int, int]:
    """First and last-plus-one place of the variances among the numbers."""
    cells, (_, second) = len(plan.released), plan.queries.pair
    return second * cells, (second + 1) * cells


def variances(plan: PlanFacts, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Estimates of the variances, in their unit.

    Args:
        plan: A plan with a joint release.
        shares: All numbers over their ranges.
    """
    centre, second, scale = _moments(plan, shares)
    square = 1 if plan.gaussian else 2
    estimate = second - 4 * centre**2 + 4 * square * scale**2 + middle(plan)
    return np.asarray(estimate * plan.width**2 / 4)


def intervals(
    plan: PlanFacts, shares: NDArray[np.float64], quantile: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends that cover the variance whenever both noises stay below a quantile.

    Then the first moment is known to lie in an interval, so its square does, and the second moment
    in another; the bias bound is added on both sides.

    Args:
        plan: A plan with a joint release.
        shares: All numbers over their ranges.
        quantile: Of the noise, in noise scales: exceeded by each with half the chance of a miss.
    """
    centre, second, scale = _moments(plan, shares)
    where = slice(*rows(plan))
    contribution = np.minimum(np.abs(centre) + quantile * scale, 0.5)
    near = np.maximum(np.abs(centre) - quantile * scale, 0.0)
    noise, bias = quantile * plan.relative_scale[where], plan.bias_bound[where]
    low, high = second - noise - 4 * contribution**2, second + noise - 4 * near**2
    unit = plan.width**2 / 4
    return (low + middle(plan)) * unit - bias, (high + middle(plan)) * unit + bias


def middle(plan: PlanFacts) -> NDArray[np.float64]:
    """The middle of what missing mass may add to each variance, over U^2/4."""
    missing = plan.design.missing
    added = missing * (1 - missing)
    return np.where(missing > 1 / 2, 1 / 2 - added, added)


def _moments(
    plan: PlanFacts, shares: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Centred first moment over U, second over U^2/4, noise scale of the first over U."""
    first, second = plan.queries.pair
    numbers = plan.queries.per_statistic(shares)
    scale = plan.queries.per_statistic(plan.relative_scale)[first]
    return numbers[first] - 1 / 2, numbers[second], scale
