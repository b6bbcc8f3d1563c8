"""Variances of assigned groups, again: CR2 from public columns, loss and intervals of forms.

Nothing is imported from other packages, as in `verify`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.documents import Document
from shoal.verification.questions.facts import Facts
from shoal.verification.questions.weights import Entry
from shoal.verification.questions.whole_forms import Form, finest

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
# Of outcomes of a group, and of deviations that limits of sums keep.
_CORRELATION, _DEVIATIONS = 0.3, 3.0
_FITTED, _ROUNDED, _CLOSE = 1e-9, 0.52, 1e-6


def design_of(facts: Facts, entry: Entry, asked: Document) -> Floats:
    """Regressors: of a regression its own; of means arms; of effects clusters and arms."""
    if asked["kind"] == "regression":
        return entry.design
    if asked["kind"] == "means":
        return _dummies(list(facts.arm.tolist()))
    value = facts.covariates[asked["by"]].codes if asked["by"] else np.zeros_like(facts.arm)
    cells = _dummies(list(zip(facts.cluster.tolist(), value.tolist(), strict=True)))
    treated = _dummies(list(zip(facts.arm.tolist(), value.tolist(), strict=True)))
    keep = np.array([bool(facts.arm[np.argmax(column)]) for column in treated.T])
    return np.concatenate([cells, treated[:, keep]], axis=1)


def _dummies(keys: list[object]) -> Floats:
    place = {key: at for at, key in enumerate(dict.fromkeys(keys))}
    codes = np.array([place[key] for key in keys])
    return np.asarray(codes[:, None] == np.arange(len(place)), dtype=np.float64)


def factors(design: Floats, assigned: Whole, rows: Floats) -> Iterator[Floats]:
    """B of each question: with the singular values s of a group's part of an orthonormal basis.

    (I - H_gg)^(-1/2) w = w + U ((1 - s^2)^(-1/2) - 1) U'w.
    """
    axes, size, _ = np.linalg.svd(design / np.sqrt((design**2).sum(axis=0)), full_matrices=False)
    basis = axes[:, size > _FITTED * size[0]]
    order = np.argsort(assigned, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(assigned[order])) + 1)
    known = [np.linalg.svd(basis[own], full_matrices=False)[:2] for own in parts]
    for row in rows:
        found = np.zeros((len(parts), len(row)))
        for at, (own, (left, s)) in enumerate(zip(parts, known, strict=True)):
            rest = 1 - s**2
            root = np.where(rest > _FITTED, np.maximum(rest, _FITTED) ** -0.5, 0.0)
            raised = row[own] + left @ ((root - 1) * (left.T @ row[own]))
            found[at] = -basis @ (basis[own].T @ raised)
            found[at, own] += raised
        yield found


@dataclass(frozen=True)
class Told:
    """What a form says of its question.

    Attributes:
        holds: Whether its whole numbers are those of the question, and no limit is too small.
        worth: Of one step, in squared ranges.
        degrees: Of freedom.
    """

    holds: bool
    worth: float
    degrees: float


def told_of(facts: Facts, entries: list[Entry], asked: list[Document]) -> list[Told]:
    """What all forms say, question by question."""
    forms, found = iter(facts.forms), []
    assigned = facts.assigned
    if assigned is None or len(facts.forms) != sum(len(each.rows) for each in entries):
        raise ValueError
    for entry, document in zip(entries, asked, strict=True):
        design = design_of(facts, entry, document)
        for row, factor in zip(entry.rows, factors(design, assigned, entry.rows), strict=True):
            found.append(_told(facts, assigned, next(forms), row, factor))
    return found


def _told(facts: Facts, assigned: Whole, form: Form, row: Floats, factor: Floats) -> Told:
    unit = float(np.abs(factor).max()) / int(np.abs(form.factor).max())
    fine = int(np.abs(form.factor).max()) == 1 << finest(*factor.shape)
    near = fine and float(np.abs(factor / unit - form.factor[:, form.kind]).max()) <= _ROUNDED
    unbiased = abs(float((factor**2).sum()) / math.fsum(row**2) - 1) <= _CLOSE
    large = True
    if len(form.limits):
        together = np.zeros((len(factor), int(assigned.max()) + 1))
        np.add.at(together.T, assigned, factor.T)
        own = (1 - _CORRELATION) * (factor**2).sum(axis=1)
        own += _CORRELATION * (together**2).sum(axis=1)
        least = _DEVIATIONS * facts.spread / facts.width * np.sqrt(own)
        large = bool((form.limits * unit >= least * (1 - _CLOSE)).all())
    # Of the whole numbers, which are these to half a part: with few groups degrees are sensitive.
    weighed = form.factor * np.sqrt(np.bincount(form.kind))
    roots = np.linalg.svd(weighed, compute_uv=False) ** 2
    worth = form.step * math.fsum(row**2) / math.fsum(roots)
    degrees = math.fsum(roots) ** 2 / math.fsum(roots**2)
    return Told(near and unbiased and large, worth, degrees)
