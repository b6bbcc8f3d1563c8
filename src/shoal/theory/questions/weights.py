"""Questions as rows of public weights: effects, means of arms, regressions.

A question is theta = sum w_i y_i of the outcomes y_i of all units. All but y is public: arms,
clusters and covariates.
Source: docs/theory/questions.md#rows-of-weights.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal import checks
from shoal.errors import InputError

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]

# A column of length 1 whose part beyond the other columns is below this depends on them.
_COLLINEAR = 1e-9
_TREATED, _CONTROL = 1, 0


def effect(arm: Codes, cluster: Codes, *, shares: Floats | None = None) -> Floats:
    """Weights of the stratified effect sum of omega_c (mean of arm 1 - mean of arm 0 in c).

    w_i = omega_c/n_{c,1} in arm 1, -omega_c/n_{c,0} in arm 0, and 0 in other arms. Unless given,
    omega_c = n_c/n with all arms: the average effect on the units.
    """
    sizes = cell_sizes(arm, cluster)
    if shares is None:
        shares = np.bincount(cluster) / len(cluster)
    shares = np.asarray(shares, np.float64)
    if bool((shares < 0).any()):
        raise InputError("a share below 0", "give a part of the whole a cluster")
    return _signed(arm, shares[cluster], sizes[cluster])


def arm_means(arm: Codes) -> Floats:
    """Weights of the plain mean of each arm: 1/n_a for its units."""
    arm = _codes(arm, "arm")
    units = np.bincount(arm)
    if not units.all():
        raise _empty("arm", int(np.flatnonzero(units == 0)[0]))
    found = np.zeros((len(units), len(arm)))
    found[arm, np.arange(len(arm))] = 1 / units[arm]
    return found


def effects_by(arm: Codes, cluster: Codes, group: Codes) -> Floats:
    """Weights of the stratified effect in each subgroup, with the subgroup's parts of clusters.

    With the group's own cluster codes it is the effect in each cluster; a difference of two rows is
    a difference of effects.
    """
    group = _codes(group, "group")
    cluster = _codes(cluster, "cluster", len(group))
    _, part = np.unique(group * (int(cluster.max()) + 1) + cluster, return_inverse=True)
    part = part.astype(np.int64)
    sizes = cell_sizes(arm, part)
    share = np.bincount(part)[part] / np.bincount(group)[group]
    found = np.zeros((int(group.max()) + 1, len(group)))
    if not np.bincount(group).all():
        raise _empty("group", int(np.flatnonzero(np.bincount(group) == 0)[0]))
    found[group, np.arange(len(group))] = _signed(arm, share, sizes[part])
    return found


def regression(design: Floats, *, precision: Floats | None = None) -> Floats:
    """Weights of every coefficient of a least squares regression: rows of (X'DX)^-1 X'D.

    D is the identity, or the diagonal matrix of the given precisions.
    """
    from scipy.linalg import qr, solve_triangular

    shape: tuple[int, ...] = getattr(design, "shape", ())
    if len(shape) != 2 or not 0 < shape[1] <= shape[0]:
        raise InputError(f"a design of shape {shape}", "ask fewer questions than there are units")
    design = np.asarray(design, np.float64)
    if not np.isfinite(design).all():
        raise InputError("a design without a number somewhere", "drop these units")
    root = np.ones(shape[0])
    if precision is not None:
        precision = np.asarray(precision, np.float64)
        if not bool((precision > 0).all()):
            raise InputError("a precision of at most 0", "drop these units")
        root = np.sqrt(precision)
    scaled = design * root[:, None]
    length = np.linalg.norm(scaled, axis=0)
    basis, triangle, order = qr(
        scaled / np.where(length > 0, length, 1), mode="economic", pivoting=True
    )
    dependent = np.flatnonzero(np.abs(np.diag(triangle)) < _COLLINEAR)
    if len(dependent):
        raise InputError(
            f"a design whose column {order[dependent[0]]} depends on the others",
            "leave that column out (columns count from 0)",
        )
    found = np.empty((shape[1], shape[0]))
    found[order] = solve_triangular(triangle, basis.T) / length[order, None]
    return found * root


def stack(rows: Sequence[Floats]) -> Floats:
    """All questions of a release as one matrix W."""
    every = [np.atleast_2d(np.asarray(each, dtype=np.float64)) for each in rows]
    if not every or len({each.shape[1:] for each in every}) != 1 or every[0].ndim > 2:
        raise InputError(
            "questions of different numbers of units, or none",
            "make all rows from the same columns",
        )
    return check_rows(np.concatenate(every))


def check_rows(rows: Floats) -> Floats:
    """W as it was given, if it is a matrix of questions that may be asked."""
    shape: tuple[int, ...] = getattr(rows, "shape", ())
    if len(shape) != 2 or not 0 < shape[0] <= shape[1]:
        raise InputError(f"questions of shape {shape}", "ask fewer questions")
    rows = np.asarray(rows, np.float64)
    if not (np.isfinite(rows).all() and rows.any(axis=1).all()):
        raise InputError("a question without any weight", "leave it out")
    return rows


def spikiness(rows: Floats) -> Floats:
    """The spikiness max|w_i|/|w|_2 of each question, from n^(-1/2) to 1: it decides the noise.

    Source: docs/theory/questions.md#spikiness.
    """
    rows = check_rows(rows)
    most = np.abs(rows).max(axis=1)
    # Scaled first: squares of small weights leave the floating-point numbers.
    return np.asarray(1 / np.linalg.norm(rows / most[:, None], axis=1))


def widening(kappa: float, ratio: float, epsilon: float) -> float:
    """How much wider Laplace noise makes the interval of one question: sqrt(1 + 2 (kappa r/eps)^2).

    r = U/sigma is the width of the outcomes over their residual deviation.

    Source: docs/theory/questions.md#spikiness.
    """
    kappa = checks.number(kappa, "kappa", above=0, most=1, example=0.1)
    ratio = checks.number(ratio, "ratio", above=0, example=2)
    epsilon = checks.number(epsilon, "epsilon", above=0, example=1)
    return math.hypot(1, math.sqrt(2) * kappa * ratio / epsilon)


def scaled(rows: Floats, width: float, targets: Floats | None = None) -> Floats:
    """Sensitivity vectors v_i = U S W_i of all units, S = diag(1/target_k).

    Unless given, target_k = |w_k|_2: then noise widens all intervals alike.

    Source: docs/theory/questions.md#noise-for-many-questions.
    """
    rows = check_rows(rows)
    width = checks.number(width, "width", above=0)
    if targets is None:
        targets = np.abs(rows).max(axis=1) / spikiness(rows)
    targets = np.asarray(targets, np.float64)
    if not bool((targets > 0).all()):
        raise InputError("a target of at most 0", "say which error is wanted")
    return np.asarray(rows * (width / targets)[:, None])


def cell_sizes(arm: Codes, cluster: Codes) -> Codes:
    """Units of arm 0 and of arm 1 in each cluster."""
    arm = _codes(arm, "arm")
    cluster = _codes(cluster, "cluster", len(arm))
    clusters = int(cluster.max()) + 1
    found = np.stack(
        [np.bincount(cluster[arm == each], minlength=clusters) for each in (_CONTROL, _TREATED)],
        axis=1,
    )
    if not found.all():
        at, which = np.argwhere(found == 0)[0].tolist()
        raise _empty(f"arm {which} of cluster", at)
    return found


def _signed(arm: Codes, share: Floats, sizes: Codes) -> Floats:
    """Weights of units with the shares and cell sizes of their clusters."""
    treated, control = share / sizes[:, _TREATED], -share / sizes[:, _CONTROL]
    return np.where(arm == _TREATED, treated, np.where(arm == _CONTROL, control, 0.0))


def _codes(values: Codes, name: str, units: int | None = None) -> Codes:
    found = np.asarray(values, np.int64)
    if not len(found) or int(found.min()) < 0:
        raise InputError(f"{name} without units, or codes below 0", "number the labels from 0")
    return np.asarray(found)


def _empty(what: str, code: int) -> InputError:
    return InputError(f"no unit in {what} {code}", "merge cells, or leave out this one")
