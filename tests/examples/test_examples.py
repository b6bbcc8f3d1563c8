"""Every example runs and says what it did."""

import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

EXAMPLES = Path(__file__).parents[2] / "examples"
SAID = {
    "cells.py": "spent epsilon 4 of epsilon 4",
    "trial.py": "mean outcomes by arm",
    "questions.py": "checked by the second opinion: True",
    "mean.py": "symmetric_mean",
    "insurance.py": "0.117 without privacy",
}


def test_every_family_has_an_example() -> None:
    """The list is complete."""
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SAID)


@pytest.mark.parametrize("name", sorted(SAID))
def test_an_example_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As `python examples/NAME` does."""
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert SAID[name] in capsys.readouterr().out
