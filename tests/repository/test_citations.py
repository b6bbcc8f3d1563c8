"""What code, tests and pages cite by a number is there: papers and errata."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_REFERENCE = ROOT / "docs" / "reference"
_KINDS = {
    "paper": (re.compile(r"\bpapers? (\d{3})\b", re.IGNORECASE), "references.md"),
    "erratum": (re.compile(r"\berrat(?:um|a) (\d+)\b", re.IGNORECASE), "errata.md"),
}


@pytest.mark.parametrize("kind", _KINDS)
def test_every_number_that_is_cited_has_an_entry(kind: str) -> None:
    """Each has an anchor that links may name."""
    pattern, page = _KINDS[kind]
    anchors = set(re.findall(rf'id="{kind}-(\d+)"', (_REFERENCE / page).read_text("utf-8")))
    cited = {
        (number, path.relative_to(ROOT).as_posix())
        for folder in ("src", "tests", "docs")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in {".py", ".md"}
        for number in pattern.findall(path.read_text(encoding="utf-8"))
    }
    assert len({number for number, _ in cited}) >= 5
    assert sorted(each for each in cited if each[0] not in anchors) == []


def test_errata_are_numbered_without_gaps() -> None:
    """Their numbers are stable: a new one comes last."""
    text = (_REFERENCE / "errata.md").read_text("utf-8")
    rows = [
        int(each)
        for each in re.findall(r"^\| <a id=\"erratum-(\d+)\"></a>\1 \|", text, re.MULTILINE)
    ]
    assert rows == list(range(1, len(rows) + 1))
    assert len(rows) >= 23
