"""Whatever a verb reads may be one file or several; what is not there is told in one line."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import PLAN, Shell
from tests.support import flights

pytestmark = pytest.mark.audit

MEAN = ["--epsilon", "1", "--order", "2", "--size", "90", "--interval", "0", "700"]
# Every verb that reads records, and the columns that it asks for.
VERBS = {
    "plan": (["plan", "DATA", *PLAN], ["aircraft", "speed", "place"]),
    "compare": (["compare", "DATA", *PLAN], ["aircraft", "speed", "place"]),
    "release": (
        ["release", "DATA", "plan.json", "--ledger", "flights.ledger"],
        ["aircraft", "speed", "place"],
    ),
    "trial plan": (
        *(["trial", "plan", "DATA", "--treatment", "place", "--space", "bins:0:700"], ["place"]),
    ),
    "trial release": (
        [
            *("trial", "release", "DATA", "--outcome", "speed", "--treatment", "place"),
            *("--unit", "aircraft", "--space", "bins:0:700", "--epsilon", "1"),
            *("--ledger", "flights.ledger"),
        ],
        ["aircraft", "speed", "place"],
    ),
    "unbiased plan": (["unbiased", "plan", "DATA", "--user", "aircraft", *MEAN], ["aircraft"]),
    "unbiased release": (
        [
            *("unbiased", "release", "DATA", "--value", "speed", "--user", "aircraft", *MEAN),
            *("--method", "clipped_mean", "--bias", "9", "--ledger", "flights.ledger"),
        ],
        ["aircraft", "speed"],
    ),
}


def asked(verb: str, data: str) -> list[str]:
    """The arguments of a verb on these records."""
    return [data if each == "DATA" else each for each in VERBS[verb][0]]


def parquet(table: pa.Table, path: Path) -> None:
    """A Parquet file."""
    pq.write_table(table, path)


def csv(table: pa.Table, path: Path) -> None:
    """A CSV file, compressed if it is called so."""
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, sink)
    raw = sink.getvalue().to_pybytes()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(("ending", "write"), [("parquet", parquet), ("csv.gz", csv)])
def test_a_wrong_name_is_asked_about(
    shell: Shell, verb: str, ending: str, write: Callable[[pa.Table, Path], None]
) -> None:
    """In every role of every verb, with the nearest name, and nothing is spent."""
    table, book = flights.table(), Path("flights.ledger").read_bytes()
    for name in VERBS[verb][1]:
        others = [f"{each}s" if each == name else each for each in table.column_names]
        write(table.rename_columns(others), Path(f"odd.{ending}"))
        line = shell.bad(*asked(verb, f"odd.{ending}"))
        told = f"no column '{name}' in 'odd.{ending}'"
        assert told in line
        # Of a CSV file without any column that is asked for, the first line may be a record.
        known = ending == "parquet" or len(VERBS[verb][1]) > 1
        assert (f"{told} (did you mean '{name}s'?)" in line) is known
    assert Path("flights.ledger").read_bytes() == book


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_not_there_is_one_line(shell: Shell, verb: str) -> None:
    """A missing file, an empty pattern, an empty folder, one with other files."""
    Path("empty").mkdir()
    Path("other").mkdir()
    Path("other/a.csv").write_text("who\n")
    before = sorted(each.name for each in Path().iterdir())
    for data, message in (
        ("gone.parquet", "no file of records at 'gone.parquet'"),
        ("gone.csv.gz", "no file of records at 'gone.csv.gz'"),
        ("gone/*.csv", "no file of records at 'gone/*.csv'"),
        ("empty", "no file of records at 'empty'"),
        ("other", "no file of records at 'other'"),
    ):
        assert message in shell.bad(*asked(verb, data))
    assert sorted(each.name for each in Path().iterdir()) == before


@pytest.mark.parametrize("kind", ["pattern", "folder", "csv.gz"])
def test_several_files_are_planned_and_released(shell: Shell, kind: str) -> None:
    """The plan of one file is that of its parts, and is carried out on them."""
    table, folder = flights.table(), Path("trips")
    folder.mkdir()
    half = table.num_rows // 2
    for name, part in (("b", table.slice(0, half)), ("a", table.slice(half))):
        if kind == "csv.gz":
            csv(part, folder / f"{name}.csv.gz")
        else:
            parquet(part, folder / f"{name}.parquet")
    data = {"pattern": "trips/*.parquet", "folder": "trips", "csv.gz": "trips/*.csv.gz"}[kind]
    shell.good("plan", data, *PLAN, "--method", "balanced", "--output", "of parts.json")
    assert Path("of parts.json").read_bytes() == Path("plan.json").read_bytes()
    inside = "trips/c.csv" if kind == "folder" else f"trips/c.{kind.replace('pattern', 'parquet')}"
    release = ["release", data, "plan.json", "--ledger", "flights.ledger"]
    book = Path("flights.ledger").read_bytes()
    line = shell.bad(*release, "--output", inside, "--force")
    # No output has the ending of a compressed file.
    assert ("a name that ends in" if kind == "csv.gz" else "read as DATA") in line
    assert Path("flights.ledger").read_bytes() == book
    assert not Path(inside).exists()
    shell.good(*release, "--output", "speeds.csv")


def test_a_pattern_that_the_shell_replaced_is_told(shell: Shell) -> None:
    """Of other words too many nothing is said about patterns."""
    said = "Several files are one pattern, in quotes, such as 'trips/*.csv'."
    assert said in shell.bad("plan", "a.csv", "b.csv", *PLAN)
    assert said in shell.bad("compare", "a.parquet", "b.parquet", "c.parquet", *PLAN)
    assert said not in shell.bad("plan", "a.csv", "more", *PLAN)
    assert said not in shell.bad("plan", "a.csv", "--no", "b.csv", *PLAN)
