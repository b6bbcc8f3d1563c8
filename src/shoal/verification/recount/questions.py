"""Linear questions of a trial: the loss of a unit, answers and their intervals."""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from scipy.optimize import brentq

from shoal.verification.recount import noise
from shoal.verification.recount.noise import normal_laplace, raised_by, student
from shoal.verification.recount.reading import Array, Document, Release, differs

_BITS, _TICKS = 32, 2**20
# Standard deviation of the noise of a number, over the range.
_DEVIATION = 2.0**_BITS * math.sqrt(noise.laplace_variance(_BITS)) / _TICKS


def differences(asked: Release) -> Iterator[str]:
    """What does not follow from the released numbers; intervals of assigned groups are left out."""
    loss, middle = _loss(asked), asked.low + asked.width / 2
    if loss is None or not loss <= asked.epsilon <= loss * (1 + Fraction(1, 10**11)):
        yield f"the privacy loss is {float(loss or 0):.12g}, not {float(asked.epsilon):.12g}"
    numbers, answers = np.array(asked.numbers) / _TICKS, list[tuple[float, float | None]]()
    for question in asked.questions:
        rows = np.array(_rows(asked, question))
        sums = _recovered(asked, rows)
        values = sums @ numbers * asked.width + middle * np.round(rows.sum(axis=1))
        halves = [None] * len(rows) if asked.forms else _halves(asked, question, rows, sums)
        answers += zip(values.tolist(), halves, strict=True)
    for (value, known), stated in zip(answers, asked.answers, strict=True):
        half: float = (stated[3] - stated[2]) / 2 if known is None else known
        true = [value, half / student(math.inf, asked.confidence), value - half, value + half]
        slack = 1e-6 * half + 1e-12 * abs(value)
        yield from differs("answer, its error and interval", stated, true, 0.0, slack)


def _loss(asked: Release) -> Fraction | None:
    """What no unit loses more than; None where second moments would cost something."""
    moved = (-(-np.abs(asked.rows) * _TICKS // asked.steps[:, None])).sum(axis=0).astype(object)
    if asked.forms:
        return Fraction(int(max(sum((_moved(each) for each in asked.forms), moved))), 2**_BITS)
    # They are free if they move by no more than numbers do (docs/theory/questions.md).
    free = int(max(moved)) * asked.moment_step >= _TICKS * _TICKS
    return Fraction(int(max(moved)) + len(asked.steps), 2**_BITS) if free else None


def _moved(form: Document) -> Array:
    """Steps that the outcome of each unit moves a variance by (docs/theory/questions.md)."""
    kind, limits = form["kind"], form["limits"]
    factor = form["factor"].reshape(-1, kind.max() + 1) - 2**20
    squares = (factor**2).sum(axis=0)
    if len(limits):
        near = np.minimum(np.abs(factor), limits[:, None])
        moved = 2 * (limits @ near) - (near**2).sum(axis=0)
    else:
        every = (np.abs(factor.T @ factor) * np.bincount(kind)).sum(axis=1)
        moved = np.maximum(every - squares, squares)
    return np.asarray((-(-moved // form["step"]))[kind].astype(object))


def _recovered(asked: Release, rows: Array) -> Array:
    """Rows of weights as sums of those of released numbers; ValueError if they are none."""
    released = asked.rows / asked.steps[:, None]
    sums = np.asarray(np.linalg.lstsq(released.T, rows.T, rcond=1e-12)[0].T)
    off = ((sums @ released - rows) ** 2).sum(axis=1)
    if not (off <= 1e-16 * (rows**2).sum(axis=1)).all():
        raise ValueError
    return sums


def _groups(units: int, *columns: Array) -> Array:
    """A column of zeros and ones for each combination of values that is there, in their order."""
    every = np.stack([np.zeros(units, dtype=np.int64), *columns])
    codes = np.unique(every, axis=1, return_inverse=True)[1].ravel()
    return np.asarray((codes[:, None] == np.arange(int(codes.max()) + 1)) * 1.0)


def _inverse(design: Array) -> Array:
    length = np.sqrt((design**2).sum(axis=0))
    return np.asarray(np.linalg.pinv(design / length) / length[:, None])


def _rows(asked: Release, question: Document) -> list[Array]:
    """Weights of units in the answers to a question."""
    if question["kind"] == "regression":
        return list(_inverse(_regressors(asked, question)))
    if question["kind"] == "means":
        design = _groups(asked.rows.shape[1], asked.columns["arm"][0])
        return list((design / design.sum(axis=0)).T)
    if question["kind"] != "effect":
        raise ValueError
    # Differences of two arms in each cluster, weighted by units or by precision.
    (arm, arms), (home, _) = asked.columns["arm"], asked.columns["cluster"]
    codes, values = asked.columns.get(question["by"], (np.zeros_like(arm), [""]))
    rows = []
    for other, value in ((other, value) for other in arms[1:] for value in range(len(values))):
        inside, row = codes == value, np.zeros(len(arm))
        clusters = [inside & (home == c) for c in np.unique(home[inside])]
        groups = [[units & (arm == a) for a in (other, 0)] for units in clusters]
        share = np.array([units.sum() for units in clusters], dtype=np.float64)
        if question["weights"] == "precision":
            share = _precision(np.array([[g.sum() for g in pair] for pair in groups]), asked)
        for (treated, control), part in zip(groups, share / share.sum(), strict=True):
            row[treated], row[control] = part / treated.sum(), -part / control.sum()
        rows.append(row)
    return rows


def _precision(pairs: Array, asked: Release) -> Array:
    """min(h, t m), t a root of sum m (1 - t m/h)+ = 2 r^2 t (docs/theory/questions.md)."""
    ratio: float = asked.width / asked.spread / asked.planned_epsilon
    least, harmonic = pairs.min(axis=1), 1 / (1 / pairs).sum(axis=1)
    top = float((harmonic / least).max())

    def excess(t: float) -> float:
        return float((least * np.maximum(1 - t * least / harmonic, 0)).sum()) - 2 * ratio**2 * t

    t = brentq(excess, 0.0, top, xtol=1e-300, rtol=1e-14) if excess(top) < 0 else top
    return np.asarray(np.minimum(harmonic, t * least))


def _regressors(asked: Release, question: Document) -> Array:
    """A constant, columns of numbers, and one for each other value but the first."""
    units = asked.rows.shape[1]
    columns = [np.ones((units, 1))]
    for name in question["columns"]:
        codes, values = asked.columns[name]
        if name == "arm" or isinstance(values[0], str):
            columns.append(_groups(units, codes)[:, 1:])
        else:
            columns.append(np.array(values, dtype=np.float64)[codes][:, None])
    return np.concatenate(columns, axis=1)


def _halves(asked: Release, question: Document, rows: Array, sums: Array) -> Iterator[float]:
    """Half an interval for each row of weights (docs/theory/questions.md)."""
    units, regression = asked.rows.shape[1], question["kind"] == "regression"
    used = question["columns"] if regression else ["arm", "cluster", question["by"]]
    names = ["arm"] if question["kind"] == "means" else ["arm", *asked.groups_by]
    groups = _groups(units, *(asked.columns[name][0] for name in names if name in used))
    design = _regressors(asked, question) if regression else groups
    inverse = _inverse(design)
    rest = 1 - np.einsum("ij,ji->i", design, inverse)
    if regression and (rest @ groups).min() < 9.9:
        # With so few degrees of freedom in a group, all units are one.
        groups = np.ones((units, 1))
    degrees, codes = rest @ groups, groups.argmax(axis=1)
    # Residuals of groups come from second moments, and from predictions by released numbers.
    fine = _groups(units, *(asked.columns[name][0] for name in ("arm", *asked.groups_by)))
    homes, unit = groups[fine.argmax(axis=0)], asked.moment_step / _TICKS**2
    squares = np.array(asked.moments) @ homes * unit
    loose = homes.sum(axis=0) * (2**_BITS * unit) ** 2
    hat, normal = design @ _recovered(asked, inverse), student(math.inf, asked.confidence)
    fit, moves = hat @ np.array(asked.numbers) / _TICKS, hat * _DEVIATION
    for row, added in zip(rows, (sums**2).sum(axis=1) * _DEVIATION**2, strict=True):
        each = np.bincount(codes, row**2)
        weight, part = (each / degrees)[codes], each / degrees
        square, linear = (moves * weight[:, None]).T @ moves, (weight * fit) @ moves
        variance = float(part @ squares - weight @ fit**2 + np.trace(square))
        doubt = math.sqrt(part**2 @ loose + 2 * linear @ linear + 2.5 * (square**2).sum())
        few = student(float(degrees[each > 1e-12 * each.sum()].min()), asked.confidence) / normal
        sampling = max(variance, 0.0) + raised_by(doubt / (added / 2)) * doubt
        sampling *= max(few**2, 1.0)
        with_laplace = normal_laplace(asked.confidence, sampling, added, 1.0)
        yield asked.width * max(normal * math.sqrt(sampling + added), with_laplace)
