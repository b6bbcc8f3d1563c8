"""Lies about questions of trials: columns, questions, whole numbers, second moments, answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.evidence.lies_kit import NotHereError, add, each, one, packed, plus, put, times

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tests.evidence.lies_kit import Document, Lies

_NUMBERS, _COLUMNS = "plan.numbers", "plan.columns"
_ASSIGNMENT = f"{_COLUMNS}.assignment"
_ANSWER = "results.answers.0"


def _narrower(document: Document) -> None:
    answer = document["results"]["answers"][0]
    middle = sum(answer["interval"]) / 2
    answer["interval"] = [(end + middle) / 2 for end in answer["interval"]]


def _moved(document: Document) -> None:
    answer = document["results"]["answers"][0]
    answer["value"] += 0.5
    answer["interval"] = [end + 0.5 for end in answer["interval"]]


def _louder(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of all units the first weighs a tenth more, or one less where it weighs most."""
    moved = numbers.copy()
    off = (moved[0] - 2**40) // 10
    moved[0] = moved[0] + off if abs(moved[0] + off - 2**40) <= 2**40 else moved[0] - off
    if off == 0:
        raise NotHereError
    return moved


LIES: Lies = {
    "another outcome": put("records.outcome", to="salary"),
    "a wider range": put("plan.space.levels", to=lambda x: [x[0], *[y + 1.0 for y in x[1:]]]),
    "a narrower range": each("plan.space.levels", lambda x: x / 2),
    "a range the other way round": put("plan.space.levels", to=lambda x: x[::-1]),
    "labels that there are not": put("plan.space.labels", to=["low", "high"]),
    "less epsilon asked for": put("plan.epsilon", to="1/100"),
    "more epsilon asked for": put("plan.epsilon", to="50"),
    "another spread": put("plan.spread", to=times(0.5)),
    "a spread beyond the range": put("plan.spread", to=times(1000.0)),
    "larger groups": packed(f"{_ASSIGNMENT}.sizes", lambda x: x * 2),
    "groups of nobody": packed(f"{_ASSIGNMENT}.sizes", lambda x: x * 0),
    "a unit in another group": packed(
        f"{_ASSIGNMENT}.sizes", lambda x: x + np.where(np.arange(len(x)) < 2, [1, -1][0], 0)
    ),
    "arms of each other's names": put(f"{_ASSIGNMENT}.arms.columns.0.values", to=lambda x: x[::-1]),
    "arms of one name": put(f"{_ASSIGNMENT}.arms.columns.0.values", to=[0, 0]),
    "one arm more": put(f"{_ASSIGNMENT}.arms.columns.0.values", to=lambda x: [*x, 2]),
    "names of units": put(f"{_ASSIGNMENT}.units", to={}),
    "a covariate of another name": put(f"{_COLUMNS}.covariates.0.name", to="height"),
    "a covariate that is the arm": put(f"{_COLUMNS}.covariates.0.name", to="arm"),
    "a covariate that is a cluster": put(f"{_COLUMNS}.covariates.0.name", to="cluster"),
    "a covariate less": put(f"{_COLUMNS}.covariates", to=lambda x: x[1:]),
    "a covariate twice": put(f"{_COLUMNS}.covariates", to=lambda x: [x[0], *x]),
    "covariates the other way round": put(f"{_COLUMNS}.covariates", to=lambda x: x[::-1]),
    "other units of a covariate": packed(f"{_COLUMNS}.covariates.1.codes", lambda x: x.max() - x),
    "a value that nobody has": put(f"{_COLUMNS}.covariates.1.values", to=lambda x: [*x, "z"]),
    "values in another order": put(f"{_COLUMNS}.covariates.1.values", to=lambda x: x[::-1]),
    "values of two types": put(f"{_COLUMNS}.covariates.1.values", to=lambda x: [1.0, x[-1]]),
    "larger values of a regressor": each(f"{_COLUMNS}.covariates.0.values", lambda x: 2 * x),
    "an unknown fact of a covariate": add(f"{_COLUMNS}.covariates.0", "unit", "years"),
    "an unknown fact of columns": add(_COLUMNS, "note", "epsilon is 0.01"),
    "another kind of question": put(
        "plan.questions.0.kind", to=lambda x: "means" if x == "effect" else "effect"
    ),
    "another question": put("plan.questions.0.by", to=lambda x: "sex" if x != "sex" else "cluster"),
    "other weights": put(
        "plan.questions.0.weights", to=lambda x: "precision" if x == "units" else "units"
    ),
    "other regressors": put("plan.questions.0.columns", to=["age"]),
    "one question less": put("plan.questions", to=lambda x: x[1:]),
    "a question twice": put("plan.questions", to=lambda x: [*x, x[0]]),
    "an unknown fact of a question": add("plan.questions.0", "note", "epsilon is 0.01"),
    "weights of another size": packed(f"{_NUMBERS}.rows", _louder),
    "weights of other units": packed(f"{_NUMBERS}.rows", lambda x: x[::-1] + (x == x.max())),
    "weights beyond the lattice": packed(f"{_NUMBERS}.rows", lambda x: x + 2**41),
    "larger steps": packed(f"{_NUMBERS}.steps", lambda x: x * 2),
    "smaller steps": packed(f"{_NUMBERS}.steps", lambda x: x // 2 + 1),
    "one step less": packed(f"{_NUMBERS}.steps", lambda x: x[1:]),
    "steps of nothing": packed(f"{_NUMBERS}.steps", lambda x: x * 0),
    "a smaller step of second moments": put(f"{_NUMBERS}.moment_step", to=times(0.8)),
    "a step of second moments that is one smaller": put(f"{_NUMBERS}.moment_step", to=plus(-1)),
    "a larger step of second moments": put(f"{_NUMBERS}.moment_step", to=times(1.5)),
    "another lattice": put(f"{_NUMBERS}.lattice_bits", to=plus(1)),
    "groups by a column that is not": put(f"{_NUMBERS}.groups_by", to=["height"]),
    "groups by another column": put(
        f"{_NUMBERS}.groups_by", to=lambda x: [*x, "age"] if "age" not in x else []
    ),
    "groups by a column twice": put(f"{_NUMBERS}.groups_by", to=["cluster", "cluster"]),
    "an unknown fact of the numbers": add(_NUMBERS, "note", "epsilon is 0.01"),
    "other numbers": one("results.numbers", plus(2**34)),
    "one number less": put("results.numbers", to=lambda x: x[:-1]),
    "one number more": put("results.numbers", to=lambda x: [*x, 0]),
    "numbers that are not whole": each("results.numbers", float),
    "other second moments": each("results.moments", plus(-(2**35))),
    "one second moment less": put("results.moments", to=lambda x: x[:-1]),
    "one second moment more": put("results.moments", to=lambda x: [*x, x[0]]),
    "an answer to another question": put(f"{_ANSWER}.question", to="effect of everything"),
    "another answer": _moved,
    "an answer without its interval": put(f"{_ANSWER}.value", to=plus(0.5)),
    "a smaller error": put(f"{_ANSWER}.standard_error", to=times(0.9)),
    "a narrower interval": _narrower,
    "an interval to one side": put(f"{_ANSWER}.interval", to=lambda x: [x[0], x[0]]),
    "an unknown fact of an answer": add(_ANSWER, "p_value", 0.001),
    "an answer twice": put("results.answers", to=lambda x: [*x, x[0]]),
    "no answers": put("results.answers", to=[]),
}
