"""Predicts cells by their labels, with random effects of label columns fitted to noisy estimates.

    theta_g = m + sum over columns of an effect of the cell's label + a residual

Effects and residuals are normal, and expectation-maximisation fits their variances. The prediction
of each cell leaves its own estimate out.
Source: docs/theory/cells.md#values.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from shoal.arrays import Floats, Ints

# Rounds of expectation-maximisation.
_ROUNDS = 40
# The fewest columns, and the fewest levels of a column.
_FEWEST = 2
# A column has fewer levels than cells divided by this.
_CELLS_A_LEVEL = 1.5
# The largest leverage that a cell's own estimate is taken to have.
_MOST_LEVERAGE = 0.95
# The most levels of all columns: each round inverts a matrix of as many rows and columns.
_MOST_LEVELS = 400
# The most cells times squared levels: each round also multiplies that matrix by a row of each cell.
_MOST_WORK = 4e7
# The least variance of an effect, as a part of the variance of the estimates.
_LEAST = 1e-30


def useful_columns(labels: Sequence[Ints]) -> list[Ints]:
    """Returns columns of labels with at least two levels, and fewer than two thirds of the cells.

    Columns are taken in their order while their levels are at most 400 in all or, with more than
    250 cells, at most sqrt(4e7/cells).
    """
    # A single column says no more than the cells themselves.
    if len(labels) < _FEWEST:
        return []
    useful = []
    levels_left = min(_MOST_LEVELS, int((_MOST_WORK / len(labels[0])) ** 0.5))
    for column in labels:
        levels = int(column.max()) + 1
        if _FEWEST <= levels < len(column) / _CELLS_A_LEVEL and levels <= levels_left:
            useful.append(column)
            levels_left -= levels
    return useful


def fitted_without(
    estimate: Floats, variance: Floats, labels: Sequence[Ints], prior: float = 0.0
) -> Floats:
    """Predicts each cell by its labels and the estimates of the other cells, shape (cells,).

    It is (fit_g - H_g y_g)/(1 - H_g) with the leverage H_g = W_g x_g'C x_g, the weights W =
    1/(residual variance + `variance`) and C = (X'WX + diag(1/effect variances))^-1. `prior` is the
    precision with which the common mean m is known to be about 0.
    """
    return _fitted(estimate, variance, labels, prior).without


def predicted(
    estimate: Floats,
    variance: Floats,
    labels: Sequence[Ints],
    others: Sequence[Ints],
    prior: float = 0.0,
) -> Floats:
    """Predicts other cells, which have no estimate, by their labels.

    The code -1 stands for a label that no cell with an estimate has: its effect is 0.
    """
    fitted = _fitted(estimate, variance, labels, prior)
    common_mean = float(fitted.effect[0])
    prediction = np.full(len(others[0]), common_mean)
    for start, label in zip(fitted.starts.tolist(), others, strict=True):
        effect = fitted.effect[start + np.maximum(label, 0)]
        prediction += np.where(label < 0, 0.0, effect)
    return prediction


class _Fitted(NamedTuple):
    """The common mean and then all effects, and the predictions of cells without their estimates.

    `starts` says where the effects of each column of labels begin.
    """

    effect: Floats
    starts: Ints
    without: Floats


class _Design(NamedTuple):
    """The positions of the ones of each cell: of the common mean, and of its label in each column.

    `place` has them by column and cell; `pair` has the entries of the Gram matrix that they add to.
    `borders` says where the effects of each column of labels begin, and last where all of them end.
    """

    place: Ints
    pair: Ints
    borders: Ints

    @property
    def size(self) -> int:
        """The number of effects, with the common mean."""
        return int(self.borders[-1])


def _design(labels: Sequence[Ints]) -> _Design:
    """Returns the design of columns of labels, with a common mean as the first column."""
    # The common mean has the position 0; the effects of the columns follow one after another.
    borders = np.cumsum([1, *(int(each.max()) + 1 for each in labels)])
    common = np.zeros(len(labels[0]), dtype=np.int64)
    place = np.stack([common, *map(np.add, borders, labels)])
    # Entries of the Gram matrix are numbered row by row; shape (columns, columns, cells).
    pair = place[:, None] * int(borders[-1]) + place
    return _Design(place, pair, borders)


def _fitted(estimate: Floats, variance: Floats, labels: Sequence[Ints], prior: float) -> _Fitted:
    """Fits variances and effects by expectation-maximisation."""
    design = _design(labels)
    # No variance falls to 0, as weights are 1 divided by them.
    least = _LEAST * max(float(np.var(estimate)), float(variance.min()))
    spread = max(float(np.var(estimate) - variance.mean()), float(variance.min()) * 1e-3, least)
    # The variance of residuals, and that of the effects of each column; halves to begin with.
    residual_variance = spread / 2
    effect_variances = np.full(len(labels), spread / 2)
    for _ in range(_ROUNDS):
        total_variance = residual_variance + variance
        fit = _fit(design, estimate, 1 / total_variance, effect_variances, prior)
        # Each variance becomes the mean of the squares that are expected after this fit.
        for at, (start, stop) in enumerate(pairwise(design.borders.tolist())):
            squares = fit.effect[start:stop] ** 2 + fit.uncertain[start:stop]
            effect_variances[at] = max(float(squares.mean()), least)
        share = residual_variance / total_variance
        around = (estimate - fit.value) ** 2 + fit.leverage * total_variance
        residual_squares = share**2 * around + share * variance
        residual_variance = max(float(residual_squares.mean()), least)
    fit = _fit(design, estimate, 1 / (residual_variance + variance), effect_variances, prior)
    leverage = np.minimum(fit.leverage, _MOST_LEVERAGE)
    without = (fit.value - leverage * estimate) / (1 - leverage)
    return _Fitted(fit.effect, design.borders[:-1], without)


class _Fit(NamedTuple):
    """Fitted values and leverages of cells, and posterior variances and means of the effects."""

    value: Floats
    leverage: Floats
    uncertain: Floats
    effect: Floats


def _fit(
    design: _Design, estimate: Floats, weight: Floats, effect_variances: Floats, prior: float
) -> _Fit:
    """Returns the fit for given weights of cells and a variance of the effects of each column."""
    place = design.place
    pair = design.pair
    size = design.size
    weights = np.broadcast_to(weight, pair.shape)
    entries = np.bincount(pair.ravel(), weights.ravel(), minlength=size**2)
    gram = entries.reshape(size, size).astype(np.float64)
    # The precision that the common mean and each effect have before any estimate.
    effects_of_columns = np.diff([0, *design.borders])
    gram[np.diag_indices(size)] += np.repeat([prior, *1 / effect_variances], effects_of_columns)
    inverse = _inverse(gram)
    weighed = np.broadcast_to(weight * estimate, place.shape)
    effect = inverse @ np.bincount(place.ravel(), weighed.ravel(), minlength=size)
    leverage = inverse.ravel()[pair].sum(axis=(0, 1)) * weight
    value = effect[place].sum(axis=0)
    return _Fit(value, leverage, np.diag(inverse), effect)


def _inverse(gram: Floats) -> Floats:
    """Returns the inverse, or the pseudoinverse where rounding hides that one exists."""
    # With ones on its diagonal the matrix is inverted more precisely.
    root = 1 / np.sqrt(np.diag(gram))
    factor, failed = lapack.dpotrf(gram * root * root[:, None], lower=1)
    if failed:
        return np.asarray(np.linalg.pinv(gram, hermitian=True))
    # LAPACK returns the lower half of the inverse.
    lower, _ = lapack.dpotri(factor, lower=1)
    return np.asarray((lower + np.tril(lower, -1).T) * root * root[:, None])
