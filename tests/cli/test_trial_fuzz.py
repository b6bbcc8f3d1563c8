"""`shoal trial` against everything one may type or be sent: one line, status 0, 1 or 2."""

import json
import warnings
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import shoal
from shoal import documents
from shoal.cli.trial import Mechanism
from tests.cli.conftest import Shell
from tests.support.changed import change

pytestmark = pytest.mark.audit

UNITS = 24
MECHANISMS = [str(each) for each in Mechanism]
COLUMNS = ["unit", "arm", "city", "day", "y", "spent", "list", "flag", "nothing", "gone"]
NUMBERS = ["0", "1", "-1", "2", "0.5", "1e-9", "1e-310", "1e310", "1e-400", "nan", "inf", "x", "",
           "1/3", "9" * 5000, "1e999999999"]  # fmt: skip
SPACES = [
    "binary",
    "counts:0:3",
    "counts:0:99999999999",
    "counts:3:1",
    "bins:0:1",
    "bins:0:inf:4",
    "bins:-1e308:1e308:3",
    "bins:nan:1:2",
    "levels:0,1e200",
    "levels:1e16,10000000000000002",
    "levels:0,1e-300",
    "levels:",
    "ordinal:a,b",
    "ordinal:,",
    "fog",
    ":",
    "counts:a:b",
]
SPACES += ["counts:0:" + "9" * 5000]
FUZZED = settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    """A folder with v.parquet, whose columns are of all kinds, and v.ledger."""
    monkeypatch.chdir(tmp_path)
    arm, pair = np.arange(UNITS) % 2, np.arange(UNITS) // 2
    table = pa.table(
        {
            "unit": pa.array(np.arange(UNITS).astype(np.uint64) + np.uint64(2**63)),
            "arm": pa.array(arm),
            "city": np.array(["a", "b"])[pair % 2].tolist(),
            "day": [date(2020, 1, 1 + int(at) % 3) for at in pair],
            "y": pa.array(pair % 3 % 2),
            "spent": pa.array(pair * 431.56789),
            "list": [[1]] * UNITS,
            "flag": (arm == 1).tolist(),
            "nothing": [None] * UNITS,
        }
    )
    pq.write_table(table, "v.parquet")
    shell = Shell(tmp_path, capsys)
    shell.good(
        "ledger", "create", "v.ledger", "--epsilon", "100000", "--delta", "0.99", "--unit", "person"
    )
    return shell


def quiet(shell: Shell, *arguments: object) -> int:
    """Run it; the status. No traceback, no warning, at most one line, no outcome."""
    with warnings.catch_warnings():
        # A warning would be lines on standard error.
        warnings.simplefilter("error", RuntimeWarning)
        status, _, err = shell.run(*arguments)
    assert status in (0, 1, 2)
    assert "unexpected" not in err, (arguments, err)
    assert "431.56789" not in err
    assert err.count("\n") <= (status != 0)
    return status


def options(data: st.DataObject, choices: dict[str, list[str]]) -> list[str]:
    """Some of the options, each with one of its values."""
    names = data.draw(st.lists(st.sampled_from(sorted(choices)), unique=True, max_size=3))
    return [part for name in names for part in (name, data.draw(st.sampled_from(choices[name])))]


RELEASED = {
    "--cluster": COLUMNS,
    "--unit": COLUMNS,
    "--control": ["0", "1", "true", "2020-01-01", "", "\x00", "u" * 300],
    "--mechanism": MECHANISMS,
    "--levels": ["auto", "all", "1", "2", "3", "-1", "", "9" * 5000, "٣"],
    "--floor": NUMBERS,
    "--noise": NUMBERS,
    "--rounding": ["random", "nearest", ""],
    "--missing": ["refuse", "public", ""],
    "--single-arm": ["refuse", "drop", ""],
    "--clustering-epsilon": NUMBERS,
    "--name": ["", "again", "\x00", "é", "n" * 300],
    "--confidence": ["0.9", "0", "1", "nan"],
    "--output": ["t.csv", "t.parquet", "t.x", "no/t.csv", ""],
    "--manifest": ["m.json", "no/m.json", "."],
}


@given(data=st.data())
@FUZZED
def test_releases_never_give_a_traceback(trial: Shell, data: st.DataObject) -> None:
    """Columns of every kind, odd spaces, absurd numbers; what fails is not charged."""
    fixed = {
        "--outcome": data.draw(st.sampled_from(["y", "y", "spent", *COLUMNS])),
        "--treatment": data.draw(st.sampled_from(["arm", "arm", "flag", *COLUMNS])),
        "--space": data.draw(st.sampled_from(["binary", "counts:0:3", "bins:0:9:4", *SPACES])),
        "--epsilon": data.draw(st.sampled_from(["1", "2", "30", *NUMBERS])),
        "--delta": data.draw(st.sampled_from(["0", "0", *NUMBERS])),
        "--privacy-unit": "person",
    }
    words = [part for pair in fixed.items() for part in pair]
    book = shoal.Ledger("v.ledger")
    before = book.spent
    status = quiet(
        trial, "trial", "release", "v.parquet", "--ledger", "v.ledger", *words,
        *options(data, RELEASED),
    )  # fmt: skip
    assert status == 0 or book.spent == before


PLANNED = {
    "--units": ["0", "-1", "10", "1000", "9" * 30, "x"],
    "--clusters": ["0", "-1", "3", "9" * 12, "9" * 30],
    "--shares": ["0.5,0.5", "nan,1", "1e-300,1", ",", "1", "0.2,0.3,0.5", "inf,inf"],
    "--space": SPACES,
    "--epsilon": NUMBERS,
    "--delta": NUMBERS,
    "--mean": NUMBERS,
    "--sd": NUMBERS,
    "--between": NUMBERS,
    "--effect": NUMBERS,
    "--power": NUMBERS,
    "--confidence": NUMBERS,
    "--against-units": ["0", "20", "9" * 30],
    "--against-clusters": ["0", "2", "9" * 30],
    "--picture": ["p.txt", "no/p.png"],
    "--control": ["0", "true"],
}


@given(data=st.data())
@FUZZED
def test_plans_never_give_a_traceback(trial: Shell, data: st.DataObject) -> None:
    """From numbers or from a file."""
    start = data.draw(st.sampled_from([[], ["--units", "60"], ["v.parquet", "--treatment", "arm"]]))
    quiet(trial, "trial", "plan", *start, *options(data, PLANNED))


@given(data=st.data())
@FUZZED
def test_changed_manifests_never_give_a_traceback(trial: Shell, data: st.DataObject) -> None:
    """Any one part of a manifest replaced by something else."""
    mechanism = data.draw(st.sampled_from(MECHANISMS))
    named = data.draw(st.sampled_from(["", "unit", "day"]))
    path = trial.folder / f"{mechanism}-{named}.json"
    if not path.exists():
        keys = {"unit": ["--unit", "unit"], "day": ["--cluster", "day"], "": []}[named]
        trial.good(
            "trial", "release", "v.parquet", "--ledger", "v.ledger", "--outcome", "y", *keys,
            "--privacy-unit", "person",
            "--treatment", "arm", "--space", "binary", "--epsilon", "4", "--mechanism", mechanism,
            "--manifest", path.name,
            *(["--floor", "0.1", "--noise", "5"] if mechanism.startswith("cluster") else []),
        )  # fmt: skip
    document = json.loads(path.read_text())
    huge = st.sampled_from([2**31, 2**40, 2**70, 10**400, "1e999999999", -1])
    key, _ = change(document, data, huge)
    # Repeated names would be one file whose rows cannot be told apart, not an absurdity.
    assume(key != "name")
    (trial.folder / "changed.json").write_bytes(documents.canonical_bytes(document))
    output = data.draw(
        st.sampled_from([[], ["--force", "--output", "t.csv"], ["--clusters"], ["--json"]])
    )
    quiet(trial, "trial", "estimate", "changed.json", *output)
