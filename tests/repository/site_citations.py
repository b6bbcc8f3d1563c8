"""A hook of MkDocs: citations in the API pages become links.

Docstrings cite `docs/theory/optimal.md#the-dual-bound`, `paper 003`, `erratum 12` and `G-LABEL` as
plain words; on the pages that are made from them each is a link to its place.
"""

from __future__ import annotations

import re
from posixpath import relpath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

_FOLDER = "reference/api/"
# Tags, and what stands in a link or in code, are left alone.
_APART = re.compile(r"(<a\b.*?</a>|<pre\b.*?</pre>|<[^>]*>)", re.DOTALL)
_PAGE = re.compile(r"docs/([\w/-]+)\.md(#[\w-]+)?")
_PAPER = re.compile(r"\b[Pp]aper (\d{3})\b")
_ERRATUM = re.compile(r"\b([Ee]rrat(?:um|a)) (\d+)")
_GUARANTEE = re.compile(r"\bG-[A-Z]+(?:-[A-Z]+)*\b")


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Put links where an API page cites something.

    Args:
        html: The page, rendered.
        page: Which page.
        config: Of the site.
        files: Of the site.

    Returns:
        The page with links; other pages as they are.
    """
    if not page.file.src_uri.startswith(_FOLDER):
        return html
    return linked(html, lambda path: relpath(path, page.url))


def linked(html: str, to: Callable[[str], str]) -> str:
    """A text of HTML with links for what it cites.

    Args:
        html: The text.
        to: The way to a path below the site.

    Returns:
        The text, tags and code as they were.
    """
    parts = _APART.split(html)
    for at in range(0, len(parts), 2):
        parts[at] = _links(parts[at], to)
    return "".join(parts)


def _links(text: str, to: Callable[[str], str]) -> str:
    def link(path: str, shown: str) -> str:
        page, _, anchor = path.partition("#")
        folder = to(page.removesuffix("index").removesuffix("/"))
        return f'<a href="{folder}/{"#" + anchor if anchor else ""}">{shown}</a>'

    text = _PAGE.sub(lambda found: link(f"{found[1]}{found[2] or ''}", found[0]), text)
    references, errata = "reference/references", "reference/errata"
    text = _PAPER.sub(lambda found: link(f"{references}#paper-{found[1]}", found[0]), text)
    text = _ERRATUM.sub(lambda found: link(f"{errata}#erratum-{found[2]}", found[0]), text)
    return _GUARANTEE.sub(lambda found: link("guarantees", found[0]), text)
