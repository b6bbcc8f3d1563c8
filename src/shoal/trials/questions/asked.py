"""One entry of a list of questions, and the rows of weights that it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal import checks, documents
from shoal.errors import DocumentError, InputError
from shoal.theory.questions import weights
from shoal.theory.questions.precision import precision_shares
from shoal.trials.questions.columns import ARM, CONSTANT, Columns, Covariate

Floats = NDArray[np.float64]
EFFECT, MEANS, REGRESSION = "effect", "means", "regression"
UNITS, PRECISION = "units", "precision"
MOST_QUESTIONS = 256
# Of weights in all, as whole numbers of a plan.
MOST_WEIGHTS = 1 << 26
# Of the largest singular value of regressors of length 1 over the least.
_FARTHEST = 1e7


@dataclass(frozen=True)
class Asked:
    """What was asked in one call.

    Attributes:
        kind: `effect`, `means` or `regression`.
        by: The column whose values make subgroups; empty for none.
        weights: Of clusters: `units` or `precision`.
        columns: Regressors besides the constant.
    """

    kind: str
    by: str = ""
    weights: str = UNITS
    columns: tuple[str, ...] = ()

    @property
    def possible(self) -> bool:
        """Whether a call of `Questions` makes it: no part that its kind leaves out."""
        made = {
            EFFECT: Asked(EFFECT, self.by, UNITS if self.by else self.weights),
            MEANS: Asked(MEANS),
            REGRESSION: Asked(REGRESSION, columns=self.columns),
        }
        return self == made[self.kind] and (self.kind != REGRESSION or len(self.columns) > 0)

    @property
    def formula(self) -> str:
        """The regressors as a text."""
        return " + ".join(self.columns)

    def to_document(self) -> documents.Document:
        """The entry as a JSON object."""
        return {
            "kind": self.kind,
            "by": self.by,
            "weights": self.weights,
            "columns": list(self.columns),
        }

    @classmethod
    def from_document(cls, document: documents.Document) -> Asked:
        """The inverse of `to_document`.

        Raises:
            DocumentError: An entry that `Questions` never makes, such as means by a column.
        """
        found = cls(
            document["kind"], document["by"], document["weights"], tuple(document["columns"])
        )
        if not found.possible:
            raise DocumentError(
                f"a question of the kind {found.kind} with parts of another",
                "a document written by shoal",
                "fetch it again, or plan anew",
            )
        return found


@dataclass(frozen=True)
class Stated:
    """Public numbers that precision weights follow from.

    Attributes:
        ratio: Width of the range over the stated standard deviation.
        epsilon: Privacy loss.
    """

    ratio: float
    epsilon: float


@dataclass(frozen=True, eq=False)
class Block:
    """The questions of one entry.

    Attributes:
        asked: The entry.
        names: Of its questions.
        rows: Their weights, shape (questions, units).
    """

    asked: Asked
    names: tuple[str, ...]
    rows: Floats


def blocks_of(columns: Columns, asked: Sequence[Asked], stated: Stated) -> tuple[Block, ...]:
    """Names and weights of all questions, entry by entry.

    Raises:
        InputError: Questions that have no answer, or too many of them.
    """
    found: list[Block] = []
    names: list[str] = []
    for each in asked:
        own, weighed = _ROWS[each.kind](columns, each, stated)
        names += own
        _check_many(len(names), columns.n)
        found.append(Block(each, tuple(own), np.atleast_2d(weighed)))
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise InputError(
            f"the question {min(twice)!r} twice", "each question once", "leave one out"
        )
    return tuple(found)


def stacked(blocks: Sequence[Block]) -> Floats:
    """The weights of all questions, shape (questions, units).

    Raises:
        InputError: Weights that cannot be asked for.
    """
    return weights.stack([each.rows for each in blocks])


def _check_many(many: int, units: int) -> None:
    most = min(units, MOST_QUESTIONS, MOST_WEIGHTS // units)
    if many > most:
        raise InputError(
            f"{many} questions or more of {units} units",
            f"at most {most}: no more than units, nor than {MOST_QUESTIONS}",
            "ask fewer questions",
        )


def _effect(columns: Columns, asked: Asked, stated: Stated) -> tuple[list[str], Floats]:
    found, names = [], []
    for arm in range(1, len(columns.arms)):
        # Other arms than these two do not matter.
        pair = np.where(columns.arm == arm, 1, np.where(columns.arm == 0, 0, 2))
        what = EFFECT if len(columns.arms) == 2 else f"{EFFECT} of {columns.arms[arm]}"
        if asked.by:
            group = columns.covariate(asked.by)
            _check_cells(columns, pair, group)
            names += [f"{what} where {asked.by} is {_text(value)}" for value in group.values]
            found.append(weights.effects_by(pair, columns.cluster, group.codes))
        else:
            shares = None
            if asked.weights == PRECISION:
                sizes = weights.cell_sizes(pair, columns.cluster)
                shares = precision_shares(sizes, stated.ratio, stated.epsilon)
                what += ", precision weights"
            names.append(what)
            found.append(weights.effect(pair, columns.cluster, shares=shares)[None])
    return names, np.concatenate(found)


def _check_cells(columns: Columns, pair: NDArray[np.int64], group: Covariate) -> None:
    """Say in words which part of a cluster has nobody in an arm."""
    clusters = columns.assignment.clusters
    many = len(clusters), len(group.values)
    if many[0] * many[1] > MOST_WEIGHTS:
        raise InputError(
            f"{many[1]} subgroups in {many[0]} clusters", "fewer", "ask for effects of fewer groups"
        )
    count = np.zeros((*many, 3), dtype=np.int64)
    np.add.at(count, (columns.cluster, group.codes, pair), 1)
    some = count.sum(axis=2) > 0
    lacking = np.argwhere(some & (count[:, :, :2] == 0).any(axis=2))
    if not len(lacking):
        return
    home, at = lacking[0].tolist()
    place = f" of the cluster {clusters[home].as_py()}" if many[0] > 1 else ""
    raise InputError(
        f"units where {group.name} is {_text(group.values[at])}{place}, all of which have one arm "
        f"({len(lacking)} such cells)",
        "units of both arms in each subgroup of each cluster",
        "merge subgroups or clusters, or ask for a regression on the covariate",
    )


def _means(columns: Columns, _: Asked, __: Stated) -> tuple[list[str], Floats]:
    return [f"mean of arm {each}" for each in columns.arms], weights.arm_means(columns.arm)


def _regression(columns: Columns, asked: Asked, _: Stated) -> tuple[list[str], Floats]:
    labels, design = design_of(columns, asked.columns)
    return [f"{each} in {asked.formula}" for each in labels], coefficients(labels, design)


def coefficients(labels: Sequence[str], design: Floats) -> Floats:
    """Weights of all coefficients of a regression, shape (columns, units).

    Raises:
        InputError: Columns that depend on others, or more of them than units.
    """
    if design.shape[1] > design.shape[0]:
        _check_many(design.shape[1], design.shape[0])
    if design.shape[1] == design.shape[0]:
        raise InputError(
            f"a regression on {design.shape[1]} columns of as many units",
            "fewer columns than units: else nothing tells how outcomes differ",
            "leave columns out",
        )
    try:
        found = weights.regression(design)
    except InputError:
        dependent = _dependent(labels, design)
    else:
        _check_numbers(labels, design)
        return found
    raise InputError(
        f"a regression in which {dependent} depends on the other columns",
        "columns of which none is a sum of multiples of others and a constant",
        "leave that column out",
    )


def _check_numbers(labels: Sequence[str], design: Floats) -> None:
    """Refuse columns whose coefficients floating-point numbers hardly tell.

    Raises:
        InputError: A column that is far from 0 beside how it differs, or nearly depends on others.
    """
    alike = design / np.linalg.norm(design, axis=0)
    _, sizes, axes = np.linalg.svd(alike, full_matrices=False)
    if sizes[0] <= _FARTHEST * sizes[-1]:
        return
    worst = labels[int(np.abs(axes[-1][1:]).argmax()) + 1]
    raise InputError(
        f"a regression in which {checks.shown(worst)} is far from 0 beside how it differs, or "
        "nearly depends on other columns",
        "columns whose coefficients floating-point numbers tell",
        "subtract a public number from it, such as a round mean, or leave it out",
    )


def _dependent(labels: Sequence[str], design: Floats) -> str:
    """The first column that follows from those before it."""
    for many in range(2, design.shape[1] + 1):
        part = design[:, :many]
        if np.linalg.matrix_rank(part / np.linalg.norm(part, axis=0), tol=1e-8) < many:
            return checks.shown(labels[many - 1])
    return "a column"


def design_of(columns: Columns, names: Sequence[str]) -> tuple[list[str], Floats]:
    """Regressors with a constant first: a column of a number, one less than values of a text.

    Raises:
        InputError: No such column.
    """
    labels, found = [CONSTANT], [np.ones(columns.n)]
    for name in names:
        if name == ARM:
            arms = columns.arms
            many = len(arms) > 2
            labels += [f"{ARM} {arms[at]}" if many else ARM for at in range(1, len(arms))]
            found += [(columns.arm == at).astype(float) for at in range(1, len(arms))]
            continue
        given = columns.covariate(name)
        if given.numeric:
            labels.append(name)
            found.append(np.array(given.values)[given.codes])
        else:
            labels += [f"{name} {value}" for value in given.values[1:]]
            found += [(given.codes == at).astype(float) for at in range(1, len(given.values))]
    return labels, np.stack(found, axis=1)


def check_regressors(columns: Columns, names: Any) -> tuple[str, ...]:
    """Names of regressors, each once and each a column.

    Raises:
        InputError: Others.
    """
    found = tuple(checks.text(each, "a regressor") for each in checks.items(names, "regressors"))
    for name in found:
        if name != ARM:
            columns.covariate(name)
        if found.count(name) > 1:
            raise InputError(f"the regressor {name!r} twice", "each once", "leave one out")
    return found


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


_ROWS = {EFFECT: _effect, MEANS: _means, REGRESSION: _regression}
