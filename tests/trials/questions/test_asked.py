"""Entries of a list of questions: a plan holds those that can be asked for, and no others."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

import shoal
from shoal.documents import pack_integers, unpack_integers
from shoal.errors import DocumentError, ShoalError
from shoal.trials import Questions, QuestionsPlan, Space
from shoal.trials.questions.asked import Asked
from shoal.trials.questions.numbers import Numbers

pytestmark = pytest.mark.property

ARM, AGE = np.arange(60) % 2, np.arange(60) // 2 % 3
KINDS, WEIGHTS = ("effect", "means", "regression"), ("units", "precision")
BY = ("", "age", "arm", "cluster", "nope")
COLUMNS: tuple[list[str], ...] = ([], ["age"], ["arm"], ["nope"], ["age", "age"])


def _again(one: Asked) -> Questions:
    """The call that makes an entry."""
    every = Questions(ARM, covariates={"age": AGE.astype(str)})
    calls: dict[str, Callable[[], Questions]] = {
        "effect": lambda: every.effect(one.by or None, one.weights),
        "means": every.means,
        "regression": lambda: every.regression(one.columns),
    }
    return calls[one.kind]()


@pytest.mark.parametrize("assigned", [None, "groups"])
@pytest.mark.parametrize("kind", ["effect", "effect by age", "means", "regression"])
def test_only_questions_that_can_be_asked_are_loaded(kind: str, assigned: str | None) -> None:
    """Parts of an entry that its kind leaves out are refused before anything is spent."""
    groups = np.arange(60) % 20 if assigned else None
    every = Questions(ARM, covariates={"age": AGE.astype(str)}, assigned=groups)
    asking = {"effect": every.effect, "means": every.means}
    if kind == "effect by age":
        asked = every.effect("age")
    else:
        asked = asking.get(kind, lambda: every.regression(["age"]))()
    plan, loaded = asked.plan(Space.binary(), 1), []
    document = plan.to_document()
    for entry in itertools.product(KINDS, BY, WEIGHTS, COLUMNS):
        changed = dict(zip(("kind", "by", "weights", "columns"), entry, strict=True))
        try:
            found = QuestionsPlan.from_document(document | {"questions": [changed]})
        except ShoalError:
            continue
        loaded.append(found.asked[0])
    assert plan.asked[0] in loaded
    for one in loaded:
        assert _again(one).asked == (one,)


@pytest.mark.parametrize("step", [2**61, 2**61 + 1, 2**62])
def test_numbers_in_steps_that_nobody_reads_are_not_loaded(step: int) -> None:
    """A row of nothing costs nothing in any step; the second opinion reads 61 bits."""
    plan = Questions(ARM).effect().plan(Space.binary(), 1)
    document = plan.to_document()
    rows, steps = (unpack_integers(document["numbers"][name], name) for name in ("rows", "steps"))
    document["numbers"] |= {
        "rows": pack_integers(np.append(rows, np.full(60, 1 << 40))),
        "steps": pack_integers(np.append(steps, step)),
    }
    loss = Numbers.from_document(document["numbers"], 60).loss
    document |= {"epsilon": str(loss), "claims": {"epsilon": str(loss), "delta": "0"}}
    if step > 2**61:
        with pytest.raises(DocumentError, match="not those of its questions"):
            QuestionsPlan.from_document(document)
    else:
        found = QuestionsPlan.from_document(document).release(np.arange(60) % 3 % 2, ARM)
        assert shoal.verify(found.manifest).holds


def test_means_by_a_column_are_no_question() -> None:
    """The second opinion would call what is released for them damaged."""
    plan = Questions(ARM).means().plan(Space.binary(), 1)
    document = plan.to_document()
    document["questions"] = [document["questions"][0] | {"columns": ["nope"]}]
    with pytest.raises(DocumentError, match="with parts of another"):
        QuestionsPlan.from_document(document)
