"""What the package of trials gives by name, whatever was loaded before."""

import pkgutil
import subprocess
import sys

import pytest

from shoal import trials

pytestmark = pytest.mark.unit

_USE = """
import shoal.trials as trials
{}
assert callable(trials.plan) and trials.plan.__module__ == "shoal.trials.forecast"
"""


def test_no_module_has_a_public_name() -> None:
    """A module that is loaded takes its name in the package, before or after that was asked for."""
    found = {module.name for module in pkgutil.iter_modules(trials.__path__)}
    assert not found & set(trials.__all__)


@pytest.mark.parametrize("first", ["trials.ClusterDP", "trials.PrivateTrial", "trials.TrialPlan"])
def test_plan_is_a_function_whatever_was_used_first(first: str) -> None:
    """In a process of its own: here everything is loaded."""
    subprocess.run([sys.executable, "-c", _USE.format(first)], check=True, timeout=120)
