"""`shoal trial` and `shoal mean`: from a CSV file to effects, regressions and means."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pytest

import shoal
from shoal.errors import InputError
from shoal.trials import Domain, Experiment, Plan, Release
from shoal.unbiased import UnbiasedPlan
from tests.cli.conftest import ASK, MEAN, RELEASES, TRIAL, UNITS, Shell, visits

TABLE, ANSWER = RELEASES["table"], RELEASES["questions"]
GROUPS = ["--groups", "visits.csv", "--unit", "person", "--assigned", "class"]
PRIOR = ["--setting", "floor=0.05", "--setting", "noise=9"]


def without(words: list[str], option: str) -> list[str]:
    """The words without an option and its value."""
    at = words.index(option)
    return words[:at] + words[at + 2 :]


@pytest.mark.parametrize("mechanism", ["best_table", "uniform_prior", "cluster_prior", "histogram"])
def test_every_mechanism_is_planned_and_released(shell: Shell, mechanism: str) -> None:
    """With continuous outcomes, another control, and a table in Parquet."""
    prior = PRIOR if mechanism.startswith("cluster") else []
    words = ["minutes" if each == "bought" else each for each in TRIAL]
    said = shell.good(*words, "--mechanism", mechanism, "--domain", "bins:0:80:9", *prior,
                      "--control", "new", "--output", "t.json")  # fmt: skip
    assert said.splitlines()[0].startswith(("table of 400", "histogram", "counts"))
    out = shell.good("release", "visits.csv", "t.json", *TABLE[3:], "--output", "t.parquet")
    assert "outcomes outside the domain are moved to its nearest level" in out
    assert "control against new" in out
    assert "431.5" not in out
    assert Path("t.parquet").stat().st_size > 0


def test_settings_of_a_table(shell: Shell) -> None:
    """Floor and noise as given, within delta; nearest levels; what clusters cost is charged."""
    shell.good(*TRIAL, "--mechanism", "cluster_prior", "--delta", "1e-4", "--setting", "levels=2",
               *PRIOR[:1], "floor=0.1", *PRIOR[2:], "--setting", "clustering_epsilon=0.5",
               "--setting", "pooled=yes",
               "--setting", "rounding=nearest", "--output", "t.json")  # fmt: skip
    plan = Plan.load("t.json")
    assert plan.chosen.floor == int(0.1 * 2**31)
    assert plan.domain.rounding == "nearest"
    assert plan.request.prior.pooled
    out = shell.good("release", "visits.csv", "t.json", *TABLE[3:], "--json")
    found = json.loads(out)
    assert found["guarantee"]["epsilon_at_most"] <= 2.5
    assert found["records"]["outcome"] == "bought"


def test_outcomes_that_are_missing_in_public(shell: Shell) -> None:
    """Planned and released for the rows that have one."""
    words = ["holes" if each == "bought" else each for each in TRIAL]
    shell.good(*words, "--mechanism", "best_table", "--missing", "public", "--output", "h.json")
    assert Plan.load("h.json").design.n == UNITS - 8
    shell.good("release", "visits.csv", "h.json", *TABLE[3:])
    shell.good(*words, "--mechanism", "best_table", "--output", "all.json")
    assert "there are missing outcomes" in shell.bad(
        "release", "visits.csv", "all.json", *TABLE[3:]
    )


def test_forecasts_need_no_outcomes(shell: Shell) -> None:
    """From numbers or from the public columns of a file; comparisons, JSON, a picture."""
    out = shell.good(
        *("trial", "plan", "--units", "6000", "--clusters", "30", "--domain", "counts:0:5"),
        *("--epsilon", "1", "--epsilon", "4", "--effect", "0.2", "--against-units", "12000"),
        *("--mean", "2", "--sd", "1", "--between", "0.2", "--share", "0.5", "--share", "0.5"),
    )
    assert "trial of 6,000 units in 30 clusters" in out
    assert out.count("histogram") >= 3
    file = ["trial", "plan", "visits.csv", "--arm", "arm", "--cluster", "city"]
    document = json.loads(shell.good(*file, "--epsilon", "1", "--epsilon", "2", "--json"))
    assert (document["units"], document["clusters"]) == (UNITS, 4)
    assert len(document["against"]) == 2 * len(document["mechanisms"])
    shell.good(*file, "--picture", "plan.png")
    assert Path("plan.png").stat().st_size > 10_000


def test_effects_are_shown_again(shell: Shell) -> None:
    """By cluster, drawn, of classes that were assigned whole: groups come from a public file."""
    shell.good(*TABLE, "--record", "m.json", "--picture", "t.svg")
    out = shell.good("show", "m.json", "--by-cluster", "--confidence", "0.9", "--picture", "p.svg")
    assert "90% [" in out
    assert out.count("of the units") == 4
    assert "(90%)" in Path("p.svg").read_text(encoding="utf-8")
    assert "(95%)" in Path("t.svg").read_text(encoding="utf-8")
    assert "one by one" in out
    assert "one by one" not in shell.good("show", "m.json", "--assigned", "units")
    for wrong in (["--assigned", "class"], GROUPS[:4], [*GROUPS[:2], "--assigned", "units"]):
        assert "not given together" in shell.bad("show", "m.json", *wrong)
    assert "does not work with" in shell.bad("show", "m.json", *GROUPS, "--picture", "q.svg")
    assert "works with releases of means alone" in shell.bad(
        "show", "m.json", "--difference", "a", "b"
    )
    shell.good(*without(TRIAL, "--cluster"), "--mechanism", "best_table", "--output", "whole.json")
    shell.good("release", "visits.csv", "whole.json", *TABLE[3:], "--record", "whole-m.json")
    out = shell.good("show", "whole-m.json", *GROUPS)
    assert "10 and 10 groups assigned whole" in out
    assert "one by one" not in out
    document = json.loads(shell.good("show", "whole-m.json", *GROUPS, "--json"))
    assert document["effects"][0]["groups"] == [10, 10]


def test_rows_are_users_only_if_somebody_declares_it(shell: Shell) -> None:
    """A ledger of users takes no rows; what was declared is said wherever the unit is."""
    rows = without(ASK, "--user")
    said = shell.good(*rows, "--effect", "--output", "rows.json")
    assert "each row is one unit" in said
    assert "each row is one unit" not in shell.good(*ASK, "--effect")
    release = ["release", "visits.csv", "--ledger", "visits.ledger"]
    for refused in (
        [*release, "rows.json"],
        [*release, "rows.json", "--privacy-unit", "person"],
        [*rows, "--effect", "--privacy-unit", "person"],
    ):
        assert "each row is a unit here, and the ledger counts 'person'" in shell.bad(*refused)
    declared = ["--user", "each row", "--privacy-unit", "person"]
    said = shell.good(*rows, "--effect", *declared, "--output", "own.json").replace("\n  ", " ")
    assert "declared, not checked: each row is another person" in said
    said = shell.good(*release, "own.json", "--manifest", "own-m.json", "--json")
    unit = json.loads(said)["guarantee"]["unit"]
    assert (unit["name"], unit["records"]) == ("person", "declared")
    said = shell.good("verify", "own-m.json", "--ledger", "visits.ledger")
    assert re.search("what one unit is +declared +each row is another person", said)


@pytest.mark.parametrize("unit", ["city", "class"])
def test_a_person_of_many_rows_has_no_way_to_a_charge(shell: Shell, unit: str) -> None:
    """Neither by names, nor by a word of the ledger, in plans of trials, of means and of cells."""
    own = [*without(ASK, "--user"), "--effect"]
    shell.ledger("o.ledger", 9, unit, "--delta", "0.1")
    assert f"'{unit}' has several rows; say what" in shell.bad(*own, "--user", unit)
    shell.good(*own, "--output", "rows.json")
    shell.good(*without(MEAN, "--user"), "--output", "mean-rows.json")
    shell.good("plan", "visits.csv", "--user", "person", "--value", "minutes", "--bounds", 0, 99,
               "--counts", "public", "--epsilon", 1, "--output", "cells.json")  # fmt: skip
    for words in (
        [*own, "--privacy-unit", unit],
        [*own, "--privacy-unit", unit.upper()],
        *(
            ["release", "visits.csv", plan, "--ledger", "o.ledger", *said]
            for plan in ("rows.json", "mean-rows.json", "mean.json", "cells.json")
            for said in ([], ["--privacy-unit", unit])
        ),
    ):
        rows = f"each row is a unit here, and the ledger counts '{unit}'"
        users = f"values of '{unit}', the privacy unit, belong to several users"
        assert re.search(f"{rows}|{users}", shell.bad(*words), re.IGNORECASE)
    said = shell.bad("release", "visits.csv", "mean.json", "--ledger", "o.ledger",
                     "--privacy-unit", "minutes")  # fmt: skip
    assert "'minutes' is also given as privacy unit" in said


def test_a_column_of_a_file_means_itself(shell: Shell) -> None:
    """A name that questions use is refused, and so is a formula that is a column's name."""
    names = {"arm": "treatment", "city": "town", "zone": "arm", "sex": "cluster",
             "far": "far:zone", "class": "C(liked)", "liked": "liked"}  # fmt: skip
    table = visits().rename_columns([names.get(each, each) for each in visits().column_names])
    pcsv.write_csv(table, "named.csv")
    ask = ["trial", "ask", "named.csv", "--arm", "treatment", "--domain", "binary", "--epsilon", 1]
    for words, said in (
        (["--effect-by", "cluster"], "'cluster' has a name that questions use for clusters"),
        (["--ols", "treatment + arm"], "'arm' has a name that .*; .*write 'treatment'"),
        (["--ols", "treatment + C(arm)"], "'arm' has a name that questions use for the treatment"),
        (["--ols", "far:zone"], "'far:zone' has a name that questions read as a formula; rename"),
        (["--effect-by", "C(liked)"], r"'C\(liked\)' has a name that questions read as a formula"),
        (["--effect-by", "treatment"], "the treatment makes no subgroups"),
    ):  # fmt: skip
        assert re.search(said, shell.bad(*ask, *words))
    shell.good(*ask, "--cluster", "town", "--effect-by", "town", "--ols", "treatment + town")
    with pytest.raises(InputError, match="'cluster' has a name that questions use for clusters"):
        shoal.effects("named.csv", outcome="bought", arm="treatment", by=["cluster"],
                      domain="binary", epsilon=1, noise=shoal.Simulated(1))  # fmt: skip


def test_questions_are_those_of_python(shell: Shell) -> None:
    """The same of the same columns, whatever read them; the file says more: its columns."""
    shell.good(*ASK, "--precision", "--means", "--ols", "arm + far", "--output", "own.json")
    table = pcsv.read_csv("visits.csv").to_pydict()
    study = Experiment(table["arm"], table["city"], {"far": table["far"]})
    asked = study.ask().effect(weights="precision").means().regression(["arm", "far"])
    wanted = asked.plan(Domain.binary(), 2).to_document()
    found = Plan.load("own.json").to_document()
    assert found.pop("source") == {
        **dict.fromkeys(("unit", "assigned", "privacy_unit")), "value": "bought",
        "missing": "refuse", "single_arm": "refuse", "arm": "arm", "cluster": "city",
        "user": "person",
    }  # fmt: skip
    assert wanted.pop("source") is None
    assert found == wanted


def test_regressions_are_free_afterwards(shell: Shell) -> None:
    """On some of the columns, by the names of the file."""
    table = visits().rename_columns(
        ["treatment" if name == "arm" else name for name in visits().column_names]
    )
    pcsv.write_csv(table, "other.csv")
    ask = [{"visits.csv": "other.csv", "arm": "treatment"}.get(each, each) for each in ASK]
    shell.good(*ask, "--ols", "treatment + far + treatment:sex", "--effect-by", "sex",
               "--output", "other.json")  # fmt: skip
    shell.good("release", "other.csv", "other.json", *ANSWER[3:], "--record", "m.json",
               "--output", "a.csv", "--picture", "a.png")  # fmt: skip
    shown = shell.good("show", "m.json", "--ols", "treatment + far", "--ols", "treatment")
    assert "write 'treatment'" in shell.bad("show", "m.json", "--ols", "arm")
    assert "far in arm + far" in shown
    assert "arm in arm\n" not in shown
    assert shown.count("estimated SE") >= 2
    many = len(json.loads(shell.good("show", "m.json", "--json"))["answers"])
    assert pcsv.read_csv("a.csv").num_rows == many
    wide = pcsv.read_csv("a.csv").column("high")[0].as_py()
    at = ["show", "m.json", "--confidence", "0.9", "--output", "b.csv"]
    assert "90% low" in shell.good(*at)
    assert pcsv.read_csv("b.csv").column("high")[0].as_py() < wide
    assert "--ols" in shell.bad(*at, "--ols", "arm", "--force")


def test_groups_that_were_assigned_whole_are_asked_with(shell: Shell) -> None:
    """The plan knows their column; `units` says that there are none."""
    ask = [*without(ASK, "--cluster"), "--effect"]
    shell.good(*ask, "--assigned", "class", "--output", "g.json")
    shell.good("release", "visits.csv", "g.json", *ANSWER[3:], "--record", "m.json")
    assert shell.good("verify", "m.json").startswith("yes: every claim")
    assert "several" in shell.bad(*ask, "--assigned", "city")
    assert "assigned one by one" in shell.good(*ask, "--assigned", "units").replace("\n  ", " ")


def test_labels_are_numbers_of_levels(shell: Shell) -> None:
    """Texts of an ordinal outcome."""
    words = {"bought": "liked", "binary": "ordinal:no,some,much"}
    ask = [words.get(each, each) for each in ASK]
    shell.good(*ask, "--effect", "--output", "l.json")
    shell.good("release", "visits.csv", "l.json", *ANSWER[3:], "--record", "m.json")
    assert abs(Release.load("m.json").estimate()["effect"].value) < 1


def test_a_ratio_of_a_log_is_asked_and_released(shell: Shell) -> None:
    """From a file with several rows a class: planned without a look, released, shown, verified."""
    ask = ["trial", "ask", "visits.csv", "--arm", "sex", "--user", "seat", "--epsilon", 4,
           "--ratio", "bought", "rows", "--domain", "counts:0:9", "--domain", "counts:1:9",
           "--expected", "0.5", "2", "--effect", "--means", "--lift"]  # fmt: skip
    rows = visits()
    seat = pa.array(np.repeat(np.arange(UNITS // 2), 2))
    sex = rows.column("sex").take(seat)
    table = rows.append_column("seat", seat)
    table = table.set_column(table.column_names.index("sex"), "sex", sex)
    pcsv.write_csv(table, "visits.csv")
    said = shell.good(*ask, "--output", "r.json")
    assert "protected: all rows of one seat, and how many; public: who takes part, sex" in said
    assert "one domain for an outcome, and two for a numerator" in shell.bad(*ask[:-9], *ask[-7:])
    assert "--outcome and --ratio are two questions" in shell.bad(*ask, "--outcome", "bought")
    assert "leave per_user= (--per-user) out" in shell.bad(*ask, "--per-user", "sum")
    shell.ledger("seats.ledger", 9, "seat")
    release = ["release", "visits.csv", "r.json", "--ledger", "seats.ledger"]
    shell.good(*release, "--manifest", "m.json", "--picture", "m.svg", "--output", "m.csv")
    names = pcsv.read_csv("m.csv").column("statistic").to_pylist()
    assert names == ["effect", "lift", "ratio", "ratio"]
    assert "recount by other code" in shell.good("verify", "m.json", "--ledger", "seats.ledger")
    assert "lift" in shell.good("show", "m.json", "--confidence", 0.9)


def test_means_are_planned_and_compared(shell: Shell) -> None:
    """Both estimators, in text and JSON; the recommended plan, or another, is saved."""
    both = [*MEAN, "--delta", "1e-6"]
    text = shell.good(*both, "--output", "best.json")
    assert "clipped_mean has the least certified error, " in text
    assert UnbiasedPlan.load("best.json").method == "clipped_mean"
    shell.good(*both, "--method", "symmetric_mean", "--output", "other.json")
    out = shell.good("release", "visits.csv", "other.json", *RELEASES["mean"][3:])
    assert "symmetric_mean: " in out
    users = [*without(without(both, "--user")[:2] + both[3:], "--user"), "--users", 2000]
    found = json.loads(shell.good(*users, "--releases", 10**6, "--json"))
    assert found["recommended"] == "symmetric_mean"
    rows = ["each row" if each == "person" else each for each in both]
    rows += ["--interval-by", "certified"]
    shell.good(*rows, "--weights", "counts", "--cap", 2, "--output", "rows.json")
    said = shell.good("release", "visits.csv", "rows.json", *RELEASES["mean"][3:],
                      "--privacy-unit", "person", "--confidence", "0.6")  # fmt: skip
    assert "(60%, certified)" in said
    assert shell.good("mean", "plan", "--users", 2000, "--epsilon", 1, "--size", 1).endswith(
        "No estimator is possible: allow a bias and give an interval, or allow a delta.\n"
    )


def test_rows_without_a_value_are_dropped_if_that_is_public(shell: Shell) -> None:
    """Plan and release count the same rows; the release says nothing of the others."""
    minutes = [None, float("nan"), *visits().column("minutes").to_pylist()[2:]]
    at = visits().column_names.index("minutes")
    table = visits().set_column(at, "minutes", pa.array(minutes))
    shoal.files.tables.write(table, "v.parquet")
    mean = ["v.parquet" if each == "visits.csv" else each for each in MEAN]
    shell.good(*mean, "--missing", "public", "--output", "v.json")
    release = ("release", "v.parquet", "v.json", "--ledger", "visits.ledger", "--json")
    found = json.loads(shell.good(*release))
    assert found["results"]["users"] == UNITS - 2
    assert np.isfinite(found["results"]["results"]["value"])
    assert json.loads(Path("v.json").read_text())["source"]["missing"] == "public"


def test_bounds_of_means(shell: Shell) -> None:
    """The trilemma for the user's numbers; JSON has null where nothing is known."""
    wanted = ("mean", "bound", "--users", 10_000, "--epsilon", "0.1", "--size", 1)
    assert shell.good(*wanted, "--bias", "0.01").startswith("no RMSE below 0.04")
    found = json.loads(shell.good(*wanted, "--bias", "0.01", "--interval", 0, 100, "--json"))
    assert 0.04 < found["rmse"] < 0.06
    assert json.loads(shell.good(*wanted, "--json"))["rmse"] is None
