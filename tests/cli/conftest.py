"""A folder with records, plans and ledgers, and the command line in this process."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
import typer

from shoal import progress
from shoal.cli.main import main
from tests.support import flights

PLAN = [
    *("--counts", "public", "--user", "aircraft", "--value", "speed"),
    *("--bounds", "0", "700", "--by", "place", "--epsilon", "1"),
]
UNITS = 400
# A value that no message may repeat: fewer digits may be those of a noisy number.
CANARY = "431.5"
TRIAL = ["trial", "plan", "visits.csv", "--arm", "arm", "--cluster", "city", "--unit", "person",
         "--outcome", "bought", "--epsilon", "2"]  # fmt: skip
ASK = ["trial", "ask", "visits.csv", "--domain", "binary", "--arm", "arm", "--cluster", "city",
       "--user", "person", "--outcome", "bought", "--epsilon", "2"]  # fmt: skip
MEAN = ["mean", "plan", "visits.csv", "--user", "person", "--value", "minutes", "--epsilon", "1",
        "--order", "4", "--size", "15", "--interval", "0", "100"]  # fmt: skip
# Of each family what carries its plan out.
RELEASES = {
    "cells": ["release", "flights.parquet", "plan.json", "--ledger", "flights.ledger"],
    "table": ["release", "visits.csv", "table.json", "--ledger", "visits.ledger"],
    "questions": ["release", "visits.csv", "asked.json", "--ledger", "visits.ledger"],
    "mean": ["release", "visits.csv", "mean.json", "--ledger", "visits.ledger"],
}


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

    def ledger(self, name: str, epsilon: float, unit: str, *more: str) -> None:
        """A new ledger of public counts."""
        facts = "--epsilon", epsilon, "--privacy-unit", unit, "--counts", "public"
        self.good("ledger", "create", name, *facts, *more)

    def good(self, *arguments: object) -> str:
        """Output of a run that must succeed; JSON is one document, sorted."""
        status, out, err = self.run(*arguments)
        assert (status, err) == (0, "")
        if "--json" in arguments:
            # What a scheduler reads is one line.
            indent = None if arguments[0] == "publish" else 1
            assert out == json.dumps(json.loads(out), sort_keys=True, indent=indent) + "\n"
        return out

    def bad(self, *arguments: object) -> str:
        """The one line of a run that must fail, and that changes no file."""
        before = self.state()
        status, out, err = self.run(*arguments)
        assert (status, out) == (2, "")
        assert err.startswith("shoal: ")
        assert err.count("\n") == 1
        assert CANARY not in err
        assert "please report" not in err
        assert self.state() == before
        return err

    def state(self) -> dict[str, bytes]:
        """All files."""
        return {str(each): each.read_bytes() for each in self.folder.rglob("*") if each.is_file()}


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
        # On a busy machine all work is long.
        patch.setattr(progress, "_LONG", 1000)
        yield


def visits() -> pa.Table:
    """Units of a trial in classes of one arm, with outcomes of all kinds, sorted by nothing."""
    rng, at = np.random.default_rng(1), np.arange(UNITS)
    minutes = rng.normal(40, 10, UNITS)
    minutes[7] = 431.56789
    return pa.table(
        {
            "person": [f"u{each:04}" for each in at],
            "arm": np.array(["control", "new"])[at % 2].tolist(),
            "city": np.array(["a", "b", "c", "d"])[at // 2 % 4].tolist(),
            "class": (at % 2 + 2 * (at // 40)).tolist(),
            "zone": (at // 4 % 3 + 1).tolist(),
            "far": rng.normal(3, 1, UNITS).round(3).tolist(),
            "sex": np.where(at // 24 % 2, "f", "m").tolist(),
            "bought": (rng.random(UNITS) < 0.3 + 0.2 * (at % 2)).astype(int).tolist(),
            "liked": np.array(["no", "some", "much"])[at % 3].tolist(),
            "minutes": minutes.tolist(),
            "holes": pa.array([None if each % 50 == 0 else int(each % 3 == 0) for each in at]),
        }
    )


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with records, a plan of each family that is made of them, and two ledgers."""
    folder = tmp_path_factory.mktemp("prepared")
    pq.write_table(flights.table(), folder / "flights.parquet")
    pcsv.write_csv(visits(), folder / "visits.csv")
    flights.records().counts().save(folder / "counts.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for words in (
            ["plan", "flights.parquet", *PLAN, "--method", "balanced", "--output", "plan.json"],
            [*TRIAL, "--mechanism", "best_table", "--output", "table.json"],
            [*ASK, "--effect", "--ols", "arm + far", "--output", "asked.json"],
            [*MEAN, "--output", "mean.json"],
            ["ledger", "create", "flights.ledger", "--epsilon", "1.5",
             "--privacy-unit", "aircraft", "--counts", "public"],
            ["ledger", "create", "visits.ledger", "--epsilon", "9", "--delta", "0.001",
             "--privacy-unit", "person", "--counts", "public"],
        ):  # fmt: skip
            assert main(words) == 0, words
    return folder


@pytest.fixture
def shell(
    prepared: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Shell:
    """A copy of that folder, and in it."""
    folder = tmp_path / "work"
    shutil.copytree(prepared, folder)
    monkeypatch.chdir(folder)
    capsys.readouterr()
    return Shell(folder, capsys)
