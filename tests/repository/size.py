"""`python -m tests.repository.size`: tokens by part beside their ceilings; fails above one.

Tokens of code without docstrings and comments are counted, as packing several things into a line
saves lines and costs readers. Pages and tests are counted in lines. Ceilings only fall: whoever
needs more in a part removes others first.
"""

import ast
import io
import sys
import tokenize
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
# Made when the site is built, and not committed.
MADE = {ROOT / f"docs/reference/{page}.md" for page in ("api", "cli")}
COUNTED = {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}
DOCUMENTED = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Of each part its folders and files below src/shoal, and its ceiling in tokens.
PARTS: dict[str, tuple[tuple[str, ...], int]] = {
    "cells": (("cells",), 69_341),
    "theory": (("theory",), 15_603),
    "trials": (("trials",), 52_444),
    "means": (("means",), 13_237),
    "presence": (("presence",), 21_627),
    "distributions": (("distributions",), 18_304),
    "dossiers": (("dossiers",), 5_155),
    "data": (("data",), 25_901),
    "privacy": (("privacy",), 12_534),
    "release, documents, files, checks, errors": (
        ("release", "documents", "files", "checks.py", "errors.py"),
        14_283,
    ),
    "cli": (("cli", "publishing.py", "__main__.py"), 14_578),
    "pictures": (("pictures",), 6_644),
    "one call and report": (("one_call.py", "planning.py", "report_page.py"), 4_285),
    "verification": (("verification",), 34_116),
    "other modules": (
        (
            "__init__.py",
            "mean.py",
            "bounds.py",
            "unbiased.py",
            "intervals.py",
            "progress.py",
            "threads.py",
            "arrays.py",
        ),
        3_473,
    ),
}
# Ceilings of the package: tokens a line of code, and statements in 1,000 lines that assign several
# names from several values.
MOST_A_LINE, MOST_PACKED = 9.38, 0.3
STUDIES = 58_975
# Ceilings in lines.
LINES: dict[str, tuple[tuple[str, ...], str, int]] = {
    "tests": (("tests", "conftest.py"), ".py", 30_135),
    "pages": (("docs", "README.md", "SECURITY.md", "CONTRIBUTING.md"), ".md", 3_828),
}


class Size(NamedTuple):
    """What code counts for."""

    lines: int
    tokens: int
    packed: int


def size_of(text: str) -> Size:
    """Lines with code, tokens, and statements that assign several names from several values."""
    tree = ast.parse(text)
    documented: set[int] = set()
    packed = 0
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            documented |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
            packed += any(isinstance(target, ast.Tuple) for target in node.targets)
    places = [
        each.start[0]
        for each in tokenize.generate_tokens(io.StringIO(text).readline)
        if each.type in COUNTED and each.start[0] not in documented
    ]
    return Size(len(set(places)), len(places), packed)


def files(places: tuple[str, ...], kind: str, root: Path) -> list[Path]:
    """Files of a kind in these places."""
    found: set[Path] = set()
    for each in places:
        place = root / each
        if not place.exists():
            raise FileNotFoundError(place)
        found |= {place} if place.is_file() else set(place.rglob(f"*{kind}"))
    return sorted(found - MADE)


def code(places: tuple[str, ...], root: Path) -> Size:
    """The sum over all Python files in these places."""
    sizes = [size_of(each.read_text(encoding="utf-8")) for each in files(places, ".py", root)]
    return Size(*map(sum, zip(*sizes, strict=True)))


def main() -> int:
    """Prints the table; 1 if something is above its ceiling."""
    over = 0

    def show(name: str, found: float, ceiling: float, lines: int | None = None) -> None:
        nonlocal over
        over += found > ceiling
        mark = "  above" if found > ceiling else ""
        behind = "" if lines is None else f"{lines:>8,}"
        print(f"{name:44}{found:>9,}{ceiling:>9,}{behind:>8}{mark}")

    print(f"{'part':44}{'tokens':>9}{'ceiling':>9}{'lines':>8}")
    parts = {name: code(places, ROOT / "src/shoal") for name, (places, _) in PARTS.items()}
    for name, found in parts.items():
        show(name, found.tokens, PARTS[name][1], found.lines)
    whole = Size(*map(sum, zip(*parts.values(), strict=True)))
    show("package", whole.tokens, sum(ceiling for _, ceiling in PARTS.values()), whole.lines)
    show("package: tokens a line", round(whole.tokens / whole.lines, 2), MOST_A_LINE)
    packed = round(1000 * whole.packed / whole.lines, 1)
    show("package: packed assignments in 1,000 lines", packed, MOST_PACKED)
    studies = code(("studies",), ROOT)
    show("studies", studies.tokens, STUDIES, studies.lines)
    for name, (places, kind, ceiling) in LINES.items():
        texts = [each.read_text(encoding="utf-8") for each in files(places, kind, ROOT)]
        show(f"{name}: lines", sum(len(each.splitlines()) for each in texts), ceiling)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
