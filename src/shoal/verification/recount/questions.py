"""Linear questions of a trial: the loss of a unit, answers and their intervals."""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from scipy.optimize import brentq

from shoal.verification.recount import noise
from shoal.verification.recount.noise import student
from shoal.verification.recount.reading import Array, Document, Release, differs

_BITS = 32
_TICKS = 2**20
# Standard deviation of the noise of a number, over the range.
_DEVIATION = 2.0**_BITS * math.sqrt(noise.laplace_variance(_BITS)) / _TICKS


def differences(asked: Release) -> Iterator[str]:
    """What does not follow from the released numbers."""
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
        halves = _of_groups(asked, question, rows) if asked.grouped else None
        own = halves or _halves(asked, question, rows, sums)
        answers += zip(values.tolist(), own, strict=True)
    for (value, half), stated_answer in zip(answers, asked.answers, strict=True):
        true = [value, half / student(math.inf, asked.confidence), value - half, value + half]
        slack = 1e-6 * half + 1e-12 * abs(value)
        yield from differs("answer, its error and interval", stated_answer, true, 0.0, slack)


def _loss(asked: Release) -> Fraction | None:
    """What no unit loses more than; None where second moments would cost something."""
    moved = (-(-np.abs(asked.rows) * _TICKS // asked.steps[:, None])).sum(axis=0).astype(object)
    most = int(max(moved))
    many = int((asked.rows != 0).sum(axis=0).max()) if asked.alone else 0
    # Larger weights would leave 64 bits.
    if int(np.abs(asked.rows).max()) > 2**40:
        return None
    if not asked.moment_step:
        return Fraction(most, 2**_BITS)
    # Free if they move no more than numbers (docs/theory/experiments.md#second-moments-are-free).
    free = most * asked.moment_step >= _TICKS * _TICKS
    return Fraction(most + (many or len(asked.steps)), 2**_BITS) if free else None


def _recovered(asked: Release, rows: Array) -> Array:
    """Rows of weights as sums of those of released numbers; ValueError if they are none."""
    root = np.sqrt(asked.many)
    released = asked.rows / asked.steps[:, None] * root
    own = rows * root
    sums = np.asarray(np.linalg.lstsq(released.T, own.T, rcond=1e-12)[0].T)
    off = ((sums @ released - own) ** 2).sum(axis=1)
    if not (off <= 1e-16 * (own**2).sum(axis=1)).all():
        raise ValueError
    return sums


def _groups(units: int, *columns: Array) -> Array:
    """A column of zeros and ones for each combination of values that is there, in their order."""
    every = np.stack([np.zeros(units, dtype=np.int64), *columns])
    codes = np.unique(every, axis=1, return_inverse=True)[1].ravel()
    return np.asarray((codes[:, None] == np.arange(int(codes.max()) + 1)) * 1.0)


def _inverse(design: Array, many: Array) -> Array:
    """Weights of a unit of each kind in the coefficients of a least squares regression."""
    root = np.sqrt(many)[:, None]
    length = np.sqrt(((design * root) ** 2).sum(axis=0))
    return np.asarray(np.linalg.pinv(design * root / length) / length[:, None] / root.T)


def _rows(asked: Release, question: Document) -> list[Array]:
    """Weights of a unit of each kind in the answers to a question."""
    many = asked.many
    if question["kind"] == "regression":
        return list(_inverse(_regressors(asked, question), many))
    if question["kind"] == "means":
        design = _groups(len(many), asked.columns["arm"][0])
        return list((design / (many @ design)).T)
    # Differences of two arms in each cluster, weighted by units or by precision.
    arm, arms = asked.columns["arm"]
    home = asked.columns["cluster"][0]
    codes, values = asked.columns.get(question["by"], (np.zeros_like(arm), [""]))
    rows = []
    for other, value in itertools.product(arms[1:], range(len(values))):
        inside = codes == value
        row = np.zeros(len(arm))
        clusters = [inside & (home == c) for c in np.unique(home[inside])]
        groups = [[kinds & (arm == a) for a in (other, 0)] for kinds in clusters]
        share = np.array([many[kinds].sum() for kinds in clusters], dtype=np.float64)
        if question["weights"] == "precision":
            pairs = np.array([[many[g].sum() for g in pair] for pair in groups])
            share = _precision(pairs, asked)
        for (treated, control), part in zip(groups, share / share.sum(), strict=True):
            row[treated] = part / many[treated].sum()
            row[control] = -part / many[control].sum()
        rows.append(row)
    return rows


def _precision(pairs: Array, asked: Release) -> Array:
    """min(h, t m), sum m (1 - t m/h)+ = 2 r^2 t (docs/theory/experiments.md#precision-weights)."""
    ratio: float = asked.width / asked.sd / asked.planned_epsilon
    least = pairs.min(axis=1)
    harmonic = 1 / (1 / pairs).sum(axis=1)
    top = float((harmonic / least).max())

    def excess(t: float) -> float:
        return float((least * np.maximum(1 - t * least / harmonic, 0)).sum()) - 2 * ratio**2 * t

    t = brentq(excess, 0.0, top, xtol=1e-300, rtol=1e-14) if excess(top) < 0 else top
    return np.asarray(np.minimum(harmonic, t * least))


def _regressors(asked: Release, question: Document) -> Array:
    """A constant, columns of numbers, one for each other value but the first, and products."""
    kinds = len(asked.many)
    columns = [np.ones((kinds, 1))]
    for name in question["columns"]:
        product = np.ones((kinds, 1))
        for part in name.split(":"):
            codes, values = asked.columns[part]
            if part == "arm" or isinstance(values[0], str):
                own = _groups(kinds, codes)[:, 1:]
            else:
                own = np.array(values, dtype=np.float64)[codes][:, None]
            product = (product[:, :, None] * own[:, None, :]).reshape(kinds, -1)
        columns.append(product)
    design = np.concatenate(columns, axis=1)
    if not asked.grouped:
        return design
    # Of assigned groups the means of their units count.
    homes = _groups(kinds, asked.group)
    return np.asarray(
        homes @ ((homes * asked.many[:, None]).T @ design / (asked.many @ homes)[:, None])
    )


def _of_groups(asked: Release, question: Document, rows: Array) -> list[float]:
    """Half an interval for each row, by CR2 of sums of assigned groups: textbook matrices."""
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
        own = np.zeros(len(size))
        for code in range(len(sums)):
            place = (asked.sum_of == code) & inside
            if place.any():
                own += homes[place.argmax()] * sums[code]
        if question["kind"] == "regression":
            columns = _regressors(asked, question)
        else:
            names = ["arm"] if question["kind"] == "means" else ["arm", "cluster"]
            columns = np.hstack([_groups(kinds, asked.columns[name][0]) for name in names])
        design = sums_of @ columns / size[:, None]
        # A group of m units alike is one of weight m: H = X (X'MX)^+ X'M, and leverages m h.
        gram = design.T @ (design * size[:, None])
        hat = design @ np.linalg.pinv(gram, rcond=1e-10, hermitian=True) @ design.T
        weight = sums_of @ row / size
        scale = weight / np.sqrt(1 - size * np.diag(hat))
        left = own - size * (hat @ own)
        factor = scale[:, None] * (np.diag(np.sqrt(size)) - size[:, None] * hat * np.sqrt(size))
        spreads = [(factor * phi) @ factor.T for phi in (np.ones(len(size)), 0.7 + 0.3 * size)]
        degrees = min(float(np.trace(each) ** 2 / (each**2).sum()) for each in spreads)
        few = student(degrees, asked.confidence)
        found.append(few * math.sqrt(float(((scale * left) ** 2).sum())))
    return found


def _halves(asked: Release, question: Document, rows: Array, sums: Array) -> list[float]:
    """Half an interval for each row of weights (docs/theory/experiments.md#an-honest-interval)."""
    many = asked.many
    kinds = len(many)
    regression = question["kind"] == "regression"
    used = question["columns"] if regression else ["arm", "cluster", question["by"]]
    names = ["arm"] if question["kind"] == "means" else ["arm", *asked.by]
    groups = _groups(kinds, *(asked.columns[name][0] for name in names if name in used))
    design = _regressors(asked, question) if regression else groups
    inverse = _inverse(design, many)
    rest = many * (1 - np.einsum("ij,ji->i", design, inverse))
    if regression and (rest @ groups).min() < 9.9:
        # With so few degrees of freedom in a group, all units are one.
        groups = np.ones((kinds, 1))
    degrees = rest @ groups
    codes = groups.argmax(axis=1)
    # Residuals of groups come from second moments, and from predictions by released numbers.
    fine = _groups(kinds, *(asked.columns[name][0] for name in ("arm", *asked.by)))
    homes = groups[fine.argmax(axis=0)]
    unit = asked.moment_step / _TICKS**2
    squares = np.array(asked.drawn_moments) @ homes * unit
    loose = homes.sum(axis=0) * (2**_BITS * unit) ** 2
    hat = design @ _recovered(asked, inverse)
    found = []
    fit = hat @ np.array(asked.drawn_numbers) / _TICKS
    moves = hat * _DEVIATION
    for row, own in zip(rows, sums**2, strict=True):
        added = own.sum() * _DEVIATION**2
        terms = own.sum() ** 2 / (own**2).sum()
        each = np.bincount(codes, row**2 * many)
        part = each / degrees
        weight = part[codes] * many
        there = weight != 0
        linear = (weight * fit) @ moves
        square = (moves[there] * weight[there, None]).T @ moves[there]
        variance = float(part @ squares - weight @ fit**2 + np.trace(square))
        doubt = math.sqrt(part**2 @ loose + 2 * linear @ linear + 2.5 * (square**2).sum())
        few = float(degrees[each > 1e-12 * each.sum()].min())
        half = noise.half_width(asked.confidence, variance, doubt, few, added, terms)
        found.append(asked.width * half)
    return found
