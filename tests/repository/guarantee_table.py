"""The table of docs/guarantees.md with its tests and attacks: `python -m` this module renews it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.evidence.finding import ATTACKS
from tests.evidence.part import load

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guarantees.md"
_ROW = re.compile(r"^\| (G-[A-Z-]+) \| ((?:[^|]|\\\|)*?) \|.*$")
_HEAD = ("| name | promise | tests | [evidence](evidence.md) |", "| --- | --- | --- | --- |")


def table(page: str) -> str:
    """The page with the columns that follow from the tests and the attacks."""
    tests, attacks, lines = _tests(), _attacks(), []
    for line in page.splitlines():
        found = _ROW.match(line)
        if line.startswith("| name |"):
            lines.append(_HEAD[0])
        elif line.startswith("| --- |"):
            lines.append(_HEAD[1])
        elif found:
            name, promise = found[1], found[2]
            files = ", ".join(f"`{file}`" for file in sorted(tests.get(name, ())))
            lines.append(f"| {name} | {promise} | {files} | {'; '.join(attacks.get(name, []))} |")
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _tests() -> dict[str, set[str]]:
    """Files of the tests that name a guarantee."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                named = re.match(r"(G-[A-Z-]+(, G-[A-Z-]+)*):", ast.get_docstring(node) or "")
                file = str(path.relative_to(ROOT / "tests"))
                for name in named[1].split(", ") if named else ():
                    found.setdefault(name, set()).add(file)
    return found


def _attacks() -> dict[str, list[str]]:
    """Names of the attacks on a guarantee, in the order of the page of evidence."""
    found: dict[str, list[str]] = {}
    for module in ATTACKS:
        attack = load(module)
        for promise in attack.PROMISES:
            found.setdefault(promise, []).append(attack.NAME)
    return found


if __name__ == "__main__":
    PAGE.write_text(table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
