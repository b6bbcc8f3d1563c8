"""The script of the page on nightly jobs works as it is written."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from shoal.cli.main import main

PAGE = Path(__file__).parents[2] / "docs" / "nightly.md"


def _block(kind: str) -> str:
    found = re.search(rf"```{kind}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found
    return found[1]


@pytest.mark.full
def test_a_night_is_charged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Done, again, late, changed: codes, charges, files. Each run starts a new Python: 2 s."""
    monkeypatch.chdir(tmp_path)
    exec(_block("python"), {})
    for line in _block("console").splitlines():
        command = re.findall(r'"[^"]*"|\S+', line.removeprefix("$ shoal "))
        assert main([each.strip('"') for each in command]) == 0
    Path("nightly.sh").write_text(_block("bash"))
    shim = tmp_path / "bin" / "shoal"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m shoal "$@"\n')
    shim.chmod(0o755)
    path = f"{shim.parent}{os.pathsep}{os.environ['PATH']}"

    def night(day: str) -> tuple[int, str, str]:
        command = ["bash", str(tmp_path / "nightly.sh"), day]
        known = os.environ | {"PATH": path}
        done = subprocess.run(command, env=known, cwd="/", capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    for charged in (True, False):
        status, out, _ = night("2026-05-01")
        assert (status, out.count("\n")) == (0, 1)
        told = json.loads(out)
        assert told["delivery"]["charged"] == charged
        assert told["gaps"] == ["1 of 24 hours in at_1h has no record: 2026-05-01 03:00"]
        assert {Path(each).name for each in told["files"].values()} == {
            each.name for each in Path("public").iterdir()
        }
    heads = Path("log/heads").read_text().splitlines()
    assert len(heads) == 2
    assert heads[0] == heads[1]
    status, out, err = night("2026-05-03")
    assert (status, out) == (2, "")
    assert "no file of records" in err
    changed = Path("incoming/2026-05-01.parquet")
    pq.write_table(pq.read_table(changed).slice(1), changed)
    status, out, err = night("2026-05-01")
    assert (status, out) == (2, "")
    assert "of records with other counts" in err
    assert Path("log/heads").read_text().splitlines() == heads
