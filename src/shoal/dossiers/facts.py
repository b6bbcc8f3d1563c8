"""Facts that only a person knows: the questions, and the file with the answers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from shoal import checks, documents
from shoal.errors import DocumentError, InputError

# By fact: what is asked, for the comment above it.
QUESTIONS = {
    "name": "What is the published table called?",
    "curators": "Who publishes it? A list of organisations.",
    "intended_use": "What is it to be used for?",
    "region": "Which region do the data describe, or whose laws apply?",
    "sector": "Which sector? The registry has Technology, Healthcare, Education, Government, ...",
    "description": "What does the table say, in one or two sentences?",
    "publication_date": "When was it first published? Year, month and day, such as 2026-05-31.",
    "data_source_type": "Do new records come in? Dynamic if they do, Static if not.",
    "preprocessing": "What was done with the records before, and where do bounds and epsilon come "
    "from?",
    "justification": "Why these choices (unit, epsilon, cells), and who checked them?",
    "sources": "Where can one read more? A list of addresses.",
    "notes": "Anything else for the registry.",
    "registry_authors": "Who fills in the entry of the registry? A list of people.",
    "purpose": "For which purpose are these data processed?",
    "legal_basis": "On which legal basis?",
    "unit": "Who or what is one unit of the ledger, in words?",
    "custody": "Where is the ledger kept, and who has access to it?",
}
# The facts that only a person knows and a tier of the registry needs; shoal knows the others.
TIERS = {
    "name": 1,
    "curators": 1,
    "intended_use": 1,
    "region": 1,
    "description": 1,
    "publication_date": 1,
    "sector": 1,
    "registry_authors": 1,
    "data_source_type": 2,
    "justification": 3,
}
MOST_TIER = 3
_LISTS = ("curators", "sources", "registry_authors")
_SOURCE_TYPES = ("Static", "Dynamic")
# Characters of a fact, and of one that has a place on the page for the officer.
_LONGEST = 5000
_LONGEST_ON_PAGE = 300
ON_PAGE = {
    "Purpose": "purpose",
    "Published by": "curators",
    "Legal basis": "legal_basis",
    "One unit": "unit",
    "Intended use": "intended_use",
    "What it says": "description",
    "First published": "publication_date",
    "Records, bounds": "preprocessing",
    "Why so": "justification",
    "The ledger": "custody",
}
# What YAML writes for nothing.
_NOTHING = ("", "~", "null")
Facts = Mapping[str, Any]


def questions() -> str:
    """A file of facts that are to be filled in."""
    import yaml

    entries = []
    for name, question in QUESTIONS.items():
        nothing: Any = [""] if name in _LISTS else ""
        entries.append(f"# {question}\n{yaml.safe_dump({name: nothing})}")
    return "\n".join(entries)


def tier_of(facts: Facts) -> int | None:
    """The highest tier whose facts, and those of lower tiers, are stated; None if none is."""
    unstated = [tier for name, tier in TIERS.items() if not facts[name]]
    return min(unstated, default=MOST_TIER + 1) - 1 or None


def read_facts(path: Path | None) -> dict[str, Any]:
    """All facts, texts or lists of texts; what is not answered, or has no file, is empty."""
    given = {} if path is None else _read(path)
    found: dict[str, Any] = {}
    for name in QUESTIONS:
        value = given.get(name, "")
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(each, str) for each in parts):
            raise InputError(
                f"the fact {name!r} in {str(path)!r} is neither a text nor a list of texts",
                "give a text in quotes, or a list of them, one a line, each after a dash",
            )
        told = [" ".join(each.split()) for each in parts if each.strip() not in _NOTHING]
        if name not in _LISTS and len(told) > 1:
            raise InputError(
                f"the fact {name!r} in {str(path)!r} is a list", "give one text for it"
            )
        most = _LONGEST_ON_PAGE if name in {*ON_PAGE.values(), "name"} else _LONGEST
        if sum(map(len, told)) > most:
            raise InputError(
                f"the fact {name!r} in {str(path)!r} is longer than {most:,} characters",
                "say it in fewer words, and give the address of the rest under sources",
            )
        found[name] = told if name in _LISTS else "".join(told)
    where = f"in {str(path)!r}"
    _check_date(found["publication_date"], where)
    if found["data_source_type"]:
        checks.choice(found["data_source_type"], _SOURCE_TYPES, f"data_source_type {where}")
    return found


def _read(path: Path) -> Mapping[str, Any]:
    """What a file says, all of it as text, so that a region NO or a name 007 stays as written."""
    import yaml

    try:
        loader = yaml.BaseLoader(documents.read_bytes(path, "facts").decode())
        node = loader.get_single_node()
        if node is None:
            return {}
        if not isinstance(node, yaml.MappingNode):
            raise DocumentError(f"{str(path)!r} is no list of facts", "write name: value, a line")
        names = [str(each.value) for each, _ in node.value]
        twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
        if twice is not None:
            raise InputError(f"the fact {twice!r} is twice in {str(path)!r}", "leave one of them")
        checks.keywords(names, QUESTIONS, f"the file {str(path)!r}")
        found: Mapping[str, Any] = loader.construct_document(node)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        raise DocumentError(
            f"{str(path)!r} is no YAML{line}",
            'write name: "value", a line for each fact, with quotes around texts',
        ) from None
    return found


def _check_date(text: str, where: str) -> None:
    try:
        sound = not text or date.fromisoformat(text).isoformat() == text
    except ValueError:
        sound = False
    if not sound:
        raise InputError(
            f"publication_date {where} is {checks.shown(text)}",
            "give year, month and day, such as 2026-05-31",
        )
