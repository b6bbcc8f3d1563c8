"""Recounts linear questions of a trial: the loss of a unit, answers and their intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from shoal.verification.recount import noise
from shoal.verification.recount.noise import student
from shoal.verification.recount.reading import Array, Document, Release, differs

# Noise has a scale of 2^32 steps.
BITS = 32
# The range of outcomes is this many ticks wide.
TICKS = 2**20
# The standard deviation of the noise of a number, as a part of the range.
DEVIATION = 2.0**BITS * math.sqrt(noise.laplace_variance(BITS)) / TICKS


def differences(asked: Release) -> Iterator[str]:
    """Yields what does not follow from the released numbers."""
    loss = loss_of(asked)
    middle = asked.low + asked.width / 2
    stated = asked.epsilon - asked.clustering_epsilon
    if loss is None or not loss <= stated <= loss * (1 + Fraction(1, 10**11)):
        yield f"the privacy loss is {float(loss or 0):.12g}, not {float(stated):.12g}"
    numbers = np.array(asked.drawn_numbers) / TICKS
    answers = list[tuple[float, float]]()
    for question in asked.entries:
        rows = np.array(rows_of(asked, question))
        recovered = recovered_by(asked, rows)
        # Weights add up to 1 for means and constants, and to 0 for all other questions.
        offset = middle * np.round(rows @ asked.many)
        values = recovered @ numbers * asked.width + offset
        if asked.grouped:
            halves = _of_groups(asked, question, rows)
        else:
            halves = _halves(asked, question, rows, recovered)
        answers += zip(values.tolist(), halves, strict=True)
    for (value, half), stated_answer in zip(answers, asked.answers, strict=True):
        true = [value, half / student(math.inf, asked.confidence), value - half, value + half]
        slack = 1e-6 * half + 1e-12 * abs(value)
        yield from differs("answer, its error and interval", stated_answer, true, 0.0, slack)


def loss_of(asked: Release) -> Fraction | None:
    """Returns the most that a unit loses; None if second moments are not free."""
    largest = most_of(asked)
    if not asked.moment_step:
        return Fraction(largest, 2**BITS)
    # Second moments are free if they move no more steps than numbers do, except for one step of
    # rounding for each number (docs/theory/experiments.md#second-moments-are-free).
    if largest * asked.moment_step < TICKS * TICKS:
        return None
    rounding = int((asked.rows != 0).sum(axis=0).max()) if asked.alone else len(asked.steps)
    return Fraction(largest + rounding, 2**BITS)


def most_of(asked: Release) -> int:
    """Returns the most steps by which an outcome moves numbers, each rounded upwards."""
    moved = -(-np.abs(asked.rows) * TICKS // asked.steps[:, None])
    # Products of larger weights would not fit 64 bits.
    if int(np.abs(asked.rows).max()) > 2**40:
        raise ValueError("weights are too large")
    return int(max(moved.sum(axis=0).astype(object)))


def recovered_by(asked: Release, rows: Array) -> Array:
    """Returns coefficients that make `rows` of released rows of weights; ValueError if none do."""
    # A kind of m units counts m times, hence the root in both.
    root = np.sqrt(asked.many)
    released = asked.rows / asked.steps[:, None] * root
    wanted = rows * root
    coefficients = np.asarray(np.linalg.lstsq(released.T, wanted.T, rcond=1e-12)[0].T)
    miss = ((coefficients @ released - wanted) ** 2).sum(axis=1)
    if not (miss <= 1e-16 * (wanted**2).sum(axis=1)).all():
        raise ValueError("a question is no sum of released numbers")
    return coefficients


def _groups(units: int, *columns: Array) -> Array:
    """Returns a column of zeros and ones for each combination of values that occurs, in order."""
    # Without columns, the zeros make one group of all.
    values = np.stack([np.zeros(units, dtype=np.int64), *columns])
    codes = np.unique(values, axis=1, return_inverse=True)[1].ravel()
    return np.asarray((codes[:, None] == np.arange(int(codes.max()) + 1)) * 1.0)


def _inverse(design: Array, many: Array) -> Array:
    """Returns weights of a unit of each kind in the coefficients of a least squares regression."""
    root = np.sqrt(many)[:, None]
    length = np.sqrt(((design * root) ** 2).sum(axis=0))
    return np.asarray(np.linalg.pinv(design * root / length) / length[:, None] / root.T)


def rows_of(asked: Release, question: Document) -> list[Array]:
    """Returns weights of a unit of each kind in the answers to a question."""
    many = asked.many
    if question["kind"] == "regression":
        return list(_inverse(_regressors(asked, question), many))
    if question["kind"] == "means":
        design = _groups(len(many), asked.columns["arm"][0])
        return list((design / (many @ design)).T)
    arm, arms = asked.columns["arm"]
    codes, values = asked.columns.get(question["by"], (np.zeros_like(arm), [""]))
    pairs = itertools.product(arms[1:], range(len(values)))
    return [_effect(asked, question, treatment, codes == value) for treatment, value in pairs]


def _effect(asked: Release, question: Document, treatment: int, inside: Array) -> Array:
    """Returns weights of an effect in the kinds of units that are `inside` a subgroup.

    An effect sums differences of two arms in each cluster, weighted by units or by precision.
    """
    many = asked.many
    arm = asked.columns["arm"][0]
    cluster = asked.columns["cluster"][0]
    clusters = [inside & (cluster == each) for each in np.unique(cluster[inside])]
    groups = [(kinds & (arm == treatment), kinds & (arm == 0)) for kinds in clusters]
    share = np.array([many[kinds].sum() for kinds in clusters], dtype=np.float64)
    if question["weights"] == "precision":
        sizes = [[many[treated].sum(), many[control].sum()] for treated, control in groups]
        share = _precision(np.array(sizes), asked)
    row = np.zeros(len(arm))
    for (treated, control), weight in zip(groups, share / share.sum(), strict=True):
        row[treated] = weight / many[treated].sum()
        row[control] = -weight / many[control].sum()
    return row


def _precision(sizes: Array, asked: Release) -> Array:
    """Returns weights min(harmonic, cap * smaller) of clusters for the sizes of two arms.

    Source: docs/theory/experiments.md#precision-weights.
    """
    ratio: float = asked.width / asked.sd / asked.planned_epsilon
    smaller = sizes.min(axis=1)
    harmonic = 1 / (1 / sizes).sum(axis=1)
    cap = float((harmonic / smaller).max())

    def excess(cap: float) -> float:
        """Returns a number above 0 where a larger cap is better, and below 0 where it is worse."""
        room = np.maximum(1 - cap * smaller / harmonic, 0)
        return float((smaller * room).sum()) - 2 * ratio**2 * cap

    # The largest cap cuts no weight: it is best only if noise is nothing in floating point.
    if excess(cap) < 0:
        cap = brentq(excess, 0.0, cap, xtol=1e-300, rtol=1e-14)
    return np.asarray(np.minimum(harmonic, cap * smaller))


def _regressors(asked: Release, question: Document) -> Array:
    """Returns the columns of a regression: a constant, then the columns that it names.

    A column of numbers is one column, any other column is one for each value but the first, and
    names that are joined by colons stand for products.
    """
    kinds = len(asked.many)
    columns = [np.ones((kinds, 1))]
    for name in question["columns"]:
        product = np.ones((kinds, 1))
        for part in name.split(":"):
            codes, values = asked.columns[part]
            if part == "arm" or isinstance(values[0], str):
                factor = _groups(kinds, codes)[:, 1:]
            else:
                factor = np.array(values, dtype=np.float64)[codes][:, None]
            # Every column of the product is multiplied by every column of the factor.
            product = (product[:, :, None] * factor[:, None, :]).reshape(kinds, -1)
        columns.append(product)
    design = np.concatenate(columns, axis=1)
    if not asked.grouped:
        return design
    # If groups were assigned whole, each unit has the mean of its group.
    in_group = _groups(kinds, asked.group)
    sums = (in_group * asked.many[:, None]).T @ design
    return np.asarray(in_group @ (sums / (asked.many @ in_group)[:, None]))


def _of_groups(asked: Release, question: Document, rows: Array) -> list[float]:
    """Returns half an interval for each row, by the estimator CR2 of sums of groups."""
    halves = []
    kinds = len(asked.many)
    by = question["by"]
    # The questions of an effect by a column go through its values, arm by arm.
    codes = asked.columns[by][0] if by else np.zeros(kinds, dtype=np.int64)
    values = int(codes.max()) + 1
    sums = np.array(asked.drawn_numbers, float) * asked.steps / 2.0**40 / TICKS * asked.width
    if question["kind"] == "regression":
        columns = _regressors(asked, question)
    else:
        names = ["arm"] if question["kind"] == "means" else ["arm", "cluster"]
        columns = np.hstack([_groups(kinds, asked.columns[name][0]) for name in names])
    for at, row in enumerate(rows):
        inside = codes == at % values
        many = asked.many * inside
        in_group = _groups(kinds, asked.group)
        in_group = in_group[:, many @ in_group > 0]
        size = many @ in_group
        group_sums = np.zeros(len(size))
        for code in range(len(sums)):
            place = (asked.sum_of == code) & inside
            if place.any():
                group_sums += in_group[place.argmax()] * sums[code]
        # Regressors and weights of a group are the means of its units.
        units_in_group = (in_group * many[:, None]).T
        design = units_in_group @ columns / size[:, None]
        weight = units_in_group @ row / size
        # A group of m equal units counts as one unit of weight m, so that H = X (X'MX)^+ X'M and
        # the leverage of the group is m h.
        gram = design.T @ (design * size[:, None])
        hat = design @ np.linalg.pinv(gram, rcond=1e-10, hermitian=True) @ design.T
        scale = weight / np.sqrt(1 - size * np.diag(hat))
        residuals = group_sums - size * (hat @ group_sums)
        # This maps variables of variance 1, one for each group, to residuals times `scale`.
        factor = scale[:, None] * (np.diag(np.sqrt(size)) - size[:, None] * hat * np.sqrt(size))
        # Degrees of freedom are computed without correlation within groups, and with it: the fewer
        # count.
        spreads = [(factor * phi) @ factor.T for phi in (np.ones(len(size)), 0.7 + 0.3 * size)]
        degrees = min(float(np.trace(each) ** 2 / (each**2).sum()) for each in spreads)
        quantile = student(degrees, asked.confidence)
        halves.append(quantile * math.sqrt(float(((scale * residuals) ** 2).sum())))
    return halves


class Fit(NamedTuple):
    """A least squares fit within whose groups residuals have equal variances.

    `in_group` has a column of zeros and ones for each group, and `degrees` its degrees of freedom.
    `hat` says of which released numbers the prediction for each kind of units consists.
    """

    in_group: Array
    degrees: Array
    hat: Array


def fit_of(asked: Release, question: Document) -> Fit:
    """Returns the fit by a regression, or by group means, about which answers vary."""
    many = asked.many
    kinds = len(many)
    is_regression = question["kind"] == "regression"
    named = question["columns"] if is_regression else ["arm", "cluster", question["by"]]
    names = ["arm"] if question["kind"] == "means" else ["arm", *asked.by]
    in_group = _groups(kinds, *(asked.columns[name][0] for name in names if name in named))
    design = _regressors(asked, question) if is_regression else in_group
    inverse = _inverse(design, many)
    # The units of each kind less their leverages.
    degrees_of_kind = many * (1 - np.einsum("ij,ji->i", design, inverse))
    if is_regression and (degrees_of_kind @ in_group).min() < 9.9:
        # If a group has so few degrees of freedom, all units are one group.
        in_group = np.ones((kinds, 1))
    return Fit(in_group, degrees_of_kind @ in_group, design @ recovered_by(asked, inverse))


def _halves(asked: Release, question: Document, rows: Array, recovered: Array) -> list[float]:
    """Returns half an interval for each row, whose coefficients of released numbers are given.

    Source: docs/theory/experiments.md#an-honest-interval.
    """
    fit = fit_of(asked, question)
    coarser = coarser_groups(asked, fit)
    unit = asked.moment_step / TICKS**2
    squares = np.array(asked.drawn_moments) @ coarser * unit
    moment_noise = coarser.sum(axis=0) * (2**BITS * unit) ** 2
    predicted = fit.hat @ np.array(asked.drawn_numbers) / TICKS
    # The standard deviation of the noise of each released number in each prediction.
    moves = fit.hat * DEVIATION
    of_row = zip(rows, (recovered * DEVIATION) ** 2, strict=True)
    spread = Spread(squares, moment_noise, predicted, moves)
    return [asked.width * spread.half(asked, fit, row, parts) for row, parts in of_row]


def coarser_groups(asked: Release, fit: Fit) -> Array:
    """Returns the group that holds each group of second moments, as zeros and a one."""
    columns = [asked.columns[name][0] for name in ("arm", *asked.by)]
    fine = _groups(len(asked.many), *columns)
    return np.asarray(fit.in_group[fine.argmax(axis=0)])


class Spread(NamedTuple):
    """What is known of the variance of outcomes: by group of a fit, and by kind of units.

    `squares` are second moments, and `moment_noise` squared scales of their noise. `predicted` is
    the prediction for each kind, in which released numbers have noise of the deviations `moves`.
    """

    squares: Array
    moment_noise: Array
    predicted: Array
    moves: Array

    def half(self, asked: Release, fit: Fit, row: Array, parts: Array) -> float:
        """Returns half an interval of a row of weights; `parts` are variances of its noise."""
        many = asked.many
        degrees = fit.degrees
        codes = fit.in_group.argmax(axis=1)
        # The noise of the answer has this variance, like a sum of so many Laplace variables.
        added = parts.sum()
        terms = added**2 / (parts**2).sum()
        row_squares = np.bincount(codes, row**2 * many)
        ratio = row_squares / degrees
        weight = ratio[codes] * many
        used = weight != 0
        square = (self.moves[used] * weight[used, None]).T @ self.moves[used]
        # Squares of predictions hold the variance of their noise, which is added again.
        variance = float(ratio @ self.squares - weight @ self.predicted**2 + np.trace(square))
        # The noise of this variance: by second moments, and by predictions and their squares.
        linear = (weight * self.predicted) @ self.moves
        quadratic = 2.5 * (square**2).sum()
        variance_noise = math.sqrt(ratio**2 @ self.moment_noise + 2 * linear @ linear + quadratic)
        # A group without weight, but for rounding, has no part in the variance.
        fewest = float(degrees[row_squares > 1e-12 * row_squares.sum()].min())
        return noise.half_width(asked.confidence, variance, variance_noise, fewest, added, terms)
