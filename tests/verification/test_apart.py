"""The second opinion stands on the ground alone, in its source and when it runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.unit

GROUND = {"checks", "documents", "errors", "files", "verification"}
LOADED = """
import sys
import shoal.verification.verify
print(*sorted(name for name in sys.modules if name.startswith("shoal")))
"""


def test_verification_loads_nothing_that_it_judges() -> None:
    """Importing the verifier loads no module of the planner or the mechanisms."""
    ran = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "shoal.verification.cells.losses" in ran
    assert "shoal.verification.trials.privacy" in ran
    assert "shoal.verification.means.bounds" in ran
    assert {name.split(".")[1] for name in ran if "." in name} <= GROUND
