"""One seeded fault: a line of the library that is wrong on purpose, and who must notice."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

LIBRARY = Path(__file__).parents[3] / "src" / "shoal"


class NoSuchLineError(Exception):
    """The original text is not in the source exactly once: the list is behind the library."""


@dataclass(frozen=True)
class Fault:
    """A change to one place of the library that must not go unnoticed.

    Attributes:
        name: What is wrong, in a few words; unique.
        promise: The guarantee of docs/guarantees.md that it breaks.
        file: Where it is, relative to src/shoal.
        original: The text that is there, exactly once in the file, or in `inside`.
        replacement: The text to put in its place.
        tests: Paths or names of tests of `make test`, one of which must fail.
        inside: The function, method or class that holds the text, where the file has it twice.
    """

    name: str
    promise: str
    file: str
    original: str
    replacement: str
    tests: tuple[str, ...]
    inside: str = ""

    def seeded(self, source: str) -> str:
        """The source with the fault in it.

        Raises:
            NoSuchLineError: The original text does not occur exactly once.
        """
        start, stop = _extent(source, self.inside) if self.inside else (0, len(source))
        if source.count(self.original, start, stop) != 1:
            raise NoSuchLineError(f"{self.name}: {self.file}")
        at = source.index(self.original, start, stop)
        return source[:at] + self.replacement + source[at + len(self.original) :]


def _extent(source: str, name: str) -> tuple[int, int]:
    """Where the definition of that name begins and ends; a method is `Class.method`."""
    nodes: list[ast.AST] = [ast.parse(source)]
    for part in name.split("."):
        nodes = [
            node
            for parent in nodes
            for node in ast.iter_child_nodes(parent)
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == part
        ]
    if len(nodes) != 1:
        raise NoSuchLineError(name)
    node = nodes[0]
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    lines = source.splitlines(keepends=True)
    last = node.end_lineno or node.lineno
    return sum(map(len, lines[: node.lineno - 1])), sum(map(len, lines[:last]))
