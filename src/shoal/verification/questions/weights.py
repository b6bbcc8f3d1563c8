"""Weights of questions, again: from public columns alone, by other formulas.

Nothing is imported from other packages, as in `verify`.
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.documents import Document
from shoal.verification.questions.facts import Facts
from shoal.verification.strict import text

Floats = NDArray[np.float64]
_DOUBLINGS, _HALVINGS = 200, 200
_TWO = 2


@dataclass(frozen=True, eq=False)
class Entry:
    """The questions of one entry.

    Attributes:
        names: Of the questions.
        rows: Their weights, questions x units.
        design: Regressors of the prediction within which outcomes vary, units x coefficients.
        within: Columns that make groups of units whose residuals differ alike.
        arms: Whether arms do, too.
        regression: Whether it is one.
    """

    names: list[str]
    rows: Floats
    design: Floats
    within: list[str]
    arms: bool
    regression: bool


def questions_of(facts: Facts, asked: list[Document], by: list[str]) -> list[Entry]:
    """All questions; ValueError if one has no answer."""
    found = []
    for each in asked:
        names, rows = _ONE[each["kind"]](facts, each)
        regression = each["kind"] == "regression"
        own = each["columns"] if regression else [each["by"], "cluster"]
        within = [name for name in by if name in own and each["kind"] != "means"]
        arms = not regression or "arm" in own
        if regression:
            design = np.array(_design(facts, own)[1]).T
        else:
            codes = facts.groups(within, arms=arms)
            design = (codes[:, None] == np.arange(int(codes.max()) + 1)) * 1.0
        found.append(Entry(names, np.array(rows), design, within, arms, regression))
    every = [name for entry in found for name in entry.names]
    if len(set(every)) != len(every) or not every:
        raise ValueError
    return found


def _effect(facts: Facts, asked: Document) -> tuple[list[str], list[Floats]]:
    names, rows = [], []
    by, precise = text(asked["by"]), asked["weights"] == "precision"
    if asked["columns"] or (by and precise):
        raise ValueError
    for arm in range(1, len(facts.arms)):
        what = "effect" if len(facts.arms) == _TWO else f"effect of {facts.arms[arm]}"
        if not by:
            names.append(what + ", precision weights" * precise)
            rows.append(_difference(facts, arm, np.ones(facts.units, dtype=bool), precise=precise))
            continue
        column = facts.covariates[by]
        for at, value in enumerate(column.values):
            shown = f"{value:.6g}" if isinstance(value, float) else str(value)
            names.append(f"{what} where {by} is {shown}")
            rows.append(_difference(facts, arm, column.codes == at, precise=False))
    return names, rows


def _difference(facts: Facts, arm: int, inside: NDArray[np.bool_], *, precise: bool) -> Floats:
    """Differences of the means of two arms in each cluster, weighted."""
    members: dict[int, list[int]] = defaultdict(list)
    for unit in np.flatnonzero(inside).tolist():
        members[int(facts.cluster[unit])].append(unit)
    treated = {c: [i for i in units if facts.arm[i] == arm] for c, units in members.items()}
    control = {c: [i for i in units if facts.arm[i] == 0] for c, units in members.items()}
    share = {c: len(units) / int(inside.sum()) for c, units in members.items()}
    if precise:
        pairs = {c: (len(treated[c]), len(control[c])) for c in members}
        share = _precise(pairs, facts.width / facts.spread / float(facts.asked))
    found = np.zeros(facts.units)
    for c, part in share.items():
        if not treated[c] or not control[c]:
            raise ValueError
        found[treated[c]] = part / len(treated[c])
        found[control[c]] = -part / len(control[c])
    return found


def _precise(pairs: dict[int, tuple[int, int]], ratio: float) -> dict[int, float]:
    """min(h, t m) normalised, t by bisection of sum m (1 - t m/h)^+ = 2 ratio^2 t."""
    least = {c: min(pair) for c, pair in pairs.items()}
    harmonic = {c: 1 / (1 / one + 1 / other) for c, (one, other) in pairs.items()}

    def excess(t: float) -> float:
        left = sum(least[c] * max(1 - t * least[c] / harmonic[c], 0.0) for c in pairs)
        return left - 2 * ratio**2 * t

    low, high = 0.0, 1.0
    for _ in range(_DOUBLINGS):
        if excess(high) <= 0:
            break
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    shares = {c: min(harmonic[c], high * least[c]) for c in pairs}
    total = sum(shares.values())
    return {c: each / total for c, each in shares.items()}


def _means(facts: Facts, asked: Document) -> tuple[list[str], list[Floats]]:
    if asked["by"] or asked["columns"] or asked["weights"] != "units":
        raise ValueError
    names = [f"mean of arm {each}" for each in facts.arms]
    return names, [
        np.where(facts.arm == at, 1.0, 0.0) / int((facts.arm == at).sum())
        for at in range(len(facts.arms))
    ]


def _regression(facts: Facts, asked: Document) -> tuple[list[str], list[Floats]]:
    """The pseudo-inverse of the regressors, all of one length first."""
    columns = [text(each) for each in asked["columns"]]
    if asked["by"] or asked["weights"] != "units" or not columns:
        raise ValueError
    labels, found = _design(facts, columns)
    design = np.array(found).T
    length = np.sqrt((design**2).sum(axis=0))
    if design.shape[1] >= design.shape[0] or not (length > 0).all():
        raise ValueError
    inverse = np.linalg.pinv(design / length) / length[:, None]
    return [f"{each} in {' + '.join(columns)}" for each in labels], list(inverse)


def _design(facts: Facts, columns: list[str]) -> tuple[list[str], list[Floats]]:
    """Names and columns of regressors, a constant first."""
    labels, found = ["constant"], [np.ones(facts.units)]
    for name in columns:
        more = _regressors(facts, name)
        labels += more
        found += more.values()
    return labels, found


def _regressors(facts: Facts, name: str) -> dict[str, Floats]:
    """Columns of one name: a number's own, or one for each value but the first."""
    if name == "arm":
        if len(facts.arms) == _TWO:
            return {"arm": (facts.arm == 1) * 1.0}
        return {
            f"arm {facts.arms[at]}": (facts.arm == at) * 1.0 for at in range(1, len(facts.arms))
        }
    column = facts.covariates[name]
    if not column.texts:
        numbers: Floats = np.array(column.values, dtype=np.float64)
        return {name: numbers[column.codes]}
    return {
        f"{name} {value}": (column.codes == at) * 1.0
        for at, value in enumerate(column.values)
        if at
    }


_ONE = {"effect": _effect, "means": _means, "regression": _regression}
