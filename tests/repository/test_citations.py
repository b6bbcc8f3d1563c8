"""Every citation and every link leads to something that is there."""

from __future__ import annotations

import re

import pytest

from tests.repository.citations import (
    ROOT,
    anchors,
    broken_links,
    broken_pages,
    errata,
    papers,
    texts,
)

_REFERENCE = ROOT / "docs" / "reference"
_KINDS = {"paper": (papers, "references.md"), "erratum": (errata, "errata.md")}


@pytest.mark.parametrize("kind", _KINDS)
def test_every_number_that_is_cited_has_an_entry(kind: str) -> None:
    """Each has an anchor that links may name."""
    read, page = _KINDS[kind]
    entries = {
        int(each.rpartition("-")[2])
        for each in anchors(_REFERENCE / page)
        if each.startswith(f"{kind}-")
    }
    cited = {(number, path) for path, text in texts() for number in read(text)}
    assert len({number for number, _ in cited}) >= 5
    assert sorted(each for each in cited if each[0] not in entries) == []


def test_every_page_and_heading_that_is_cited_exists() -> None:
    """Also from docstrings: `docs/theory/optimal.md#the-dual-bound`."""
    found = {path: broken_pages(text) for path, text in texts() if "test_citations" not in path}
    assert {path: places for path, places in found.items() if places} == {}


def test_every_link_of_a_page_leads_somewhere() -> None:
    """Relative links of all pages, with their headings."""
    found = {path: broken_links(path, text) for path, text in texts() if path.endswith(".md")}
    assert len(found) > 40
    assert {path: links for path, links in found.items() if links} == {}


def test_nothing_outside_the_repository_is_cited_by_a_number() -> None:
    """`Theory 2, section 4` was in no file: every derivation is on a page, cited by its heading."""
    pattern = re.compile(r"\btheory \d", re.IGNORECASE)
    found = [
        path for path, text in texts() if "test_citations" not in path and pattern.search(text)
    ]
    assert found == []


def test_broken_citations_are_seen() -> None:
    """A page that is not there, a heading that is not there, a link to neither; lists of errata."""
    page, heading = "docs/theory/nothing.md", "docs/theory/optimal.md#nothing"
    assert broken_pages(f"See {page}, {heading} and docs/theory/optimal.md#the-dual-bound.") == [
        page,
        heading,
    ]
    assert broken_links("docs/model.md", "[a](nothing.md) [b](model.md#no) [c](model.md)") == [
        "nothing.md",
        "model.md#no",
    ]
    assert errata("errata 4 and 5, erratum 7; errata 12 to 14, 16") == {4, 5, 7, 12, 13, 14, 16}
    assert papers("Paper 001, papers 003") == {1, 3}


def test_errata_are_numbered_without_gaps() -> None:
    """Their numbers are stable: a new one comes last."""
    text = (_REFERENCE / "errata.md").read_text("utf-8")
    rows = [
        int(each)
        for each in re.findall(r"^\| <a id=\"erratum-(\d+)\"></a>\1 \|", text, re.MULTILINE)
    ]
    assert rows == list(range(1, len(rows) + 1))
    assert len(rows) >= 23
