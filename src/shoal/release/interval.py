"""Confidence intervals for the mean of the records in a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import InputError
from shoal.theory import laplace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.planning.facts import PlanFacts


def half_widths(plan: PlanFacts, confidence: float) -> NDArray[np.float64]:
    """Bias bound plus the noise's quantile of each released cell, in the value's unit.

    The noise exceeds the quantile with probability at most 1 - confidence, so the interval covers
    the mean of the cell's records (clipped to the bounds) at least that often, in every data set.

    Args:
        plan: What was carried out.
        confidence: Strictly between 0 and 1.

    Raises:
        InputError: confidence is not a probability strictly between 0 and 1.
    """
    number = isinstance(confidence, int | float) and not isinstance(confidence, bool)
    if not number or not 0 < confidence < 1:
        raise InputError(
            f"confidence is {confidence!r}",
            "a number strictly between 0 and 1",
            "give for example confidence=0.95",
        )
    quantile = laplace.tail_quantile(2.0**plan.lattice_bits, 1 - confidence)
    return plan.bias_bound + plan.noise_scale * (quantile * 2.0**-plan.lattice_bits)


def intervals(
    plan: PlanFacts, unclamped: NDArray[np.float64], confidence: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper ends around unclamped values, cut to the bounds, which no mean leaves.

    Where nothing of the interval lies within the bounds the noise was exceptional; then the whole
    range is given, which covers in any case.
    """
    half, bounds = half_widths(plan, confidence), plan.bounds
    low, high = unclamped - half, unclamped + half
    outside = (low > bounds.hi) | (high < bounds.lo)
    return (
        np.where(outside, bounds.lo, np.maximum(low, bounds.lo)),
        np.where(outside, bounds.hi, np.minimum(high, bounds.hi)),
    )
