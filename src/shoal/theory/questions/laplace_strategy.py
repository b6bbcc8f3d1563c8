"""Laplace noise of many questions: which sums of them are released.

What is released is z = T W y + Laplace(1/eps) in each coordinate, with |T v_i|_1 <= 1 for the
sensitivity vectors v_i of all units, the columns of V, shape (questions, units); answers are their
least squares estimates (docs/theory/questions.md#laplace-noise).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal import checks
from shoal.errors import InputError
from shoal.theory.questions.gaussian_strategy import independent, least_covariance
from shoal.theory.questions.weights import check_rows

Floats = NDArray[np.float64]

_MOST_STEPS = 20_000
_OUTWARD = 1 + 2.0**-40
# Estimates of answers without noise are off by at most this part of a question's size.
_ANSWERED = 1e-9
# The maximum over units is approached by these norms, each from where the one before ended.
_NORMS, _SEARCH_STEPS = (20, 80, 400), 150
# Units that lose less than this part of the most do not matter to a norm; each norm looks anew.
_NEAR = 0.5
# Public: whoever plans anew finds the same strategy.
_SEED, _ROTATIONS = 20_230_130, 3


@dataclass(frozen=True)
class DiagonalStrategy:
    """A part of the loss for each question, and proof of how near it is to the best parts.

    Attributes:
        scales: t_k in 1 over units of the targets, shape (questions,): number k has Laplace noise
            of scale 1/(t_k eps).
        unit_weights: lambda, the dual variables: parts of 1, shape (units,).
        lower_bound: (sum a_k^(2/3))^3, a = |V| lambda, in squared units of the targets: no diagonal
            has a smaller sum of 1/t_k^2.
    """

    scales: Floats
    unit_weights: Floats
    lower_bound: float

    @property
    def total(self) -> float:
        """Sum of 1/t_k^2, in squared units of the targets."""
        return float((self.scales**-2).sum())

    @property
    def gap(self) -> float:
        """At most this part above the least total of a diagonal is lost."""
        return self.total / self.lower_bound - 1


@dataclass(frozen=True)
class LaplaceStrategy:
    """Sums of questions to release, and a bound that no other sums beat.

    Attributes:
        released: T in 1 over units of the targets, shape (numbers, questions).
        recover: Least squares estimates of the answers from these numbers, in units of the
            targets, shape (questions, numbers).
        lower_bound: (tr M^(1/2))^2 in squared units of the targets: `total` is not below it,
            whatever T.
        diagonal: The best parts of the loss without sums.
    """

    released: Floats
    recover: Floats
    lower_bound: float
    diagonal: DiagonalStrategy

    @property
    def total(self) -> float:
        """Trace of R R', in squared units of the targets; times 2/eps^2 the total variance."""
        return float((self.recover**2).sum())

    @property
    def ratio(self) -> float:
        """Total variance as a factor of its lower bound."""
        return self.total / self.lower_bound

    def covariance(self, epsilon: float) -> Floats:
        """Covariance of the noise of all answers: 2 R R'/eps^2."""
        return np.asarray(2 / epsilon**2 * (self.recover @ self.recover.T))


def diagonal_strategy(vectors: Floats, *, tolerance: float = 1e-4) -> DiagonalStrategy:
    """The parts of the loss with the least sum of 1/t_k^2 where sum_k t_k|v_ki| <= 1 for all units.

    For weights lambda of units and a = |V| lambda the sum is at least (sum a_k^(2/3))^3, attained
    by t_k = a_k^(-1/3)/sum_j a_j^(2/3) if no unit is beyond 1. Each step multiplies lambda_i by
    unit i's loss.
    """
    tolerance = checks.number(tolerance, "tolerance", least=1e-9, most=1, example=1e-4)
    size = np.abs(check_rows(vectors))
    weights = np.full(size.shape[1], 1 / size.shape[1])
    for _ in range(_MOST_STEPS):
        dual = size @ weights
        total = float((dual ** (2 / 3)).sum())
        scales = dual ** (-1 / 3) / total
        loss = scales @ size
        most = float(loss.max())
        if most**2 <= 1 + tolerance:
            return DiagonalStrategy(scales / (most * _OUTWARD), weights, total**3 / _OUTWARD)
        weights *= loss
        weights /= weights.sum()
    raise InputError(
        f"parts that are further than {tolerance:g} from the best after {_MOST_STEPS} steps",
        "ask for a larger tolerance",
    )


def laplace_strategy(vectors: Floats) -> LaplaceStrategy:
    """Sums of questions whose Laplace noise has a small total variance tr(R R'), R = T^+.

    L-BFGS on log tr((T'T)^-1) + 2 log max|T v_i|_1 with p-norms, from the best diagonal and three
    rotations of the Gaussian strategy; the least that was met is no global minimum, and has a
    bound.
    """
    basis, inside = independent(vectors)
    diagonal = diagonal_strategy(vectors)
    gaussian = least_covariance(vectors)
    even = 1 / (len(basis) * np.abs(vectors).max(axis=1))
    starts = [np.diag(diagonal.scales) @ basis, np.diag(even) @ basis]
    starts += _rotations(basis.T @ gaussian.covariance @ basis)
    # A unit's loss is the same for v and -v, and for units alike: once is enough.
    distinct = np.unique(inside * np.where(inside[0] < 0, -1, 1), axis=1)
    tried = [*starts, *(_searched(each, distinct) for each in (starts[0], *starts[2:]))]
    best = min(tried, key=lambda each: _total(each, inside))
    released = best @ basis.T
    most = _losses(released, vectors)
    released, recover = released / (most * _OUTWARD), basis @ np.linalg.pinv(best) * most * _OUTWARD
    answered = np.abs(recover @ (released @ vectors) - vectors).max(axis=1)
    if not bool((answered <= _ANSWERED * np.abs(vectors).max(axis=1)).all()):
        raise InputError(
            "questions whose answers are lost in rounding",
            "leave out questions that nearly depend on others, or choose targets of like sizes",
        )
    return LaplaceStrategy(released, recover, gaussian.lower_bound, diagonal)


def _losses(released: Floats, vectors: Floats) -> float:
    """The most |T v_i|_1 over units, with the rounding errors of T v_i, whatever cancels."""
    errors = (len(vectors) + 2) * 2.0**-52
    size = np.abs(released) @ np.abs(vectors)
    return float((np.abs(released @ vectors) + errors * size).sum(axis=0).max())


def _rotations(covariance: Floats) -> Iterator[Floats]:
    values, axes = np.linalg.eigh(covariance)
    values = np.maximum(values, values[-1] * 2.0**-50)
    random = np.random.default_rng(_SEED)
    for _ in range(_ROTATIONS):
        turned, _ = np.linalg.qr(random.standard_normal(covariance.shape))
        yield turned @ (axes / np.sqrt(values)) @ axes.T


def _total(strategy: Floats, inside: Floats) -> float:
    """Trace of the least squares covariance, scaled so that no unit loses more than 1."""
    most = float(np.abs(strategy @ inside).sum(axis=0).max())
    return float((np.linalg.pinv(strategy) ** 2).sum() * most**2)


def _searched(start: Floats, inside: Floats) -> Floats:
    from scipy.optimize import minimize

    found, near = start, np.zeros(inside.shape[1], dtype=bool)
    for norm in _NORMS:
        loss = np.abs(found @ inside).sum(axis=0)
        near |= loss >= _NEAR * loss.max()
        ended = minimize(
            _objective,
            found.ravel(),
            args=(np.ascontiguousarray(inside[:, near]), norm, start.shape),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": _SEARCH_STEPS},
        )
        found = np.asarray(ended.x, dtype=np.float64).reshape(start.shape)
    return found


def _objective(
    flat: Floats, inside: Floats, norm: int, shape: tuple[int, int]
) -> tuple[float, Floats]:
    """Logarithm of the total with a p-norm of the losses, and its gradient."""
    strategy = flat.reshape(shape)
    moved = strategy @ inside
    loss = np.abs(moved).sum(axis=0)
    most = float(loss.max())
    parts = (loss / most) ** norm
    inverse = np.linalg.pinv(strategy.T @ strategy, hermitian=True)
    trace = float(np.trace(inverse))
    value = np.log(trace) + 2 * (np.log(most) + np.log(parts.sum()) / norm)
    share = parts / np.where(loss > 0, loss, 1) / parts.sum()
    slope = -2 / trace * strategy @ inverse @ inverse + 2 * (np.sign(moved) * share) @ inside.T
    return float(value), slope.ravel()
