"""Lies about releases of cells: counts, plan, proof, noise and results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tests.evidence.lies_kit import (
    NotHereError,
    add,
    all_of,
    drop,
    each,
    get,
    one,
    packed,
    plus,
    put,
    times,
    where,
)

if TYPE_CHECKING:
    from tests.evidence.lies_kit import Change, Document, Lies

_CLAIMS, _NUMBERS, _OCCUPANCY = "plan.claims", "plan.numbers", "plan.occupancy"
_METHOD = "plan.request.method"
_COLUMN = f"{_OCCUPANCY}.cells.columns.0"


def _shifted(field: str, by: float) -> Change:
    """A result's value, with its interval, moved; its steps stay."""

    def change(document: Document) -> None:
        row = document["results"][0]
        row[field] += by
        row["interval"] = [end + by for end in row["interval"]]

    return change


def _narrower(document: Document) -> None:
    row = document["results"][0]
    middle = sum(row["interval"]) / 2
    row["interval"] = [(end + middle) / 2 for end in row["interval"]]


def _row_twice(document: Document) -> None:
    document["results"].append(dict(document["results"][0]))


def _rows_swapped(document: Document) -> None:
    rows = document["results"]
    if len(rows) < 2:
        raise NotHereError
    rows[0], rows[1] = rows[1], rows[0]


def _phantom_cell(document: Document) -> None:
    """One more cell that nobody is in."""
    plan = document["plan"]
    plan["occupancy"]["cells"]["columns"][0]["values"].append("p9")
    plan["status"].append("uninformative")


def _equal_keys(document: Document) -> None:
    values = get(document, f"{_COLUMN}.values")
    values[1] = values[0]
    for row in document["results"]:
        if row["cell"] == 1:
            row["key"] = [values[0]]


def _keys_swapped(document: Document) -> None:
    values = get(document, f"{_COLUMN}.values")
    values[0], values[1] = values[1], values[0]


def _less_noise(factor: float) -> Change:
    """Noise scales and the errors that would follow."""
    return all_of(
        each(f"{_NUMBERS}.relative_scale", times(factor)),
        each(f"{_CLAIMS}.worst_case_error", times(factor)),
    )


def _unproved(document: Document) -> None:
    """No dual variables and no gap: nothing is claimed of the best plan."""
    document["plan"]["duals"] = document["plan"]["claims"]["gap"] = None


def _renamed(method: str, other: str) -> Change:
    """Noise of one method under the name of another."""
    return all_of(where(_METHOD, method, put(_METHOD, to=other)), _unproved)


def _one_fewer(counts: Any) -> Any:  # noqa: ANN401
    found = counts.copy()
    found[int(found.argmax())] -= 1
    return found


def _one_more(counts: Any) -> Any:  # noqa: ANN401
    found = counts.copy()
    found[int(found.argmin())] += 1
    return found


PLAN: Lies = {
    "narrower bounds": put("plan.bounds", to=[10.0, 90.0]),
    "wider bounds": put("plan.bounds", to=[0.0, 200.0]),
    "bounds in whole numbers": put("plan.bounds", to=[0, 100]),
    "bounds the other way round": put("plan.bounds", to=[100.0, 0.0]),
    "bounds that differ by their last digits": put("plan.bounds", to=[2.0**52, 2.0**52 + 1]),
    "bounds that are all but 0": put("plan.bounds", to=[0.0, 1e-300]),
    "one bound": put("plan.bounds", to=[0.0]),
    "finer ticks": put("plan.tick_bits", to=plus(5)),
    "coarser ticks": put("plan.tick_bits", to=plus(-10)),
    "half of the noise": each(f"{_NUMBERS}.relative_scale", times(0.5)),
    "a hundredth less noise": each(f"{_NUMBERS}.relative_scale", times(0.99)),
    "less noise in one number": one(f"{_NUMBERS}.relative_scale", times(0.9)),
    "less noise and smaller errors": _less_noise(0.9),
    "more noise than was drawn": each(f"{_NUMBERS}.relative_scale", times(2.0)),
    "noise scales of one number more": put(f"{_NUMBERS}.relative_scale", to=lambda x: [*x, x[0]]),
    "no noise": each(f"{_NUMBERS}.relative_scale", lambda _: 0.0),
    "negative noise": each(f"{_NUMBERS}.relative_scale", lambda x: -x),
    "noise scales as texts": each(f"{_NUMBERS}.relative_scale", str),
    "a coarser lattice": put(f"{_NUMBERS}.lattice_bits", to=plus(-1)),
    "a finer lattice": put(f"{_NUMBERS}.lattice_bits", to=plus(1)),
    "a lattice beyond integers": put(f"{_NUMBERS}.lattice_bits", to=90),
    "another kind of noise": put(
        f"{_NUMBERS}.noise",
        to=lambda x: "discrete gaussian" if x == "discrete laplace" else "discrete laplace",
    ),
    "noise of no kind": put(f"{_NUMBERS}.noise", to="laplace"),
    "released jointly or not": put(f"{_NUMBERS}.joint", to=lambda x: not x),
    "other statistics": put(f"{_NUMBERS}.statistics", to=["share_above(1)"]),
    "other cells": one(f"{_NUMBERS}.cell", plus(1)),
    "other weights": one(f"{_NUMBERS}.weight", times(2.0)),
    "a smaller epsilon asked for": put("plan.request.epsilon", to="1"),
    "an epsilon asked for in other words": put("plan.request.epsilon", to="8/2"),
    "another delta asked for": put("plan.request.delta", to="1/500"),
    "an error asked for, too": put("plan.request.error", to=5.0),
    "another method": put(
        "plan.request.method", to=lambda x: "uniform" if x != "uniform" else "balanced"
    ),
    "equalised noise said to be uniform": where(_METHOD, "equalised", put(_METHOD, to="uniform")),
    "uniform noise said to be equalised": where(_METHOD, "uniform", put(_METHOD, to="equalised")),
    "balanced noise said to be uniform": _renamed("balanced", "uniform"),
    "balanced noise said to be equalised": _renamed("balanced", "equalised"),
    "balanced noise said to be Clip-User's own": all_of(
        where(_METHOD, "clip_user", drop("plan.request.settings.noise")), _unproved
    ),
    "Clip-User's own noise said to be balanced": where(
        _METHOD, "clip_user", add("plan.request.settings", "noise", "balanced")
    ),
    "no method": put("plan.request.method", to="best"),
    "other statistics asked for": put("plan.request.statistics", to=["variance", "mean"]),
    "a rule of more users than there are": put("plan.request.min_users", to=10**6),
    "a rule of more records than there are": put("plan.request.min_records", to=10**6),
    "a rule of no users": put("plan.request.min_users", to=0),
    "a rule by a truth value": put("plan.request.min_users", to=True),
    "another rule of uninformative cells": put("plan.request.uninformative", to="refuse them"),
    "weights of cells": put("plan.request.weights", to={"p0": 3.0}),
    "an unknown setting": add("plan.request.settings", "magic", 1),
    "an unknown request": add("plan.request", "confidence", 0.99),
    "no method asked for": drop("plan.request.method"),
    "another mechanism": put(
        "plan.mechanism.name", to=lambda x: "baseline" if x != "baseline" else "levy"
    ),
    "another parameter": add("plan.mechanism.parameters", "cap", [1, 1, 1]),
    "a selection with less noise": each("plan.mechanism.selection_scale", times(0.5)),
    "a selection without noise": each("plan.mechanism.selection_scale", lambda _: 0.0),
    "no selections": put("plan.mechanism.selection_scale", to=lambda x: x[:0] if x else _nothing()),
    "larger caps": put("plan.mechanism.parameters.cap", to=lambda x: [y + 1 for y in x]),
    "smaller caps": put("plan.mechanism.parameters.cap", to=lambda x: [max(1, y // 2) for y in x]),
    "caps of one cell less": put("plan.mechanism.parameters.cap", to=lambda x: x[1:]),
    "larger thresholds": put(
        "plan.mechanism.parameters.threshold", to=lambda x: [y + 1 for y in x]
    ),
    "other weights of users": packed("plan.mechanism.parameters.part", _one_fewer),
    "users kept who were not": packed("plan.mechanism.parameters.kept", lambda x: x[::-1]),
    "another range at least": put(
        "plan.mechanism.parameters.radius", to=lambda x: [max(1, y // 3) for y in x]
    ),
    "other rewards": put("plan.mechanism.parameters.reward", to=lambda x: [y + 7 for y in x]),
    "other ranks": put("plan.mechanism.parameters.low", to=lambda x: [y + 1 for y in x]),
    "dual variables of nothing": each("plan.duals.dual", lambda _: 0.0),
    "dual variables beyond all bounds": each("plan.duals.dual", lambda _: 1e308),
    "one dual variable beyond all bounds": one("plan.duals.dual", lambda _: 1e308),
    "negative dual variables": each("plan.duals.dual", lambda x: -x),
    "no dual variables": put("plan.duals", to=lambda x: None if x is not None else _nothing()),
    "fewer dual variables than users": put("plan.duals.dual", to=lambda x: x[1:]),
    "dual variables of the same user": packed("plan.duals.user", lambda x: x * 0),
    "dual variables of users who are not there": packed("plan.duals.user", lambda x: x + 100),
    "smaller targets": put("plan.targets", to=lambda x: [y * 0.5 for y in x[:1]] + x[1:]),
    "targets three times as large": put("plan.targets", to=lambda x: [3 * y for y in x]),
    "no targets": put("plan.targets", to=lambda x: None if x is not None else _nothing()),
    "another way to tell neighbours": put("plan.neighbours", to="presence"),
}

COUNTS: Lies = {
    "fewer records of a user": packed(f"{_OCCUPANCY}.count", _one_fewer),
    "more records of a user": packed(f"{_OCCUPANCY}.count", _one_more),
    "a user with no records in a cell": packed(
        f"{_OCCUPANCY}.count", lambda x: np.where(np.arange(len(x)) == 0, 0, x)
    ),
    "counts in another order": packed(f"{_OCCUPANCY}.count", lambda x: x[::-1]),
    "a user elsewhere": packed(f"{_OCCUPANCY}.cell", lambda x: np.roll(x, 1)),
    "a user in a cell that is not there": packed(f"{_OCCUPANCY}.cell", lambda x: x + 50),
    "users put together": packed(
        f"{_OCCUPANCY}.cells_per_user", lambda x: np.append(x[:-2], x[-2] + x[-1])
    ),
    "one count less": packed(f"{_OCCUPANCY}.count", lambda x: x[:-1]),
    "another fingerprint": put(f"{_OCCUPANCY}.fingerprint", to="0" * 64),
    "no fingerprint": drop(f"{_OCCUPANCY}.fingerprint"),
    "a phantom cell": _phantom_cell,
    "two cells of one name": _equal_keys,
    "cells of each other's names": _keys_swapped,
    "cells of another name": put(f"{_COLUMN}.values.0", to="p00"),
    "cells of another type": put(f"{_COLUMN}.type", to="int64"),
    "a type in other letters": put(f"{_COLUMN}.type", to=str.upper),
    "cells by another column": put(f"{_COLUMN}.name", to="hour"),
    "two columns of cells": put(
        f"{_OCCUPANCY}.cells.columns", to=lambda x: [*x, {**x[0], "name": "hour"}]
    ),
    "an integer type that is not least": put(f"{_OCCUPANCY}.count.type", to="<u8"),
    "another length": put(f"{_OCCUPANCY}.count.length", to=plus(1)),
    "packed data with a tail": put(f"{_OCCUPANCY}.count.data", to=lambda x: x + "AAAA"),
    "packed data that is none": put(f"{_OCCUPANCY}.count.data", to="eJw="),
    "a cell that was left out": put("plan.status.0", to="uninformative"),
    "a cell that is neither": put("plan.status.0", to="maybe"),
    "one status less": put("plan.status", to=lambda x: x[:-1]),
    "records of another user": put("records.user", to="household"),
    "records of another value": put("records.value", to="salary"),
    "another rule of missing values": put("records.missing", to="ignored"),
    "an unknown fact of records": add("records", "note", "epsilon is 0.01"),
}

RESULTS: Lies = {
    "no gap": put(f"{_CLAIMS}.gap", to=lambda x: 0.0 if x else _nothing()),
    "a gap of no number": put(f"{_CLAIMS}.gap", to=None),
    "a negative gap": put(f"{_CLAIMS}.gap", to=-1.0),
    "no bias": each(f"{_CLAIMS}.bias_bound", lambda _: 0.0),
    "a hundredth less bias": each(f"{_CLAIMS}.bias_bound", times(0.99)),
    "half of the errors": each(f"{_CLAIMS}.worst_case_error", times(0.5)),
    "a thousandth less error": each(f"{_CLAIMS}.worst_case_error", times(0.999)),
    "less error in one cell": one(f"{_CLAIMS}.worst_case_error", times(0.9)),
    "errors of one cell more": put(f"{_CLAIMS}.worst_case_error", to=lambda x: [*x, 1.0]),
    "higher lower bounds": put(f"{_CLAIMS}.lower_bound", to=lambda x: [y * 1.1 for y in x]),
    "no lower bounds": put(
        f"{_CLAIMS}.lower_bound", to=lambda x: None if x is not None else _nothing()
    ),
    "another value": _shifted("value", 1.0),
    "another unclamped value": _shifted("unclamped", 1.0),
    "other steps": put("results.0.steps", to=plus(2**20)),
    "steps that are no whole number": put("results.0.steps", to=float),
    "a narrower interval": _narrower,
    "an interval the other way round": put("results.0.interval", to=lambda x: x[::-1]),
    "an interval of nothing": put("results.0.interval", to=None),
    "another statistic": put("results.0.statistic", to="median"),
    "another cell": put("results.0.cell", to=plus(1)),
    "another key": put("results.0.key", to=["p7"]),
    "a range that was not selected": put(
        "results.0.range", to=lambda x: [0, 1000] if x is None else None
    ),
    "a wider range": put("results.0.range", to=lambda x: [x[0], x[1] * 2]),
    "a narrower range": put("results.0.range", to=lambda x: [x[0], x[0] + (x[1] - x[0]) // 2]),
    "an unknown field of a result": add("results.0", "error", 0.01),
    "a result twice": _row_twice,
    "a result left out": put("results", to=lambda x: x[1:]),
    "results in another order": _rows_swapped,
    "no results": put("results", to=[]),
}


def _nothing() -> object:
    raise NotHereError


LIES: Lies = {**PLAN, **COUNTS, **RESULTS}
