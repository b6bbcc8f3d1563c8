"""Public names, help of every verb, and nothing of a machine in the repository."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest
import typer.main

import shoal
from shoal.cli.main import app

ROOT = Path(__file__).parents[2]


def test_the_version_is_that_of_the_distribution() -> None:
    """`shoal.__version__`, read when it is asked for."""
    assert shoal.__version__ == version("shoal")
    assert "__version__" not in vars(shoal)


def test_public_names_resolve_and_are_pinned() -> None:
    """The public face, literally."""
    assert shoal.__all__ == [
        "Bounds", "Counts", "Ledger", "Normal", "Plan", "Records", "Release", "ShoalError",
        "Simulated", "bins", "bounds", "compare", "date", "effects", "hexagon", "hour_of_day",
        "mean", "mean_by", "month", "picture", "plan", "report", "simulate",
        "timeslot", "trials", "unbiased", "verify", "weekday",
    ]  # fmt: skip
    for name in shoal.__all__:
        assert getattr(shoal, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = shoal.nothing


def test_every_verb_has_help_and_an_example() -> None:
    """And every option a word of help."""
    command = typer.main.get_command(app)
    queue = [("shoal", command)]
    while queue:
        name, verb = queue.pop()
        assert verb.help, name
        commands = getattr(verb, "commands", {})
        queue += [(f"{name} {each}", commands[each]) for each in commands]
        if not commands:
            assert f"Example: {name}" in verb.help, name
            for option in verb.params:
                assert getattr(option, "help", None), f"{name} {option.name}"


def test_nothing_of_the_machine_is_in_the_repository() -> None:
    """No home folders, no addresses of package registries."""
    kinds = {".py", ".md", ".toml", ".yml", ".lock", ""}
    skip = {".git", ".venv", "site", "shoal-demo"}
    for path in ROOT.rglob("*"):
        if path.is_file() and path.suffix in kinds and not skip & set(path.relative_to(ROOT).parts):
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
            for pattern in (r"/home/\w+", r"/root/", r"/usr/local/\w", r"--(extra-)?index-url h"):
                assert path == Path(__file__) or not re.search(pattern, text), f"{path}: {pattern}"
