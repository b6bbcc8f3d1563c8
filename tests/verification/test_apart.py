"""The recount stands on the ground alone when it runs."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.unit

GROUND = {"checks", "documents", "errors", "files", "verification"}
LOADED = """
import sys
import shoal.verification.recount
print(*sorted(name for name in sys.modules if name.startswith("shoal")))
"""


def test_the_recount_loads_nothing_that_it_judges() -> None:
    """Importing it loads no module of the planner or the mechanisms."""
    ran = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "shoal.verification.recount.cells_loss" in ran
    assert {name.split(".")[1] for name in ran if "." in name} <= GROUND
