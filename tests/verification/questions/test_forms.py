"""The second opinion on assigned groups: true manifests hold, and every lie is found."""

from __future__ import annotations

import copy
import json
import warnings
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from shoal.documents import pack_integers, unpack_integers
from shoal.errors import DocumentError, ShoalWarning
from shoal.privacy.budget import text
from shoal.privacy.displayed_loss import round_up
from shoal.trials import Questions, QuestionsPlan, Space
from tests.support.verdicts import failed_claims, rekey

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Document = dict[str, Any]

pytestmark = pytest.mark.unit

RNG = np.random.default_rng(12)
GROUP = np.repeat(np.arange(28), RNG.integers(2, 9, 28))
N = len(GROUP)
HOME, ARM = GROUP // 14, GROUP % 2
THREE = np.array(["old", "new", "mild"])[GROUP % 3]
PUBLIC: dict[str, Any] = {
    "age": RNG.integers(20, 60, N).astype(float),
    "sex": np.where(RNG.random(N) < 0.5, "girl", "boy"),
}
SCORE = np.clip(RNG.normal(5, 1, N) + RNG.normal(0, 1, 28)[GROUP], 0, 10)

ASKED: dict[str, Callable[[], tuple[Questions, tuple[Any, ...]]]] = {
    "effect": lambda: (_of(ARM).effect(), (ARM, HOME, PUBLIC)),
    "precision": lambda: (_of(ARM).effect(weights="precision"), (ARM, HOME, PUBLIC)),
    "subgroups": lambda: (_of(ARM).effect("sex").means(), (ARM, HOME, PUBLIC)),
    "clusters": lambda: (_of(ARM).effect("cluster"), (ARM, HOME, PUBLIC)),
    "regression": lambda: (_of(ARM).regression(["arm", "age", "sex"]), (ARM, HOME, PUBLIC)),
    "three arms": lambda: (
        _of(THREE, control="old").effect().regression(["arm", "age"]),
        (THREE, HOME, PUBLIC),
    ),
}


def _of(arm: NDArray[Any], **more: Any) -> Questions:  # noqa: ANN401
    return Questions(arm, HOME, PUBLIC, assigned=GROUP, **more)


def made(name: str, epsilon: float = 1, spread: float | None = None) -> Document:
    """A true manifest."""
    asked, columns = ASKED[name]()
    with warnings.catch_warnings():
        # Some have few groups in an arm, or questions of few units.
        warnings.simplefilter("ignore", ShoalWarning)
        plan = asked.plan(Space.bins(0, 10), epsilon, spread=spread, clip=spread is not None)
    done = plan.release(SCORE, *columns, assigned=GROUP, outcome_name="score")
    found: Document = json.loads(done.document)
    return found


@pytest.mark.parametrize(("epsilon", "spread"), [(0.3, None), (2, None), (2, 0.6), (8, 2.0)])
@pytest.mark.parametrize("name", ASKED)
def test_true_manifests_hold(name: str, epsilon: float, spread: float | None) -> None:
    """G-VERIFY: CR2, loss, values, errors and intervals of assigned groups, by other formulas."""
    assert failed_claims(made(name, epsilon, spread)) == []


TRUE = {
    "plain": made("effect"),
    "clipped": made("effect", 2, 0.6),
    "several": made("subgroups", 2),
}


def _packed(part: dict[str, Any], name: str, change: Callable[[Any], Any]) -> None:
    part[name] = pack_integers(change(unpack_integers(part[name], name)))


def _failed(document: Document) -> list[str]:
    rekey(document)
    return failed_claims(document)


def _form(document: Document) -> dict[str, Any]:
    found: dict[str, Any] = document["plan"]["numbers"]["forms"][0]
    return found


def _one_more(numbers: Any) -> Any:  # noqa: ANN401
    found = numbers.copy()
    found[len(found) // 2] += 3
    return found


def _narrower(document: Document) -> None:
    answer = document["results"]["answers"][0]
    middle = sum(answer["interval"]) / 2
    answer["interval"] = [(each + middle) / 2 for each in answer["interval"]]


LIES: dict[str, tuple[Callable[[Document], None], tuple[str, ...]]] = {
    "less noise": (lambda d: _form(d).update(step=_form(d)["step"] // 2), ("privacy loss",)),
    "more noise": (lambda d: _form(d).update(step=_form(d)["step"] * 2), ("intervals",)),
    "another factor": (
        lambda d: _packed(_form(d), "factor", _one_more),
        ("numbers tell of variances",),
    ),
    "another variance": (
        lambda d: d["results"]["forms"].__setitem__(0, d["results"]["forms"][0] + 2**40),
        ("standard errors", "intervals"),
    ),
    "a variance more": (lambda d: d["results"]["forms"].append(0), ("released numbers",)),
    "second moments beside": (lambda d: d["results"]["moments"].append(0), ("released numbers",)),
    "a narrower interval": (_narrower, ("intervals",)),
    "something more": (lambda d: _form(d).update(note="no loss"), ("not of its schema",)),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("name", TRUE)
def test_lies_are_found(name: str, lie: str) -> None:
    """G-VERIFY: a changed part of a form, of its noise or of its interval fails the right check."""
    document = copy.deepcopy(TRUE[name])
    change, expected = LIES[lie]
    change(document)
    found = _failed(document)
    assert set(expected) <= set(found), found


@pytest.mark.parametrize("groups", [(2, 20, 10), (2, 50, 20), (5, 60, 40)])
def test_true_manifests_of_few_groups_hold(groups: tuple[int, int, int]) -> None:
    """G-READABLE: with about one degree of freedom a quantile follows every digit of it."""
    treated, control, size = groups
    group = np.repeat(np.arange(treated + control), size)
    arm = (group < treated).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        plan = Questions(arm, assigned=group).effect().means().plan(Space.bins(0, 1), 1)
    done = plan.release(group % 7 / 7, arm, assigned=group, outcome_name="y")
    assert failed_claims(json.loads(done.document)) == []


@pytest.mark.parametrize("mean", [1e3, 1e6])
def test_true_manifests_of_regressors_far_from_0_hold(mean: float) -> None:
    """G-READABLE: what is planned can be released, loaded and verified."""
    rng = np.random.default_rng(3)
    far, group = rng.normal(mean, 1, 300), np.arange(300) // 10
    for arm, assigned in ((np.arange(300) % 2, None), (group % 2, group)):
        asked = Questions(arm, None, {"x": far}, assigned=assigned).regression(["arm", "x"])
        plan = QuestionsPlan.from_document(asked.plan(Space.bins(0, 1), 1).to_document())
        columns = arm, None, {"x": far}
        done = plan.release(rng.random(300), *columns, assigned=assigned, outcome_name="y")
        assert failed_claims(json.loads(done.document)) == []


def test_coarse_forms_tell_nothing() -> None:
    """G-VERIFY: of whole numbers of four bits, right to half of one, variances are not taken."""
    document = copy.deepcopy(TRUE["plain"])
    _packed(_form(document), "factor", lambda x: np.rint((x - 2**20) / 2**16).astype(int) + 2**20)
    assert "numbers tell of variances" in _failed(document)


def test_limits_below_those_of_the_spread_are_found() -> None:
    """G-VERIFY: a limit that binds makes intervals too short; what it saves is no excuse."""
    document = copy.deepcopy(TRUE["clipped"])
    assert _form(document)["limits"]["length"] == 28
    _packed(_form(document), "limits", lambda each: each // 2)
    assert "numbers tell of variances" in _failed(document)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["plan"]["columns"].pop("assigned"),
        lambda d: d["plan"]["numbers"].pop("forms"),
        lambda d: d["plan"]["numbers"].update(moment_step=7),
        lambda d: d["plan"]["numbers"].update(groups_by=["sex"]),
        lambda d: d["plan"]["numbers"]["forms"].append(d["plan"]["numbers"]["forms"][0]),
        lambda d: _packed(d["plan"]["columns"], "assigned", lambda x: x * 0),
        lambda d: _packed(d["plan"]["columns"], "assigned", lambda x: np.arange(len(x))),
        lambda d: _packed(d["plan"]["columns"], "assigned", lambda x: x + 1),
        lambda d: _packed(_form(d), "kind", lambda x: x + 1),
        lambda d: _packed(_form(d), "factor", lambda x: x[1:]),
        lambda d: _packed(_form(d), "factor", lambda x: x * 64),
        lambda d: _packed(_form(d), "limits", lambda _: np.array([5])),
    ],
)
def test_groups_that_are_none_are_refused(change: Callable[[Document], object]) -> None:
    """G-VERIFY: parts that do not fit each other give a failed verdict, or no document at all."""
    document = copy.deepcopy(TRUE["plain"])
    change(document)
    try:
        failed = _failed(document)
    except DocumentError:
        return
    assert failed


def test_the_loss_is_that_of_all_numbers_together() -> None:
    """G-VERIFY: a manifest that counts linear numbers alone is found out."""
    document = copy.deepcopy(TRUE["plain"])
    less = text(Fraction(document["plan"]["claims"]["epsilon"]) / 2)
    for part in (document["guarantee"], document["plan"]["claims"]):
        part["epsilon"] = less
    document["guarantee"]["epsilon_at_most"] = round_up(Fraction(less))
    assert "privacy loss" in _failed(document)
