"""The second opinion on questions: true manifests hold, and every lie is found."""

from __future__ import annotations

import copy
import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import shoal
from shoal.documents import pack_integers, unpack_integers
from shoal.errors import DocumentError
from shoal.privacy.budget import text
from shoal.privacy.displayed_loss import round_up
from shoal.trials import Questions, Space
from tests.support.verdicts import failed_claims, rekey

if TYPE_CHECKING:
    from collections.abc import Callable

    Document = dict[str, Any]

pytestmark = pytest.mark.unit

N = 240
RNG = np.random.default_rng(12)
ARM, HOME = np.arange(N) % 2, np.arange(N) // 2 % 3
PUBLIC: dict[str, Any] = {
    "age": RNG.integers(20, 60, N).astype(float),
    "sex": np.where(np.arange(N) // 6 % 2, "girl", "boy"),
}
SCORE = RNG.uniform(0, 10, N)
THREE = np.arange(N) % 3


def _asked(name: str) -> tuple[Questions, tuple[Any, ...]]:
    own = (ARM, HOME, PUBLIC)
    many = (np.array(["old", "new", "mild"])[THREE], None, PUBLIC)
    made: dict[str, Callable[[], tuple[Questions, tuple[Any, ...]]]] = {
        "effect": lambda: (Questions(*own).effect(), own),
        "precision": lambda: (Questions(*own).effect(weights="precision"), own),
        "subgroups": lambda: (Questions(*own).effect("sex").means(), own),
        "regression": lambda: (Questions(*own).regression(["arm", "age", "sex"]), own),
        "without arm": lambda: (Questions(*own).regression(["cluster", "sex"]), own),
        "three arms": lambda: (
            Questions(*many, control="old").effect().regression(["arm", "age"]),
            many,
        ),
    }
    return made[name]()


NAMES = ("effect", "precision", "subgroups", "regression", "without arm", "three arms")


def made(name: str, epsilon: float = 1) -> Document:
    """A true manifest."""
    asked, columns = _asked(name)
    plan = asked.plan(Space.bins(0, 10), epsilon)
    found: Document = json.loads(plan.release(SCORE, *columns, outcome_name="score").document)
    return found


TRUE = {name: made(name) for name in NAMES}


@pytest.mark.filterwarnings("ignore:the question .* few of the units:shoal.errors.ShoalWarning")
@pytest.mark.parametrize("asked", ["arm", "cluster"])
@pytest.mark.parametrize("treated", range(4, 37))
def test_regressions_of_unequal_arms_hold(treated: int, asked: str) -> None:
    """G-READABLE: the constant rests on the controls alone, whatever rounding left."""
    arm, bought = (np.arange(40) < treated).astype(int), np.arange(40) % 3 % 2
    home = None if asked == "arm" else np.zeros(40, dtype=int)
    every = Questions(arm, home).regression(["arm"] if asked == "arm" else ["cluster", "arm"])
    release = every.plan(Space.binary(), 1).release(bought, arm, home)
    assert failed_claims(json.loads(release.document)) == []


@pytest.mark.parametrize("epsilon", [0.1, 1, 30])
@pytest.mark.parametrize("name", NAMES)
def test_true_manifests_hold(name: str, epsilon: float) -> None:
    """G-VERIFY: weights, loss, values, errors and intervals, by formulas of their own."""
    assert failed_claims(made(name, epsilon)) == []


@pytest.mark.parametrize("low", [0.0, -3e8, 9e8])
def test_true_manifests_hold_far_from_0(low: float) -> None:
    """G-READABLE: weights that add up to 0 move no answer, however far from 0 the range lies."""
    for epsilon in (1, 40, 1000):
        asked = Questions(ARM, HOME, PUBLIC).effect().means().regression(["arm", "age", "sex"])
        plan = asked.plan(Space.bins(low, low + 1), epsilon)
        done = plan.release(low + SCORE / 10, ARM, HOME, PUBLIC, outcome_name="score")
        assert failed_claims(json.loads(done.document)) == []


def test_groups_of_variances_are_rebuilt() -> None:
    """G-VERIFY: where columns make groups, in effects and in regressions."""
    n = 3000
    arm, sex = np.arange(n) % 2, np.arange(n) // 2 % 2 > 0
    asked = Questions(arm, None, {"sex": sex}).effect("sex").regression(["arm", "sex"])
    plan = asked.plan(Space.binary(), 2)
    assert plan.numbers.by == ("sex",)
    done = plan.release(np.arange(n) % 5 == 0, arm, None, {"sex": sex})
    manifest: Document = json.loads(done.document)
    assert failed_claims(manifest) == []
    lie = copy.deepcopy(manifest)
    lie["plan"]["numbers"]["groups_by"] = []
    assert failed_claims(lie) == ["released numbers"]


def _epsilon(manifest: Document, part: Fraction) -> None:
    """Another loss wherever it is stated."""
    loss = Fraction(manifest["guarantee"]["epsilon"]) * part
    manifest["guarantee"]["epsilon"] = manifest["plan"]["claims"]["epsilon"] = text(loss)
    manifest["guarantee"]["epsilon_at_most"] = round_up(loss)


def _packed(manifest: Document, name: str, change: Callable[[Any], Any]) -> None:
    numbers = manifest["plan"]["numbers"]
    numbers[name] = pack_integers(change(unpack_integers(numbers[name], name)))


def _first(answer: str, change: Callable[[Any], Any]) -> Callable[[Document], None]:
    def lie(manifest: Document) -> None:
        one = manifest["results"]["answers"][0]
        one[answer] = change(one[answer])

    return lie


def _larger_groups(manifest: Document) -> None:
    """Fewer steps of the second moments' noise, and the loss that this would have."""
    manifest["plan"]["numbers"]["moment_step"] = manifest["plan"]["numbers"]["moment_step"] * 4 // 5


LIES: dict[str, tuple[Callable[[Document], object], str]] = {
    "half of epsilon": (lambda m: _epsilon(m, Fraction(1, 2)), "privacy loss"),
    "a millionth less epsilon": (lambda m: _epsilon(m, 1 - Fraction(1, 10**6)), "privacy loss"),
    "twice epsilon": (lambda m: _epsilon(m, Fraction(2)), "privacy loss"),
    "less epsilon asked for": (
        lambda m: m["plan"].update(epsilon="1/2"),
        "within what was asked for",
    ),
    "more epsilon asked for": (
        lambda m: m["plan"].update(epsilon="2"),
        "within what was asked for",
    ),
    "smaller steps of numbers": (
        lambda m: _packed(m, "steps", lambda x: x * 9 // 10),
        "privacy loss",
    ),
    "larger weights": (lambda m: _packed(m, "rows", _pushed), "answers"),
    "less noise of second moments": (_larger_groups, "second moments for free"),
    "another value": (_first("value", lambda x: x + 0.01), "answers"),
    "a smaller error": (_first("standard_error", lambda x: 0.99 * x), "standard errors"),
    "a narrower interval": (_first("interval", lambda x: [x[0] + 0.01, x[1]]), "intervals"),
    "a spread of nothing": (
        lambda m: m["plan"].update(spread=1e-300),
        "within what was asked for",
    ),
    "another spread": (lambda m: m["plan"].update(spread=11.0), "within what was asked for"),
    "a smaller range": (lambda m: m["plan"]["space"].update(levels=[0.0, 5.0]), "answers"),
    "simulated": (lambda m: m.update(simulation=True), "noise of the operating system"),
}


@pytest.mark.parametrize("name", ["", "a\nb", "age + sex", "arm", "x" * 101])
def test_columns_have_names_that_no_formula_hides_in(name: str) -> None:
    """G-VERIFY: names that the planner refuses."""
    manifest = copy.deepcopy(TRUE["regression"])
    (first, *others) = manifest["plan"]["columns"]["covariates"]
    manifest["plan"]["columns"]["covariates"] = sorted(
        [first | {"name": name}, *others], key=lambda each: str(each["name"])
    )
    for each in manifest["plan"]["questions"]:
        each["columns"] = [name if own == first["name"] else own for own in each["columns"]]
    rekey(manifest)
    with pytest.raises(DocumentError, match="damaged"):
        shoal.verify(manifest)


def _pushed(rows: Any) -> Any:  # noqa: ANN401
    """Every second weight is nearer to 0 by a part: the noise would be larger than it was."""
    moved = rows.copy()
    moved[::2] = 2**40 + (moved[::2] - 2**40) * 9 // 10
    return moved


@pytest.mark.parametrize("signed", [False, True], ids=["plain", "signed"])
@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("name", ["subgroups", "regression"])
def test_lies_are_found(name: str, lie: str, signed: bool) -> None:  # noqa: FBT001
    """G-VERIFY: changed scale, weights, value, error, interval, epsilon; with the digest, too."""
    manifest = copy.deepcopy(TRUE[name])
    change, claim = LIES[lie]
    change(manifest)
    if signed:
        rekey(manifest)
    assert claim in failed_claims(manifest)


def test_less_noise_on_second_moments_is_found_if_the_loss_is_that_of_the_rest() -> None:
    """G-VERIFY: no statement of the loss makes them free."""
    manifest = copy.deepcopy(TRUE["effect"])
    _larger_groups(manifest)
    found = failed_claims(manifest)
    assert {"second moments for free", "privacy loss"} <= set(found)


def test_other_public_columns_are_another_question() -> None:
    """G-VERIFY: a regressor twice as large, or of other units, has other coefficients."""
    for change in ("values", "codes"):
        manifest = copy.deepcopy(TRUE["regression"])
        age = manifest["plan"]["columns"]["covariates"][0]
        if change == "values":
            age["values"] = [2 * each for each in age["values"]]
        else:
            age["codes"] = pack_integers(unpack_integers(age["codes"], "codes")[::-1].copy())
        rekey(manifest)
        assert "numbers answer the questions" in failed_claims(manifest) or change == "values"
        assert failed_claims(manifest)


def test_a_ledger_binds_what_was_drawn(tmp_path: Any) -> None:  # noqa: ANN401
    """G-VERIFY: the very bytes are recorded, at no less than they cost."""
    asked, columns = _asked("effect")
    book = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=3)
    plan = asked.plan(Space.bins(0, 10), 1)
    about: dict[str, Any] = {"ledger": book, "outcome_name": "score", "privacy_unit": "each row"}
    done = plan.release(SCORE, *columns, name="April", **about)
    assert shoal.verify(done.manifest, ledger=book).holds
    other = plan.release(SCORE, *columns, name="May", **about)
    lie = {**json.loads(done.document), "results": json.loads(other.document)["results"]}
    assert not shoal.verify(lie, ledger=book).holds
