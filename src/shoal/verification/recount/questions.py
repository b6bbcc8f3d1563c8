"""Recounts linear questions of a trial: the loss of a unit, answers and their intervals."""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from scipy.optimize import brentq

from shoal.verification.recount import noise
from shoal.verification.recount.noise import student
from shoal.verification.recount.reading import Array, Document, Release, differs

# Noise has a scale of 2^32 steps.
_BITS = 32
# The range of outcomes is this many ticks wide.
_TICKS = 2**20
# The standard deviation of the noise of a number, as a part of the range.
_DEVIATION = 2.0**_BITS * math.sqrt(noise.laplace_variance(_BITS)) / _TICKS


def differences(asked: Release) -> Iterator[str]:
    """Yields what does not follow from the released numbers."""
    loss = _loss(asked)
    middle = asked.low + asked.width / 2
    stated = asked.epsilon - asked.clustering_epsilon
    if loss is None or not loss <= stated <= loss * (1 + Fraction(1, 10**11)):
        yield f"the privacy loss is {float(loss or 0):.12g}, not {float(stated):.12g}"
    numbers = np.array(asked.drawn_numbers) / _TICKS
    answers = list[tuple[float, float]]()
    for question in asked.entries:
        rows = np.array(_rows(asked, question))
        sums = _recovered(asked, rows)
        values = sums @ numbers * asked.width + middle * np.round(rows @ asked.many)
        if asked.grouped:
            halves = _of_groups(asked, question, rows)
        else:
            halves = _halves(asked, question, rows, sums)
        answers += zip(values.tolist(), halves, strict=True)
    for (value, half), stated_answer in zip(answers, asked.answers, strict=True):
        true = [value, half / student(math.inf, asked.confidence), value - half, value + half]
        slack = 1e-6 * half + 1e-12 * abs(value)
        yield from differs("answer, its error and interval", stated_answer, true, 0.0, slack)


def _loss(asked: Release) -> Fraction | None:
    """Returns the most that a unit loses; None if weights are too large or moments not free."""
    moved = (-(-np.abs(asked.rows) * _TICKS // asked.steps[:, None])).sum(axis=0).astype(object)
    largest = int(max(moved))
    # Products of larger weights would not fit 64 bits.
    if int(np.abs(asked.rows).max()) > 2**40:
        return None
    if not asked.moment_step:
        return Fraction(largest, 2**_BITS)
    # Second moments are free if they move no more steps than numbers do, except for one step of
    # rounding for each number (docs/theory/experiments.md#second-moments-are-free).
    if largest * asked.moment_step < _TICKS * _TICKS:
        return None
    rounding = int((asked.rows != 0).sum(axis=0).max()) if asked.alone else len(asked.steps)
    return Fraction(largest + rounding, 2**_BITS)


def _recovered(asked: Release, rows: Array) -> Array:
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
    every = np.stack([np.zeros(units, dtype=np.int64), *columns])
    codes = np.unique(every, axis=1, return_inverse=True)[1].ravel()
    return np.asarray((codes[:, None] == np.arange(int(codes.max()) + 1)) * 1.0)


def _inverse(design: Array, many: Array) -> Array:
    """Returns weights of a unit of each kind in the coefficients of a least squares regression."""
    root = np.sqrt(many)[:, None]
    length = np.sqrt(((design * root) ** 2).sum(axis=0))
    return np.asarray(np.linalg.pinv(design * root / length) / length[:, None] / root.T)


def _rows(asked: Release, question: Document) -> list[Array]:
    """Returns weights of a unit of each kind in the answers to a question."""
    many = asked.many
    if question["kind"] == "regression":
        return list(_inverse(_regressors(asked, question), many))
    if question["kind"] == "means":
        design = _groups(len(many), asked.columns["arm"][0])
        return list((design / (many @ design)).T)
    # An effect sums differences of two arms in each cluster, weighted by units or by precision.
    arm, arms = asked.columns["arm"]
    home = asked.columns["cluster"][0]
    codes, values = asked.columns.get(question["by"], (np.zeros_like(arm), [""]))
    rows = []
    for treatment, value in itertools.product(arms[1:], range(len(values))):
        inside = codes == value
        row = np.zeros(len(arm))
        clusters = [inside & (home == c) for c in np.unique(home[inside])]
        groups = [[kinds & (arm == a) for a in (treatment, 0)] for kinds in clusters]
        share = np.array([many[kinds].sum() for kinds in clusters], dtype=np.float64)
        if question["weights"] == "precision":
            pairs = np.array([[many[g].sum() for g in pair] for pair in groups])
            share = _precision(pairs, asked)
        for (treated, control), weight in zip(groups, share / share.sum(), strict=True):
            row[treated] = weight / many[treated].sum()
            row[control] = -weight / many[control].sum()
        rows.append(row)
    return rows


def _precision(pairs: Array, asked: Release) -> Array:
    """Returns weights min(harmonic, cap * smaller) of clusters for the sizes of two arms.

    Source: docs/theory/experiments.md#precision-weights.
    """
    ratio: float = asked.width / asked.sd / asked.planned_epsilon
    smaller = pairs.min(axis=1)
    harmonic = 1 / (1 / pairs).sum(axis=1)
    cap = float((harmonic / smaller).max())

    def excess(t: float) -> float:
        return float((smaller * np.maximum(1 - t * smaller / harmonic, 0)).sum()) - 2 * ratio**2 * t

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
            product = (product[:, :, None] * factor[:, None, :]).reshape(kinds, -1)
        columns.append(product)
    design = np.concatenate(columns, axis=1)
    if not asked.grouped:
        return design
    # If groups were assigned whole, each unit has the mean of its group.
    homes = _groups(kinds, asked.group)
    return np.asarray(
        homes @ ((homes * asked.many[:, None]).T @ design / (asked.many @ homes)[:, None])
    )


def _of_groups(asked: Release, question: Document, rows: Array) -> list[float]:
    """Returns half an interval for each row, by the estimator CR2 of sums of groups."""
    found = []
    kinds = len(asked.many)
    codes = asked.columns.get(question["by"], (np.zeros(kinds, dtype=np.int64), [0]))[0]
    values = int(codes.max()) + 1 if question["by"] else 1
    sums = np.array(asked.drawn_numbers, float) * asked.steps / 2.0**40 / _TICKS * asked.width
    for at, row in enumerate(rows):
        inside = codes == at % values if question["by"] else np.ones(kinds, dtype=bool)
        many = asked.many * inside
        homes = _groups(kinds, asked.group)
        homes = homes[:, many @ homes > 0]
        size = many @ homes
        sums_of = (homes * many[:, None]).T
        group_sums = np.zeros(len(size))
        for code in range(len(sums)):
            place = (asked.sum_of == code) & inside
            if place.any():
                group_sums += homes[place.argmax()] * sums[code]
        if question["kind"] == "regression":
            columns = _regressors(asked, question)
        else:
            names = ["arm"] if question["kind"] == "means" else ["arm", "cluster"]
            columns = np.hstack([_groups(kinds, asked.columns[name][0]) for name in names])
        design = sums_of @ columns / size[:, None]
        # A group of m equal units counts as one unit of weight m, so that H = X (X'MX)^+ X'M and
        # the leverage of the group is m h.
        gram = design.T @ (design * size[:, None])
        hat = design @ np.linalg.pinv(gram, rcond=1e-10, hermitian=True) @ design.T
        weight = sums_of @ row / size
        scale = weight / np.sqrt(1 - size * np.diag(hat))
        residuals = group_sums - size * (hat @ group_sums)
        factor = scale[:, None] * (np.diag(np.sqrt(size)) - size[:, None] * hat * np.sqrt(size))
        # Degrees of freedom are computed without correlation within groups, and with it: the fewer
        # count.
        spreads = [(factor * phi) @ factor.T for phi in (np.ones(len(size)), 0.7 + 0.3 * size)]
        degrees = min(float(np.trace(each) ** 2 / (each**2).sum()) for each in spreads)
        quantile = student(degrees, asked.confidence)
        found.append(quantile * math.sqrt(float(((scale * residuals) ** 2).sum())))
    return found


def _halves(asked: Release, question: Document, rows: Array, sums: Array) -> list[float]:
    """Returns half an interval for each row (docs/theory/experiments.md#an-honest-interval)."""
    many = asked.many
    kinds = len(many)
    regression = question["kind"] == "regression"
    named = question["columns"] if regression else ["arm", "cluster", question["by"]]
    names = ["arm"] if question["kind"] == "means" else ["arm", *asked.by]
    groups = _groups(kinds, *(asked.columns[name][0] for name in names if name in named))
    design = _regressors(asked, question) if regression else groups
    inverse = _inverse(design, many)
    degrees_of_kind = many * (1 - np.einsum("ij,ji->i", design, inverse))
    if regression and (degrees_of_kind @ groups).min() < 9.9:
        # If a group has so few degrees of freedom, all units are one group.
        groups = np.ones((kinds, 1))
    degrees = degrees_of_kind @ groups
    codes = groups.argmax(axis=1)
    # Squared residuals follow from second moments, and from predictions by released numbers.
    fine = _groups(kinds, *(asked.columns[name][0] for name in ("arm", *asked.by)))
    homes = groups[fine.argmax(axis=0)]
    unit = asked.moment_step / _TICKS**2
    squares = np.array(asked.drawn_moments) @ homes * unit
    moment_noise = homes.sum(axis=0) * (2**_BITS * unit) ** 2
    hat = design @ _recovered(asked, inverse)
    found = []
    fit = hat @ np.array(asked.drawn_numbers) / _TICKS
    moves = hat * _DEVIATION
    for row, parts in zip(rows, sums**2, strict=True):
        added = parts.sum() * _DEVIATION**2
        terms = parts.sum() ** 2 / (parts**2).sum()
        row_squares = np.bincount(codes, row**2 * many)
        ratio = row_squares / degrees
        weight = ratio[codes] * many
        used = weight != 0
        linear = (weight * fit) @ moves
        square = (moves[used] * weight[used, None]).T @ moves[used]
        variance = float(ratio @ squares - weight @ fit**2 + np.trace(square))
        quadratic = 2.5 * (square**2).sum()
        variance_noise = math.sqrt(ratio**2 @ moment_noise + 2 * linear @ linear + quadratic)
        fewest = float(degrees[row_squares > 1e-12 * row_squares.sum()].min())
        half = noise.half_width(asked.confidence, variance, variance_noise, fewest, added, terms)
        found.append(asked.width * half)
    return found
