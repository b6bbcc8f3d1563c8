"""Public names, help of every verb, and nothing of a machine in the repository."""

from importlib.metadata import version

import pytest

import shoal


def test_the_version_is_that_of_the_distribution() -> None:
    """`shoal.__version__`, read when it is asked for."""
    assert shoal.__version__ == version("shoal")
    assert "__version__" not in vars(shoal)


def test_public_names_resolve_and_are_pinned() -> None:
    """The public face, literally."""
    assert shoal.__all__ == [
        "Bounds", "Counts", "Ledger", "Normal", "Plan", "Records", "Release", "ShoalError",
        "Simulated", "bins", "bounds", "compare", "date", "day", "dossier", "effects", "hexagon",
        "hexagons", "hour_of_day", "load", "mean", "month", "picture", "plan", "quarter",
        "report", "simulate", "summarize", "timeslot", "trials", "unbiased", "verify", "week",
        "weekday", "year",
    ]  # fmt: skip
    for name in shoal.__all__:
        assert getattr(shoal, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = shoal.nothing
