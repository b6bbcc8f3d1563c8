"""Sampling variances of questions from released second moments, and how noisy they are.

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

# Units of a group whose outcomes tell how they differ, and degrees of freedom of a regression's:
# with fewer, all units are one group. Whole numbers are common, and rounding must not decide.
FEWEST_UNITS = 20
_FEWEST_DEGREES = 9.9
# Of the loss, for means of groups where no question tells them: the usual share, and what is tried.
MEANS_SHARE = 0.1
MEANS_SHARES = (0.05, 0.1, 0.15)
# Of a sum of squares: a group whose weights are 0 in truth may have so much of it.
_LEFT_BY_ROUNDING = 1e-12


def grouped_by(design: Design, entries: Sequence[QuestionEntry]) -> tuple[str, ...]:
    """The columns that make groups besides arms: those of subgroups, while groups are not small."""
    found: tuple[str, ...] = ()
    for name in dict.fromkeys(each.by for each in entries if each.by):
        codes = design.codes([ARM, *found, name])
        if int(np.bincount(codes, design.many).min()) >= FEWEST_UNITS:
            found = (*found, name)
    return found


def adjusted_for(entry: QuestionEntry, by: Sequence[str]) -> list[str]:
    """The columns within whose values an entry compares units, of those that make groups."""
    if entry.kind == REGRESSION:
        return [name for name in (ARM, *by) if name in entry.columns]
    within = {entry.by, CLUSTER} if entry.kind == EFFECT else set()
    return [ARM, *(name for name in by if name in within)]


def means_needed(
    design: Design, entries: Sequence[QuestionEntry], by: Sequence[str]
) -> Ints | None:
    """The groups whose means tell how outcomes differ; None if regressions alone were asked for."""
    others = [each for each in entries if each.kind != REGRESSION]
    names = {name for each in others for name in adjusted_for(each, by)}
    return design.codes([name for name in (ARM, *by) if name in names]) if others else None


class Fit(NamedTuple):
    """V = sum_h part_h S_h - b' form b + tr(form C), for coefficients b with noise of covariance C.

    `codes`, the group of each kind, within which residuals differ alike; `degrees`, units of each
    group less their leverages; `flat`, coefficients of a prediction of 1 for every unit. `squares`,
    sums of squared weights of questions, and `parts`, these over degrees, shape (groups,
    questions); `forms` of coefficients, shape (questions, coefficients, coefficients), or their
    diagonals.
    """

    codes: Ints
    degrees: Floats
    flat: Floats
    squares: Floats
    parts: Floats
    forms: Floats

    def variances(self, moments: Floats, coefficients: Floats, noise: Floats) -> Floats:
        """Estimates of V from squares and coefficients about the middle; they may be negative."""
        if self.forms.ndim == 2:
            own = self.forms @ (coefficients**2 - np.diag(noise))
        else:
            own = coefficients @ self.forms @ coefficients
            own = own - np.einsum("kij,ji->k", self.forms, noise)
        return moments @ self.parts - own

    def noise_scale(self, moved: Floats, coefficients: Floats, noise: Floats) -> Floats:
        """Scales of the noise of variances, of second moments with noise of the scales `moved`."""
        own = ((self.parts * moved[:, None]) ** 2).sum(axis=0)
        if self.forms.ndim == 2:
            pull = self.forms * coefficients
            square = ((self.forms @ noise**2) * self.forms).sum(axis=1)
        else:
            pull = coefficients @ self.forms
            both = self.forms @ noise
            square = np.einsum("kij,kji->k", both, both)
        linear = ((pull @ noise) * pull).sum(axis=1)
        return np.asarray(np.sqrt(own + 2 * linear + 2.5 * np.maximum(square, 0)))

    @property
    def fewest(self) -> Floats:
        """Degrees of freedom of the group that has fewest, shape (questions,)."""
        counted = self.squares > _LEFT_BY_ROUNDING * self.squares.sum(axis=0)
        return np.asarray(np.where(counted, self.degrees[:, None], np.inf).min(axis=0))


def fit_of(design: Design, block: Block, by: Sequence[str]) -> tuple[Fit, Floats]:
    """The prediction by which residuals of questions are known: a regression, or group means.

    Beside it the weights of its coefficients, shape (coefficients, kinds).
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
    # Orthonormal coefficients of the same prediction: regressors may be of any size.
    basis = np.linalg.qr(regressors / np.linalg.norm(regressors, axis=0))[0]
    degrees = _degrees(basis, codes, many)
    if degrees.min() < _FEWEST_DEGREES:
        codes = np.zeros(len(many), dtype=np.int64)
        degrees = _degrees(basis, codes, many)
    squares = _squares(block, codes, many)
    parts = squares / degrees[:, None]
    inside = [basis[codes == each] for each in range(len(degrees))]
    forms = np.einsum("hk,hij->kij", parts, np.stack([each.T @ each for each in inside]))
    fit = Fit(codes, degrees, (basis * root).sum(axis=0), squares, parts, forms)
    return fit, (basis / root).T


def _squares(block: Block, codes: Ints, many: Ints) -> Floats:
    """Sums of squared weights of questions by group, shape (groups, questions)."""
    return np.stack([np.bincount(codes, row**2 * many) for row in block.rows], axis=1)


def _degrees(basis: Floats, codes: Ints, many: Ints) -> Floats:
    """Units of each group less their leverages."""
    own = np.bincount(codes, many) - np.bincount(codes, (basis**2).sum(axis=1))
    return np.asarray(own, dtype=np.float64)
