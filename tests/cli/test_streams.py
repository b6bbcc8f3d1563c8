"""Real processes whose outputs are closed, full, or read by nobody."""

import json
import shlex
import subprocess
import sys

import pytest

import shoal
from shoal import documents
from tests.cli.conftest import Shell

pytestmark = pytest.mark.audit

RELEASE = "release flights.parquet plan.json --ledger flights.ledger --name one"


def run(arguments: str, redirected: str = "") -> tuple[int, str, str]:
    """Status, output and errors of the command in a shell that redirects them."""
    command = f"{shlex.quote(sys.executable)} -m shoal {arguments} {redirected}"
    done = subprocess.run(
        ["/bin/bash", "-c", f"set -o pipefail; {command}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def manifests(shell: Shell) -> None:
    """good.json, whose claims hold, and bad.json, whose do not."""
    shell.good(*RELEASE.split(), "--manifest", "good.json")
    bad = json.loads((shell.folder / "good.json").read_text())
    bad["plan"]["claims"]["worst_case_error"][0] /= 2
    (shell.folder / "bad.json").write_bytes(documents.canonical_bytes(bad))


@pytest.mark.usefixtures("manifests")
def test_the_verdict_is_the_status_whoever_reads() -> None:
    """0 is yes, 1 is no, 2 is anything else, whatever became of the outputs."""
    for name, status, redirected in (
        ("good", 0, "| true"),
        ("bad", 1, ">&- 2>&-"),
        ("nosuch", 2, "2>/dev/full"),
    ):
        assert run(f"verify {name}.json", redirected)[0] == status, (name, redirected)
    status, _, said = run("verify good.json", ">/dev/full")
    assert status == 2
    assert said.count("\n") == 1


@pytest.mark.usefixtures("shell")
@pytest.mark.parametrize("redirected", ["<&- >&- 2>&-", "| true"])
def test_a_release_is_done_whoever_reads(redirected: str) -> None:
    """What was charged was delivered, and no file takes the place of a closed output."""
    outputs = "--manifest made.json --output made.csv"
    assert run(f"{RELEASE} {outputs}", redirected)[0] == 0
    book = shoal.Ledger("flights.ledger")
    book.verify()
    assert len(book.entries()) == 1
    assert shoal.verify("made.json", ledger="flights.ledger").holds


@pytest.mark.usefixtures("shell")
def test_names_that_a_terminal_cannot_show_are_escaped() -> None:
    """A release whose name is beyond the output's encoding is delivered all the same."""
    arguments = "release flights.parquet plan.json --ledger flights.ledger --name 'Mai é'"
    command = f"PYTHONIOENCODING=ascii:strict {shlex.quote(sys.executable)} -m shoal {arguments}"
    done = subprocess.run(["/bin/bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Mai" in done.stdout
