"""Weights of questions, again: from public columns alone, by other formulas.

Nothing is imported from other packages, as in `verify`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from shoal.verification.strict import text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.documents import Document
    from shoal.verification.questions.facts import Facts

    Floats = NDArray[np.float64]

_DOUBLINGS, _HALVINGS = 200, 200
_TWO = 2


def questions_of(facts: Facts, asked: list[Document]) -> tuple[list[str], Floats]:
    """Names and weights of all questions; ValueError if one has no answer."""
    names: list[str] = []
    rows: list[Floats] = []
    for each in asked:
        own, weighed = _ONE[each["kind"]](facts, each)
        names += own
        rows += list(weighed)
    if len(set(names)) != len(names) or not names:
        raise ValueError
    return names, np.array(rows)


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
    return names, arm_rows(facts)


def arm_rows(facts: Facts) -> list[Floats]:
    """Weights of the mean of each arm."""
    return [
        np.where(facts.arm == at, 1.0, 0.0) / int((facts.arm == at).sum())
        for at in range(len(facts.arms))
    ]


def _regression(facts: Facts, asked: Document) -> tuple[list[str], list[Floats]]:
    """The pseudo-inverse of the regressors, all of one length first."""
    columns = [text(each) for each in asked["columns"]]
    if asked["by"] or asked["weights"] != "units" or not columns:
        raise ValueError
    labels, found = ["constant"], [np.ones(facts.units)]
    for name in columns:
        more = _regressors(facts, name)
        labels += more
        found += more.values()
    design = np.array(found).T
    length = np.sqrt((design**2).sum(axis=0))
    if design.shape[1] > design.shape[0] or not (length > 0).all():
        raise ValueError
    inverse = np.linalg.pinv(design / length) / length[:, None]
    return [f"{each} in {' + '.join(columns)}" for each in labels], list(inverse)


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
