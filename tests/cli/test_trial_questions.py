"""`shoal trial ask`, `answer` and `regress`: from a CSV file to regressions; errors in a line."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pytest

import shoal
from shoal.trials import Experiment, Plan, Release, Space
from tests.cli.conftest import Shell

pytestmark = pytest.mark.unit

N = 400
ROLES = ["--treatment", "arm", "--cluster", "city"]
ASK = ["trial", "ask", "visits.csv", *ROLES, "--epsilon", "2"]
ANSWER = ["trial", "answer", "visits.csv", *ROLES, "--plan", "asked.json", "--outcome", "bought",
          "--ledger", "visits.ledger", "--privacy-unit", "each row"]  # fmt: skip


@pytest.fixture
def trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    """A folder with visits.csv and visits.ledger."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    at = np.arange(N)
    table = pa.table(
        {
            "arm": np.array(["control", "new"])[at % 2].tolist(),
            "city": np.array(["a", "b"])[at // 2 % 2].tolist(),
            "zone": (at // 4 % 3 + 1).tolist(),
            "far": rng.normal(3, 1, N).round(3).tolist(),
            "adult": (at // 12 % 2 == 0).tolist(),
            "sex": np.where(at // 24 % 2, "f", "m").tolist(),
            "bought": (rng.random(N) < 0.3 + 0.2 * (at % 2)).astype(int).tolist(),
            "liked": np.array(["no", "some", "much"])[at % 3].tolist(),
        }
    )
    pcsv.write_csv(table, "visits.csv")
    shell = Shell(tmp_path, capsys)
    shell.good("ledger", "create", "visits.ledger", "--epsilon", "9", "--unit", "each row")
    return shell


def test_classes_that_were_assigned_whole(trial: Shell) -> None:
    """The plan and the answers need them; `units` says that there are none."""
    at = np.arange(N)
    table = pcsv.read_csv("visits.csv")
    classes = at % 2 + 2 * (at // 2 % 2) + 4 * (at // 40)
    pcsv.write_csv(table.append_column("class", pa.array(classes)), "classes.csv")
    ask = ["classes.csv" if each == "visits.csv" else each for each in ASK]
    answer = ["classes.csv" if each == "visits.csv" else each for each in ANSWER]
    asked = [*ask, "--effect", "--output", "asked.json", "--assigned", "class"]
    assert f"{len(set(classes))} groups assigned whole" in trial.good(*asked).replace("\n  ", " ")
    assert "assigned groups or names other than the plan's" in trial.bad(*answer)
    assert "as assigned" in trial.bad(*answer, "--assigned", "bought")
    trial.good(*answer, "--assigned", "class", "--manifest", "answers.json")
    assert trial.good("verify", "answers.json").startswith("yes: every claim")
    assert "several" in trial.bad(*ask, "--effect", "--assigned", "city")
    assert "individual" in trial.good(*ask, "--effect", "--assigned", "units")


def test_from_csv_to_regressions_in_three_commands(trial: Shell) -> None:
    """A plan without outcomes, answers once, regressions for free; the manifest verifies."""
    out = trial.good(
        *ASK, "--effect", "--effect-by", "sex", "--ols", "arm + far + C(zone) + adult", "--means",
        "--output", "asked.json",
    )  # fmt: skip
    assert "11 questions of 400 units in 2 clusters, 2 arms, epsilon 2 for one outcome" in out
    for name in ("effect where sex is f", "mean of arm new", "far in arm + far", "C(zone) 3 in"):
        assert name in out
    asked = Plan.load("asked.json")
    assert [each.numeric for each in asked.design.covariates] == [False, True, True, False]
    out = trial.good(*ANSWER, "--manifest", "answers.json", "--output", "answers.csv")
    assert "recorded: entry 1 of visits.ledger" in out
    assert "outcomes outside the range are moved to its ends" in out
    assert "95% low" in out
    assert pcsv.read_csv("answers.csv").num_rows == 11
    verified = trial.good("verify", "answers.json", "--ledger", "visits.ledger")
    assert verified.startswith("yes: every claim")
    told = trial.good("trial", "regress", "answers.json", "--ols", "arm + far", "--ols", "adult")
    assert "far in arm + far" in told
    assert "adult in adult" in told
    document = json.loads(trial.good("trial", "regress", "answers.json", "--json"))
    assert len(document["answers"]) == 11
    assert "90% low" in trial.good("trial", "regress", "answers.json", "--confidence", "0.9")
    again = trial.good(*ANSWER, "--manifest", "again.json")
    assert "nothing was charged" in again
    assert Path("again.json").read_bytes() == Path("answers.json").read_bytes()
    assert len(shoal.Ledger("visits.ledger").entries()) == 1


def test_the_plan_is_that_of_python(trial: Shell) -> None:
    """The same questions of the same columns, whatever read them."""
    trial.good(*ASK, "--precision", "--ols", "arm + far", "--output", "asked.json")
    table = pcsv.read_csv("visits.csv").to_pydict()
    own = Experiment(table["arm"], table["city"], {"far": table["far"]}).ask()
    wanted = own.effect(weights="precision").regression(["arm", "far"]).plan(Space.binary(), 2)
    assert Plan.load("asked.json").to_document() == wanted.to_document()


def test_plans_and_releases_as_json(trial: Shell) -> None:
    """The figures of each question; the manifest and how it was delivered."""
    text = trial.good(*ASK, "--effect", "--json", "--output", "asked.json", "--spread", "0.4")
    (one,) = json.loads(text)["questions"]
    assert one["question"] == "effect"
    assert one["standard_error"] > one["plain_error"] > 0
    found = json.loads(trial.good(*ANSWER, "--json"))
    assert found["delivery"]["charged"]
    assert found["kind"] == "questions"


def test_labels_are_numbers_of_levels(trial: Shell) -> None:
    """Texts of an ordinal outcome, and a treatment that is called by its column's name."""
    trial.good(*ASK, "--space", "ordinal:no,some,much", "--effect", "--output", "asked.json")
    answer = [*ANSWER]
    answer[answer.index("bought")] = "liked"
    trial.good(*answer, "--manifest", "liked.json")
    found = Release.load("liked.json").estimate()["effect"]
    assert abs(found.value) < 1
    out = trial.good(*ASK, "--ols", "arm + city", "--control", "new")
    assert "cluster b in arm + cluster" in out


def _with(arguments: Sequence[str], option: str, value: str) -> list[str]:
    changed = [*arguments]
    changed[changed.index(option) + 1] = value
    return changed


BAD: dict[str, tuple[list[str], str]] = {
    "nothing asked": (ASK, "no questions"),
    "no such column": ([*ASK, "--ols", "arm + gone"], "no column 'gone'"),
    "no formula": ([*ASK, "--ols", "arm + "], "a regression 'arm + '"),
    "the outcome in it": ([*ASK, "--ols", "bought ~ arm"], "without the outcome"),
    "collinear": ([*ASK, "--ols", "zone + C(zone)"], "depends on the other columns"),
    "no cells": ([*ASK, "--effect-by", "far"], "all of which have one arm"),
    "no epsilon": ([*_with(ASK, "--epsilon", "0"), "--effect"], "epsilon"),
    "another ending": ([*ANSWER, "--output", "answers.txt"], "answers.txt"),
    "a confidence nobody knows": ([*ANSWER, "--confidence", "0.5"], "confidence is 0.5"),
    "the outcome as arm": (_with(ANSWER, "--outcome", "arm"), "as treatment"),
    "the outcome as covariate": (_with(ANSWER, "--outcome", "sex"), "as covariate sex"),
    "other clusters": (_with(ANSWER, "--cluster", "zone"), "other than the plan"),
    "other arms": (_with(ANSWER, "--treatment", "city"), "a control arm 'control'"),
    "no plan": (_with(ANSWER, "--plan", "gone.json"), "gone.json"),
    "no plan of questions": (_with(ANSWER, "--plan", "visits.csv"), "visits.csv"),
    "texts as outcomes": (_with(ANSWER, "--outcome", "liked"), "holds text"),
    "a regression not asked": (["trial", "regress", "answers.json", "--ols", "arm + far"], "'far'"),
    "no regression": (["trial", "regress", "answers.json", "--ols", "+"], "a regression '+'"),
    "no manifest": (["trial", "regress", "visits.csv"], "visits.csv"),
}


def test_errors_are_one_line_and_cost_nothing(trial: Shell) -> None:
    """What was got, what is allowed, what to do; nothing is charged."""
    trial.good(*ASK, "--effect", "--effect-by", "sex", "--output", "asked.json")
    trial.good(*ANSWER, "--name", "first", "--manifest", "answers.json")
    for arguments, said in BAD.values():
        assert said in trial.bad(*arguments)
    assert len(shoal.Ledger("visits.ledger").entries()) == 1
