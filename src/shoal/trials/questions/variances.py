"""Sampling variances of questions from released second moments, and how noisy they are.

Source: docs/theory/questions.md#variances-of-groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.trials.questions.asked import REGRESSION, Asked, design_of
from shoal.trials.questions.columns import Columns
from shoal.trials.questions.groups import adjusted_for, codes_of, group_means, inflation

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
# With fewer degrees of freedom in a group, all units of a regression are one group. Whole numbers
# are common, and rounding must not decide between them.
FEWEST_DEGREES = 9.9


@dataclass(frozen=True, eq=False)
class Fit:
    """A linear prediction of outcomes, and the groups within which residuals differ alike.

    Attributes:
        weights: Of the coefficients, shape (coefficients, units).
        gram: Sums of x x' over each group, shape (groups, coefficients, coefficients).
        codes: Group of each unit, shape (units,).
        degrees: Units of each group less their leverages, shape (groups,).
        flat: Coefficients of a prediction of 1 for every unit, shape (coefficients,).
    """

    weights: Floats
    gram: Floats
    codes: Whole
    degrees: Floats
    flat: Floats

    def squares(self, rows: Floats) -> Floats:
        """Sums of squared weights in each group, shape (groups, questions)."""
        return np.stack(
            [(rows[:, self.codes == each] ** 2).sum(axis=1) for each in range(len(self.degrees))]
        )

    def sums(self, rows: Floats) -> Sums:
        """How second moments and coefficients add up to variances of questions."""
        squares = self.squares(rows)
        parts = squares / self.degrees[:, None]
        forms = np.einsum("hk,hij->kij", parts, self.gram)
        return Sums(squares, parts, forms)

    def inflation(self, sums: Sums, confidence: float) -> Floats:
        """What few units widen sampling variances by, shape (questions,)."""
        return inflation(sums.squares, self.degrees, confidence)


@dataclass(frozen=True, eq=False)
class Sums:
    """V = sum_h part_h S_h - b' form b + tr(form C), for coefficients b with noise of covariance C.

    Attributes:
        squares: Sums of squared weights, shape (groups, questions).
        parts: Of second moments, over degrees of freedom, shape (groups, questions).
        forms: Of coefficients, shape (questions, coefficients, coefficients).
    """

    squares: Floats
    parts: Floats
    forms: Floats

    def variances(self, moments: Floats, coefficients: Floats, noise: Floats) -> Floats:
        """Estimates of V, shape (questions,); noise can make them negative.

        Args:
            moments: Mean squares about the middle times their units, shape (groups,).
            coefficients: Of the outcome less the middle, shape (coefficients,).
            noise: Their covariance, shape (coefficients, coefficients).
        """
        told = coefficients @ self.forms @ coefficients
        more = np.einsum("kij,ji->k", self.forms, noise)
        return np.asarray(moments @ self.parts - told + more)

    def doubt(self, moved: Floats, coefficients: Floats, noise: Floats) -> Floats:
        """The scale of the noise of the variances, shape (questions,).

        Of second moments, of 2 b' form times the noise of b, and of its quadratic form, whose
        variance is at most 5 tr((form C)^2) for sums of Laplace variables.

        Args:
            moved: Scales of the noise of the second moments, shape (groups,).
            coefficients: As in `variances`.
            noise: As in `variances`.
        """
        own = ((self.parts * moved[:, None]) ** 2).sum(axis=0)
        pull = coefficients @ self.forms
        linear = np.einsum("ki,ij,kj->k", pull, noise, pull)
        both = self.forms @ noise
        square = np.einsum("kij,kji->k", both, both)
        return np.asarray(np.sqrt(own + 2 * linear + 2.5 * np.maximum(square, 0)))


def fit_of(columns: Columns, asked: Asked, by: Sequence[str]) -> Fit:
    """The prediction by which an entry's residuals are known: its regression, or means of groups.

    Raises:
        InputError: No such column.
    """
    names = adjusted_for(asked, by)
    codes = codes_of(columns, names)
    if asked.kind != REGRESSION:
        sizes = np.bincount(codes).astype(float)
        many = len(sizes)
        gram = np.zeros((many, many, many))
        gram[np.arange(many), np.arange(many), np.arange(many)] = sizes
        return Fit(group_means(codes), gram, codes, sizes - 1, np.ones(many))
    _, design = design_of(columns, asked.columns)
    # Orthonormal coefficients of the same prediction: regressors may be of any size.
    basis = np.linalg.qr(design / np.linalg.norm(design, axis=0))[0]
    degrees = _degrees(basis, codes)
    if degrees.min() < FEWEST_DEGREES:
        codes = np.zeros(columns.n, dtype=np.int64)
        degrees = _degrees(basis, codes)
    gram = np.stack([basis[codes == each].T @ basis[codes == each] for each in range(len(degrees))])
    return Fit(basis.T, gram, codes, degrees, basis.sum(axis=0))


def _degrees(basis: Floats, codes: Whole) -> Floats:
    """Units of each group less their leverages."""
    leverage = (basis**2).sum(axis=1)
    return np.asarray(np.bincount(codes) - np.bincount(codes, leverage), dtype=np.float64)
