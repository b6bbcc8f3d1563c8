"""Bad input: one line, status 2, nothing spent, nothing written, no value shown."""

import json
import os
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from shoal import documents
from tests.cli.conftest import Shell
from tests.support import flights
from tests.support.changed import change
from tests.support.loop import loop_over

pytestmark = pytest.mark.audit

CANARY = 431.56789
PLAN = [
    *("--user", "aircraft", "--value", "speed", "--bounds", "0", "700"),
    *("--method", "balanced", "--by", "place"),
]
RELEASE = ["release", "flights.parquet", "plan.json", "--ledger", "flights.ledger"]


@loop_over(
    ("arguments", "message"),
    [
        ([], "Usage|command"),
        (["fly"], "No such command 'fly'"),
        (["plan"], "Missing argument"),
        (["plan", "flights.parquet"], "Missing option"),
        (["plan", "flights.parquet", *PLAN], "neither epsilon nor error"),
        (["plan", "flights.parquet", *PLAN, "--epsilon", "0"], "epsilon is 0|epsilon is '0'"),
        (["plan", "flights.parquet", *PLAN, "--epsilon", "1e999999999"], "epsilon is"),
        (["plan", "flights.parquet", *PLAN, "--epsilon", "much"], "epsilon is"),
        (["plan", "flights.parquet", *PLAN, "--epsilon", "1e16"], "epsilon is '1e16'"),
        (
            ["plan", "flights.parquet", *PLAN, "--epsilon", "1", "--tick-bits", "1" + "0" * 12],
            "tick bits",
        ),
        ([*RELEASE, "--name", "\udcff"], "release name"),
        (["plan", "flights.parquet", *PLAN, "--epsilon", "1", "--method", "x"], "method is 'x'"),
        ([*RELEASE, "--rows", "9" * 20], "--rows"),
        (["plan", "flights.parquet", *PLAN, "--epsilon", "1", "--nope"], "No such option"),
        (["plan", "flights.parquet", *PLAN, "--epsilon", "0.0001"], "without a single cell"),
        (["plan", "gone.parquet", *PLAN, "--epsilon", "1"], "no file of records at 'gone.parquet'"),
        (["plan", "plan.json", *PLAN, "--epsilon", "1"], "a file that ends in"),
        (["plan", "flights.parquet", *PLAN[:-1], "dest", "--epsilon", "1"], "no column 'dest'"),
        (
            ["plan", "flights.parquet", *PLAN, "--epsilon", "1", "--output", "no/p.json"],
            "cannot be written",
        ),
        (
            ["plan", "flights.parquet", *PLAN, "--epsilon", "1", "--picture", "p.txt"],
            "a picture named 'p.txt'",
        ),
        (["release", "flights.parquet", "plan.json"], "Missing option '--ledger'"),
        (["release", "flights.parquet", "gone.json", "--ledger", "flights.ledger"], "gone.json"),
        (["release", "flights.parquet", "plan.json", "--ledger", "gone.ledger"], "gone.ledger"),
        (["release", "flights.parquet", "plan.json", "--ledger", "plan.json"], "plan.json"),
        (["release", "flights.parquet", "flights.ledger", "--ledger", "flights.ledger"], "plan"),
        ([*RELEASE, "--output", "table.xlsx"], "table.xlsx"),
        ([*RELEASE, "--confidence", "1e-17"], "confidence is 1e-17"),
        (["verify", "gone.json"], "gone.json"),
        (["verify", "plan.json"], "not of the schema"),
        (["ledger", "create", "flights.ledger", "--epsilon", "1", "--unit", "a"], "flights.ledger"),
        (["ledger", "create", "new.ledger", "--epsilon", "0", "--unit", "a"], "epsilon is"),
        (
            ["ledger", "create", "new.ledger", "--epsilon", "1", "--unit", "a", "--delta", "2"],
            "delta is",
        ),
        (["ledger", "show", "plan.json"], "plan.json"),
        (["ledger", "verify", "gone.ledger"], "gone.ledger"),
        (["ledger", "verify", "flights.ledger", "--head", "f" * 64], "head"),
        (["demo", "--folder", "plan.json"], "plan.json|exists"),
        (["bench", "noise", "--numbers", "9" * 30], "'--numbers'"),
        (["bench", "plan", "--tolerance", "nan"], "'--tolerance'"),
        (["bench", "ledger", "--seconds", "nan"], "'--seconds'"),
        (["study", "run", "all", "--workers", "9" * 30], "'--workers'"),
    ],
)
def test_one_line_and_nothing_spent(shell: Shell, arguments: list[str], message: str) -> None:
    """Got, allowed, next step; files and ledger as before."""
    before = {path.name: path.read_bytes() for path in shell.folder.iterdir()}
    if not arguments:
        assert shell.run()[0] in (0, 2)
        return
    line = shell.bad(*arguments)
    assert any(part in line for part in message.split("|")), line
    assert {path.name: path.read_bytes() for path in shell.folder.iterdir()} == before


@loop_over("word", ["x" * 300_000, "\u202eabc", "\x1b[31m", "9" * 5000])
def test_what_was_typed_is_said_shortly(shell: Shell, word: str) -> None:
    """A message repeats no more of an odd word than anyone reads, and no controls."""
    for arguments in ([word], ["ledger", "show", "flights.ledger", word], ["verify", f"--{word}"]):
        line = shell.bad(*arguments)
        assert len(line) < 2200
        assert line.removesuffix("\n").isprintable()
        assert line.endswith(" --help`.\n")


@loop_over(
    ("typed", "told"),
    [
        (["--bounds", "0,700"], "write --bounds 0 700."),
        (["--bounds=0,700"], "write --bounds 0 700."),
        (["--bounds", "[-1.5;", "1e3]"], "write --bounds -1.5 1e3."),
        (["--bounds", "0 700"], "write --bounds 0 700."),
        (["--bounds", "0"], "give for example --bounds 0 100."),
        (["--bounds", "0", "--user", "a"], "give for example --bounds 0 100."),
        (["--bounds", "low", "high"], "give for example --bounds 0 100."),
    ],
)
def test_two_numbers_typed_as_one(shell: Shell, typed: list[str], told: str) -> None:
    """The message says how they are written, for every option of two numbers."""
    line = shell.bad("plan", "flights.parquet", "--value", "speed", *typed)
    assert line.endswith(f"allowed: two numbers, a space between them; {told}\n")
    interval = [each.replace("bounds", "interval") for each in typed]
    line = shell.bad("unbiased", "plan", "--users", "100", *interval)
    assert line.endswith(told.replace("bounds", "interval") + "\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["verify", "flights.ledger"],
        ["verify", "flights.ledger", "--ledger", "flights.ledger"],
        ["release", "flights.parquet", "flights.ledger", "--ledger", "flights.ledger"],
    ],
)
def test_a_ledger_in_the_place_of_a_document(shell: Shell, arguments: list[str]) -> None:
    """The line says what it is, and which command reads it."""
    line = shell.bad(*arguments)
    assert "'flights.ledger' is a ledger; allowed: a " in line
    assert "`shoal ledger show LEDGER`" in line
    assert "`shoal verify MANIFEST --ledger LEDGER`" in line


def test_an_edited_manifest_is_said_to_be_changed(shell: Shell) -> None:
    """Saved again by an editor, with a part more or with one of another type."""
    shell.good(*RELEASE, "--output", "speeds.csv", "--manifest", "true.json")
    true = json.loads((shell.folder / "true.json").read_text())
    edited = {
        "indented": json.dumps(true, indent=2).encode(),
        "more": documents.canonical_bytes({**true, "note": "checked"}),
        "text": documents.canonical_bytes({**true, "confidence": "95%"}),
        "range": documents.canonical_bytes(
            {**true, "plan": {**true["plan"], "bounds": [7.0, 0.0]}}
        ),
    }
    for name, text in edited.items():
        (shell.folder / f"{name}.json").write_bytes(text)
        assert "may have been changed" in shell.bad("verify", f"{name}.json")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no columns in the first line of 'flights.csv', which is empty; give a CSV file"),
        ("", "in Latin-1, as Windows or Excel may write it, becomes one by iconv"),
        ("\n", "no columns in the first line of 'flights.csv'; give a CSV file"),
        ("aircraft,place,speed\n", "no records in 'flights.csv'"),
    ],
)
def test_an_empty_csv_file_is_one_line(shell: Shell, text: str, told: str) -> None:
    """A file without a line, or without a record."""
    (shell.folder / "flights.csv").write_text(text)
    assert told in shell.bad("plan", "flights.csv", *PLAN, "--epsilon", "1")


@pytest.mark.parametrize(("mark", "called"), [(";", "semicolons"), ("\t", "tabs")])
def test_a_csv_file_without_commas_is_said_to_be_one(shell: Shell, mark: str, called: str) -> None:
    """What seems to be between the columns, and no name of the first line."""
    (shell.folder / "trips.csv").write_text(f"Driver{mark}Fare{mark}Zone\nann{mark}5{mark}a\n")
    found = shell.bad("plan", "trips.csv", "--user", "Driver", "--value", "Fare", "--bounds", "0",
                        "9", "--by", "Zone", "--epsilon", "1")  # fmt: skip
    assert f"seems to be separated by {called}" in found
    assert "ann" not in found


def test_a_plan_is_no_manifest(shell: Shell) -> None:
    """Verify says what it was given instead."""
    found = shell.bad("verify", "plan.json")
    assert "shoal.manifest/6: it is a plan; " in found


def test_records_that_changed_since_the_plan(shell: Shell) -> None:
    """Another occupancy is refused, and the value at fault is not shown."""
    table = flights.neighbour(flights.table(), "N003", CANARY)
    pq.write_table(table.slice(1), "flights.parquet")
    line = shell.bad(*RELEASE)
    assert "records whose public counts are not the plan's" in line
    assert str(CANARY) not in line
    assert shoal.Ledger("flights.ledger").entries() == []


@pytest.mark.parametrize(
    "bad", [None, float("nan"), float("inf"), -float("inf")], ids=["null", "nan", "inf", "-inf"]
)
def test_missing_values_cost_nothing(shell: Shell, bad: float | None) -> None:
    """A value that is missing is refused before anything is drawn."""
    table = flights.table()
    speeds = [bad, *table.column("speed").to_pylist()[1:]]
    pq.write_table(table.set_column(2, "speed", pa.array(speeds, pa.float64())), "flights.parquet")
    assert "null, NaN or infinite in the column 'speed'" in shell.bad(*RELEASE)
    assert shoal.Ledger("flights.ledger").entries() == []


def test_a_plan_with_less_noise_is_refused(shell: Shell) -> None:
    """Halving the noise in the file is noticed before any value is read."""
    document = json.loads((shell.folder / "plan.json").read_text())
    chosen = document["decision"]
    chosen["scale"] = [b / 2 for b in chosen["scale"]]
    (shell.folder / "plan.json").write_bytes(documents.canonical_bytes(document))
    assert "damaged or was changed by hand" in shell.bad(*RELEASE)


@pytest.mark.parametrize("option", ["--output", "--manifest"])
def test_an_output_that_cannot_be_written_costs_nothing(shell: Shell, option: str) -> None:
    """Places are tried before anything is drawn."""
    for place in ("nowhere/table.json", "/dev/null/x.json"):
        assert "cannot be written" in shell.bad(*RELEASE, option, place)
    assert shoal.Ledger("flights.ledger").entries() == []


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
    assert done.stderr.startswith("shoal: ")
    assert done.stderr.count("\n") == 1
    book = shoal.Ledger("flights.ledger")
    book.verify()
    assert book.entries() == []


@pytest.mark.parametrize("delay", [0.0, 0.4, 1.2])
def test_ctrl_c_in_the_middle(shell: Shell, delay: float) -> None:
    """Whenever it comes: no traceback, the ledger holds, and the release can be had afterwards."""
    # Told from within: a signal that came before would be Python's own to handle.
    code = (
        "from shoal.cli import entry, streams; old = streams.open_all;"
        "streams.open_all = lambda: (old(), print(1, flush=True)); entry.run()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, *RELEASE],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(delay)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
    assert child.returncode in {0, 2}
    assert "Traceback" not in err
    assert err.count("\n") <= 1
    shoal.Ledger("flights.ledger").verify()
    recorded = len(shoal.Ledger("flights.ledger").entries())
    assert recorded == 1 or child.returncode == 2
    shell.good(*RELEASE)
    assert len(shoal.Ledger("flights.ledger").entries()) == 1


@pytest.mark.usefixtures("shell")
def test_ctrl_c_that_python_drops_is_raised_again() -> None:
    """An interrupt within a destructor is not shown and lost, as Python would have it."""
    code = (
        "import signal, sys; from shoal.cli import entry, streams; old = streams.open_all\n"
        "class Dropped:\n    def __del__(self): signal.raise_signal(signal.SIGINT)\n"
        "def late():\n    import time; old(); Dropped(); time.sleep(50)\n"
        "streams.open_all = late; entry.run()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2
    assert done.stderr == "shoal: interrupted before anything was done.\n"


@given(
    junk=st.binary(max_size=300),
    name=st.sampled_from(["plan.json", "m.json", "r.csv", "r.parquet", "x.ledger"]),
)
@settings(
    deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_junk_files_never_give_a_traceback(shell: Shell, junk: bytes, name: str) -> None:
    """Random bytes as plan, manifest, records or ledger."""
    (shell.folder / "junk").mkdir(exist_ok=True)
    path = shell.folder / "junk" / name
    path.write_bytes(junk)
    arguments = {
        "plan.json": ["release", "flights.parquet", path, "--ledger", "flights.ledger"],
        "m.json": ["verify", path],
        "r.csv": ["plan", path, *PLAN, "--epsilon", "1"],
        "r.parquet": ["plan", path, *PLAN, "--epsilon", "1"],
        "x.ledger": ["ledger", "show", path],
    }[name]
    shell.bad(*arguments)


@given(data=st.data())
@settings(
    deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_changed_documents_never_give_a_traceback(shell: Shell, data: st.DataObject) -> None:
    """Any one part of a plan or manifest replaced by something else."""
    if not (shell.folder / "m.json").exists():
        shell.good(*RELEASE, "--manifest", "m.json")
    name, verb = data.draw(st.sampled_from([("plan.json", "release"), ("m.json", "verify")]))
    document = json.loads((shell.folder / name).read_text())
    old = change(document, data)[1]
    (shell.folder / "changed.json").write_bytes(documents.canonical_bytes(document))
    arguments = {
        "release": ["release", "flights.parquet", "changed.json", "--ledger", "flights.ledger"],
        "verify": ["verify", "changed.json"],
    }[verb]
    status, _, err = shell.run(*arguments)
    assert status in (0, 1, 2), old
    assert "Traceback" not in err
    assert "please report" not in err
    assert err.count("\n") <= 1


@given(words=st.lists(st.sampled_from(
    ["plan", "release", "verify", "ledger", "create", "show", "--epsilon", "--bounds", "1", "-1",
     "", "flights.parquet", "plan.json",
     "--by", "place", "--json", "--user", "\x00", "é", "--", "-"]
), max_size=8))  # fmt: skip
@settings(
    deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_random_options_never_give_a_traceback(shell: Shell, words: list[str]) -> None:
    """Words in any order."""
    status, _, err = shell.run(*words)
    assert status in (0, 1, 2)
    assert "Traceback" not in err
    assert "please report" not in err


def test_an_unforeseen_error_shows_only_its_kind(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text of an exception could hold a value; it is not printed."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(str(CANARY))

    monkeypatch.setattr("shoal.cells.plan.Plan.release", fail)
    line = shell.bad(*RELEASE)
    assert "unexpected RuntimeError" in line
    assert str(CANARY) not in line


def test_a_full_standard_output_is_one_line(shell: Shell) -> None:
    """What cannot be printed is said; the ledger is as before."""
    full = shell.folder / "full"
    full.symlink_to("/dev/full")
    with full.open("w") as stream:
        done = subprocess.run(
            [sys.executable, "-m", "shoal", "ledger", "show", "flights.ledger"],
            stdout=stream, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("shoal: ")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_goes_away_is_no_error(shell: Shell) -> None:
    """`shoal ... | head` prints nothing on standard error."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "shoal", "ledger", "show", "flights.ledger"],
        stdout=write, stderr=subprocess.PIPE, check=False,
    )  # fmt: skip
    os.close(write)
    assert done.stderr == b""
    assert (shell.folder / "flights.ledger").exists()
