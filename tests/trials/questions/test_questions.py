"""Lists of questions: what may be asked, what the plan says, and that it is public."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from shoal import documents
from shoal.errors import DataError, DocumentError, InputError, ShoalWarning
from shoal.theory.questions.gaussian_strategy import least_covariance
from shoal.theory.questions.laplace_strategy import laplace_strategy
from shoal.theory.questions.weights import effect, regression
from shoal.trials import Questions, QuestionsPlan, Space
from shoal.trials.questions.disjoint import disjoint_parts
from shoal.trials.questions.extremes import extremes, released_sums
from shoal.trials.questions.questions import _check_plan
from tests.support.loop import loop_over

pytestmark = pytest.mark.unit

N = 240
ARM = np.arange(N) % 2
SCHOOL = np.array([f"s{at}" for at in np.arange(N) // 40])
AGE = np.arange(N) // 2 % 7 + 10.0
SEX = np.where(np.arange(N) // 4 % 2, "girl", "boy")
PUBLIC = {"age": AGE, "sex": SEX}


def asked() -> Questions:
    """The questions of most tests."""
    return Questions(ARM, SCHOOL, PUBLIC)


def test_questions_have_the_weights_that_their_names_say() -> None:
    """Against the closed forms, in the units' public order."""
    found = asked().effect().effect("sex").means().regression(["arm", "age", "sex"])
    plan = found.plan(Space.binary(), 1)
    assert plan.names == (
        "effect",
        "effect where sex is boy",
        "effect where sex is girl",
        "mean of arm 0",
        "mean of arm 1",
        "constant in arm + age + sex",
        "arm in arm + age + sex",
        "age in arm + age + sex",
        "sex girl in arm + age + sex",
    )
    columns = plan.columns
    age = np.array(columns.covariate("age").values)[columns.covariate("age").codes]
    girl = columns.covariate("sex").codes
    assert np.allclose(plan.rows[0], effect(columns.arm, columns.cluster))
    design = np.stack([np.ones(N), columns.arm, age, girl], axis=1).astype(float)
    assert np.allclose(plan.rows[5:], regression(design))
    assert repr(found) == f"<4 entries of questions, {N} units>"


def test_a_plan_says_what_noise_does_to_each_interval() -> None:
    """Noise, spikiness and widths; the exact loss is that which was asked for."""
    plan = asked().effect().plan(Space.binary(), 1, spread=0.5)
    (one,) = plan.predicted
    by_hand = np.sqrt(2) * np.abs(plan.rows).max()
    assert by_hand < one.noise < 1.2 * by_hand
    assert one.spikiness == pytest.approx(1, abs=0.1)
    assert one.half_width > one.plain_half_width
    error = 0.5 * np.linalg.norm(plan.rows)
    assert one.plain_error == pytest.approx(error)
    assert one.standard_error == pytest.approx(np.hypot(error, one.noise))
    # So few units a school tell too little: arms alone are groups, with 238 degrees of freedom.
    assert plan.numbers.by == ()
    assert one.plain_half_width == pytest.approx(1.96998 * error, rel=1e-4)
    assert 1 - 1e-6 < plan.loss.epsilon <= 1
    assert plan.epsilon == pytest.approx(1)
    text = str(plan)
    assert "1 question of 240 units in 6 clusters, 2 arms, epsilon 1" in text
    assert "spread" in text
    assert plan.table().column("question").to_pylist() == ["effect"]


@pytest.mark.parametrize("epsilon", ["1/10", 1, 4])
def test_one_effect_with_its_variance_has_little_more_noise_than_by_hand(epsilon: Any) -> None:
    """At most 1.2 times the Laplace noise of that effect alone."""
    plan = asked().effect().plan(Space.counts(0, 10), epsilon)
    by_hand = np.sqrt(2) * 10 * np.abs(plan.rows).max() / float(Fraction(str(epsilon)))
    assert plan.predicted[0].noise <= 1.2 * by_hand
    assert plan.lower_bound_ratio >= 1


def test_plans_are_the_same_whatever_the_order_of_rows(tmp_path: Path) -> None:
    """Rows may follow the outcomes, so that no plan keeps their order."""
    turned = np.random.default_rng(1).permutation(N)
    other = Questions(ARM[turned], SCHOOL[turned], {k: v[turned] for k, v in PUBLIC.items()})
    one = asked().effect().plan(Space.binary(), 1)
    two = other.effect().plan(Space.binary(), 1)
    assert one.to_document() == two.to_document()
    one.save(tmp_path / "plan.json")
    loaded = QuestionsPlan.load(tmp_path / "plan.json")
    assert loaded.to_document() == one.to_document()
    assert str(loaded) == str(one)


def test_columns_of_every_kind_are_the_same_questions() -> None:
    """Lists, Series, booleans and numbers; a control that is named."""
    given = {"age": list(AGE), "sex": pd.Series(SEX)}
    other = Questions(pd.Series(ARM), list(SCHOOL), given).effect()
    plan = asked().effect().plan(Space.binary(), 1)
    assert other.plan(Space.binary(), 1).to_document() == plan.to_document()
    turned = Questions(np.where(ARM, "new", "old"), control="old").effect()
    assert turned.plan(Space.binary(), 1).columns.arms == ["old", "new"]
    truth = Questions(ARM, covariates={"girl": SEX == "girl"}).regression(["girl"])
    assert "girl in girl" in truth.plan(Space.binary(), 1).names


def test_three_arms_have_an_effect_each() -> None:
    """Each against the control."""
    plan = Questions(np.arange(90) % 3).effect().means().plan(Space.binary(), 2)
    assert plan.names[:2] == ("effect of 1", "effect of 2")
    fitted = Questions(np.arange(90) % 3).regression(["arm"]).plan(Space.binary(), 2)
    assert fitted.names[1:] == ("arm 1 in arm", "arm 2 in arm")


def _lonely() -> np.ndarray[Any, Any]:
    home = np.zeros(N)
    home[0] = 1
    return home


BAD: dict[str, tuple[Callable[[], object], str]] = {
    "collinear": (
        lambda: Questions(ARM, covariates={"a": AGE, "b": 2 * AGE + 1}).regression(["a", "b"]),
        "'b' depends on the other",
    ),
    "an empty cell": (
        lambda: Questions(ARM, covariates={"few": _lonely()}).effect("few"),
        "few is 1, all of which have one arm",
    ),
    "a cluster of one arm": (
        lambda: Questions(ARM, _lonely().astype(int)),
        "an arm has nobody.*merge such clusters",
    ),
    "one unit an arm": (lambda: Questions([0, 0, 0, 1]), "one unit in the arm"),
    "more questions than units": (
        lambda: Questions([0, 1, 0, 1]).effect().means().effect("cluster").regression(["arm"]),
        "questions or more of 4 units",
    ),
    "twice": (lambda: asked().effect().effect(), "twice"),
    "a regressor twice": (lambda: asked().regression(["age", "age"]), "twice"),
    "no such column": (lambda: asked().regression(["height"]), "'height'"),
    "no such group": (lambda: asked().effect("height"), "'height'"),
    "other weights": (lambda: asked().effect(weights="all"), "weights"),
    "precision by group": (lambda: asked().effect("sex", "precision"), "precision weights of"),
    "nothing asked": (lambda: asked().plan(Space.binary(), 1), "no questions"),
    "no range": (lambda: asked().effect().plan((0, 1), 1), "space"),
    "no loss": (lambda: asked().effect().plan(Space.binary(), 0), "epsilon"),
    "too small a loss": (lambda: asked().effect().plan(Space.binary(), "1e-9"), "epsilon"),
    "no spread": (lambda: asked().effect().plan(Space.binary(), 1, spread=0), "spread"),
    "a reserved name": (lambda: Questions(ARM, covariates={"arm": AGE}), "another name"),
    "a name of two": (lambda: Questions(ARM, covariates={"a + b": AGE}), "another name"),
    "a constant": (lambda: Questions(ARM, covariates={"a": AGE * 0}), "same for all"),
    "missing": (lambda: Questions(ARM, covariates={"a": [None] * N}), "missing"),
    "too short": (lambda: Questions(ARM, covariates={"a": AGE[:-1]}), "239 rows for 240"),
    "dates": (
        lambda: Questions(ARM, covariates={"a": pd.date_range("2020", periods=N)}),
        "type timestamp",
    ),
    "near 0": (lambda: Questions(ARM, covariates={"a": AGE * 1e-80}), "near 0"),
    "nearer 0": (lambda: Questions(ARM, covariates={"a": (AGE > 12) * 5e-324}), "near 0"),
    "far from 0": (
        lambda: Questions(ARM, covariates={"a": AGE + 1e9}).regression(["a"]),
        "far from 0",
    ),
    "too large a loss": (lambda: asked().effect().plan(Space.binary(), 700_000), "moderate"),
    "limits of no groups": (
        lambda: asked().effect().plan(Space.binary(), 1, spread=0.4, clip=True),
        "clip=True without assigned groups",
    ),
    "limits, or not": (lambda: asked().effect().plan(Space.binary(), 1, clip=2), "clip"),
    "no mapping": (lambda: Questions(ARM, covariates=[AGE]), "covariates"),
}


@loop_over("name", BAD)
def test_what_has_no_answer_is_refused(name: str) -> None:
    """By public facts, in words, before anything is read."""
    ask, said = BAD[name]
    with pytest.raises((InputError, DataError), match=said):
        ask()


def test_spiky_questions_warn_with_the_figure() -> None:
    """How many units the noise is that of, and how much wider the interval is."""
    arm = ARM.copy()
    lone = np.flatnonzero(SCHOOL == "s0")
    arm[lone] = 1
    arm[lone[0]] = 0
    spiky = Questions(arm, SCHOOL).effect()
    spikes = pytest.warns(ShoalWarning, match=r"rests on few units: its noise is that of \d+ units")
    with spikes, pytest.warns(ShoalWarning, match="mostly on 1.5% of them"):
        plan = spiky.plan(Space.binary(), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        precise = Questions(arm, SCHOOL).effect(weights="precision").plan(Space.binary(), 1)
    assert precise.predicted[0].noise < plan.predicted[0].noise / 2
    assert precise.names == ("effect, precision weights",)


def test_questions_whose_variance_rests_on_few_units_warn() -> None:
    """Where 18 units weigh six times as much as a thousand that stand for their spread."""
    cluster = np.repeat([0, 1], [200, 2000])
    arm = np.r_[np.repeat([1, 0], [18, 182]), np.arange(2000) % 2]
    uneven = Questions(arm, cluster).effect()
    with pytest.warns(ShoalWarning, match=r"taken to differ alike, mostly on 13% of them"):
        uneven.plan(Space.bins(0, 10), 20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Questions(arm, cluster).effect(weights="precision").plan(Space.bins(0, 10), 20)
        Questions(arm[200:], None).effect().plan(Space.bins(0, 10), 20)


def test_a_column_within_which_arms_never_vary_warns() -> None:
    """By public columns alone; columns that chance explains say nothing."""
    classes = np.array([f"c{at}" for at in np.arange(N) // 2 % 60 * 2 + ARM])
    asked = Questions(ARM, covariates={"class": classes, "sex": SEX, "number": np.arange(N)})
    with pytest.warns(ShoalWarning, match="all units of one value of the covariate 'class' have"):
        asked.effect().plan(Space.binary(), 1)
    both = {"sex": SEX, "number": np.arange(N), "arm x age": ARM * AGE}
    other = Questions(ARM, covariates=both)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other.effect().plan(Space.binary(), 1)


@pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")
def test_units_differ_alike_within_what_each_question_compares_in() -> None:
    """Effects in clusters and subgroups, regressions in their columns, means in arms."""
    n = 8000
    arm, home = np.arange(n) % 2, np.arange(n) // 2 % 4
    public = {
        "sex": np.arange(n) // 8 % 2 > 0,
        "few": np.where(np.arange(n) < 30, "a", "b"),
        "age": np.arange(n) // 16 % 50 + 0.5,
    }
    asked = Questions(arm, home, public).effect("sex").means()
    plan = asked.regression(["age", "few"]).plan(Space.binary(), 1)
    assert plan.numbers.by == ("sex", "cluster")
    many = [len(plan.reading.fit(each).degrees) for each in plan.asked]
    assert many == [16, 2, 1]
    degrees = [float(plan.reading.fit(each).degrees.sum()) for each in plan.asked]
    assert degrees == pytest.approx([n - 16, n - 2, n - 3])


def test_effects_of_many_arms_follow_from_their_means() -> None:
    """No more noise than by hand, by arm; two arms are one difference."""
    for arms in (2, 3, 5, 8):
        arm = np.arange(120 * arms) % arms
        plan = Questions(arm).effect().plan(Space.binary(), 1)
        noise = np.array([each.noise for each in plan.predicted])
        by_arm, even = 2 / 120, 2**0.5 * (arms - 1) / 120
        assert noise.max() <= 1.18 * min(by_arm, even)
        if arms > 3:
            assert noise == pytest.approx(by_arm, rel=1e-6)
            assert plan.numbers.rows.shape == (arms, len(arm))


def test_parts_are_disjoint_or_none() -> None:
    """Each unit moves one of them, and all questions follow from them."""
    random = np.random.default_rng(6)
    for _ in range(50):
        group, own = random.permutation(np.arange(12) % 4), random.uniform(1, 2, 12)
        pairs = [random.permutation(4)[:2] for _ in range(3)]
        sizes = random.uniform(0.1, 9, (3, 2))
        rows = np.array(
            [
                own * (a * (group == x) - b * (group == y))
                for (x, y), (a, b) in zip(pairs, sizes, strict=True)
            ]
        )
        parts = disjoint_parts(rows)
        assert parts is not None
        assert ((parts > 0).sum(axis=0) <= 1).all()
        assert np.allclose(rows @ np.linalg.pinv(parts) @ parts, rows)
        assert parts.max(axis=1) == pytest.approx(np.ones(len(parts)))
    assert disjoint_parts(np.array([[1.0, 2.0], [1.0, 1.0]])) is None


@pytest.mark.full
def test_many_questions_have_a_plan() -> None:
    """The effect in each of 40 clusters costs no more than in one, and its variance."""
    arm, cluster = np.arange(40 * 12) % 2, np.arange(40 * 12) // 12
    both = (pytest.warns(ShoalWarning, match=f"and 39 more rest on few {of}") for of in ("u", "o"))
    with next(both), next(both):
        plan = Questions(arm, cluster).effect("cluster").plan(Space.binary(), 1)
    noise = np.array([each.noise for each in plan.predicted])
    assert len(noise) == 40
    assert (noise <= 1.18 * 2**0.5 / 6).all()


def test_few_units_decide_the_noise_of_many() -> None:
    """Of 20,000 units; the noise is that of the plan for all of them, to 1%."""
    random = np.random.default_rng(4)
    n = 20_000
    vectors = random.normal(0, 1, (3, n)) * np.array([[1.0], [0.1], [5.0]])
    vectors[0, :50] = 0
    chosen = extremes(vectors)
    assert len(chosen) < 4200
    assert {int(np.abs(row).argmax()) for row in vectors} <= set(chosen.tolist())
    few, every = released_sums(vectors), laplace_strategy(vectors)

    def noise(sums: Any) -> float:
        worst = np.abs(sums @ vectors).sum(axis=0).max()
        return float(np.linalg.norm(worst * np.linalg.pinv(sums)))

    assert noise(few) <= 1.01 * noise(every.released)
    below = least_covariance(vectors[:, chosen]).lower_bound
    assert below <= least_covariance(vectors).lower_bound * (1 + 1e-4)
    assert len(extremes(np.repeat(vectors[:, :9], 5000, axis=1))) == 9


def test_lists_do_not_change() -> None:
    """Each method returns a new one."""
    first = asked()
    assert len(first.effect().asked) == 1
    assert first.asked == ()
    with pytest.raises(AttributeError):
        first.asked = ()


def test_changed_plans_are_refused(tmp_path: Path) -> None:
    """Less noise, other questions or other columns than the numbers are of."""
    plan = asked().effect().plan(Space.binary(), 1)
    for change in ("moment_step", "questions", "epsilon", "groups"):
        document = plan.to_document()
        if change == "questions":
            document["questions"] = [{**document["questions"][0], "by": "sex"}]
        elif change == "epsilon":
            document["epsilon"] = "1/2"
        elif change == "groups":
            document["numbers"]["groups_by"] = ["age"]
        else:
            document["numbers"]["moment_step"] -= 1
        path = tmp_path / f"{change}.json"
        path.write_bytes(documents.canonical_bytes(document))
        with pytest.raises(DocumentError):
            QuestionsPlan.load(path)


@pytest.mark.parametrize(
    "change",
    [{"epsilon": "5"}, {"epsilon": "1/2"}, {"spread": 1.25}, {"spread": 1e-7}, {"epsilon": "0"}],
)
def test_a_plan_that_could_not_be_verified_is_not_loaded(change: dict[str, Any]) -> None:
    """Nothing is charged for a loss that leaves much of epsilon, or a strange spread."""
    document = asked().effect().plan(Space.binary(), 1).to_document()
    assert QuestionsPlan.from_document(document).to_document() == document
    with pytest.raises(DocumentError, match="not those of its questions"):
        QuestionsPlan.from_document(document | change)


def test_numbers_of_other_questions_are_no_plan() -> None:
    """What rounding made of numbers is looked at before anything can be spent."""
    one = asked().effect().plan(Space.binary(), 1)
    other = asked().regression(["arm", "age"]).plan(Space.binary(), 1)
    _check_plan(other)
    with pytest.raises(InputError, match="columns that are far from 0"):
        _check_plan(replace(other, numbers=one.numbers))
