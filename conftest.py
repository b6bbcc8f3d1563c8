"""Run every example of the documentation: Python blocks, console blocks and doctests."""

from __future__ import annotations

import os
import shlex
from contextlib import redirect_stderr
from doctest import ELLIPSIS, OutputChecker
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser
from sybil.parsers.rest import DocTestParser

# `make test-full` draws many more examples than `make test`, and new ones each time; those of the
# test are the same in every run, so that what passed once passes elsewhere.
FULL = bool(os.environ.get("SHOAL_FULL"))
settings.register_profile("full", max_examples=3000, deadline=None)
settings.register_profile("test", max_examples=50, deadline=None, derandomize=True)
settings.load_profile("full" if FULL else "test")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that are marked `full` are left out of `make test`."""
    if not FULL:
        late = [item for item in items if item.get_closest_marker("full")]
        config.hook.pytest_deselected(items=late)
        items[:] = [item for item in items if item not in set(late)]
    # Examples of a page share names: at the front no worker takes a part of them from another.
    items.sort(key=lambda item: isinstance(item, pytest.Function))


class ConsoleParser(CodeBlockParser):
    """Blocks of `$ shoal ...` lines, run in the page's own folder.

    Each command must succeed, unless the line below it is an error of shoal's: then it must fail
    with that one. `...` stands for anything.
    """

    language = "console"

    def evaluate(self, example: Example) -> str | None:
        """Run the commands of a block; other lines below them are not compared."""
        lines = [*example.parsed.splitlines(), ""]
        for line, below in pairwise(lines):
            if not line.startswith("$ "):
                continue
            program, *arguments = shlex.split(line.removeprefix("$ "))
            if program != "shoal":
                return f"a command that is not shoal: {program}"
            wrong = self.run(arguments, below if below.startswith("shoal: ") else "")
            if wrong:
                return f"{wrong}: {line}"
        return None

    @staticmethod
    def run(arguments: list[str], error: str) -> str:
        """Run one command; what is wrong with how it ended, if anything is."""
        from shoal.cli.main import main

        told = StringIO()
        with redirect_stderr(told):
            status = main(arguments)
        if not error:
            return "" if status == 0 else f"failed ({told.getvalue().strip()})"
        as_said = OutputChecker().check_output(error + "\n", told.getvalue(), ELLIPSIS)
        return "" if status and as_said else f"did not fail as said but so: {told.getvalue()!r}"


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder of its own for every page, with the bundled flights in it."""
    from importlib.resources import files

    folder: Path = tmp_path_factory.mktemp("page")
    data = (files("shoal") / "datasets" / "flights_2013.parquet").read_bytes()
    (folder / "flights.parquet").write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


pages = Sybil(
    parsers=[PythonCodeBlockParser(), ConsoleParser()],
    patterns=["*.md"],
    excludes=["src/shoal/theory/*.md", "src/shoal/datasets/*.md"],
    fixtures=["scratch"],
)
docstrings = Sybil(
    parsers=[DocTestParser(optionflags=ELLIPSIS)],
    patterns=["src/**/*.py", "studies/src/**/*.py", "*.py"],
    excludes=["tests/**"],
)
pytest_collect_file = (pages + docstrings).pytest()
