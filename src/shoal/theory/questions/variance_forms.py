"""The estimate CR2 of a sampling variance as a public quadratic form.

Source: docs/theory/questions.md#variances-as-forms.
"""

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]

# Parts of a group that the regressors fit exactly have no residuals: their roots are 0.
_FITTED = 1e-9


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


def _weighed(weights: Floats, code: Codes) -> tuple[Floats, Codes]:
    weights = np.asarray(weights, np.float64)
    code = np.asarray(code, np.int64)
    if not len(code) or int(code.min()) < 0:
        raise InputError("no units, or codes below 0", "number labels from 0")
    return weights, code
