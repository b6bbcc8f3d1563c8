"""The Gaussian noise of many questions with the least total variance, and its certificate.

Noise with covariance Sigma/(2 rho) is rho-zCDP iff v_i' Sigma^-1 v_i <= 1 for the sensitivity
vectors v_i of all units, the columns of V, shape (questions, units)
(docs/theory/questions.md#gaussian-noise).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal import checks
from shoal.errors import InputError
from shoal.theory.questions.weights import check_rows

Floats = NDArray[np.float64]

_MOST_STEPS = 20_000
# Shorter directions, as a part of the longest, are left to noise of each question by itself.
_SHORT = 1e-7
# Eigenvalues below this part of the largest are rounding error.
_ROUNDED = 2.0**-50
# Of vectors with questions of one size: what is shorter than the first is rounding error, and what
# is shorter than the second cannot be told from it well enough to be answered.
_DEPENDENT, _UNCLEAR = 2.0**-46, 2.0**-30
# In units of the targets: squares, and rounding errors of squares, stay floating-point numbers.
_LEAST, _MOST = 1e-75, 1e75
_UNIT_ROUNDOFF = 2.0**-53
# Covers the roundings of v' Sigma^-1 v: no unit is beyond 1.
_OUTWARD = 1 + 2.0**-40


@dataclass(frozen=True)
class GaussianStrategy:
    """Noise of many questions, and proof of how near it is to the least.

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
    largest of these is 1 + tolerance. What roundings and the shortest directions leave over has
    noise of each question by itself, so no direction that a unit moves is without noise.
    """
    tolerance = checks.number(tolerance, "tolerance", least=1e-9, most=1, example=1e-4)
    vectors = _sized(vectors)
    axes, values, rest = np.linalg.svd(vectors, full_matrices=False)
    inside = values[:, None] * rest
    length = np.abs(inside).max(axis=1)
    kept = length > _SHORT * length.max()
    basis, inside = axes[:, kept], inside[kept]
    weights = np.full(inside.shape[1], 1 / inside.shape[1])
    for _ in range(_MOST_STEPS):
        values, axes = np.linalg.eigh((inside * weights) @ inside.T)
        # A direction without weight would divide by zero: it keeps a little.
        roots = np.sqrt(np.maximum(values, values[-1] * _ROUNDED))
        total = float(roots.sum())
        along = (axes / np.sqrt(roots)).T @ inside
        slack = np.einsum("ij,ij->j", along, along) / total
        if float(slack.max()) <= 1 + tolerance:
            root = basis @ (axes * np.sqrt(roots * total))
            found = _covered(root, along / np.sqrt(total), vectors)
            return GaussianStrategy(found, weights, dual_bound(vectors, weights))
        weights *= slack
        weights /= weights.sum()
    raise InputError(
        f"noise that is further than {tolerance:g} from the least after {_MOST_STEPS} steps",
        "ask for a larger tolerance",
    )


def _covered(root: Floats, along: Floats, vectors: Floats) -> Floats:
    """A covariance with v_i' Sigma^-1 v_i <= 1 for all units, close to a multiple of F F'.

    For v = F z + r and a diagonal E, v' (F F' + E)^-1 v <= |z|^2 + r' E^-1 r: r is what roundings
    and short directions leave over, and E is noise of each question by itself for that.
    """
    questions = len(vectors)
    most = float(np.einsum("ij,ij->j", along, along).max())
    alone = questions * float((_left(root, along, vectors).max(axis=1) ** 2).sum())
    # Each entry of F F' is off by at most a part of the lengths of two rows of F.
    rounded = 8 * questions * (questions + 8) * _UNIT_ROUNDOFF
    outward = (1 + rounded) * _OUTWARD
    # The part of the loss that makes the trace least.
    part = 1 / (1 + np.sqrt(most * float((root**2).sum()) / alone))
    wider = np.sqrt(most * outward / (1 - part))
    root, along = root * wider, along / wider
    left = _left(root, along, vectors)
    own = questions * left.max(axis=1) ** 2 * outward / part
    loss = np.einsum("ij,ij->j", along, along) + (left**2 / own[:, None]).sum(axis=0)
    found = root @ root.T
    found = (found + found.T) / 2
    found[np.diag_indices(questions)] += (own + rounded * (root**2).sum(axis=1)) * _OUTWARD
    if not (np.isfinite(found).all() and loss.max() * (1 + rounded) <= 1):
        raise InputError(
            "questions for which rounding hides whether a unit loses more than stated",
            "leave out questions that nearly depend on others",
        )
    return np.asarray(found)


def _left(root: Floats, along: Floats, vectors: Floats) -> Floats:
    """|V - F z| with its own rounding errors, rounded upwards; never 0 in a whole row."""
    errors = 2 * (len(vectors) + 8) * _UNIT_ROUNDOFF
    size = np.abs(vectors) + np.abs(root) @ np.abs(along)
    return np.asarray((np.abs(vectors - root @ along) + errors * size) * _OUTWARD)


def dual_bound(vectors: Floats, unit_weights: Floats) -> float:
    """(tr M(p)^(1/2))^2: no feasible covariance has a smaller trace, whatever the weights p.

    It is (|V diag(p)^(1/2)|_*)^2, the squared sum of singular values, rounded downwards.
    """
    vectors = check_rows(vectors)
    weights = np.asarray(unit_weights, dtype=np.float64)
    total = float(weights.sum())
    if weights.shape != vectors.shape[1:] or not (weights >= 0).all() or not 0 < total < np.inf:
        raise InputError("dual variables that are no weights", "take those of the strategy")
    values = np.linalg.svd(vectors * np.sqrt(weights / total), compute_uv=False)
    return float(values.sum() ** 2 / _OUTWARD)


def independent(vectors: Floats) -> tuple[Floats, Floats]:
    """Vectors in a basis of the space that they fill, where questions depend on one another.

    What depends on what is looked for with all questions at one size
    (docs/theory/questions.md#laplace-noise).
    """
    vectors = _sized(vectors)
    even = vectors / np.abs(vectors).max(axis=1, keepdims=True)
    lengths = np.linalg.svd(even / np.linalg.norm(even, axis=1, keepdims=True), compute_uv=False)
    kept = int((lengths > _DEPENDENT * lengths[0]).sum())
    if lengths[kept - 1] < _UNCLEAR * lengths[0]:
        raise InputError(
            "questions that nearly depend on others: apart by "
            f"{lengths[kept - 1] / lengths[0]:.1g} of their size",
            "leave one of them out, or ask for what they differ by",
        )
    axes, values, rest = np.linalg.svd(vectors, full_matrices=False)
    return axes[:, :kept], values[:kept, None] * rest[:kept]


def _sized(vectors: Floats) -> Floats:
    """Vectors as they were given, if squares of all questions are floating-point numbers."""
    vectors = check_rows(vectors)
    size = np.abs(vectors).max(axis=1)
    if not bool(((size >= _LEAST) & (size <= _MOST)).all()):
        raise InputError(
            f"questions that one unit moves by {size.min():.2g} to {size.max():.2g} targets",
            "choose targets near the errors that are wanted",
        )
    return vectors
