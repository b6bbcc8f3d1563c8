"""Every verb does its work, and says it."""

import json
import re
import subprocess
import sys
import time
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal import documents, progress
from shoal.cli.main import VERBS
from tests.cli.conftest import PLAN, RELEASES, Shell
from tests.support import flights

RELEASE = [*RELEASES["cells"], "--name", "one"]
PLANNED = ["plan", "flights.parquet", *PLAN]
COMPARE = ["compare", "flights.parquet", *PLAN]
PUBLISH = ["publish", "flights.parquet", "--ledger", "flights.ledger", "--name", "two"]


@pytest.mark.parametrize("family", RELEASES)
def test_plans_of_all_families_are_carried_out(shell: Shell, family: str) -> None:
    """Release, again at no cost, show, verify: of the plan's file and the records alone."""
    release, ledger = RELEASES[family], RELEASES[family][-1]
    first = shell.good(*release, "--manifest", "one.json", "--name", "may").splitlines()
    assert first[0].startswith(f"recorded: entry 1 of {ledger}, named 'may', epsilon ")
    again = shell.good(*release, "--manifest", "two.json", "--name", "may").splitlines()
    today = time.strftime("%Y-%m-%d", time.gmtime())
    assert again[0] == f"recorded on {today}, nothing charged: entry 1 of {ledger}, named 'may'"
    assert again[1:] == first[1:]
    assert Path("one.json").read_bytes() == Path("two.json").read_bytes()
    assert len(shoal.Ledger(ledger).entries()) == 1
    said = shell.good("verify", "one.json", "--ledger", ledger)
    assert said.startswith("yes: every claim")
    shown = shell.good("show", "one.json").splitlines()
    assert {*first[1:]} & {*shown}
    stored = shell.good("show", "--ledger", ledger, "--name", "may").splitlines()
    assert stored == [again[0], *shown]
    delivered = json.loads(shell.good(*release, "--name", "may", "--json"))
    assert delivered.pop("delivery")["charged"] is False
    assert delivered == json.loads(Path("one.json").read_text())
    assert json.loads(shell.good("show", "one.json", "--json"))


def test_the_ledger_adds_up(shell: Shell) -> None:
    """Budget, entries, chain; what does not fit, and another unit, are refused."""
    shell.good(*RELEASE)
    said = shell.good("ledger", "show", "flights.ledger").splitlines()
    assert said[0].startswith("1 release: epsilon 1 spent of epsilon 1.5, epsilon 0.5 left")
    assert said[1].startswith("protects all values of one aircraft; who has")
    assert said[3].split() == ["1", "cells", "epsilon", "1", said[3].split()[4], "one"]
    assert shell.good("ledger", "verify", "flights.ledger").startswith("yes, 1 release as")
    shown = json.loads(shell.good("ledger", "show", "flights.ledger", "--json"))
    assert shown["entries"][0]["spent"] == shown["spent"]
    assert "0.5" in shell.bad(*RELEASE, "--name", "another")
    assert "by its number with --entry" in shell.bad("show", "--ledger", "flights.ledger")
    assert "entry 1" in shell.good("show", "--ledger", "flights.ledger", "--entry", 1)
    shell.good(
        *["ledger", "create", "rows.ledger", "--epsilon", "9", "--counts", "public"],
        "--privacy-unit",
        "each row",
    )
    refused = shell.bad(*RELEASES["cells"][:-1], "rows.ledger")
    assert "The ledger protects the value of one row" in refused


def test_next_month_is_one_command(shell: Shell) -> None:
    """The same request on other counts, files beside each other, verified; again it is free."""
    shell.good(
        *[
            "ledger",
            "create",
            "year.ledger",
            "--epsilon",
            "12",
            "--counts",
            "public",
            "--privacy-unit",
            "aircraft",
        ]
    )
    shell.good(*RELEASE[:-3], "year.ledger", "--name", "one", "--manifest", "last.json")
    pq.write_table(flights.table(seed=1), "june.parquet")
    publish = ["publish", "june.parquet", "--ledger", "year.ledger", "--name", "2025-06"]
    said = shell.good(*publish, "--like", "last.json")
    assert "planned with the request of last.json; the cells are the same" in said
    assert said.strip().endswith("yes: every claim that can be recomputed holds")
    made = json.loads(Path("2025-06-manifest.json").read_text())
    last = json.loads(Path("last.json").read_text())
    assert made["results"]["basis"]["request"] == last["results"]["basis"]["request"]
    assert made["records"] == last["records"]
    assert pq.read_table("june.parquet").num_rows == 2000
    assert Path("2025-06-table.csv").exists()
    assert Path("2025-06-picture.png").read_bytes().startswith(b"\x89PNG")
    assert b"<h1>" in Path("2025-06-report.html").read_bytes()
    assert "nothing charged: entry 2" in shell.good(*publish, "--like", "last.json")
    Path("2025-06-manifest.json").rename("kept.json")
    assert "exists already" in shell.bad(*publish, "--like", "last.json")
    Path("kept.json").rename("2025-06-manifest.json")
    again = shell.good(*publish, "--like", "plan.json", "--output", "out")
    assert "nothing charged: entry 2" in again
    assert Path("out-manifest.json").read_bytes() == Path("2025-06-manifest.json").read_bytes()
    pq.write_table(pq.read_table("june.parquet").slice(1), "june.parquet")
    late = shell.bad(*publish, "--like", "last.json", "--force")
    assert "named '2025-06' of records with other counts; get it with `shoal show" in late
    assert len(json.loads(shell.good("ledger", "show", "year.ledger", "--json"))["entries"]) == 2
    reason = ("--name", "2025-06", "--reason", "a row too many")
    shell.good("ledger", "withdraw", "year.ledger", *reason)
    late = shell.bad(*publish, "--like", "last.json", "--force")
    assert ": a row too many; release the correction under a new name" in late
    same = shell.good(*PUBLISH[:2], *publish[2:4], "--name", "x", "--like", "last.json", "--json")
    assert json.loads(same)["holds"] is True


def test_publish_names_days_without_a_record(shell: Shell) -> None:
    """In words, and in the one line of JSON that a scheduler reads."""
    days = np.repeat(np.array(["2026-05-01", "2026-05-02", "2026-05-04"], "M8[s]"), 300)
    table = pa.table({"who": [*range(900)], "at": days, "v": [30.0] * 900})
    pq.write_table(table, "may.parquet")
    asked = ["--user", "who", "--value", "v", "--bounds", "0", "60", "--by", "date(at)"]
    asked += ["--counts", "public", "--epsilon", "1"]
    shell.good("plan", "may.parquet", *asked, "--output", "days.json")
    shell.ledger("days.ledger", 2, "who")
    publish = ["publish", "may.parquet", "--like", "days.json", "--ledger", "days.ledger"]
    gap = "1 of 4 days in at_date has no record: 2026-05-03"
    assert gap in shell.good(*publish, "--name", "may")
    found = json.loads(shell.good(*publish, "--name", "may", "--json"))
    assert (found["gaps"], found["delivery"]["charged"]) == ([gap], False)


def test_papers_are_one_command(shell: Shell) -> None:
    """Facts are asked for, filled in, and refused where nobody asks for them."""
    shell.good(*RELEASE, "--manifest", "m.json")
    papers = ["dossier", "m.json", "--ledger", "flights.ledger", "--output", "papers"]
    said = shell.good(*papers).splitlines()
    assert said[:3] == [
        f"wrote papers/{each}" for each in ("entry.yaml", "officer.html", "facts.yaml")
    ]
    assert "reaches none of 3 tiers; for tier 1 fill in the facts name, curators, " in said[3]
    assert "exists already" in shell.bad(*papers)
    Path("papers/facts.yaml").write_text("title: Speeds")
    assert "'papers/facts.yaml' has no option 'title'" in shell.bad(*papers, "--force")


def test_a_budget_comes_back_and_a_table_can_be_withdrawn(shell: Shell) -> None:
    """A file a month, each with a budget of its own; the wrong one is taken back and corrected."""
    table = flights.table()
    for month in (1, 2):
        at = pa.array([datetime(2026, month, 3)] * len(table))
        pq.write_table(table.append_column("at", at), f"{month}.parquet")
    create = ["ledger", "create", "city.ledger", "--epsilon", 2, "--privacy-unit", "aircraft"]
    made = shell.good(*create, "--counts", "public", "--period", "month", "--total", 5)
    assert (
        "in each month, at most epsilon 5 over all; protects all values of one aircraft in" in made
    )
    plan = ["plan", "1.parquet", *PLAN[:-1], "2", "--period", "month(at,Asia/Kolkata)"]
    planned = shell.good(*plan, "--output", "monthly.json")
    assert "charged to 2026-01: " in " ".join(planned.split())
    publish = ["publish", "1.parquet", "--like", "monthly.json", "--ledger", "city.ledger"]
    said = shell.good(*publish, "--name", "one", "--anyway")
    assert "epsilon 0 is left in 2026-01\n" in said
    assert "one aircraft with records in one month has lost up to epsilon 2" in said
    assert "left in 2026-01, epsilon 0" in shell.bad(*publish, "--name", "again", "--anyway")
    withdraw = ["ledger", "withdraw", "city.ledger", "--name", "one", "--reason", "wrong file"]
    assert "its charge stays spent" in shell.good(*withdraw)
    assert "wrong file" in shell.bad(*publish, "--name", "one", "--anyway")
    show = ["show", "--ledger", "city.ledger", "--name", "one"]
    assert "wrong file; release the correction under a new name" in shell.bad(*show)
    assert "wrong file" in shell.good(*show, "--withdrawn")
    assert "wrong file" in shell.good("verify", "one-manifest.json", "--ledger", "city.ledger")
    publish[1:4] = ["2.parquet", "--like", "one-manifest.json"]
    assert "in all 2 months" in shell.good(*publish, "--name", "one-v2", "--anyway")
    assert "yes, 2 releases as recorded" in shell.good("ledger", "verify", "city.ledger")
    assert "2026-02" in shell.good("ledger", "show", "city.ledger", "--json")


def test_verify_says_no(shell: Shell) -> None:
    """A changed manifest: status 1, and the check that fails."""
    shell.good(*RELEASE, "--manifest", "m.json")
    shell.good("verify", "m.json", "--json")
    document = json.loads(Path("m.json").read_text())
    document["results"]["value"][0] += 1
    Path("m.json").write_bytes(documents.canonical_bytes(document))
    status, out, err = shell.run("verify", "m.json", "--ledger", "flights.ledger")
    assert (status, err) == (1, "")
    assert re.search(r"the manifest follows from the record +NO", out)
    assert out.startswith("NO\n")
    status, out, err = shell.run("verify", "m.json")
    assert (status, err) == (1, "")
    assert re.search(r"what is shown follows +NO  the entry value", out)
    assert "to recompute them, ask the custodian for the record" in " ".join(out.split())


def test_options_and_settings_reach_the_plan(shell: Shell) -> None:
    """Each changes what is planned; of a method's settings, too."""
    base = [*PLANNED[:-2], "--force", "--output", "p.json"]
    shell.good(
        *base, "--method", "equalised", "--setting", "error=150", "--setting", "tick_bits=16"
    )
    shell.good(*PLANNED, "--json")
    plan = shoal.Plan.load("p.json")
    assert (plan.method, plan.lattice.bits) == ("equalised", 16)
    assert plan.worst_case_error.max() <= 150
    shell.good(*base, "--epsilon", "0.1", "--min-users", "2", "--setting", "uninformative=keep",
               "--setting", "min_records=500", "--missing", "public")  # fmt: skip
    request = shoal.Plan.load("p.json").request
    assert (request.uninformative, request.min_records, request.min_users) == ("keep", 500, 2)
    shell.good(*base, "--epsilon", "1", "--max-error", "5%", "--setting", "range=loose",
               "--statistic", "mean", "--objective", "typical", "--picture", "p.png")  # fmt: skip
    request = shoal.Plan.load("p.json").request
    assert (request.max_error, request.range, request.objective) == ("5%", "loose", "typical")
    assert Path("p.png").read_bytes().startswith(b"\x89PNG")
    shell.good(*base, "--epsilon", "1", "--method", "optimal", "--setting", "targets=balanced")
    assert shoal.Plan.load("p.json").decision.method.settings["targets"] == "balanced"
    assert "epsilon=" in shell.good(*base, "--epsilon", "0.1", "--advice")


def test_methods_are_compared(shell: Shell) -> None:
    """Typical errors for one epsilon, the frontier for several: whatever the values are."""
    ranked = shell.good(*COMPARE, "--setting", "repetitions=3", "--setting", "deviation=50",
                        "--setting", "between=0.5", "--setting", "apart=20")  # fmt: skip
    assert "standard deviation 50, 0.5 of the variance between users" in ranked.replace("\n  ", " ")
    shell.good(*COMPARE, "--setting", "repetitions=2", "--json")
    counted = ["compare", "counts.json", "--bounds", 0, 700, "--epsilon", 1, "--epsilon", 2]
    several = [*counted, "--method", "balanced", "--method", "uniform"]
    said = shell.good(*several, "--picture", "f.png")
    assert said.startswith("4 cells, mean, bounds [0, 700]; errors over the width")
    assert Path("f.png").read_bytes().startswith(b"\x89PNG")
    rows = json.loads(shell.good(*several, "--json"))["rows"]
    assert [(row["method"], row["epsilon"]) for row in rows[:4]] == [
        (method, loss) for method in ("balanced", "uniform") for loss in (1, 2)
    ]
    assert "variance" in shell.good(*several, "--statistic", "variance")


def test_a_renamed_column_is_still_the_ledgers_unit(shell: Shell) -> None:
    """The same aircraft under another column's name, said with --privacy-unit."""
    table = flights.table()
    names = ["vehicle" if name == "aircraft" else name for name in table.column_names]
    pq.write_table(table.rename_columns(names), "june.parquet")
    words = ["vehicle" if word == "aircraft" else word for word in PLAN]
    shell.good("plan", "june.parquet", *words, "--output", "june.json")
    june = ("release", "june.parquet", "june.json", "--ledger", "flights.ledger", "--name", "June")
    assert "--privacy-unit 'aircraft'" in shell.bad(*june)
    shell.good(*june, "--privacy-unit", "aircraft", "--manifest", "m.json")
    shell.good("verify", "m.json", "--ledger", "flights.ledger")


def test_intervals_can_be_narrower(shell: Shell) -> None:
    """--confidence changes the table, not the release."""
    shell.good(*RELEASE, "--output", "a.json", "--manifest", "m.json")
    shell.good("show", "m.json", "--output", "b.json", "--confidence", "0.5")
    shell.good("show", "m.json", "--output", "same.json")
    assert Path("same.json").read_bytes() == Path("a.json").read_bytes()
    a, b = (json.loads(Path(f"{name}.json").read_text()) for name in "ab")
    assert [row["place"] for row in a] == ["EWR", "JFK", "LGA", "TEB"]
    assert all(x["value"] == y["value"] for x, y in zip(a, b, strict=True))
    assert sum(y["high"] - y["low"] < x["high"] - x["low"] for x, y in zip(a, b, strict=True)) > 1
    two = ["show", "m.json", "--difference", "EWR", "LGA"]
    assert "EWR minus LGA: " in shell.good(*two)
    found = json.loads(shell.good(*two, "--json"))["difference"]
    assert found["value"] == a[0]["value"] - a[2]["value"]


def test_what_tells_nothing_is_released_only_on_request(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a first release nor the next month charges for noise alone, but for --anyway."""
    monkeypatch.setattr(progress, "_LONG", 600)
    rng = np.random.default_rng(1)
    table = {name: rng.integers(0, most, 3000) for name, most in (("who", 300), ("at", 200))}
    table = pa.table({**table, "v": rng.uniform(20, 40, 3000)})
    for month in ("one", "two"):
        pq.write_table(table.slice(month == "two"), f"{month}.parquet")
    asked = [
        "--counts",
        "public",
        "--user",
        "who",
        "--value",
        "v",
        "--bounds",
        "0",
        "100",
        "--by",
        "at",
    ]
    shell.good("plan", "one.parquet", *asked, "--epsilon", "0.1", "--output", "noise.json")
    shell.good(
        *[
            "ledger",
            "create",
            "who.ledger",
            "--epsilon",
            "1",
            "--counts",
            "public",
            "--privacy-unit",
            "who",
        ]
    )
    release = ["release", "one.parquet", "noise.json", "--ledger", "who.ledger"]
    assert "likely none of 200 cells will be reliable" in shell.bad(*release)
    shell.good(*release, "--manifest", "m.json", "--anyway")
    shell.good(*release)
    following = ["publish", "two.parquet", "--like", "m.json", "--ledger", "who.ledger"]
    assert "--anyway (anyway=True)" in shell.bad(*following, "--name", "two")
    assert len(shoal.Ledger("who.ledger").entries()) == 1
    shell.good(*following, "--name", "two", "--anyway")


def test_the_demo_is_free_the_second_time(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures of the issue, and the same numbers from the ledger. Three seconds of planning."""
    plan, made = shoal.plan, list[shoal.Plan]()
    monkeypatch.setattr(shoal, "plan", lambda *a, **k: made.append(plan(*a, **k)) or made[-1])
    first = shell.run("demo", "--folder", "d")[1]
    monkeypatch.setattr(shoal, "plan", lambda *_, **__: made.pop(0))
    second = shell.run("demo", "--folder", "d")[1]
    assert not made
    assert first.count("drawn now and recorded; manifest verified") == 2
    assert first.replace("drawn now and recorded", "from the ledger, at no cost") == second
    assert len(first.splitlines()) <= 35
    assert max(map(len, first.splitlines())) <= 110
    rows = [line for line in first.splitlines() if line[29:39].strip() in
            ("default", "balanced", "uniform")]  # fmt: skip
    cells = [[part.replace(",", "") for part in row[39:].split()] for row in rows]
    for default, balanced, uniform in (cells[:3], cells[3:]):
        likely = [float(each[0]) for each in (default, balanced, uniform)]
        assert likely[0] < 0.7 * likely[1] < likely[1] < likely[2]
        assert default[1:] == ["-", "-"]
        assert float(balanced[1]) < float(uniform[1]) / 3
        assert float(uniform[2]) == 1 < float(balanced[2])
    assert abs(float(cells[1][1]) / 109.7 - 1) <= 0.005
    assert abs(float(cells[4][1]) / 51.2 - 1) <= 0.005


def test_help_is_fast_and_short(shell: Shell) -> None:
    """It loads no engine, no noise, no arrays; verbs are in the order of their use."""
    code = (
        "import sys; from shoal.cli.main import main; main(sys.argv[1:]);"
        "heavy = {'ibis', 'duckdb', 'opendp', 'numpy', 'pyarrow', 'scipy', 'rich', 'matplotlib'};"
        "sys.exit(bool(heavy & set(sys.modules)))"
    )
    for words in ("--help", "plan --help"):
        command = [sys.executable, "-c", code, *words.split()]
        done = subprocess.run(command, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    listed = shell.good("--help").split("Commands:\n")[1].splitlines()
    verbs = listed[: len(VERBS)]
    assert [line.split()[0] for line in verbs] == [*VERBS]
    assert all(len(line) <= 80 and line.endswith(".") and "..." not in line for line in verbs)
    assert shell.good("plan", "--help").count("\n  --") == 30
    status, out, err = shell.run("ledger")
    assert (status, out, err) == (2, shell.good("ledger", "--help"), "")
    assert shell.good("--version") == f"shoal {version('shoal')}\n"


def test_long_work_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One plain line where there is no terminal, and nothing of short work."""
    monkeypatch.setattr(progress, "_LONG", 0.05)
    with progress.working("short"):
        pass
    with progress.working("counting"):
        time.sleep(0.2)
    assert capsys.readouterr() == ("", "shoal: counting ...\n")
    assert [*progress.bar("quick")([1, 2], 2)] == [1, 2]
    assert capsys.readouterr() == ("", "")
    # A bar takes the place of the work that it is in.
    with progress.working("releasing"):
        for _ in progress.bar("simulating")([1, 2], 2):
            time.sleep(0.1)
    assert capsys.readouterr() == ("", "shoal: simulating ...\n")
