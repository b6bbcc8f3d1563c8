"""Variance of effects in stratified experiments: of the assignment, and what privacy adds.

The estimator weighs each cluster by its share of the units: tau_a = sum_c (n_c/n)(mean of arm a -
mean of the control), arm 0, within cluster c. Shapes are clusters x arms, control first.
Source: docs/theory/trials.md#debiased-responses.
"""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def of_effects(unit: Floats, sizes: Ints) -> Floats:
    """Variance of each arm's effect if the units of a group have independent errors.

    sum_c (n_c/n)^2 (v_{a,c}/n_{a,c} + v_{0,c}/n_{0,c}).
    """
    means = _weights(sizes)[:, None] ** 2 * unit / sizes
    return np.asarray((means[:, 1:] + means[:, :1]).sum(axis=0))


def of_assignment(spread: Floats, effect_spread: Floats, sizes: Ints) -> Floats:
    """Variance of each arm's effect over the assignment, complete within clusters (Neyman).

    sum_c (n_c/n)^2 [S^2(y_c(a))/n_{a,c} + S^2(y_c(0))/n_{0,c} - S^2(tau_c)/n_c] with S^2 of
    divisor d - 1, over all units of a cluster (paper 003, appendix A.2;
    docs/theory/trials.md#debiased-responses).
    """
    shared = (_weights(sizes) ** 2 / sizes.sum(axis=1))[:, None] * effect_spread
    return np.asarray(of_effects(spread, sizes) - shared.sum(axis=0))


def of_noisy_differences(sizes: Ints, width: float, epsilon: float) -> float:
    """What noise on each cluster's difference of two means adds to the variance of the effect.

    2 sum_c ((n_c/n) D_c/epsilon)^2 with D_c = U/min(n_{0,c}, n_{1,c}). The paper takes max |y| for
    the width U, too small if outcomes have both signs (Proposition A.2, erratum 14).
    """
    scale = width / sizes.min(axis=1) / epsilon
    return float(2 * ((_weights(sizes) * scale) ** 2).sum())


def of_noisy_histograms(sizes: Ints, levels: Floats, epsilon: float) -> float:
    """What noise on the shares of all levels adds to the variance of the effect of two arms.

    sum_a sum_c (n_c/n)^2 2 (2/(n_{a,c} epsilon))^2 sum_y y^2. One label moves two shares: the
    paper's scale 1/(n epsilon) is half of what is needed (Proposition A.3, erratum 15).
    """
    scale = 2 / (sizes * epsilon)
    group = 2 * (_weights(sizes)[:, None] * scale) ** 2
    return float(group.sum() * (levels**2).sum())


def _weights(sizes: Ints) -> Floats:
    return np.asarray(sizes.sum(axis=1) / sizes.sum())
