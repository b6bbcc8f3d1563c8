"""Releases of questions: once, through the ledger, and every regression in their span for free."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shoal
from shoal.errors import BudgetError, DataError, InputError
from shoal.trials import PrivateAnswers, Questions, QuestionsPlan, Space

pytestmark = pytest.mark.unit

N = 600
RNG = np.random.default_rng(5)
ARM = np.arange(N) % 2
SCHOOL = np.arange(N) // 100
AGE = RNG.integers(10, 16, N).astype(float)
SEX = np.where(RNG.random(N) < 0.5, "girl", "boy")
PUBLIC = {"age": AGE, "sex": SEX}
SCORE = np.clip(2 * ARM + 0.5 * AGE + (SEX == "girl") + RNG.normal(0, 1, N), 0, 20)
COLUMNS: tuple[Any, ...] = (ARM, SCHOOL, PUBLIC)
ASKED = Questions(*COLUMNS).effect().means().regression(["arm", "age", "sex"])
# So little noise that answers are those of the data.
CLEAR = 10_000


@cache
def plan(epsilon: float = 1) -> QuestionsPlan:
    """Of the questions, when a test first needs it."""
    return ASKED.plan(Space.bins(0, 20), epsilon)


def test_answers_are_those_of_the_data_but_for_the_noise() -> None:
    """Effect, means and coefficients, in whatever order rows come."""
    turned = np.random.default_rng(1).permutation(N)
    other = {name: column[turned] for name, column in PUBLIC.items()}
    columns = ARM[turned], SCHOOL[turned], other
    release = plan(CLEAR).release(SCORE[turned], *columns, noise=shoal.Simulated(1))
    found = release.estimate()
    cells = [
        SCORE[(home == SCHOOL) & (ARM == 1)].mean() - SCORE[(home == SCHOOL) & (ARM == 0)].mean()
        for home in range(6)
    ]
    assert found["effect"].value == pytest.approx(np.mean(cells), abs=1e-3)
    assert found["mean of arm 0"].value == pytest.approx(SCORE[ARM == 0].mean(), abs=1e-3)
    design = np.stack([np.ones(N), ARM, AGE, SEX == "girl"], axis=1).astype(float)
    wanted = np.linalg.lstsq(design, SCORE, rcond=None)[0]
    assert [each.value for each in found][3:] == pytest.approx(wanted.tolist(), abs=2e-2)
    error = np.sqrt(SCORE[ARM == 0].var(ddof=1) / (N / 2))
    assert found["mean of arm 0"].standard_error == pytest.approx(error, rel=1e-2)


@pytest.mark.parametrize("names", [["arm"], ["age", "arm"], ["sex"], ["arm", "age", "sex"]])
def test_regressions_on_some_of_the_columns_are_free(names: list[str]) -> None:
    """Against least squares on the data; nothing is drawn for them."""
    release = plan(CLEAR).release(SCORE, *COLUMNS, noise=shoal.Simulated(1))
    known = {"arm": ARM, "age": AGE, "sex": SEX == "girl"}
    design = np.stack([np.ones(N), *(known[name] for name in names)], axis=1).astype(float)
    wanted = np.linalg.lstsq(design, SCORE, rcond=None)[0]
    found = release.regression(names)
    assert [each.value for each in found] == pytest.approx(wanted.tolist(), abs=2e-2)
    assert found[0].question == f"constant in {' + '.join(names)}"
    assert len(found.table()) == len(wanted)


def test_what_was_not_asked_is_not_answered() -> None:
    """A regression on a column that no question has needs a second release."""
    few = Questions(*COLUMNS).regression(["arm", "age"]).plan(Space.bins(0, 20), 1)
    release = few.release(SCORE, *COLUMNS)
    with pytest.raises(InputError, match="does not follow"):
        release.regression(["sex"])
    with pytest.raises(InputError, match="'height'"):
        release.regression(["height"])
    with pytest.raises(InputError, match="a question 'effect'"):
        _ = release.estimate()["effect"]
    with pytest.raises(InputError, match="a question a ndarray"):
        _ = release.estimate()[np.array(["constant", "effect"])]
    with pytest.raises(InputError, match="confidence"):
        release.estimate(0.5)


def test_a_ledger_charges_once(tmp_path: Path) -> None:
    """The same plan and name again is delivered as recorded; a new name is a charge."""
    book = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=2, unit="each row")
    about: dict[str, Any] = {"ledger": book, "outcome_name": "score", "privacy_unit": "each row"}
    first = plan().release(SCORE, *COLUMNS, name="May", **about)
    again = plan().release(SCORE, *COLUMNS, name="May", **about)
    assert again.from_ledger
    assert again.document == first.document
    assert again.estimate() == first.estimate()
    # Planned anew it is the same question, whatever numbers answer it.
    anew = ASKED.plan(Space.bins(0, 20), 1).release(SCORE, *COLUMNS, name="May", **about)
    assert anew.document == first.document
    plan().release(SCORE, *COLUMNS, name="June", **about)
    with pytest.raises(BudgetError):
        plan().release(SCORE, *COLUMNS, name="July", **about)
    assert "entry 1" in repr(first)
    assert shoal.verify(first.manifest, ledger=book).holds


def test_a_private_column_is_no_public_one() -> None:
    """The outcome as covariate, arm or cluster is refused at release."""
    scores = np.round(SCORE)
    few = Questions(ARM, covariates={"score": scores}).effect().plan(Space.bins(0, 20), 1)
    with pytest.raises(InputError, match="as covariate score"):
        few.release(scores, ARM, covariates={"score": scores})
    with pytest.raises(InputError, match="as arm"):
        plan().release(ARM, *COLUMNS)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "other arms": ({"arm": ARM[::-1] * (SCHOOL > 0) + ARM * (SCHOOL == 0)}, "other than the plan"),
    "no covariates": ({"covariates": None}, "other than the plan"),
    "another covariate": ({"covariates": {**PUBLIC, "age": AGE + 1}}, "other than the plan"),
    "too few outcomes": ({"outcomes": SCORE[:-1]}, "different length"),
    "a missing outcome": ({"outcomes": np.where(AGE == 10, np.nan, SCORE)}, "missing or infinite"),
    "texts": ({"outcomes": ["a"] * N}, "outcomes of another kind"),
}


@pytest.mark.parametrize("name", BAD)
def test_other_columns_than_the_plans_are_refused(name: str) -> None:
    """The plan's units, in the rows of the outcomes; no message tells of an outcome."""
    change, said = BAD[name]
    given = {"outcomes": SCORE, "arm": ARM, "cluster": SCHOOL, "covariates": PUBLIC, **change}
    with pytest.raises(DataError, match=said):
        plan().release(**given)


def test_covariates_that_are_no_mapping_are_refused() -> None:
    """What is no mapping of names to columns, at the plan and at the release."""
    for wrong in (2**64, [AGE], {1: AGE, "sex": SEX}):
        with pytest.raises(InputError, match="covariate"):
            plan().release(SCORE, ARM, SCHOOL, wrong)
        with pytest.raises(InputError, match="covariate"):
            Questions(ARM, SCHOOL, wrong)


def test_needs_of_a_ledger_are_asked_for(tmp_path: Path) -> None:
    """What the outcome is called, and no simulation."""
    book = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=2, unit="each row")
    with pytest.raises(InputError, match="outcome_name"):
        plan().release(SCORE, *COLUMNS, ledger=book)
    with pytest.raises(InputError, match="simulated noise"):
        plan().release(SCORE, *COLUMNS, ledger=book, outcome_name="a", noise=shoal.Simulated(1))


def test_simulations_say_so_and_files_are_read_back(tmp_path: Path) -> None:
    """A loaded manifest says what the fresh one said; G-SIMULATION: it is marked."""
    release = plan().release(SCORE, *COLUMNS, noise=shoal.Simulated(1))
    assert release.simulated
    assert repr(release).startswith("<simulated answers to 7 questions of 600 units, epsilon 1")
    release.write_manifest(tmp_path / "m.json")
    loaded = PrivateAnswers.load(tmp_path / "m.json")
    assert loaded.estimate(0.9) == release.estimate(0.9)
    loaded.write(tmp_path / "answers.csv")
    assert (tmp_path / "answers.csv").read_text().startswith('"question","value"')
    assert "95% interval" in str(loaded.estimate())
    assert not shoal.verify(tmp_path / "m.json").holds
