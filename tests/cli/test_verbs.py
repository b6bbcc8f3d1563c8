"""Every verb does its work, and says it."""

import json
import re
import subprocess
import sys
from importlib.metadata import version

import pyarrow.parquet as pq
import pytest

import shoal
from shoal import documents
from tests.cli.conftest import Shell
from tests.support import flights

pytestmark = pytest.mark.unit

NAMELESS = ["release", "flights.parquet", "plan.json", "--ledger", "flights.ledger"]
RELEASE = [*NAMELESS, "--name", "one"]
PLAN = [
    *("--user", "aircraft", "--value", "speed", "--bounds", "0", "700"),
    *("--method", "balanced", "--by", "place"),
]


def test_the_whole_way(shell: Shell) -> None:
    """Plan, release, verify, ledger; the second release is free and the same."""
    first = shell.good(*RELEASE, "--output", "one.csv", "--manifest", "one.json")
    second = shell.good(*RELEASE, "--output", "two.csv", "--manifest", "two.json")
    assert first.startswith("recorded: entry 1")
    assert second.startswith("delivered again from entry 1 of flights.ledger, named 'one', ")
    assert first.splitlines()[1:] == second.splitlines()[1:]
    for name in ("csv", "json"):
        one, two = (shell.folder / f"{n}.{name}" for n in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()
    said = shell.good("verify", "one.json", "--ledger", "flights.ledger")
    assert said.startswith("yes: every claim that can be recomputed holds\n")
    assert re.search(r"recorded in the ledger +ok", said)
    assert "spent 1, left 0.5; 1 releases" in shell.good("ledger", "show", "flights.ledger")
    assert shell.good("ledger", "verify", "flights.ledger").startswith("yes, 1 releases")
    assert "0.5" in shell.bad(*RELEASE, "--name", "another")


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_tables_in_each_format(shell: Shell, ending: str) -> None:
    """The same four rows."""
    shell.good(*RELEASE, "--output", f"table.{ending}")
    path = shell.folder / f"table.{ending}"
    if ending == "parquet":
        places = pq.read_table(path).column("place").to_pylist()
    elif ending == "json":
        places = [row["place"] for row in json.loads(path.read_text())]
    else:
        places = [line.split(",")[0].strip('"') for line in path.read_text().splitlines()[1:]]
    assert places == ["EWR", "JFK", "LGA", "TEB"]


def test_json_is_sorted_and_complete(shell: Shell) -> None:
    """Each verb with --json prints one JSON document."""
    for arguments in (
        ["plan", "flights.parquet", *PLAN, "--epsilon", "1", "--json"],
        [*RELEASE, "--json"],
        ["ledger", "show", "flights.ledger", "--json"],
    ):
        text = shell.good(*arguments)
        document = json.loads(text)
        assert text == json.dumps(document, sort_keys=True, indent=1) + "\n"
    shell.good(*RELEASE, "--manifest", "m.json")
    assert json.loads(shell.good("verify", "m.json", "--json"))["holds"] is True


def test_verify_says_no(shell: Shell) -> None:
    """A changed manifest: status 1, and the check that fails."""
    shell.good(*RELEASE, "--manifest", "m.json")
    path = shell.folder / "m.json"
    document = json.loads(path.read_text())
    document["results"][0]["value"] += 1
    path.write_bytes(documents.canonical_bytes(document))
    status, out, err = shell.run("verify", "m.json", "--ledger", "flights.ledger")
    assert (status, err) == (1, "")
    assert "claims and values follow  NO  value of mean of cell 0" in " ".join(out.split(" "))
    assert re.search(r"recorded in the ledger +NO", out)
    assert out.startswith("NO\n")


def test_plan_options_reach_the_plan(shell: Shell) -> None:
    """Each option changes what is planned."""
    base = ["plan", "flights.parquet", *PLAN, "--force", "--output", "p.json"]
    shell.good(*base, "--error", "150", "--method", "equalised", "--tick-bits", "16")
    plan = shoal.Plan.load("p.json")
    assert plan.method == "equalised"
    assert plan.lattice.bits == 16
    assert plan.worst_case_error.max() <= 150
    shell.good(*base, "--epsilon", "0.1", "--uninformative", "keep", "--min-records", "500")
    plan = shoal.Plan.load("p.json")
    assert "too few records" in plan.status
    assert "no such cell" not in shell.good(*base, "--epsilon", "1", "--rows", "2")
    shell.good(*base, "--epsilon", "1", "--picture", "p.png", "--missing", "public")
    assert (shell.folder / "p.png").read_bytes().startswith(b"\x89PNG")


def test_cells_above_a_largest_error_are_left_out_in_words(shell: Shell) -> None:
    """The plan, and the table of its release, say why and what stands in their place."""
    for most in ("90", "12.85714%"):
        said = shell.good(
            "plan", "flights.parquet", *PLAN, "--epsilon", "1", "--max-error", most,
            "--output", "plan.json", "--force",
        )  # fmt: skip
        assert "error too large (1 cell): needs " in said
    shell.good(*RELEASE, "--output", "one.csv", "--manifest", "one.json")
    text = (shell.folder / "one.csv").read_text()
    assert "error too large" in text
    assert "needs " in text
    assert shell.good("verify", "one.json").startswith("yes: ")
    assert "0%" in shell.bad(
        "plan", "flights.parquet", *PLAN, "--epsilon", "1", "--max-error", "0%"
    )


def test_intervals_can_be_wider(shell: Shell) -> None:
    """--confidence changes the table, not the release."""
    shell.good(*RELEASE, "--output", "a.json")
    shell.good(*RELEASE, "--output", "b.json", "--confidence", "0.5")
    a, b = (json.loads((shell.folder / f"{n}.json").read_text()) for n in "ab")
    assert all(x["value"] == y["value"] for x, y in zip(a, b, strict=True))
    # An interval that misses the bounds altogether says nothing: it becomes all of them.
    told = [(x, y) for x, y in zip(a, b, strict=True) if y["high"] - y["low"] < 700]
    assert told
    assert all(x["low"] <= y["low"] <= y["high"] <= x["high"] for x, y in told)


def test_the_demo_is_free_the_second_time(shell: Shell) -> None:
    """Done when 1 and 2: figures of the issue, and the same numbers from the ledger."""
    first = shell.good("demo", "--folder", "d")
    second = shell.good("demo", "--folder", "d")
    assert first.count("drawn now and recorded; manifest verified") == 2
    assert second.count("from the ledger, at no cost; manifest verified") == 2
    assert first.replace("drawn now and recorded", "from the ledger, at no cost") == second
    assert len(first.splitlines()) <= 30
    assert max(map(len, first.splitlines())) <= 100
    rows = [line for line in first.splitlines() if line[29:39].strip() in
            ("default", "balanced", "uniform")]  # fmt: skip
    cells = [[part.replace(",", "") for part in row[39:].split()] for row in rows]
    for default, balanced, uniform in (cells[:3], cells[3:]):
        likely = [float(each[0]) for each in (default, balanced, uniform)]
        assert likely[0] < 0.7 * likely[1] < likely[1] < likely[2]
        assert default[1:] == ["-", "-"]
        assert float(balanced[1]) < float(uniform[1]) / 3
        assert float(uniform[2]) == 1 < float(balanced[2])
    assert abs(float(cells[1][1]) / 111.3 - 1) <= 0.005
    assert abs(float(cells[4][1]) / 51.2 - 1) <= 0.005


def test_the_command_line_starts_without_the_heavy_libraries() -> None:
    """Help loads no engine, no noise, no arrays."""
    code = (
        "import sys; from shoal.cli.main import main; main(['plan', '--help']);"
        "heavy = {'ibis', 'duckdb', 'opendp', 'numpy', 'pyarrow', 'scipy', 'pandas', 'matplotlib'};"
        "sys.exit(bool(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


FRONTIER = ["plan", "flights.parquet", *PLAN, "--epsilon", "1", "--force", "--frontier", "f.png"]
VERSUS = ["--versus", "balanced", "--versus", "uniform"]


def test_the_frontier_is_printed_and_drawn(shell: Shell) -> None:
    """One row a method and loss, as text and as JSON; the plan is saved all the same."""
    said = shell.good(*FRONTIER, *VERSUS, "--output", "p.json")
    assert said.startswith("4 cells, mean, bounds [0, 700]; errors over the width")
    assert "worst-case error, median cell" in said
    assert (shell.folder / "f.png").read_bytes().startswith(b"\x89PNG")
    assert shoal.Plan.load("p.json").method == "balanced"
    text = shell.good(*FRONTIER, *VERSUS, "--json")
    document = json.loads(text)
    assert text == json.dumps(document, sort_keys=True, indent=1) + "\n"
    assert len(document["rows"]) == 7 * 3
    assert {row["method"] for row in document["rows"]} == {
        "balanced", "uniform", "lower bound, each cell alone"
    }  # fmt: skip
    assert [row["epsilon"] for row in document["rows"][:7]] == [0.125, 0.25, 0.5, 1, 2, 4, 8]


def test_the_frontier_is_the_same_whatever_the_values_are(shell: Shell) -> None:
    """Only counts decide: another value in every record, the same bytes."""
    first = shell.good(*FRONTIER, *VERSUS)
    table = pq.read_table("flights.parquet")
    other = [(row * 37) % 700 + 0.5 for row in range(table.num_rows)]
    pq.write_table(table.set_column(2, "speed", [other]), "flights.parquet")
    assert shell.good(*FRONTIER, *VERSUS) == first


def test_a_bad_frontier_is_refused_before_the_records_are_read(shell: Shell) -> None:
    """Another ending, no folder, methods without a picture; then an unknown method."""
    missing = ["plan", "no.parquet", *PLAN, "--epsilon", "1"]
    assert "ends in .png" in shell.bad(*missing, "--frontier", "f.gif")
    assert "cannot be written" in shell.bad(*missing, "--frontier", "no/f.png")
    assert "--versus without --frontier" in shell.bad(*missing, "--versus", "balanced")
    assert "method is 'best'" in shell.bad(*FRONTIER, "--versus", "best")


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        ([], "neither epsilon nor error"),
        (["--epsilon", "abc"], "epsilon is 'abc'"),
        (["--epsilon", "1", "--error", "5"], "both epsilon and error"),
    ],
)
def test_a_bad_loss_is_refused_before_the_records_are_read(
    shell: Shell, loss: list[str], told: str
) -> None:
    """Of a file that is not there, so that it cannot have been read."""
    assert told in shell.bad("plan", "no.parquet", *PLAN, *loss)


def test_a_ledger_shows_its_unit_names_and_sums(shell: Shell) -> None:
    """In text and JSON; another unit is refused in one line."""
    shell.good(*NAMELESS, "--name", "2013-05")
    text = shell.good("ledger", "show", "flights.ledger")
    assert text.startswith("protects all values of one aircraft\n")
    head, row = (line.split("  ") for line in text.splitlines()[2:4])
    assert [part.strip() for part in head if part] == [
        "entry", "kind", "epsilon", "sum", "recorded at (UTC)", "question", "name",
    ]  # fmt: skip
    assert [part.strip() for part in row if part][:4] == ["1", "cells", "1", "1"]
    assert row[-1] == "2013-05"
    shown = json.loads(shell.good("ledger", "show", "flights.ledger", "--json"))
    assert shown["unit"] == "aircraft"
    assert [(entry["kind"], entry["name"]) for entry in shown["entries"]] == [("cells", "2013-05")]
    assert shown["entries"][0]["spent"] == shown["spent"]
    shell.good("ledger", "create", "rows.ledger", "--epsilon", "9", "--unit", "each row")
    refused = shell.bad("release", "flights.parquet", "plan.json", "--ledger", "rows.ledger")
    assert "this ledger protects: the values of one row" in refused


def test_a_renamed_column_is_still_the_ledgers_unit(shell: Shell) -> None:
    """The same aircraft under another column's name, said with --privacy-unit."""
    shell.good(*NAMELESS, "--name", "2013-05")
    table = flights.table()
    names = ["vehicle" if name == "aircraft" else name for name in table.column_names]
    pq.write_table(table.rename_columns(names), "june.parquet")
    words = ["vehicle" if word == "aircraft" else word for word in PLAN]
    shell.good("plan", "june.parquet", *words, "--epsilon", "0.25", "--output", "june.json")
    june = ("release", "june.parquet", "june.json", "--ledger", "flights.ledger", "--name", "June")
    assert "--privacy-unit 'aircraft'" in shell.bad(*june)
    said = shell.good(*june, "--privacy-unit", "aircraft", "--manifest", "june-m.json")
    assert said.startswith("recorded: entry 2 of flights.ledger, named 'June', epsilon 0.25")
    shell.good("verify", "june-m.json", "--ledger", "flights.ledger")
    shown = json.loads(shell.good("ledger", "show", "flights.ledger", "--json"))
    assert (shown["unit"], len(shown["entries"])) == ("aircraft", 2)


def test_what_is_delivered_again_says_when_it_was_recorded(shell: Shell) -> None:
    """The line says entry, name, date and cost; the records must still be there."""
    shell.good(*NAMELESS)
    said = shell.good(*NAMELESS, "--output", "t.csv").splitlines()[0]
    assert said.startswith("delivered again from entry 1 of flights.ledger, without a name, reco")
    assert said.endswith("nothing was charged")
    assert (shell.folder / "t.csv").exists()
    assert "' 2013-05'" in shell.bad(*NAMELESS, "--name", " 2013-05")
    (shell.folder / "flights.parquet").unlink()
    assert "flights.parquet" in shell.bad(*NAMELESS)


@pytest.mark.parametrize("verbs", [[], ["ledger"], ["trial"]])
def test_nothing_asked_for_is_answered_with_the_help(shell: Shell, verbs: list[str]) -> None:
    """On standard output and laid out, with the status of a call that did nothing."""
    status, out, err = shell.run(*verbs)
    assert (status, err) == (2, "")
    assert out == shell.good(*verbs, "--help")
    assert len(out.splitlines()) > 5


def test_the_version_is_told(shell: Shell) -> None:
    """One line, that of the installed package."""
    assert shell.good("--version") == f"shoal {version('shoal')}\n"


def test_the_ledger_bench_prints_ratios(shell: Shell) -> None:
    """Histories and crowds."""
    said = shell.good(
        "bench", "ledger", "--entries", 2, "--entries", 20, "--processes", 1, "--processes", 3,
        "--charges", 6, "--seconds", 0.1, "--rounds", 1,
    ).splitlines()  # fmt: skip
    assert [line.split(": ")[0].strip() for line in said] == [
        "2 entries", "20 entries", "1 processes", "3 processes",
    ]  # fmt: skip
    assert all(" a second" in line for line in said)
