"""The repository explains itself, and what it says is true."""

from __future__ import annotations

import ast
import re
from importlib.metadata import version
from pathlib import Path

import pytest
import typer.main

import shoal
from shoal.cells.presets import METHODS
from shoal.cli import trial, unbiased
from shoal.cli.main import app
from tests.repository.cli_reference import reference

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def docstrings(path: Path) -> dict[str, str]:
    """Test functions and the first lines of their docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.name: (ast.get_docstring(node) or "").partition("\n")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_guarantee_has_a_test_that_names_it() -> None:
    """And every name in a test is a stated guarantee."""
    stated = set(
        re.findall(r"^\| (G-[A-Z]+) ", (ROOT / "docs/guarantees.md").read_text(), re.MULTILINE)
    )
    lines = [line for path in TESTS for line in docstrings(path).values()]
    named = {found[1] for line in lines if (found := re.match(r"(G-[A-Z]+):", line))}
    assert stated == named


def test_no_file_holds_two_versions_of_itself() -> None:
    """Marks that a merge leaves would stand on the site; each guarantee has one row."""
    marks = ("<" * 7 + " ", ">" * 7 + " ")
    for path in (*PAGES, *SOURCES, *TESTS):
        assert not [each for each in path.read_text("utf-8").split("\n") if each.startswith(marks)]
    rows = re.findall(r"^\| (G-[A-Z]+) ", (ROOT / "docs/guarantees.md").read_text(), re.MULTILINE)
    assert len(rows) == len(set(rows))


def test_every_test_that_a_page_names_exists() -> None:
    """Theory pages point at real tests."""
    real = {name for path in TESTS for name in docstrings(path)}
    for page in PAGES:
        for name in re.findall(r"`(test_\w+)`", page.read_text(encoding="utf-8")):
            assert name in real, f"{page.name}: {name}"


def test_every_file_of_the_package_that_a_page_names_exists() -> None:
    """As readers type it: files('shoal') / 'a/file' in the README, the docs and their blocks."""
    said = [
        (page, found)
        for page in PAGES
        for found in re.findall(
            r"""files\(["']shoal["']\) */ *["']([^"']+)["']""", page.read_text("utf-8")
        )
    ]
    assert said
    for page, found in said:
        assert (ROOT / "src/shoal" / found).is_file(), f"{page.name}: {found}"


def test_the_version_is_that_of_the_distribution() -> None:
    """`shoal.__version__`, read when it is asked for."""
    assert shoal.__version__ == version("shoal")
    assert "__version__" not in vars(shoal)


def test_every_path_in_the_architecture_page_exists() -> None:
    """The map is the house."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:src|docs)/[\w/.]+)`", text)
    assert len(paths) > 10
    for path in paths:
        assert (ROOT / path).exists(), path
    rooms = {
        path.name for path in (ROOT / "src/shoal").iterdir() if (path / "__init__.py").exists()
    }
    assert rooms <= {Path(path).name for path in paths}


def test_public_names_resolve_and_are_pinned() -> None:
    """The public face, literally."""
    assert shoal.__all__ == [
        "Bounds", "Ledger", "Normal", "Occupancy", "Plan", "Records", "Release", "ShoalError",
        "Simulated", "bins", "bounds", "compare", "date", "hexagon", "hour_of_day", "mean",
        "month", "picture", "plan", "simulate", "timeslot", "trials", "unbiased", "verify",
        "weekday",
    ]  # fmt: skip
    for name in shoal.__all__:
        assert getattr(shoal, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = shoal.nothing


def test_the_command_line_page_is_the_help() -> None:
    """docs/reference/cli.md is generated; `make cli-page` renews it."""
    assert (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8") == reference()


def test_the_command_line_page_names_all_choices() -> None:
    """Every planning method, mean mechanism, and mechanism of trials and unbiased means."""
    page = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    for name in (*METHODS, *trial.Mechanism, *unbiased.Method):
        assert re.search(rf"[ `(]{name}[`,.)]", page), name


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


def test_modules_and_functions_stay_small() -> None:
    """Modules under 400 lines, functions under 40 without their docstring and signature."""
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") < 400, path
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.FunctionDef):
                continue
            body = node.body[1:] if ast.get_docstring(node) else node.body
            if body:
                assert (node.end_lineno or 0) - body[0].lineno < 40, f"{path}: {node.name}"


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
