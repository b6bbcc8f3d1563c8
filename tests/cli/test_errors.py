"""Whatever is wrong is one line, status 2: nothing spent, nothing written, no value shown."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from shoal import documents
from shoal.errors import MissingPartError
from tests.cli.conftest import ASK, MEAN, PLAN, RELEASES, TRIAL, Shell
from tests.support import flights
from tests.support.loop import loop_over

RELEASE, ANSWER = RELEASES["cells"], RELEASES["questions"]
PLANNED = ["plan", "flights.parquet", *PLAN]
MEDIANS = [*PLANNED, "--statistic", "median"]
CREATED = ["--privacy-unit", "a", "--counts", "public"]
COMPARE = ["compare", "flights.parquet", *PLAN]
TABLE = [*TRIAL, "--mechanism", "best_table"]
PRIOR = [*TRIAL, "--mechanism", "cluster_prior"]
USERS = ["mean", "plan", "--users", "9", "--epsilon", "1", "--size", "1"]
FEW = settings(
    deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def put(words: list[str], option: str, value: str) -> list[str]:
    """The words with another value of an option."""
    return [*words[: words.index(option) + 1], value, *words[words.index(option) + 2 :]]


@loop_over(
    ("arguments", "message"),
    [
        (["plan"], "Missing argument"),
        (["plan", "flights.parquet"], "Missing option"),
        ([*PLANNED, "--setting", "error=5"], "epsilon and error are both given"),
        ([*PLANNED, "--setting", "cap"], "the setting 'cap'"),
        ([*PLANNED, "--setting", "cap=1"], "settings need a method"),
        (["plan", "a.csv", "b.csv", *PLAN], "one pattern in quotes, such as 'trips/*.csv'"),
        ([*PLANNED, "--output", "no/p.json"], "there is no folder 'no'; make it"),
        ([*PLANNED, "--picture", "p.txt"], "a picture is named 'p.txt'"),
        (put(PLANNED, "--bounds", "0,700"), "needs two numbers; give the lower and the upper"),
        (["mean", "plan", "--interval", "0"], "--interval needs two numbers"),
        (["compare", "flights.parquet", "--bounds", "0", "7"], "--value or --by is missing"),
        ([*COMPARE, "--delta", "1e-9"], "only with several values of epsilon"),
        ([*COMPARE, "--epsilon", "2", "--picture", "f.gif"], "ends in .png"),
        (["release", "flights.parquet", "plan.json"], "Missing option '--ledger'"),
        ([*RELEASE[:2], "gone.json", *RELEASE[3:]], "gone.json"),
        ([*RELEASE[:2], "counts.json", *RELEASE[3:]], "not of the schema"),
        (put(RELEASE, "--ledger", "gone.ledger"), "gone.ledger"),
        ([*RELEASE, "--name", "\udcff"], "release name"),
        ([*RELEASE, "--manifest", "/dev/null/x.json"], "'/dev/null' is no folder"),
        ([*RELEASES["table"], "--confidence", "1"], "above 0 and below 1"),
        ([*ANSWER, "--confidence", "0.5"], "confidence is 0.5"),
        ([*RELEASES["mean"], "--picture", "m.png"], "do not work with a mean"),
        (["ledger", "create", "no/a.ledger", "--epsilon", "1", *CREATED], "no folder 'no'"),
        ([*MEDIANS, "--output", "m.json", "--picture", "m.png"], "have a picture"),
        (["show"], "exactly one of a manifest and a ledger"),
        (["show", "visits.csv"], "is not JSON"),
        (["show", "--ledger", "flights.ledger"], "0 entries"),
        (["publish", "flights.parquet", "--like", "table.json", *RELEASE[3:], "--name", "a"], "a"),
        (["verify", "plan.json"], "shoal.manifest/9: it is a plan; "),
        (["ledger", "create", "flights.ledger", "--epsilon", "1", *CREATED], "flights.ledger"),
        (["ledger", "show", "plan.json"], "plan.json"),
        (["demo", "--folder", "plan.json"], "exists"),
        (["trial", "plan", "--bogus"], "Try `shoal trial plan --help`."),
        (["trial", "plan"], "not clear how many units"),
        (["trial", "plan", "--units", "10", "--output", "p.json"], "a forecast cannot be saved"),
        ([*TRIAL, "--missing", "ignore"], "missing is not usable"),
        (put(TABLE, "--outcome", ""), "--mechanism needs DATA"),
        (put(TABLE, "--unit", "city"), "names of units occur in several rows"),
        ([*TABLE, "--domain", "fog"], "no domain 'fog'"),
        ([*TABLE, "--setting", "magic=1"], "no setting 'magic'"),
        (PRIOR, "cluster_prior lacks its floor or noise"),
        ([*PRIOR, "--setting", "floor=0.1", "--setting", "noise=x"], "noise"),
        ([*TRIAL, "--mechanism", "histogram", "--delta", "0.1"], "takes no levels and no"),
        (ASK, "no question is asked"),
        ([*ASK, "--ols", "arm + "], "the regression 'arm + '"),
        ([*ASK, "--ols", "bought ~ arm"], "columns without the outcome"),
        ([*USERS, "--user", "person"], "not clear how many users"),
        ([*USERS, "--order", "2", "--order", "4"], "2 orders and 1 sizes"),
        ([*USERS, "--output", "p.json"], "needs --value"),
        ([*MEAN, "--missing", "drop"], "missing is not usable"),
        (["bench", "noise", "--numbers", "9" * 30], "'--numbers'"),
    ],
)
def test_one_line_and_nothing_spent(shell: Shell, arguments: list[str], message: str) -> None:
    """What is wrong and what to do; files and ledgers as before."""
    assert message in shell.bad(*arguments)


@loop_over("word", ["x" * 300_000, "\u202eabc", "\x1b[31m", "9" * 5000])
def test_what_was_typed_is_said_shortly(shell: Shell, word: str) -> None:
    """A message repeats no more of an odd word than anyone reads, and no controls."""
    for arguments in ([word], ["ledger", "show", "flights.ledger", word], ["verify", f"--{word}"]):
        line = shell.bad(*arguments)
        assert len(line) < 2200
        assert line.removesuffix("\n").isprintable()
        assert line.endswith(" --help`.\n")


@loop_over("spelling", ["minutes", "MINUTES"])
@loop_over("option", ["--arm", "--cluster", "--user"])
def test_no_private_column_in_a_public_role(shell: Shell, option: str, spelling: str) -> None:
    """By any spelling of its name: it would be published as it is."""
    trial = put([*TRIAL, "--user", "person"], "--outcome", "minutes")
    role = option.removeprefix("--")
    for words in (
        [*trial, "--mechanism", "best_table"],
        [*put(ASK, "--outcome", "minutes"), "--means"],
    ):
        assert f"the outcome column 'minutes' is also given as {role}" in shell.bad(
            *put(words, option, spelling)
        )
    assert "as assigned" in shell.bad(
        *put(ASK, "--outcome", "class"), "--means", "--assigned", "class"
    )
    assert "as covariate" in shell.bad(*ASK, "--ols", "bought")
    assert "the value column 'minutes' is also given as user" in shell.bad(
        *put(MEAN, "--user", spelling)
    )
    for verb in ("plan", "compare"):
        words = [verb, "flights.parquet", *PLAN]
        told = "the value column 'speed' is also given as "
        assert f"{told}user" in shell.bad(*put(words, "--user", "SPEED"))
        for rule in ("speed", "hour_of_day(SPEED)", "hexagon(place,speed,7)"):
            assert f"{told}cell" in shell.bad(*put(words, "--by", rule))


@pytest.mark.parametrize(
    ("plan", "part", "name", "given", "said"),
    [
        ("plan", "records", "user", "speed", "the value column 'speed' is also given as user"),
        ("plan", "records", "cell", ["place", "SPEED"], "'speed' is also given as cell"),
        ("table", "source", "value", "ARM", "the outcome column 'ARM' is also given as arm"),
        ("table", "source", "cluster", "zone", "differ from those planned"),
        ("asked", "source", "value", "far", "as covariate far"),
        ("asked", "source", "value", "liked", "holds text"),
        ("mean", "source", "value", "person", "the value column 'person' is also given as user"),
        ("mean", "source", "user", "city", "numbers of records of"),
        ("mean", "source", "more", "city", "damaged, was changed by hand"),
        ("plan", "decision", "bits", 9, "damaged or was changed by hand"),
        ("table", "", "source", None, "does not name the columns"),
        ("mean", "", "source", None, "does not name the columns"),
    ],
)  # fmt: skip
def test_plans_changed_by_hand(
    shell: Shell, plan: str, part: str, name: str, given: Any, said: str
) -> None:
    """Another column in a role, or less noise: nothing is carried out."""
    document = json.loads(Path(f"{plan}.json").read_text())
    (document[part] if part else document)[name] = given
    Path(f"{plan}.json").write_bytes(documents.canonical_bytes(document))
    data, ledger = (
        ("flights.parquet", "flights.ledger") if plan == "plan" else ("visits.csv", "visits.ledger")
    )
    assert said in shell.bad("release", data, f"{plan}.json", "--ledger", ledger)


@pytest.mark.parametrize("family", RELEASES)
def test_a_wrong_name_is_asked_about(shell: Shell, family: str) -> None:
    """A column of another name, with the nearest one, and a file that is not there."""
    release, name = RELEASES[family], {"cells": "speed", "mean": "minutes"}.get(family, "bought")
    table = flights.table() if family == "cells" else pcsv.read_csv("visits.csv")
    others = [f"{each}s" if each == name else each for each in table.column_names]
    pq.write_table(table.rename_columns(others), "odd.parquet")
    line = shell.bad("release", "odd.parquet", *release[2:])
    assert f"no column '{name}' in 'odd.parquet' (did you mean '{name}s'?)" in line
    assert "no file of records at 'gone/*.csv'" in shell.bad("release", "gone/*.csv", *release[2:])


@pytest.mark.parametrize("kind", ["pattern", "folder"])
def test_several_files_are_planned_and_released(shell: Shell, kind: str) -> None:
    """The plan of one file is that of its parts, and is carried out on them."""
    table = flights.table()
    Path("trips").mkdir()
    half = table.num_rows // 2
    for name, part in (("b", table.slice(0, half)), ("a", table.slice(half))):
        pq.write_table(part, f"trips/{name}.parquet")
    data = {"pattern": "trips/*.parquet", "folder": "trips"}[kind]
    shell.good("plan", data, *PLAN, "--method", "balanced", "--output", "parts.json")
    assert Path("parts.json").read_bytes() == Path("plan.json").read_bytes()
    inside = ["--output", f"trips/c.{'csv' if kind == 'folder' else 'parquet'}", "--force"]
    assert "is the input DATA" in shell.bad("release", data, *RELEASE[2:], *inside)
    shell.good("release", data, *RELEASE[2:], "--output", "speeds.csv")


def test_an_edited_manifest_is_said_to_be_changed(shell: Shell) -> None:
    """Saved again by an editor, or with a part of another type."""
    shell.good(*RELEASE, "--manifest", "true.json")
    true = json.loads(Path("true.json").read_text())
    Path("edited.json").write_text(json.dumps(true, indent=2))
    text = documents.canonical_bytes({**true, "confidence": "95%"})
    Path("text.json").write_bytes(text)
    for verb in ("verify", "show"):
        assert "may have been changed" in shell.bad(verb, "edited.json")
    assert "changed" in shell.bad("verify", "text.json")


@given(
    junk=st.binary(max_size=300),
    name=st.sampled_from(["plan.json", "m.json", "r.csv", "r.parquet", "x.ledger"]),
)
@FEW
def test_junk_files_never_give_a_traceback(shell: Shell, junk: bytes, name: str) -> None:
    """Random bytes as plan, manifest, records or ledger."""
    path = shell.folder / f"junk-{name}"
    path.write_bytes(junk)
    shell.bad(*{
        "plan.json": ["release", "flights.parquet", path, "--ledger", "flights.ledger"],
        "m.json": ["show", path],
        "r.csv": ["plan", path, *PLAN],
        "r.parquet": ["plan", path, *PLAN],
        "x.ledger": ["ledger", "show", path],
    }[name])  # fmt: skip


@given(words=st.lists(st.sampled_from(
    ["plan", "release", "show", "ledger", "trial", "ask", "--epsilon", "--bounds", "1", "-1", "",
     "flights.parquet", "plan.json", "--by", "place", "--json", "--arm", "\x00", "é", "--", "-",
     "--domain", "counts:0:" + "9" * 5000, "9" * 5000, "nan", "--setting", "noise=nan"]
), max_size=9))  # fmt: skip
@FEW
def test_random_options_never_give_a_traceback(shell: Shell, words: list[str]) -> None:
    """Words in any order."""
    status, _, err = shell.run(*words)
    assert status in (0, 1, 2)
    assert "please report" not in err


def test_an_unforeseen_end_shows_only_its_kind(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text of an exception could hold a value, and by then a verb may have charged."""
    ends = {RuntimeError: "unexpected RuntimeError; please report it", KeyboardInterrupt: "interr"}
    for kind, said in ends.items():

        def fail(*_: object, **__: object) -> None:
            raise kind("431.56789")  # noqa: B023

        monkeypatch.setattr("shoal.cells.plan.Plan.deliver", fail)
        status, _, err = shell.run(*RELEASE)
        assert (status, "431" in err, err.count("\n")) == (2, False, 1)
        assert said in err
        assert "repeat the command: a release that a ledger has recorded costs nothing." in err


@pytest.mark.usefixtures("shell")
def test_a_full_disk_is_one_line() -> None:
    """No room for the ledger's journal or the output: status 2, the ledger still holds."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "from shoal.cli.main import main; import shoal.cells.plan, opendp.prelude, ibis, duckdb;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *RELEASE], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    book = shoal.Ledger("flights.ledger")
    book.verify()
    assert book.entries() == []


def test_the_verdict_is_the_status_whoever_reads(shell: Shell) -> None:
    """A reader that goes away is no error, and changes no verdict; odd names are escaped."""
    shell.good(*RELEASE, "--record", "bad.json", "--name", "é")
    bad = json.loads(Path("bad.json").read_text())
    bad["plan"]["claims"]["worst_case_error"][0] /= 2
    Path("bad.json").write_bytes(documents.canonical_bytes(bad))
    for words, wanted in ((["verify", "bad.json"], 1), ([*RELEASE, "--name", "é"], 0)):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run(
            [sys.executable, "-m", "shoal", *words], stdout=write, stderr=subprocess.PIPE,
            check=False, env={**os.environ, "PYTHONIOENCODING": "ascii:strict"},
        )  # fmt: skip
        os.close(write)
        # On a busy machine all work is long, which is said.
        assert (done.returncode, done.stderr.replace(b" ...\n", b"").count(b"\n")) == (wanted, 0)


def test_a_matplotlib_that_cannot_draw_is_refused_before_the_charge(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Python, by the verbs with pictures, and by the demo."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingPartError, match="pictures need matplotlib"):
        shoal.picture(shoal.Plan.load("plan.json"), "p.png")
    assert "pictures need matplotlib" in shell.bad(*RELEASE, "--picture", "p.png")
    assert "pictures need matplotlib" in shell.bad("demo", "--folder", "new")
