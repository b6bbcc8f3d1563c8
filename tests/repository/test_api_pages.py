"""The API pages hold every public name, and what docstrings cite becomes a link."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from tests.repository.citations import REFERENCE
from tests.repository.house.docstrings import closed_forms, public
from tests.repository.site_citations import linked

pytestmark = pytest.mark.unit

PAGES = sorted((REFERENCE / "api").glob("*.md"))


def names() -> list[str]:
    """What the pages ask to be documented."""
    return [
        name
        for page in PAGES
        for name in re.findall(r"^::: (\S+)$", page.read_text("utf-8"), re.MULTILINE)
    ]


def test_every_public_name_is_on_one_page() -> None:
    """And every name on a page exists."""
    found = names()
    assert len(found) == len(set(found))
    for name in found:
        module, _, last = name.rpartition(".")
        assert getattr(import_module(module), last).__doc__, name
    wanted = {f"{value.__module__}.{value.__qualname__}" for value, _ in public()}
    wanted |= {f"{each.__module__}.{each.__name__}" for each in closed_forms()}
    assert wanted - set(found) == set()


def test_the_overview_names_every_page() -> None:
    """A page that nobody finds is none."""
    overview = (REFERENCE / "api" / "index.md").read_text("utf-8")
    listed = set(re.findall(r"\]\((\w+\.md)\)", overview))
    assert listed == {page.name for page in PAGES} - {"index.md"}


def test_citations_become_links() -> None:
    """Papers, errata, guarantees and pages; code and links stay as they are."""
    text = "<p>See docs/theory/index.md, paper 003, errata 4 and 5; G-LABEL.</p>"
    assert linked(text, lambda path: f"../{path}") == (
        '<p>See <a href="../theory/">docs/theory/index.md</a>, '
        '<a href="../reference/references/#paper-003">paper 003</a>, '
        '<a href="../reference/errata/#erratum-4">errata 4</a> and 5; '
        '<a href="../guarantees/">G-LABEL</a>.</p>'
    )
    page = '<a href="x">paper 003</a><pre><code>erratum 4</code></pre><p id="G-LABEL"></p>'
    assert linked(page, str) == page
    heading = linked("docs/theory/optimal.md#the-dual-bound", str)
    assert heading.startswith('<a href="theory/optimal/#the-dual-bound">')
