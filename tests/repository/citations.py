"""What code, tests and pages cite: papers and errata by number, and places in the documentation.

Four forms are followed, each written out in full:

- `paper 002` is a row of docs/reference/references.md;
- `erratum 7`, `errata 4 and 5`, `errata 12, 14, 15` and `errata 1 to 3` are rows of
  docs/reference/errata.md;
- `docs/theory/optimal.md#the-dual-bound`, or the page alone, is a page and a heading of it;
- a name and a year, such as `Bun and Steinke 2016`, are in one entry of references.md.
"""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import markdown

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
# Their tests cite what is not there, on purpose.
_OWN = {"citations.py", "test_citations.py", "test_docstrings.py"}
FOLDERS = ("src", "studies", "tests", "docs", "examples")
PAPER = re.compile(r"\bpapers? (\d{3})\b", re.IGNORECASE)
ERRATA = re.compile(r"\berrat(?:um|a)\s+(\d+(?:(?:, | and | to |, and )\d+)*)", re.IGNORECASE)
PAGE = re.compile(r"(?<![\w/])docs/(?!images/)[\w/-]+(?:\.md)?(?:#[\w-]+)?")
WORK = re.compile(
    r"\b([A-Z][a-z][\w-]+),? \(?(?:[A-Z][A-Za-z]+ )?((?:19|20)\d\d)\b(?!-)"  # Smith, STOC 2011
)
# Words before a year that are no names of authors.
_VENUES = {"NeurIPS", "Theory"}
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def broken() -> list[str]:
    """Every citation and every link of the repository that leads nowhere, with its file."""
    entries = {
        kind: {each for each in anchors(REFERENCE / page) if each.startswith(f"{kind}-")}
        for kind, page in (("paper", "references.md"), ("erratum", "errata.md"))
    }
    known = (REFERENCE / "references.md").read_text("utf-8").split("\n- ")
    found = []
    for path, text in texts():
        if path.startswith(("src", "studies", "docs")):
            found += [
                f"{path}: {name} {year}"
                for name, year in sorted(works(text))
                if not any(name in each and year in each for each in known)
            ]
        cited = [f"paper-{number:03}" for number in papers(text)]
        found += [f"{path}: {each}" for each in cited if each not in entries["paper"]]
        cited = [f"erratum-{number}" for number in errata(text)]
        found += [f"{path}: {each}" for each in cited if each not in entries["erratum"]]
        found += [f"{path}: {each}" for each in broken_pages(text)]
        if path.endswith(".md"):
            found += [f"{path}: {each}" for each in broken_links(path, text)]
    return found


def texts() -> Iterator[tuple[str, str]]:
    """Path and text of every Python file and page of the repository."""
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    for path in sorted([*paths, *ROOT.glob("*.md"), *ROOT.glob("*.py")]):
        if path.suffix in {".py", ".md"} and path.name not in _OWN:
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def papers(text: str) -> set[int]:
    """Numbers of the papers that a text cites."""
    return {int(number) for number in PAPER.findall(text)}


def errata(text: str) -> set[int]:
    """Numbers of the errata that a text cites; `1 to 3` is all three."""
    found: set[int] = set()
    for listed in ERRATA.findall(text):
        for part in re.split(r",? and |, ", listed):
            ends = [int(each) for each in part.split(" to ")]
            found |= set(range(ends[0], ends[-1] + 1))
    return found


def works(text: str) -> set[tuple[str, str]]:
    """Last author's name and year of the works that a text cites."""
    return {(name, year) for name, year in WORK.findall(text) if name not in _VENUES}


def broken_pages(text: str) -> list[str]:
    """Citations `docs/...` in a text whose page or heading does not exist."""
    return [place for place in PAGE.findall(text) if not exists(ROOT, place)]


def broken_links(path: str, text: str) -> list[str]:
    """Links of a page to a place in the repository that does not exist."""
    found = LINK.findall(re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL))
    inside = [link for link in found if not re.match(r"[a-z]+:", link)]
    here = ROOT / path
    whole = [f"{here.name}{link}" if link.startswith("#") else link for link in inside]
    return [link for link in whole if not exists(here.parent, link)]


def exists(folder: Path, place: str) -> bool:
    """Whether a path below a folder is there and, if it names one, a heading or anchor in it."""
    path, _, anchor = place.partition("#")
    target = (folder / path).resolve()
    if not anchor:
        return target.exists()
    return target.suffix == ".md" and target.exists() and anchor in anchors(target)


@cache
def anchors(path: Path) -> frozenset[str]:
    """Every id in a page: those of its headings, and those it sets itself."""
    html = markdown.markdown(path.read_text("utf-8"), extensions=["toc", "tables", "fenced_code"])
    reader = _Ids()
    reader.feed(html)
    return frozenset(reader.found)


class _Ids(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.found |= {value for name, value in attrs if name == "id" and value}
