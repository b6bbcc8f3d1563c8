"""Weights of clusters that make an effect with its noise most precise.

Source: docs/theory/questions.md#precision-weights.
"""

import numpy as np
from numpy.typing import NDArray

from shoal import checks
from shoal.errors import InputError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def precision_shares(sizes: Ints, ratio: float, epsilon: float) -> Floats:
    """The shares omega_c of clusters with the least variance of effect and Laplace noise.

    They minimise sum omega_c^2/h_c + 2 (r/eps)^2 max (omega_c/m_c)^2 over sum omega_c = 1, with
    1/h_c = 1/n_{c,1} + 1/n_{c,0}, m_c = min(n_{c,1}, n_{c,0}) and r = U/sigma: omega_c is
    proportional to min(h_c, t m_c), where t solves sum m_c (1 - t m_c/h_c)^+ = 2 (r/eps)^2 t. The
    left side is linear between the sorted h_c/m_c, so that t is found exactly.
    """
    sizes = np.asarray(sizes, np.int64)
    if not len(sizes) or int(sizes.min()) < 1:
        raise InputError("a cluster without a unit in an arm", "merge clusters")
    ratio = checks.number(ratio, "ratio", above=0, example=2)
    epsilon = checks.number(epsilon, "epsilon", above=0, example=1)
    harmonic = 1 / (1 / sizes[:, 0] + 1 / sizes[:, 1])
    least = sizes.min(axis=1).astype(np.float64)
    limit = harmonic / least
    falling = np.argsort(-limit, kind="stable")
    # With the k clusters of the largest h/m held at t m, k = 1, 2, ...
    held = np.cumsum(least[falling])
    curved = np.cumsum(least[falling] ** 2 / harmonic[falling])
    tried = held / (2 * (ratio / epsilon) ** 2 + curved)
    following = np.append(limit[falling][1:], 0.0)
    cap = tried[int(np.argmax(tried >= following))]
    found = np.minimum(harmonic, cap * least)
    return np.asarray(found / found.sum())


def distance(shares: Floats, units: Ints) -> float:
    """How far shares are from those of the units: 1/2 sum|omega_c - n_c/n|.

    If effects of clusters lie within an interval of width D, the weighed effect is at most D times
    this from the average over the units.
    """
    shares = np.asarray(shares, np.float64)
    units = np.asarray(units, np.int64)
    if not len(units) or int(units.min()) < 0 or not units.any():
        raise InputError("no units", "give the units of each cluster")
    return float(np.abs(shares - units / units.sum()).sum() / 2)
