"""Every example runs."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["cells", "experiments", "means"])
def test_a_notebook_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cell by cell, in a folder of its own; what is kept of its last run has no error."""
    monkeypatch.chdir(tmp_path)
    known: dict[str, Any] = {}
    for cell in json.loads((EXAMPLES / f"{name}.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), known)
            assert cell["outputs"] or "import" in cell["source"][0]
            assert all(each["output_type"] != "error" for each in cell["outputs"])


def test_a_script_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """As `python examples/insurance.py` does."""
    runpy.run_path(str(EXAMPLES / "insurance.py"), run_name="__main__")
    assert "0.117 without privacy" in capsys.readouterr().out
