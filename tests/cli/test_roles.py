"""No verb takes a private column in a public role, by any spelling of its name."""

import json
from pathlib import Path

import pytest

import shoal
from shoal import documents
from shoal.cli.trial import Mechanism
from tests.cli.conftest import Shell
from tests.support.loop import loop_over

pytestmark = pytest.mark.audit

LEDGER = ["--ledger", "flights.ledger"]
RECORDS = ["flights.parquet", "--bounds", "0", "700", "--epsilon", "1"]
ROLES = {"user": "aircraft", "value": "speed", "by": "place"}
TRIAL = ["trial", "release", "flights.parquet", *LEDGER, "--space", "bins:0:700", "--epsilon", "1"]
TRIAL_ROLES = {"outcome": "speed", "treatment": "place", "cluster": "place", "unit": "aircraft"}
UNBIASED = ["--epsilon", "1", "--size", "9", "--interval", "0", "700"]
SPELLINGS = ["speed", "SPEED"]


def _options(roles: dict[str, str]) -> list[str]:
    return [part for role, name in roles.items() for part in (f"--{role}", name)]


def _state(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def _refused(shell: Shell, arguments: list[str], message: str) -> None:
    before = _state(shell.folder)
    line = shell.bad(*arguments, "--epsilon", "1")
    assert message in line
    assert _state(shell.folder) == before
    assert shoal.Ledger("flights.ledger").entries() == []


@loop_over("spelling", SPELLINGS)
@loop_over("role", ["treatment", "cluster", "unit"])
@loop_over("mechanism", [str(each) for each in Mechanism])
def test_trials(shell: Shell, mechanism: str, role: str, spelling: str) -> None:
    """The outcome as treatment, cluster or name would be published as it is."""
    roles = _options(TRIAL_ROLES | {role: spelling})
    _refused(
        shell, [*TRIAL, "--mechanism", mechanism, *roles], f"the outcome column 'speed' as {role}"
    )


@loop_over("spelling", SPELLINGS)
@loop_over("verb", ["plan", "compare"])
@loop_over(
    ("role", "rule"),
    [
        ("user", "{}"),
        ("by", "{}"),
        ("by", "timeslot({},1h)"),
        ("by", "hour_of_day({})"),
        ("by", "hexagon({},place,7)"),
        ("by", "hexagon(place,{},7)"),
    ],
)
def test_plans_and_comparisons(
    shell: Shell, verb: str, role: str, rule: str, spelling: str
) -> None:
    """Counts by value would be public."""
    roles = _options(ROLES | {role: rule.format(spelling)})
    _refused(
        shell, [verb, *RECORDS, *roles], f"the value column 'speed' as {role.replace('by', 'cell')}"
    )


@pytest.mark.parametrize(("role", "given"), [("user", "speed"), ("cell", ["place", "SPEED"])])
def test_plans_changed_by_hand(shell: Shell, role: str, given: object) -> None:
    """A plan file that names the value as user or cell is not carried out."""
    plan = json.loads((shell.folder / "plan.json").read_text())
    plan["records"][role] = given
    (shell.folder / "plan.json").write_bytes(documents.canonical_bytes(plan))
    before = _state(shell.folder)
    line = shell.bad("release", "flights.parquet", "plan.json", *LEDGER)
    assert f"the value column 'speed' as {role}" in line
    assert _state(shell.folder) == before


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "flights.parquet"],
        ["release", "flights.parquet", "--method", "clipped_mean", "--bias", "1", *LEDGER],
    ],
    ids=["plan", "release"],
)
def test_unbiased_means(shell: Shell, arguments: list[str], spelling: str) -> None:
    """Users are counted in public."""
    roles = ["--value", "speed", "--user", spelling]
    line = ["unbiased", *arguments, *roles, *UNBIASED]
    _refused(shell, line, "the value column 'speed' as user")
