"""`shoal trial`: from a CSV file to an estimate in two commands; bad input costs nothing."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pytest

import shoal
from shoal.cli.trial import Mechanism
from tests.cli.conftest import Shell
from tests.support.loop import loop_over

pytestmark = pytest.mark.unit

UNITS = 400
UNIT = ("--unit", "unit")
# Fewer digits may be those of a folder, or of a noisy number.
CANARIES = ("431.5", "secret431")
COLUMNS = ["--outcome", "bought", "--treatment", "arm", "--cluster", "city"]
RELEASE = ["trial", "release", "visits.csv", *COLUMNS, "--ledger", "visits.ledger"]
SPACE = ["--space", "binary", "--epsilon", "2"]
WHOLE = [*RELEASE, *SPACE, "--privacy-unit", "unit"]
PRIOR = [*WHOLE, "--mechanism", "cluster_free"]


@pytest.fixture
def trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    """A folder with visits.csv, whose outcomes hold a canary, and visits.ledger."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    arm = np.arange(UNITS) % 2
    table = pa.table(
        {
            "unit": [f"u{at:04}" for at in range(UNITS)],
            "arm": np.array(["control", "new"])[arm].tolist(),
            "city": np.array(["a", "b", "c", "d"])[np.arange(UNITS) // 2 % 4].tolist(),
            "bought": pa.array((rng.random(UNITS) < 0.3 + 0.2 * arm).astype(int)),
            "spent": pa.array(np.r_[431.56789, rng.normal(20, 5, UNITS - 1)]),
            "note": ["secret431"] * UNITS,
            "holes": pa.array([None, *range(UNITS - 1)]),
        }
    )
    pcsv.write_csv(table, "visits.csv")
    shell = Shell(tmp_path, capsys)
    shell.good("ledger", "create", "visits.ledger", "--epsilon", "9", "--delta", "0.001", *UNIT)
    return shell


def test_from_csv_to_estimate_in_two_commands(trial: Shell) -> None:
    """Release, then estimate; the second release is free; the manifest verifies."""
    out = trial.good(*WHOLE, "--manifest", "trial.json", "--output", "units.csv")
    assert "recorded: entry 1 of visits.ledger" in out
    assert "new against control" in out
    again = trial.good(*WHOLE, "--manifest", "again.json")
    assert "nothing was charged" in again
    assert Path("trial.json").read_bytes() == Path("again.json").read_bytes()
    assert len(shoal.Ledger("visits.ledger").entries()) == 1
    estimate = trial.good("trial", "estimate", "trial.json", "--clusters", "--confidence", "0.9")
    assert "90% [" in estimate
    assert estimate.count("of the units") == estimate.count("standard error") == 4
    document = json.loads(trial.good("trial", "estimate", "trial.json", "--json"))
    assert document["effects"][0]["arm"] == "new"
    assert pcsv.read_csv("units.csv").column_names == ["cluster", "arm", "response", "debiased"]
    assert trial.good("verify", "trial.json", "--ledger", "visits.ledger").startswith("yes: ")


def test_effects_of_classes_that_were_assigned_whole(trial: Shell) -> None:
    """Groups come from a public file by the names of units; else `estimate` asks."""
    whole = [*RELEASE[:-4], "--ledger", "visits.ledger", *SPACE, "--unit", "unit"]
    trial.good(*whole, "--mechanism", "best_table", "--manifest", "trial.json")
    at = np.arange(UNITS)
    names, classes = [f"u{each:04}" for each in at], at % 2 + 2 * (at // 40)
    pcsv.write_csv(pa.table({"pupil": names, "class": classes.tolist()}), "classes.csv")
    estimate = ["trial", "estimate", "trial.json"]
    groups = ["--groups", "classes.csv", "--unit", "pupil", "--assigned", "class"]
    out = trial.good(*estimate, *groups)
    assert "10 and 10 groups assigned whole" in out
    assert "one by one" not in out
    document = json.loads(trial.good(*estimate, *groups, "--json"))
    assert document["effects"][0]["groups"] == [10, 10]
    assert "one by one" in trial.good(*estimate)
    assert "one by one" not in trial.good(*estimate, "--assigned", "units")
    assert "without a file" in trial.bad(*estimate, "--assigned", "class")
    assert "without a column" in trial.bad(*estimate, *groups[:4])
    assert "a picture of effects" in trial.bad(*estimate, *groups, "--picture", "p.svg")
    assert "several arms" in trial.bad(*estimate, *_with_cities(groups))


def _with_cities(groups: list[str]) -> list[str]:
    """The column of cities, which have units of both arms, in place of classes."""
    given = ["visits.csv" if each == "classes.csv" else each for each in groups]
    return ["unit" if each == "pupil" else "city" if each == "class" else each for each in given]


@pytest.mark.parametrize("mechanism", [str(each) for each in Mechanism])
def test_every_mechanism_and_kind_of_outcome(trial: Shell, mechanism: str) -> None:
    """Each with continuous outcomes, named units, and a table in Parquet."""
    out = trial.good(
        *("trial", "release", "visits.csv", "--outcome", "spent", "--treatment", "arm"),
        *("--unit", "unit", "--space", "bins:0:40:9", "--epsilon", "1", "--control", "new"),
        *("--mechanism", mechanism, "--ledger", "visits.ledger", "--output", "t.parquet"),
        *(["--floor", "0.05", "--noise", "9"] if mechanism.startswith("cluster") else []),
    )
    assert "control against new" in out
    assert not any(canary in out for canary in CANARIES)
    assert Path("t.parquet").stat().st_size > 0


def test_floor_and_noise_of_ones_own(trial: Shell) -> None:
    """They are used as given, within epsilon and delta; JSON shows them."""
    out = trial.good(
        *RELEASE, "--space", "binary", "--epsilon", "3", "--delta", "1e-4", "--levels", "2",
        "--mechanism", "cluster_dp", "--floor", "0.1", "--noise", "5", "--json",
        "--privacy-unit", "unit",
    )  # fmt: skip
    found = json.loads(out)["plan"]["chosen"]
    assert found["weight"] == 2**20 // 5
    assert found["floor"] == int(0.1 * 2**31)


def test_plans_need_no_outcomes(trial: Shell) -> None:
    """From numbers or from the public columns of a file; comparisons, JSON, a picture."""
    out = trial.good(
        *("trial", "plan", "--units", "6000", "--clusters", "30", "--space", "counts:0:5"),
        *("--epsilon", "1", "--epsilon", "4", "--effect", "0.2", "--against-units", "12000"),
        *("--mean", "2", "--sd", "1", "--between", "0.2", "--shares", "0.5,0.5"),
    )
    assert "trial of 6000 units in 30 clusters" in out
    assert out.count("noisy_histogram") >= 3
    file = ["trial", "plan", "visits.csv", "--treatment", "arm", "--cluster", "city"]
    document = json.loads(trial.good(*file, "--epsilon", "1", "--epsilon", "2", "--json"))
    assert (document["units"], document["clusters"]) == (UNITS, 4)
    assert len(document["against"]) == 2 * len(document["mechanisms"])
    trial.good(*file, "--picture", "plan.png")
    assert Path("plan.png").stat().st_size > 10_000


def test_the_unit_is_the_ledgers(trial: Shell) -> None:
    """Each row unless --unit or --privacy-unit say otherwise; another one is refused."""
    said = trial.bad(*RELEASE, *SPACE)
    assert "a charge that protects the values of one row" in said
    trial.good(*RELEASE, *SPACE, "--unit", "unit")
    assert shoal.Ledger("visits.ledger").state().entries == 1


def test_a_picture_of_the_effects(trial: Shell) -> None:
    """Drawn from the manifest, with intervals of the confidence asked for."""
    trial.good(*WHOLE, "--manifest", "trial.json")
    estimate = ["trial", "estimate", "trial.json", "--picture"]
    trial.good(*estimate, "half.svg", "--confidence", "0.5")
    trial.good(*estimate, "most.svg")
    for name, confidence in (("half.svg", "(50%)"), ("most.svg", "(95%)")):
        drawn = Path(name).read_text(encoding="utf-8")
        assert "<svg" in drawn
        assert confidence in drawn


def _with(option: str, value: str) -> list[str]:
    changed = [*RELEASE, *SPACE] if option == "--unit" else [*WHOLE]
    if option in changed:
        changed[changed.index(option) + 1] = value
        return changed
    return [*changed, option, value]


@loop_over(
    ("arguments", "message"),
    [
        (["trial", "release", "visits.csv"], "Missing option"),
        (_with("--outcome", "gone"), "no column 'gone'"),
        (_with("--treatment", "gone"), "no column 'gone'"),
        (_with("--cluster", "unit"), "clusters, each of which has one arm"),
        (_with("--treatment", "unit"), "400 arms"),
        (_with("--outcome", "note"), "holds text"),
        (_with("--outcome", "holes"), "missing or infinite outcomes"),
        (_with("--space", "fog"), "a space 'fog'"),
        (_with("--space", "counts:3:1"), "levels"),
        (_with("--epsilon", "0"), "epsilon is"),
        ([*_with("--epsilon", "10"), "--mechanism", "uniform_prior"], "what is left"),
        (_with("--levels", "5"), "5 of 2 levels|levels"),
        ([*PRIOR, "--floor", "0.9", "--noise", "5"], "a floor of 0.9"),
        ([*PRIOR, "--floor", "0.1", "--noise", "0.5"], "histogram noise of 0.5"),
        (PRIOR, "a floor or noise missing for cluster_free"),
        (_with("--mechanism", "magic"), "magic"),
        ([*WHOLE, "--mechanism", "noisy_histogram", "--floor", "0.1"], "a floor or noise with"),
        ([*WHOLE, "--mechanism", "noisy_histogram", "--levels", "2"], "levels or delta"),
        ([*WHOLE, "--mechanism", "best_table", "--delta", "0.1"], "a delta for the best table"),
        ([*WHOLE, "--mechanism", "best_table", "--levels", "1"], "levels"),
        ([*_with("--epsilon", "8.5"), "--mechanism", "best_table"], "from 0.01 to 8"),
        (_with("--control", "gone"), "a control arm 'gone'"),
        (_with("--unit", "city"), "named twice"),
        (_with("--missing", "ignore"), "missing is 'ignore'"),
        (_with("--single-arm", "ignore"), "single_arm"),
        (_with("--clustering-epsilon", "-1"), "epsilon is"),
        (_with("--output", "t.xlsx"), "t.xlsx"),
        (_with("--manifest", "no/t.json"), "cannot be written"),
        (_with("--ledger", "gone.ledger"), "gone.ledger"),
        (["trial", "release", "gone.csv", *WHOLE[3:]], "no file of records at 'gone.csv'"),
        (["trial", "estimate", "visits.csv"], "is not JSON"),
        (["trial", "plan"], "not one of a file and a number of units"),
        (["trial", "plan", "--units", "1"], "1 units"),
        (["trial", "plan", "--units", "10", "--shares", "a,b"], "shares 'a,b'"),
        (["trial", "plan", "--units", "10", "--sd", "1"], "without a mean"),
        (["trial", "plan", "--units", "10", "--mean", "7"], "which is a rate, is 7"),
        (["trial", "plan", "--units", "10", "--picture", "p.txt"], "a picture named 'p.txt'"),
    ],
)
def test_bad_input_is_one_line_and_costs_nothing(
    trial: Shell, arguments: list[str], message: str
) -> None:
    """One line, status 2, no outcome shown, nothing spent or written."""
    before = sorted(path.name for path in trial.folder.iterdir())
    line = trial.bad(*arguments)
    assert any(part in line for part in message.split("|"))
    assert not any(canary in line for canary in CANARIES)
    assert sorted(path.name for path in trial.folder.iterdir()) == before
    assert shoal.Ledger("visits.ledger").spent.epsilon == 0


def test_a_confidence_that_is_none_is_refused_before_the_charge(trial: Shell) -> None:
    """A wrong option of the output costs nothing either."""
    trial.bad(*WHOLE, "--confidence", "1")
    assert shoal.Ledger("visits.ledger").spent.epsilon == 0


def test_help_has_examples(trial: Shell) -> None:
    """Every verb of the trial shows one."""
    verbs: list[str] = ["plan", "release", "estimate"]
    show: Callable[..., str] = trial.good
    for verb in verbs:
        assert "Example: shoal trial" in " ".join(show("trial", verb, "--help").split())


def test_outcomes_outside_the_space_are_said_to_be_moved(trial: Shell) -> None:
    """The same words whether outcomes are outside or not; the page says them too."""
    words = "outcomes outside the space are moved to its nearest level"
    planned = trial.good("trial", "plan", "--units", "200", "--space", "binary", "--epsilon", "2")
    assert planned.splitlines().count(words) == 1
    assert words in trial.good(*WHOLE, "--name", "words")


def test_hints_name_the_verb(trial: Shell) -> None:
    """A message about a verb's options leads to that verb's help."""
    assert "Try `shoal trial plan --help`." in trial.bad("trial", "plan", "--bogus")


def test_a_confidence_of_one_is_named_as_what_it_is(trial: Shell) -> None:
    """What is refused is not within what is said to be allowed."""
    said = trial.bad(*WHOLE, "--confidence", "1")
    assert "above 0 and below 1" in said
