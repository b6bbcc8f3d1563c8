"""Estimates sampling variances of questions from released second moments, and their noise.

Source: docs/theory/experiments.md#variances-of-groups.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shoal.arrays import Floats, Ints
from shoal.trials.design import ARM, CLUSTER, Design
from shoal.trials.questions.weights import (
    EFFECT,
    REGRESSION,
    Block,
    QuestionEntry,
    group_means,
    regressors_of,
)

# The fewest units of a group that has a variance of its own.
FEWEST_UNITS = 20
# If a group of a regression has fewer degrees of freedom, all units are one group. Whole numbers
# are common, and rounding must not decide.
_FEWEST_DEGREES = 9.9
# The usual share of the loss for means of groups that follow from no question.
MEANS_SHARE = 0.1
# The shares that plans try.
MEANS_SHARES = (0.05, 0.1, 0.15)
# By rounding, a group without weight may have this part of the sum of squared weights.
_LEFT_BY_ROUNDING = 1e-12


def grouped_by(design: Design, entries: Sequence[QuestionEntry]) -> tuple[str, ...]:
    """Returns the columns of subgroups that make groups together with arms, if these are large."""
    found: tuple[str, ...] = ()
    for name in dict.fromkeys(each.by for each in entries if each.by):
        codes = design.codes([ARM, *found, name])
        if int(np.bincount(codes, design.many).min()) >= FEWEST_UNITS:
            found = (*found, name)
    return found


def adjusted_for(entry: QuestionEntry, by: Sequence[str]) -> list[str]:
    """Returns those of arm and `by` within whose values an entry compares units."""
    if entry.kind == REGRESSION:
        return [name for name in (ARM, *by) if name in entry.columns]
    within = {entry.by, CLUSTER} if entry.kind == EFFECT else set()
    return [ARM, *(name for name in by if name in within)]


def means_needed(
    design: Design, entries: Sequence[QuestionEntry], by: Sequence[str]
) -> Ints | None:
    """Returns the group of each kind whose means must be known; None if there are only regressions.

    Variances of effects and means are about the means of these groups.
    """
    compared = [each for each in entries if each.kind != REGRESSION]
    if not compared:
        return None
    names = {name for each in compared for name in adjusted_for(each, by)}
    return design.codes([name for name in (ARM, *by) if name in names])


class Fit(NamedTuple):
    """The estimate V = sum_h part_h S_h - b' form b + tr(form C) of each question's variance.

    S_h is the second moment of group h; b holds coefficients of a prediction, with noise of the
    covariance C. `codes` holds the group of each kind, within which residuals have equal variances,
    `degrees` the units of each group less their leverages, and `flat` the coefficients of a
    prediction of 1 for every unit. `squares` holds sums of squared weights and `parts` these sums
    divided by `degrees`, shape (groups, questions). `forms` holds forms of coefficients, shape
    (questions, coefficients, coefficients), or their diagonals.
    """

    codes: Ints
    degrees: Floats
    flat: Floats
    squares: Floats
    parts: Floats
    forms: Floats

    def variances(self, moments: Floats, coefficients: Floats, noise: Floats) -> Floats:
        """Estimates V from moments and coefficients about the middle; V may be negative."""
        # Squares of noisy coefficients hold the variance of their noise, which is taken off.
        if self.forms.ndim == 2:
            predicted = self.forms @ (coefficients**2 - np.diag(noise))
        else:
            predicted = coefficients @ self.forms @ coefficients
            predicted = predicted - np.einsum("kij,ji->k", self.forms, noise)
        return moments @ self.parts - predicted

    def noise_scale(self, moment_scales: Floats, coefficients: Floats, noise: Floats) -> Floats:
        """Returns the scale of the noise of each V; second moments have noise of these scales."""
        of_moments = ((self.parts * moment_scales[:, None]) ** 2).sum(axis=0)
        if self.forms.ndim == 2:
            pull = self.forms * coefficients
            square = ((self.forms @ noise**2) * self.forms).sum(axis=1)
        else:
            pull = coefficients @ self.forms
            both = self.forms @ noise
            square = np.einsum("kij,kji->k", both, both)
        linear = ((pull @ noise) * pull).sum(axis=1)
        # A scale is the root of half a variance. The variance of a quadratic form of Laplace noise
        # is at most 5 times `square`.
        return np.asarray(np.sqrt(of_moments + 2 * linear + 2.5 * np.maximum(square, 0)))

    def of_row(self, at: int) -> "Fit":
        """Returns the fit of one question alone."""
        squares = self.squares[:, [at]]
        return self._replace(squares=squares, parts=self.parts[:, [at]], forms=self.forms[[at]])

    @property
    def fewest(self) -> Floats:
        """The fewest degrees of freedom of a group with weight, shape (questions,)."""
        counted = self.squares > _LEFT_BY_ROUNDING * self.squares.sum(axis=0)
        return np.asarray(np.where(counted, self.degrees[:, None], np.inf).min(axis=0))


def fit_of(design: Design, block: Block, by: Sequence[str]) -> tuple[Fit, Floats]:
    """Returns the fit of a regression or of group means, whose residuals vary.

    The weights of its coefficients come second, shape (coefficients, kinds).
    """
    codes = design.codes(adjusted_for(block.entry, by))
    many = design.many
    if not block.of_regression:
        sizes = np.bincount(codes, many).astype(np.float64)
        squares = _squares(block, codes, many)
        parts = squares / (sizes - 1)[:, None]
        forms = (parts * sizes[:, None]).T
        fit = Fit(codes, sizes - 1, np.ones(len(sizes)), squares, parts, forms)
        return fit, group_means(codes, many)
    root = np.sqrt(many)[:, None]
    regressors = regressors_of(design, block.entry.columns)[1] * root
    # An orthonormal basis gives the same prediction: regressors may be of any size.
    basis = np.linalg.qr(regressors / np.linalg.norm(regressors, axis=0))[0]
    degrees = _degrees(basis, codes, many)
    if degrees.min() < _FEWEST_DEGREES:
        codes = np.zeros(len(many), dtype=np.int64)
        degrees = _degrees(basis, codes, many)
    squares = _squares(block, codes, many)
    parts = squares / degrees[:, None]
    in_groups = [basis[codes == each] for each in range(len(degrees))]
    # For each question the sum over groups, weighted by `parts`, of the squared prediction there.
    forms = np.einsum("hk,hij->kij", parts, np.stack([each.T @ each for each in in_groups]))
    fit = Fit(codes, degrees, (basis * root).sum(axis=0), squares, parts, forms)
    return fit, (basis / root).T


def _squares(block: Block, codes: Ints, many: Ints) -> Floats:
    """Returns sums of squared weights of questions by group, shape (groups, questions)."""
    return np.stack([np.bincount(codes, row**2 * many) for row in block.rows], axis=1)


def _degrees(basis: Floats, codes: Ints, many: Ints) -> Floats:
    """Returns the units of each group less their leverages."""
    degrees = np.bincount(codes, many) - np.bincount(codes, (basis**2).sum(axis=1))
    return np.asarray(degrees, dtype=np.float64)
