"""What labels say of a cell: random effects of label columns, fitted to noisy estimates.

    theta_g = m + sum over columns of an effect of the cell's label + a residual

with normal effects and residuals whose variances are fitted by expectation and maximisation. The
fit of each cell leaves the cell's own estimate out.
Source: docs/theory/cells.md#values.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_ROUNDS = 40
# Columns, and levels of a column.
_FEWEST = 2
_CELLS_A_LEVEL = 1.5
_MOST_LEVERAGE = 0.95
# Each round inverts a matrix of as many rows, and multiplies it by one of as many as cells.
_MOST_LEVELS, _MOST_WORK = 400, 4e7
_LEAST = 1e-30  # of the variance of the estimates: where an effect has none


def useful_columns(labels: Sequence[Ints]) -> list[Ints]:
    """Columns of labels with two to 400 levels, and fewer than two thirds as many as cells.

    With more than 250 cells there are at most sqrt(4e7/cells) levels in all, in the columns' order.
    """
    if len(labels) < _FEWEST:
        return []
    found, left = [], min(_MOST_LEVELS, int((_MOST_WORK / len(labels[0])) ** 0.5))
    for each in labels:
        levels = int(each.max()) + 1
        if _FEWEST <= levels < len(each) / _CELLS_A_LEVEL and levels <= left:
            found.append(each)
            left -= levels
    return found


def fitted_without(
    estimate: Floats, variance: Floats, labels: Sequence[Ints], prior: float = 0.0
) -> Floats:
    """What the labels predict for each cell, shape (cells,), from the estimates of the other cells.

    With W = 1/(residual variance + q), C = (X'WX + diag(1/effect variances))^-1 and the leverage
    H_g = W_g x_g'C x_g: (fit_g - H_g y_g)/(1 - H_g); `prior` is the precision with which m is known
    to be about 0.
    """
    return _fitted(estimate, variance, labels, prior).without


def predicted(
    estimate: Floats,
    variance: Floats,
    labels: Sequence[Ints],
    others: Sequence[Ints],
    prior: float = 0.0,
) -> Floats:
    """What the labels predict for other cells, which have no estimate of their own.

    -1 is a label that no cell with an estimate has, whose effect is 0.
    """
    found = _fitted(estimate, variance, labels, prior)
    result = np.full(len(others[0]), float(found.effect[0]))
    for start, each in zip(found.ends.tolist(), others, strict=False):
        result += np.where(each < 0, 0.0, found.effect[start + np.maximum(each, 0)])
    return result


class _Fitted(NamedTuple):
    """Common mean and effects, where each column's begin, and fits without the cell's own."""

    effect: Floats
    ends: Ints
    without: Floats


def _fitted(estimate: Floats, variance: Floats, labels: Sequence[Ints], prior: float) -> _Fitted:
    ends = np.cumsum([1, *(int(each.max()) + 1 for each in labels)])
    matrix = np.zeros((len(estimate), int(ends[-1])))
    matrix[:, 0] = 1
    rows = np.arange(len(estimate))
    for start, each in zip(ends, labels, strict=False):
        matrix[rows, start + each] = 1
    least = _LEAST * max(float(np.var(estimate)), float(variance.min()))
    spread = max(float(np.var(estimate) - variance.mean()), float(variance.min()) * 1e-3, least)
    residual, effects = spread / 2, np.full(len(labels), spread / 2)
    for _ in range(_ROUNDS):
        fit, leverage, uncertain, effect = _fit(
            matrix, ends, estimate, 1 / (residual + variance), effects, prior
        )
        for at, (start, stop) in enumerate(pairwise(ends.tolist())):
            squares = effect[start:stop] ** 2 + uncertain[start:stop]
            effects[at] = max(float(squares.mean()), least)
        kept = residual / (residual + variance)
        around = (estimate - fit) ** 2 + leverage * (residual + variance)
        residual = max(float((kept**2 * around + kept * variance).mean()), least)
    fit, leverage, _, effect = _fit(
        matrix, ends, estimate, 1 / (residual + variance), effects, prior
    )
    own = np.minimum(leverage, _MOST_LEVERAGE)
    return _Fitted(effect, ends, np.asarray((fit - own * estimate) / (1 - own)))


def _fit(
    matrix: Floats, ends: Ints, estimate: Floats, weight: Floats, effects: Floats, prior: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Fitted values, leverages, variances of the effects given the estimates, and the effects."""
    precision = np.concatenate([[prior], np.repeat(1 / effects, np.diff(ends))])
    scaled = matrix * weight[:, None]
    inverse = np.linalg.pinv(scaled.T @ matrix + np.diag(precision), hermitian=True)
    effect = inverse @ (scaled.T @ estimate)
    leverage = ((matrix @ inverse) * matrix).sum(axis=1) * weight
    return matrix @ effect, leverage, np.diag(inverse), effect
