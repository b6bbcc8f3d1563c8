"""Estimates of sampling variances as public quadratic forms: Neyman's, matched pairs, CR2.

Source: docs/theory/questions.md#variances-as-forms.
"""

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]

# Parts of a group that the regressors fit exactly have no residuals: their roots are 0.
_FITTED = 1e-9
_BALANCED = 1e-9


def neyman(weights: Floats, cell: Codes) -> Floats:
    """Q of Neyman's stratified variance: sum over cells of n w^2 s^2.

    Within a cell of n units and weight w its block is w^2 n/(n - 1) (I - 11'/n): |Q_ii| = S_i =
    w_i^2, so that its sensitivity is U^2 max w_i^2.
    """
    weights, cell = _weighed(weights, cell)
    units = np.bincount(cell)
    first = np.zeros(len(units))
    first[cell] = weights
    if bool((units == 1).any()) or bool((first[cell] != weights).any()):
        raise InputError(
            "a cell of one unit, or of unequal weights",
            "merge cells, or take the arms' second moments",
        )
    within = cell[:, None] == cell[None, :]
    size = units[cell]
    block = within * (-(weights**2) / (size - 1))
    np.fill_diagonal(block, weights**2)
    return np.asarray(block)


def matched_pairs(weights: Floats, pair: Codes) -> Floats:
    """Factor B of the variance of a mean over pairs: sum (D_p - D)^2/(P (P - 1)).

    D_p = P sum of w_i y_i over the pair; their mean D is the effect, with P - 1 degrees. For single
    units |Q_ii| = 1/P^2 and S_i = 3/P^2.
    """
    weights, pair = _weighed(weights, pair)
    pairs = int(pair.max()) + 1
    sums = np.bincount(pair, weights, minlength=pairs)
    sizes = np.bincount(pair, np.abs(weights), minlength=pairs)
    if pairs == 1 or not sizes.all() or bool((np.abs(sums) > _BALANCED * sizes).any()):
        raise InputError(
            "one pair, a pair without weight, or one whose weights do not sum to 0",
            "drop pairs that are not complete",
        )
    differences = np.zeros((pairs, len(weights)))
    differences[pair, np.arange(len(weights))] = pairs * weights
    centred = differences - differences.mean(axis=0)
    return np.asarray(centred / np.sqrt(pairs * (pairs - 1)))


def cr2(design: Floats, cluster: Codes, weights: Floats) -> Floats:
    """Factor B of the variance CR2 of a coefficient, clustered by groups assigned at once.

    B_g = w_g' (I - H_gg)^(-1/2) (I - H)_g with H = X (X'X)^-1 X' and the symmetric root of the
    generalised inverse: sum_g (w_g' A_g e_g)^2 of the residuals e. Unbiased where outcomes are
    independent with one variance (Bell and McCaffrey 2002; Pustejovsky and Tipton 2018).
    """
    weights, cluster = _weighed(weights, cluster)
    design = np.asarray(design, np.float64)
    groups = int(cluster.max()) + 1
    if groups == 1 or not np.bincount(cluster).all():
        raise InputError("one group, or an empty one", "number them from 0")
    basis, _ = np.linalg.qr(design)
    found = np.zeros((groups, len(weights)))
    for group in range(groups):
        own = np.flatnonzero(cluster == group)
        leverage = basis[own] @ basis[own].T
        values, axes = np.linalg.eigh(np.eye(len(own)) - leverage)
        roots = np.where(values > _FITTED, 1 / np.sqrt(np.maximum(values, _FITTED)), 0.0)
        adjusted = (axes * roots) @ (axes.T @ weights[own])
        found[group] = -(adjusted @ basis[own]) @ basis.T
        found[group, own] += adjusted
    return found


def degrees_of_freedom(factor: Floats) -> float:
    """Bell and McCaffrey's degrees of V = |B y|^2: (sum lambda)^2/sum lambda^2 of B B'."""
    product = factor @ factor.T
    square = float((product**2).sum())
    if not square > 0:
        raise InputError("a variance that is always 0", "ask another question")
    return float(np.trace(product)) ** 2 / square


def _weighed(weights: Floats, code: Codes) -> tuple[Floats, Codes]:
    weights = np.asarray(weights, np.float64)
    code = np.asarray(code, np.int64)
    if not len(code) or int(code.min()) < 0:
        raise InputError("no units, or codes below 0", "number labels from 0")
    return weights, code
