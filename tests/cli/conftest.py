"""A folder with records, a plan and a ledger, and the command line in this process."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import typer

from shoal.cli.main import main
from tests.support import flights

PLAN = [
    *("--user", "aircraft", "--value", "speed"),
    *("--bounds", "0", "700", "--by", "place", "--epsilon", "1"),
]
UNIT = ("--unit", "aircraft")


@dataclass
class Shell:
    """Runs shoal in a folder and keeps what it printed."""

    folder: Path
    capture: pytest.CaptureFixture[str]

    def run(self, *arguments: object) -> tuple[int, str, str]:
        """Status, standard output, standard error."""
        status = main([str(argument) for argument in arguments])
        out, err = self.capture.readouterr()
        return status, out, err

    def good(self, *arguments: object) -> str:
        """Output of a run that must succeed."""
        status, out, err = self.run(*arguments)
        assert (status, err) == (0, "")
        return out

    def bad(self, *arguments: object) -> str:
        """The one line of a run that must fail."""
        status, out, err = self.run(*arguments)
        assert status == 2
        assert out == ""
        assert err.startswith("shoal: ")
        assert err.count("\n") == 1
        assert err.endswith("\n")
        assert "Traceback" not in err
        return err


@pytest.fixture(autouse=True, scope="session")
def _verbs_built_once() -> Iterator[None]:
    """Typer builds all its commands for every run; here they are built once."""
    build, known = typer.main.get_command, {}

    def get_command(app: typer.Typer) -> Any:
        groups = tuple(map(id, app.registered_groups))
        if groups not in known:
            known[groups] = build(app)
        return known[groups]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", get_command)
        yield


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with flights.parquet, plan.json and flights.ledger."""
    folder = tmp_path_factory.mktemp("prepared")
    pq.write_table(flights.table(), folder / "flights.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        plan = ["plan", "flights.parquet", *PLAN, "--method", "balanced", "--output", "plan.json"]
        assert main(plan) == 0
        assert main(["ledger", "create", "flights.ledger", "--epsilon", "1.5", *UNIT]) == 0
    return folder


@pytest.fixture
def shell(
    prepared: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Shell:
    """A copy of that folder, and in it."""
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    return Shell(tmp_path, capsys)
