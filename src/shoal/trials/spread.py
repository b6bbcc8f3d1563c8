"""Estimated variances: sums of them, and how clusters differ, with degrees of freedom."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# A share that is short of 1/2 by less is taken for it: rounding decides nothing.
_HALF = 1e-9


@dataclass(frozen=True)
class Spread:
    """An estimated variance and the degrees of freedom that it is known with."""

    variance: float
    degrees: float


def added(
    variances: NDArray[np.float64], degrees: NDArray[np.float64], known: float = 0.0
) -> Spread:
    """The sum of independent estimates of variances, with Welch's degrees of freedom.

    V = known + sum a_k with nu = V^2 / sum a_k^2/(f_k + 2) - 2, which is f for one estimate and
    never below the least f_k. a_k^2 is too large by 1 + 2/f_k on average; f_k + 2 in place of f_k
    takes that back, which matters for many small groups (`docs/theory/inference.md`).

    Args:
        variances: a_k, at least 0, in squared units of the outcome.
        degrees: f_k, above 0, one for each.
        known: A part that is not estimated: noise of a public scale.

    Example:
        >>> added(np.array([2.0, 2.0]), np.array([9.0, 9.0]))
        Spread(variance=4.0, degrees=20.0)
        >>> added(np.array([2.0]), np.array([9.0]))
        Spread(variance=2.0, degrees=9.0)
    """
    total = float(variances.sum()) + known
    if not variances.any():
        return Spread(total, math.inf)
    uncertain = float(((variances / total) ** 2 / (degrees + 2)).sum())
    return Spread(total, 1 / uncertain - 2)


def between(
    weight: NDArray[np.float64], value: NDArray[np.float64], scale: NDArray[np.float64]
) -> Spread:
    """The variance of sum w_c D_c from how uncorrelated D_c differ: never too small on average.

    With p_c = w_c/sum w all at most 1/2, b_c = k w_c^2/(1 - 2 p_c) and 1/k = 1 + sum p_c^2/(1 -
    2 p_c), the sum of b_c (D_c - sum p D)^2 has the expectation Var(sum w_c D_c) + sum b_c (E D_c
    - sum p E D)^2 (Pashley and Miratrix 2021, for any weights). A cluster with more than half of
    the weight: the others' weights are raised until it has half, which only enlarges the estimate.

    Args:
        weight: w_c > 0, at least two.
        value: D_c, in the outcome's unit.
        scale: Var(D_c) up to a common factor, for the degrees of freedom: those of a quadratic
            form, tr(AV)^2/tr(AVAV), the smaller for these and for equal variances.

    Example:
        >>> between(np.full(3, 1 / 3), np.array([1.0, 2.0, 3.0]), np.ones(3))
        Spread(variance=0.333..., degrees=2.0...)
    """
    heaviest = int(weight.argmax())
    top = float(weight[heaviest])
    others = float(np.delete(weight, heaviest).sum())
    if top >= others * (1 - _HALF):
        share = weight / others / 2
        share[heaviest] = 1 / 2
        # The limit of the formula: that of the others' mean against the heaviest.
        factor = np.zeros_like(weight)
        factor[heaviest] = 4 * max(top, others) ** 2
    else:
        share = weight / weight.sum()
        capacity = 1 - 2 * share
        factor = weight**2 / capacity / (1 + float((share**2 / capacity).sum()))
    variance = float(factor @ (value - share @ value) ** 2)
    least = min(_degrees(factor, share, scale), _degrees(factor, share, np.ones_like(scale)))
    return Spread(variance, max(1.0, least))


def _degrees(
    factor: NDArray[np.float64], share: NDArray[np.float64], scale: NDArray[np.float64]
) -> float:
    """tr(AV)^2/tr(AVAV) of A = (I - p 1')B(I - 1 p'), V diagonal: a diagonal and rank two."""
    main, total = factor * scale, float(factor.sum())
    p, b = share * np.sqrt(scale), factor * np.sqrt(scale)
    pp, pb, bb = float(p @ p), float(p @ b), float(b @ b)
    trace = float(main.sum()) - 2 * pb + total * pp
    square = float(main @ main) + 2 * pp * bb + 2 * pb**2 + total**2 * pp**2
    square += -4 * float(main @ (p * b)) + 2 * total * float(main @ p**2) - 4 * total * pp * pb
    return trace**2 / square
