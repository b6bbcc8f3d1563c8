"""`python -m tests.repository.size`: lines by part beside their ceilings; fails above one.

Numbers only fall: whoever needs more lines in a part removes others first.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Made when the site is built, and not committed.
MADE = {ROOT / f"docs/reference/{page}.md" for page in ("api", "cli")}
# Of each part its folders and files, today's ceiling, and the goal of the redesign.
PARTS: dict[str, tuple[tuple[str, ...], int, int]] = {
    "cells": (("src/shoal/cells",), 8729, 7200),
    "theory": (("src/shoal/theory",), 2245, 2900),
    "trials": (("src/shoal/trials",), 5615, 4300),
    "means": (("src/shoal/means",), 2093, 1900),
    "data": (("src/shoal/data",), 2060, 1500),
    "privacy": (("src/shoal/privacy",), 1287, 1300),
    "release, documents, files, checks, errors": (
        tuple(
            f"src/shoal/{each}"
            for each in ("release", "documents", "files", "checks.py", "errors.py")
        ),
        1909,
        1300,
    ),
    "cli": (
        (
            "src/shoal/cli",
            "src/shoal/columns.py",
            "src/shoal/publishing.py",
            "src/shoal/__main__.py",
        ),
        1886,
        1400,
    ),
    "pictures": (("src/shoal/pictures",), 547, 500),
    "one call and report": (("src/shoal/one_call.py", "src/shoal/report_page.py"), 358, 358),
    "verification": (("src/shoal/verification",), 1780, 1600),
    "other modules": (
        tuple(
            f"src/shoal/{each}.py"
            for each in ("__init__", "mean", "bounds", "unbiased", "intervals")
        ),
        623,
        600,
    ),
    "studies": (("studies",), 5392, 4200),
    "tests": (("tests", "conftest.py"), 22162, 20000),
    "pages": (("docs", "README.md", "SECURITY.md", "CONTRIBUTING.md"), 2572, 2600),
}


def lines(place: Path, kind: str) -> int:
    """Lines of the files of a kind in a folder, or of a file."""
    files = {place} if place.is_file() else set(place.rglob(f"*{kind}")) - MADE
    return sum(len(each.read_text(encoding="utf-8").splitlines()) for each in files)


def main() -> int:
    """Prints the table; 1 if a part is above its ceiling."""
    over = 0
    print(f"{'part':44}{'lines':>8}{'ceiling':>9}{'goal':>8}")
    for name, (places, ceiling, goal) in PARTS.items():
        kind = ".md" if name == "pages" else ".py"
        found = sum(lines(ROOT / each, kind) for each in places)
        over += found > ceiling
        mark = "  above" if found > ceiling else ""
        print(f"{name:44}{found:>8,}{ceiling:>9,}{goal:>8,}{mark}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
