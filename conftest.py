"""Run every example of the documentation: Python blocks, console blocks and doctests."""

from __future__ import annotations

import os
import shlex
from doctest import ELLIPSIS
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from sybil import Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser
from sybil.parsers.rest import DocTestParser

if TYPE_CHECKING:
    from pathlib import Path

    from sybil import Example

# `make prove` draws many more examples than `make test`, and new ones each time; those of the test
# are the same in every run, so that what passed once passes elsewhere.
settings.register_profile("prove", max_examples=3000, deadline=None)
settings.register_profile("test", deadline=None, derandomize=True)
settings.load_profile("prove" if os.environ.get("SHOAL_PROVE") else "test")


class ConsoleParser(CodeBlockParser):
    """Blocks of `$ shoal ...` lines: each command must succeed in the page's own folder."""

    language = "console"

    def evaluate(self, example: Example) -> str | None:
        """Run the commands of a block; the lines below them are not compared."""
        from shoal.cli.main import main

        for line in example.parsed.splitlines():
            if not line.startswith("$ "):
                continue
            program, *arguments = shlex.split(line.removeprefix("$ "))
            if program != "shoal":
                return f"a command that is not shoal: {program}"
            if main(arguments) != 0:
                return f"failed: {line}"
        return None


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Any:  # noqa: ANN401
    """A folder of its own for every page, with the bundled flights in it."""
    from importlib.resources import files

    folder: Path = tmp_path_factory.mktemp("page")
    data = (files("shoal") / "data" / "flights_2013.parquet").read_bytes()
    (folder / "flights.parquet").write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


pages = Sybil(
    parsers=[PythonCodeBlockParser(), ConsoleParser()],
    patterns=["*.md"],
    excludes=["src/shoal/theory/*.md", "src/shoal/data/*.md"],
    fixtures=["scratch"],
)
docstrings = Sybil(
    parsers=[DocTestParser(optionflags=ELLIPSIS)],
    patterns=["src/**/*.py", "*.py"],
    excludes=["tests/**"],
)
pytest_collect_file = (pages + docstrings).pytest()
