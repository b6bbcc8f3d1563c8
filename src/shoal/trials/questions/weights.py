"""Turns questions into rows of public weights: effects, means of arms, regressions.

A question is theta = sum w_i y_i of the outcomes y_i of all units; a row has the weight of a unit
of each kind, shape (questions, kinds). Source: docs/theory/experiments.md#questions.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from shoal import checks
from shoal.arrays import Floats, Ints
from shoal.documents.model import Model
from shoal.errors import InputError
from shoal.trials.design import ARM, CONSTANT, Design, effect_weights

EFFECT = "effect"
MEANS = "means"
MEAN = "mean"
REGRESSION = "regression"
COEFFICIENT = "coefficient"
UNITS = "units"
PRECISION = "precision"
# Arms of a trial that has one effect.
_PAIR = 2
# The largest number of weights of all questions.
_MOST_WEIGHTS = 1 << 26
# The largest singular value of regressors of length 1, divided by the smallest, is at most this.
_FARTHEST = 1e7


class QuestionEntry(Model):
    """The questions of one call: effects `by` a column with `weights`, or regressor `columns`."""

    kind: Literal["effect", "means", "regression"]
    by: str = ""
    weights: Literal["units", "precision"] = "units"
    columns: tuple[str, ...] = ()


class Label(NamedTuple):
    """What a question is of, in parts, and its name, which is made of them."""

    question: str
    statistic: str
    arm: str = ""
    control: str = ""
    by: str = ""
    subgroup: str = ""


class Block(NamedTuple):
    """The questions of one entry: their labels, and rows of weights, shape (questions, kinds)."""

    entry: QuestionEntry
    labels: tuple[Label, ...]
    rows: Floats

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the questions."""
        return tuple(each.question for each in self.labels)

    @property
    def of_regression(self) -> bool:
        """Whether they are coefficients of a regression."""
        return self.entry.kind == REGRESSION


def blocks_of(
    design: Design, entries: Sequence[QuestionEntry], ratio: float, asked: Sequence[str] = ()
) -> tuple[Block, ...]:
    """Returns the questions of entries; names that were asked before are in `asked`.

    Precision weights depend on `ratio`, which is width/(sd epsilon).
    """
    found = []
    names = set(asked)
    for each in entries:
        labels, rows = _ROWS[each.kind](design, each, ratio)
        block = Block(each, tuple(labels), np.atleast_2d(rows))
        twice = names & set(block.names)
        if twice:
            raise InputError(f"the question {min(twice)!r} is asked twice", "leave one out")
        names |= set(block.names)
        if len(names) * len(design.many) > _MOST_WEIGHTS:
            raise InputError(
                f"{len(names)} questions are too many for {len(design.many)} kinds of units",
                "ask fewer",
            )
        found.append(block)
    return tuple(found)


def _effect(design: Design, entry: QuestionEntry, ratio: float) -> tuple[list[Label], Floats]:
    """Returns labels and weights of the effect of each arm, in all units or in each subgroup."""
    rows = []
    labels = []
    subgroups = None
    places = {"": ""}
    if entry.by:
        subgroups = design.covariate(entry.by)
        values = [_text(each) for each in subgroups.values]
        places = {each: f" where {entry.by} is {each}" for each in values}
    control, *arms = design.arm_names
    for arm, name in enumerate(arms, 1):
        what = EFFECT if len(design.arms) == _PAIR else f"{EFFECT} of {name}"
        shares = None
        if entry.weights == PRECISION:
            shares = precision_shares(design.sizes[:, [0, arm]], ratio)
            what += ", precision weights"
        labels += [
            Label(what + place, EFFECT, name, control, entry.by, subgroup)
            for subgroup, place in places.items()
        ]
        rows.append(effect_weights(design, arm, subgroups, shares))
    return labels, np.concatenate(rows)


def _means(design: Design, _: QuestionEntry, __: float) -> tuple[list[Label], Floats]:
    """Returns labels and weights of the plain mean of each arm."""
    labels = [Label(f"{MEAN} of arm {each}", MEAN, each) for each in design.arm_names]
    return labels, group_means(design.arm, design.many)


def _regression(design: Design, entry: QuestionEntry, _: float) -> tuple[list[Label], Floats]:
    """Returns labels and weights of all coefficients of a least squares regression.

    The weights are (X'MX)^-1 x for the regressors x of each kind, with the units of kinds in M.
    """
    from scipy.linalg import qr, solve_triangular

    labels, regressors = regressors_of(design, entry.columns)
    if len(labels) >= design.n:
        raise InputError(
            f"a regression on {len(labels)} columns needs more than {design.n} units",
            "leave columns out: with as many columns as units there is no variance to estimate",
        )
    if design.group is not None:
        # Sums of whole groups are released, so that each unit has the mean of its group.
        means = group_means(design.group, design.many) * design.many @ regressors
        regressors = means[design.group]
    root = np.sqrt(design.many)
    scaled = regressors * root[:, None]
    length = np.linalg.norm(scaled, axis=0)
    too_few_kinds = len(root) < len(labels)
    # With too few kinds only full matrices have an axis along which regressors do not vary.
    sizes, axes = np.linalg.svd(
        scaled / np.where(length > 0, length, 1), full_matrices=too_few_kinds
    )[1:]
    if too_few_kinds or sizes[0] > _FARTHEST * sizes[-1]:
        # The column that takes the largest part in the dependence, but not the constant.
        worst = labels[int(np.abs(axes[-1][1:]).argmax()) + 1]
        raise InputError(
            f"in the regression {checks.shown(worst)} depends, or nearly depends, on the other "
            "columns, or is far from 0 compared with its spread",
            "leave it out, or subtract a public number from it, such as a round mean",
        )
    basis, triangle, order = qr(scaled / length, mode="economic", pivoting=True)
    rows = np.empty((len(order), len(root)))
    rows[order] = solve_triangular(triangle, basis.T) / length[order, None]
    formula = " + ".join(entry.columns)
    names = [
        Label(f"{each} in {formula}", COEFFICIENT, by=formula, subgroup=each) for each in labels
    ]
    return names, rows / root


def regressors_of(design: Design, names: Sequence[str]) -> tuple[list[str], Floats]:
    """Returns labels and values of regressors, the first of which is a constant.

    A column of numbers is one regressor. A column of texts makes one for each value but the first.
    """
    labels = [CONSTANT]
    found = [np.ones(len(design.many))]
    for name in names:
        product, *factors = (_one_column(design, each) for each in name.split(":"))
        for factor in factors:
            # Every regressor of the one column is multiplied by every one of the other.
            product = [
                (f"{label}:{other}", column * by)
                for label, column in product
                for other, by in factor
            ]
        labels += [label for label, _ in product]
        found += [column for _, column in product]
    return labels, np.stack(found, axis=1)


def _one_column(design: Design, name: str) -> list[tuple[str, Floats]]:
    """Returns labels and values of the columns that a name stands for."""
    if name == ARM:
        values = list(design.arm_names)
        codes = design.arm
        if len(values) == _PAIR:
            return [(ARM, (codes == 1).astype(float))]
    else:
        given = design.covariate(name)
        if given.numeric:
            return [(name, np.array(given.values)[given.codes])]
        values = [str(each) for each in given.values]
        codes = given.codes
    # The first value has no column: the constant stands for it.
    return [
        (f"{name} {value}", (codes == at).astype(float)) for at, value in enumerate(values) if at
    ]


def group_means(codes: Ints, many: Ints) -> Floats:
    """Returns weights of the mean of each group of kinds, shape (groups, kinds)."""
    sizes = np.bincount(codes, many)
    return np.asarray((codes == np.arange(len(sizes))[:, None]) / sizes[:, None])


def regressor_names(design: Design, names: str | Sequence[str]) -> tuple[str, ...]:
    """Returns names of regressors, from a list or a text such as `arm + age`, each once.

    A name is a column, or several with colons between.
    """
    names = formula_names(names) if isinstance(names, str) else names
    found = tuple(checks.text(each, "a regressor") for each in checks.items(names, "regressors"))
    for name in found:
        for each in name.split(":"):
            if each != ARM:
                design.covariate(each)
        if found.count(name) > 1:
            raise InputError(f"the regressor {name!r} is named twice", "leave one out")
    return found


def formula_names(text: str) -> list[str]:
    """Returns names of columns from a text with plus signs between them."""
    names = [each.strip() for each in text.split("+")]
    if not all(names) or "~" in text:
        raise InputError(
            f"the regression {text[:60]!r} is not a list of columns with + between",
            "give the names of columns without the outcome, for example 'arm + age'",
        )
    return names


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


_ROWS = {EFFECT: _effect, MEANS: _means, REGRESSION: _regression}


def lengths(rows: Floats, many: Ints) -> Floats:
    """Returns the length of each question: the root of the sum of squared weights of all units."""
    # Weights are scaled first, because squares of small ones would underflow.
    largest = np.abs(rows).max(axis=1, keepdims=True)
    return np.asarray(largest[:, 0] * np.sqrt(((rows / largest) ** 2 * many).sum(axis=1)))


def precision_shares(sizes: Ints, ratio: float) -> Floats:
    """Returns the shares of clusters that make the sum of sampling and noise variance smallest.

    `sizes` are the units of control and an arm in each cluster; `ratio` is as in `blocks_of`.
    """
    harmonic = 1 / (1 / sizes[:, 0] + 1 / sizes[:, 1])
    smaller = sizes.min(axis=1).astype(np.float64)
    limit = harmonic / smaller
    falling = np.argsort(-limit, kind="stable")
    # Without noise, shares are proportional to `harmonic`. Noise grows with the largest ratio of a
    # share to `smaller`, which a cap limits in the clusters of the largest limits. Caps are tried
    # for one such cluster, two, and so on.
    held = np.cumsum(smaller[falling])
    curved = np.cumsum(smaller[falling] ** 2 / harmonic[falling])
    tried = held / (2 * ratio**2 + curved)
    # The first cap is right that is above the limits of all clusters that it does not hold.
    cap = tried[int(np.argmax(tried >= np.append(limit[falling][1:], 0.0)))]
    found = np.minimum(harmonic, cap * smaller)
    return np.asarray(found / found.sum())
