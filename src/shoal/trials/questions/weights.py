"""Questions as rows of public weights: effects, means of arms, regressions.

A question is theta = sum w_i y_i of the outcomes y_i of all units; a row has the weight of a unit
of each kind, shape (questions, kinds). Source: docs/theory/questions.md#rows-of-weights.
"""

from __future__ import annotations

import numpy as np

from shoal.trials.design import Design, Floats, Ints


def lengths(rows: Floats, many: Ints) -> Floats:
    """|w|_2 over all units of each question."""
    # Scaled first: squares of small weights leave the floating-point numbers.
    most = np.abs(rows).max(axis=1, keepdims=True)
    return np.asarray(most[:, 0] * np.sqrt(((rows / most) ** 2 * many).sum(axis=1)))


def effect(design: Design, arm: int, shares: Floats | None = None) -> Floats:
    """The stratified effect sum of omega_c (mean of the arm - mean of control in c).

    w_i = omega_c/n_{c,a} in the arm, -omega_c/n_{c,0} in control, and 0 in other arms. Unless
    given, omega_c = n_c/n with all arms: the average effect on the units.
    """
    sizes = design.sizes
    share = sizes.sum(axis=1) / design.n if shares is None else shares
    sign = (design.arm == arm).astype(float) - (design.arm == 0)
    return np.asarray(sign * share[design.cluster] / sizes[design.cluster, design.arm])


def effects_by(design: Design, arm: int, group: Ints) -> Floats | None:
    """The stratified effect in each subgroup, with the subgroup's parts of clusters.

    None if a part of a cluster has nobody in the arm or in control.
    """
    many, values = design.many, int(group.max()) + 1
    part = np.unique(group * len(design.clusters) + design.cluster, return_inverse=True)[1]
    pair = np.where(design.arm == arm, 1, np.where(design.arm == 0, 0, 2))
    sizes = np.bincount(part * 3 + pair, many, 3 * (int(part.max()) + 1)).reshape(-1, 3)
    if not sizes[:, :2].all():
        return None
    share = np.bincount(part, many)[part] / np.bincount(group, many)[group]
    own = np.where(pair < 2, np.where(pair == 1, share, -share) / sizes[part, pair], 0.0)
    found = np.zeros((values, len(group)))
    found[group, np.arange(len(group))] = own
    return found


def arm_means(design: Design) -> Floats:
    """The plain mean of each arm: 1/n_a for its units."""
    units = np.bincount(design.arm, design.many)
    found = np.zeros((len(units), len(design.arm)))
    found[design.arm, np.arange(len(design.arm))] = 1 / units[design.arm]
    return found


def regression(regressors: Floats, many: Ints) -> Floats:
    """Every coefficient of a least squares regression: (X'MX)^-1 x of each kind, M its units."""
    from scipy.linalg import qr, solve_triangular

    root = np.sqrt(many)
    scaled = regressors * root[:, None]
    length = np.linalg.norm(scaled, axis=0)
    basis, triangle, order = qr(scaled / length, mode="economic", pivoting=True)
    found = np.empty((len(order), len(many)))
    found[order] = solve_triangular(triangle, basis.T) / length[order, None]
    return found / root


def precision_shares(sizes: Ints, ratio: float) -> Floats:
    """The shares omega_c of clusters with the least variance of effect and Laplace noise.

    They minimise sum omega_c^2/h_c + 2 r^2 max (omega_c/m_c)^2 over sum omega_c = 1, with
    1/h_c = 1/n_{c,1} + 1/n_{c,0}, m_c = min(n_{c,1}, n_{c,0}) and r = U/(sigma eps): omega_c is
    proportional to min(h_c, t m_c), where t solves sum m_c (1 - t m_c/h_c)^+ = 2 r^2 t. The
    left side is linear between the sorted h_c/m_c, so that t is found exactly. `sizes` are those of
    control and an arm, shape (clusters, 2) (docs/theory/questions.md#precision-weights).
    """
    harmonic = 1 / (1 / sizes[:, 0] + 1 / sizes[:, 1])
    least = sizes.min(axis=1).astype(np.float64)
    limit = harmonic / least
    falling = np.argsort(-limit, kind="stable")
    # With the k clusters of the largest h/m held at t m, k = 1, 2, ...
    held = np.cumsum(least[falling])
    curved = np.cumsum(least[falling] ** 2 / harmonic[falling])
    tried = held / (2 * ratio**2 + curved)
    cap = tried[int(np.argmax(tried >= np.append(limit[falling][1:], 0.0)))]
    found = np.minimum(harmonic, cap * least)
    return np.asarray(found / found.sum())
