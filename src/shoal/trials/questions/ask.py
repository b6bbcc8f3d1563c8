"""The list of questions, as a custodian writes it, from public columns alone."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from shoal import checks
from shoal.documents.model import Model
from shoal.errors import InputError, ShoalWarning
from shoal.privacy.budget import Amount
from shoal.trials.design import ARM, CONSTANT, Covariate, Design, Floats, Ints
from shoal.trials.questions import weights as rows_of
from shoal.trials.space import Space, check_space

if TYPE_CHECKING:
    from shoal.trials.questions.plan import QuestionsPlan

EFFECT, MEANS, REGRESSION = "effect", "means", "regression"
UNITS, PRECISION = "units", "precision"
_PAIR = 2
# Of weights in all.
_MOST_WEIGHTS = 1 << 26
# Of the largest singular value of regressors of length 1 over the least.
_FARTHEST = 1e7
# Outcomes of a stated standard deviation: a part of the range unless said; and the least part.
USUAL, _LEAST_SPREAD = 0.25, 1e-6


class Entry(Model):
    """What was asked in one call: `by` a column, weights of clusters, or columns of regressors."""

    kind: Literal["effect", "means", "regression"]
    by: str = ""
    weights: Literal["units", "precision"] = "units"
    columns: tuple[str, ...] = ()


class Block(NamedTuple):
    """The questions of one entry: their names and weights, shape (questions, kinds)."""

    entry: Entry
    names: tuple[str, ...]
    rows: Floats


@dataclass(frozen=True, eq=False)
class Questions:
    """Linear questions of an experiment whose arms, clusters and covariates are public.

    Make one with `trials.Experiment.ask`. Each method returns a new list with one entry more;
    nothing private is read. Every question is a sum of w_i y_i with public w, and noise is shared
    among them so that all intervals widen alike.

    Source: docs/theory/questions.md.

    Attributes:
        design: The public columns.
        entries: What was asked.
        one_by_one: Whether it was said that units were assigned one by one.

    Guarantees: G-LOSS, G-UNBIASED.

    Example:
        >>> import numpy as np
        >>> from shoal import trials
        >>> study = trials.Experiment(np.arange(400) % 2, covariates={"age": np.arange(400) // 10})
        >>> asked = study.ask().effect().regression(["arm", "age"])
        >>> asked.plan(trials.Space.binary(), epsilon=1).names
        ('effect', 'constant in arm + age', 'arm in arm + age', 'age in arm + age')
    """

    design: Design
    entries: tuple[Entry, ...] = ()
    one_by_one: bool = False

    def __repr__(self) -> str:
        return f"<{len(self.entries)} entries of questions, {self.design.n} units>"

    def effect(self, by: str | None = None, weights: str = UNITS) -> Questions:
        """Asks for the effect of each arm against the control, stratified by cluster.

        The mean over clusters of differences of means, weighted by their units; with
        `weights="precision"` by what makes noise and sampling together least, for the stated
        spread: then it is the effect of these weights, not the average over the units.

        Source: docs/theory/questions.md#rows-of-weights;
        docs/theory/questions.md#precision-weights.

        Args:
            by: A covariate, or `cluster`, whose values make subgroups: an effect in each.
            weights: `units` or `precision`.

        Returns:
            The list with these questions.

        Raises:
            InputError: No such column, a subgroup without an arm, or precision weights of
                subgroups.
        """
        if by is not None:
            self.design.covariate(checks.text(by, "by"))
            if weights == PRECISION:
                raise InputError("precision weights of subgroups", "leave by= or weights= out")
        return self._with(Entry.of(kind=EFFECT, by=by or "", weights=weights))

    def means(self) -> Questions:
        """Asks for the plain mean of each arm.

        Source: docs/theory/questions.md#rows-of-weights.

        Returns:
            The list with these questions.
        """
        return self._with(Entry.of(kind=MEANS))

    def regression(self, columns: Sequence[str]) -> Questions:
        """Asks for all coefficients of a least squares regression with a constant.

        Every regression on some of these columns is free afterwards (`Release.regression`).

        Source: docs/theory/questions.md#rows-of-weights.

        Args:
            columns: Names of covariates, `arm` or `cluster`; texts, arms and clusters stand for a
                column a value but the first. `arm:age` stands for the products of both.

        Returns:
            The list with these questions.

        Raises:
            InputError: No such column, one twice, columns that depend on others, or more of them
                than units.
        """
        return self._with(Entry.of(kind=REGRESSION, columns=regressor_names(self.design, columns)))

    @np.errstate(all="ignore")
    def plan(self, space: Space, epsilon: Amount, *, spread: float | None = None) -> QuestionsPlan:
        """Shares the noise among the questions, before any outcome is read.

        Warns of questions that rest on few units, and where a covariate shows that units may not
        have been assigned one by one.

        Source: docs/theory/questions.md#noise-for-many-questions.

        Args:
            space: Its lowest and highest levels are the ends of the outcome's range: outcomes
                beyond are moved to them, others stay where they are.
            epsilon: The privacy loss of one outcome.
            spread: Expected standard deviation of outcomes within arms, in their unit: public, and
                only predictions and precision weights follow it. A quarter of the range unless
                given.

        Returns:
            The plan; nothing is spent.

        Raises:
            InputError: Nothing was asked, questions nearly depend on others, or numbers outside
                their ranges.

        Guarantees: G-LOSS.
        """
        from shoal.trials.questions.plan import plan_questions

        width = check_space(space).width
        if not self.entries:
            raise InputError("no questions", "ask with effect, means or regression")
        given = USUAL * width if spread is None else spread
        least = _LEAST_SPREAD * width
        spread = checks.number(given, "spread", least=least, most=width, example=width / 4)
        found = plan_questions(self.design, self.entries, space, epsilon, spread)
        for sentence in found.warnings(one_by_one=self.one_by_one):
            warnings.warn(sentence, ShoalWarning, stacklevel=3)
        return found

    def _with(self, entry: Entry) -> Questions:
        found = replace(self, entries=(*self.entries, entry))
        # Questions without an answer are found as they are asked.
        blocks_of(self.design, found.entries, 1 / USUAL)
        return found


def blocks_of(design: Design, entries: Sequence[Entry], ratio: float) -> tuple[Block, ...]:
    """Names and weights of all questions; precision weights follow width/(spread epsilon)."""
    found, names = [], set[str]()
    for each in entries:
        own, rows = _ROWS[each.kind](design, each, ratio)
        twice = names & set(own)
        if twice:
            raise InputError(f"the question {min(twice)!r} twice", "leave one out")
        names |= set(own)
        if len(names) * len(design.many) > _MOST_WEIGHTS:
            raise InputError(
                f"{len(names)} questions of {len(design.many)} kinds of units", "ask fewer"
            )
        found.append(Block(each, tuple(own), np.atleast_2d(rows)))
    return tuple(found)


def _effect(design: Design, entry: Entry, ratio: float) -> tuple[list[str], Floats]:
    found, names = [], []
    for arm in range(1, len(design.arms)):
        what = EFFECT if len(design.arms) == _PAIR else f"{EFFECT} of {design.arm_names[arm]}"
        if entry.by:
            group = design.covariate(entry.by)
            rows = rows_of.effects_by(design, arm, group.codes)
            if rows is None:
                raise _lacking(design, arm, group)
            names += [f"{what} where {entry.by} is {_text(value)}" for value in group.values]
            found.append(rows)
            continue
        shares = None
        if entry.weights == PRECISION:
            shares = rows_of.precision_shares(design.sizes[:, [0, arm]], ratio)
            what += ", precision weights"
        names.append(what)
        found.append(rows_of.effect(design, arm, shares)[None])
    return names, np.concatenate(found)


def _lacking(design: Design, arm: int, group: Covariate) -> InputError:
    """Says in words which part of a cluster has nobody in an arm."""
    shape = len(design.clusters), len(group.values), len(design.arms)
    place = (design.cluster * shape[1] + group.codes) * shape[2] + design.arm
    count = np.bincount(place, minlength=shape[0] * shape[1] * shape[2]).reshape(shape)
    lacking = np.argwhere(count.any(axis=2) & (count[:, :, [0, arm]] == 0).any(axis=2))
    home, at = lacking[0].tolist()
    where = f" of the cluster {design.clusters[home].as_py()}" if shape[0] > 1 else ""
    return InputError(
        f"units where {group.name} is {_text(group.values[at])}{where}, all of which have one arm "
        f"({len(lacking)} such cells)",
        "units of both arms in each subgroup of each cluster",
        "merge subgroups or clusters, or ask for a regression on the covariate",
    )


def _means(design: Design, _: Entry, __: float) -> tuple[list[str], Floats]:
    return [f"mean of arm {each}" for each in design.arm_names], rows_of.arm_means(design)


def _regression(design: Design, entry: Entry, _: float) -> tuple[list[str], Floats]:
    labels, regressors = regressors_of(design, entry.columns)
    if design.group is not None:
        # Sums of whole groups are released, so that the means of their units count.
        means = group_means(design.group, design.many) * design.many @ regressors
        regressors = means[design.group]
    rows = coefficients(labels, regressors, design.many)
    return [f"{each} in {' + '.join(entry.columns)}" for each in labels], rows


def coefficients(labels: Sequence[str], regressors: Floats, many: Ints) -> Floats:
    """Weights of all coefficients of a regression, shape (columns, kinds)."""
    if regressors.shape[1] >= int(many.sum()):
        raise InputError(
            f"a regression on {regressors.shape[1]} columns of {int(many.sum())} units",
            "fewer columns than units: else nothing tells how outcomes differ",
            "leave columns out",
        )
    alike = regressors * np.sqrt(many)[:, None]
    length = np.linalg.norm(alike, axis=0)
    _, sizes, axes = np.linalg.svd(alike / np.where(length > 0, length, 1), full_matrices=False)
    if sizes[0] > _FARTHEST * sizes[-1]:
        worst = labels[int(np.abs(axes[-1][1:]).argmax()) + 1]
        raise InputError(
            f"a regression in which {checks.shown(worst)} depends on the other columns, nearly "
            "does, or is far from 0 beside how it differs",
            "columns whose coefficients floating-point numbers tell",
            "leave it out, or subtract a public number from it, such as a round mean",
        )
    return rows_of.regression(regressors, many)


def regressors_of(design: Design, names: Sequence[str]) -> tuple[list[str], Floats]:
    """Regressors with a constant first: a column of a number, one less than values of a text."""
    labels, found = [CONSTANT], [np.ones(len(design.many))]
    for name in names:
        own, *others = (_one_column(design, each) for each in name.split(":"))
        for more in others:
            own = [(f"{a}:{b}", x * y) for a, x in own for b, y in more]
        labels += [label for label, _ in own]
        found += [column for _, column in own]
    return labels, np.stack(found, axis=1)


def _one_column(design: Design, name: str) -> list[tuple[str, Floats]]:
    """Labels and values of what a name stands for."""
    if name == ARM:
        values, codes = list(design.arm_names), design.arm
        if len(values) == _PAIR:
            return [(ARM, (codes == 1).astype(float))]
    else:
        given = design.covariate(name)
        if given.numeric:
            return [(name, np.array(given.values)[given.codes])]
        values, codes = [str(each) for each in given.values], given.codes
    return [
        (f"{name} {value}", (codes == at).astype(float)) for at, value in enumerate(values) if at
    ]


def group_means(codes: Ints, many: Ints) -> Floats:
    """Weights of the mean of each group of kinds, shape (groups, kinds)."""
    sizes = np.bincount(codes, many)
    return np.asarray((codes == np.arange(len(sizes))[:, None]) / sizes[:, None])


def regressor_names(design: Design, names: Sequence[str]) -> tuple[str, ...]:
    """Names of regressors, each once and each a column, or two with a colon between."""
    found = tuple(checks.text(each, "a regressor") for each in checks.items(names, "regressors"))
    for name in found:
        for each in name.split(":"):
            if each != ARM:
                design.covariate(each)
        if found.count(name) > 1:
            raise InputError(f"the regressor {name!r} twice", "leave one out")
    return found


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


_ROWS = {EFFECT: _effect, MEANS: _means, REGRESSION: _regression}
