"""Every citation and every link leads to something that is there."""

from __future__ import annotations

import re

import pytest

from tests.repository.citations import (
    PAGE,
    REFERENCE,
    broken,
    broken_links,
    broken_pages,
    errata,
    papers,
    texts,
    works,
)

pytestmark = pytest.mark.unit


def test_every_citation_and_every_link_leads_somewhere() -> None:
    """Papers and errata by number, pages by their headings, also from docstrings."""
    every = list(texts())
    assert len({number for _, text in every for number in papers(text)}) == 5
    assert len({number for _, text in every for number in errata(text)}) > 15
    assert sum(len(PAGE.findall(text)) for _, text in every) > 200
    assert broken() == []


def test_nothing_outside_the_repository_is_cited_by_a_number() -> None:
    """`Theory 2, section 4` was in no file: every derivation is on a page, cited by its heading."""
    pattern = re.compile(r"\btheory \d", re.IGNORECASE)
    found = [
        path for path, text in texts() if "test_citations" not in path and pattern.search(text)
    ]
    assert found == []


def test_a_place_in_a_paper_says_what_it_is() -> None:
    """A section, theorem, equation or figure: `paper 002, section III-C`, not `III-C` alone."""
    bare = re.compile(r"\bpaper \d{3}, [(\dIVX][\d.()IVX-]*\b", re.IGNORECASE)
    assert bare.search("paper 002, III-C")
    assert bare.search("paper 004, 3.0.1")
    assert [path for path, text in texts() if bare.search(text)] == []


def test_broken_citations_are_seen() -> None:
    """A page that is not there, a heading that is not there, a link to neither; lists of errata."""
    page, heading = "docs/theory/nothing.md", "docs/theory/optimal.md#nothing"
    assert broken_pages(f"See {page}, {heading} and docs/theory/optimal.md#the-dual-bound.") == [
        page,
        heading,
    ]
    assert broken_links(
        "docs/explanation/model.md", "[a](nothing.md) [b](model.md#no) [c](model.md)"
    ) == [
        "nothing.md",
        "model.md#no",
    ]
    assert errata("errata 4 and 5, erratum 7; errata 12 to 14, 16") == {4, 5, 7, 12, 13, 14, 16}
    assert papers("Paper 001, papers 003") == {1, 3}
    assert works("(Bun and Steinke 2016; Smith, STOC 2011; NeurIPS 2020)") == {
        ("Steinke", "2016"),
        ("Smith", "2011"),
    }


def test_errata_are_numbered_without_gaps() -> None:
    """Their numbers are stable: a new one comes last."""
    text = (REFERENCE / "errata.md").read_text("utf-8")
    rows = [
        int(each)
        for each in re.findall(r"^\| <a id=\"erratum-(\d+)\"></a>\1 \|", text, re.MULTILINE)
    ]
    assert rows == list(range(1, len(rows) + 1))
    assert len(rows) >= 23
