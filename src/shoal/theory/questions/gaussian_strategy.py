"""The Gaussian noise of many questions with the least total variance, and its certificate.

Noise with covariance Sigma/(2 rho) is rho-zCDP iff v_i' Sigma^-1 v_i <= 1 for the sensitivity
vectors v_i of all units.

Source: docs/theory/questions.md#gaussian-noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal import checks
from shoal.checks.frozen import Frozen
from shoal.errors import InputError
from shoal.theory.questions.weights import check_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_MOST_STEPS = 20_000
# Directions in which vectors are shorter, as a part of the longest, depend on the others.
_DEPENDENT = 1e-10
# Covers the roundings of v' Sigma^-1 v: no unit is beyond 1.
_OUTWARD = 1 + 2.0**-40


@dataclass(frozen=True)
class GaussianStrategy(Frozen):
    """Noise of many questions, and proof of how near it is to the least.

    Source: docs/theory/questions.md#gaussian-noise.

    Attributes:
        covariance: Sigma in squared units of the targets, shape (questions, questions); divide by
            2 rho.
        unit_weights: p, the dual variables: parts of 1, shape (units,).
        lower_bound: (tr M(p)^(1/2))^2 in squared units of the targets: no feasible covariance has
            a smaller trace.
    """

    covariance: Floats
    unit_weights: Floats
    lower_bound: float

    @property
    def total(self) -> float:
        """Trace of the covariance, in squared units of the targets."""
        return float(np.trace(self.covariance))

    @property
    def gap(self) -> float:
        """At most this part above the least total variance is lost."""
        return self.total / self.lower_bound - 1


def least_covariance(vectors: Floats, *, tolerance: float = 5e-5) -> GaussianStrategy:
    """The covariance with the least trace among those with v_i' Sigma^-1 v_i <= 1 for all units.

    min tr Sigma = max over p of (tr M(p)^(1/2))^2, M(p) = sum p_i v_i v_i', and Sigma is
    tr(M^(1/2)) M^(1/2) there. Each step multiplies p_i by v_i' M^(-1/2) v_i/tr M^(1/2), until the
    largest of these is 1 + tolerance.

    Source: docs/theory/questions.md#gaussian-noise.

    Args:
        vectors: V in units of the targets, shape (questions, units); questions may depend on one
            another.
        tolerance: Largest gap, as a part of the least total variance.

    Returns:
        The noise with its dual variables, shape (units,).

    Raises:
        InputError: No such vectors, or more steps than allowed.

    Guarantees: G-STRATEGY.

    Example:
        >>> found = least_covariance(np.eye(2))
        >>> found.covariance.round(3).tolist(), round(found.lower_bound, 3)
        ([[1.0, 0.0], [0.0, 1.0]], 2.0)
    """
    tolerance = checks.number(tolerance, "tolerance", least=1e-9, most=1, example=1e-4)
    basis, inside = independent(vectors)
    weights = np.full(inside.shape[1], 1 / inside.shape[1])
    for _ in range(_MOST_STEPS):
        values, axes = np.linalg.eigh((inside * weights) @ inside.T)
        # A direction without weight would divide by zero: it keeps a little.
        roots = np.sqrt(np.maximum(values, values[-1] * 2.0**-96))
        total = float(roots.sum())
        along = (axes / np.sqrt(roots)).T @ inside
        slack = np.einsum("ij,ij->j", along, along) / total
        most = float(slack.max())
        if most <= 1 + tolerance:
            root = (axes * roots) @ axes.T
            found = basis @ (root * (total * most * _OUTWARD)) @ basis.T
            return GaussianStrategy((found + found.T) / 2, weights, dual_bound(vectors, weights))
        weights *= slack
        weights /= weights.sum()
    raise InputError(
        f"noise that is further than {tolerance:g} from the least after {_MOST_STEPS} steps",
        "a tolerance that is reached",
        "ask for a larger tolerance",
    )


def dual_bound(vectors: Floats, unit_weights: Floats) -> float:
    """(tr M(p)^(1/2))^2: no feasible covariance has a smaller trace, whatever the weights p.

    It is (|V diag(p)^(1/2)|_*)^2, the squared sum of singular values, rounded downwards.

    Source: docs/theory/questions.md#gaussian-noise.

    Args:
        vectors: V in units of the targets, shape (questions, units).
        unit_weights: p, parts of 1, not below 0, shape (units,); divided by their sum.

    Returns:
        A total variance, in squared units of the targets.

    Raises:
        InputError: Weights below 0 or without a sum, or of another shape.

    Guarantees: G-STRATEGY.

    Example:
        >>> round(dual_bound(np.eye(2), np.array([0.5, 0.5])), 6)
        2.0
    """
    vectors = check_rows(vectors)
    weights = np.asarray(unit_weights, dtype=np.float64)
    total = float(weights.sum())
    if weights.shape != vectors.shape[1:] or not (weights >= 0).all() or not 0 < total < np.inf:
        raise InputError(
            "dual variables that are no weights", "numbers from 0", "take those of the strategy"
        )
    values = np.linalg.svd(vectors * np.sqrt(weights / total), compute_uv=False)
    return float(values.sum() ** 2 / _OUTWARD)


def independent(vectors: Floats) -> tuple[Floats, Floats]:
    """Vectors in a basis of the space that they fill, where questions depend on one another.

    Source: docs/theory/questions.md#gaussian-noise.

    Args:
        vectors: V in units of the targets, shape (questions, units).

    Returns:
        B with orthonormal columns, a part of 1, shape (questions, r), and u with B u = V, in units
        of the targets, shape (r, units).

    Raises:
        InputError: No such vectors.

    Example:
        >>> basis, inside = independent(np.array([[1.0, -1.0], [2.0, -2.0]]))
        >>> basis.shape, inside.shape
        ((2, 1), (1, 2))
    """
    vectors = check_rows(vectors)
    axes, values, rest = np.linalg.svd(vectors, full_matrices=False)
    kept = int((values > _DEPENDENT * values[0]).sum())
    return axes[:, :kept], values[:kept, None] * rest[:kept]
