"""Asks for facts that only a person knows, and reads the file with the answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from shoal import checks, documents
from shoal.errors import DocumentError, InputError


class Fact(NamedTuple):
    """A fact that only a person knows.

    Attributes:
        question: What is asked, for the comment above it.
        tier: The tier of the registry that needs it, if one does.
        title: What it is called on the page for the officer, if it has a place there.
        is_list: Whether the answer is a list of texts.
    """

    question: str
    tier: int = 0
    title: str = ""
    is_list: bool = False


# In the order of the file.
FACTS = {
    "name": Fact("What is the published table called?", 1),
    "curators": Fact("Who publishes it? A list of organisations.", 1, "Published by", is_list=True),
    "intended_use": Fact("What is it to be used for?", 1, "Intended use"),
    "region": Fact("Which region do the data describe, or whose laws apply?", 1),
    "sector": Fact(
        "Which sector? The registry has Technology, Healthcare, Education, Government, ...", 1
    ),
    "description": Fact("What does the table say, in one or two sentences?", 1, "What it says"),
    "publication_date": Fact(
        "When was it first published? Year, month and day, such as 2026-05-31.",
        1,
        "First published",
    ),
    "data_source_type": Fact("Do new records come in? Dynamic if they do, Static if not.", 2),
    "preprocessing": Fact(
        "What was done with the records before, and where do bounds and epsilon come from?",
        title="Records, bounds",
    ),
    "justification": Fact(
        "Why these choices (unit, epsilon, cells), and who checked them?", 3, "Why so"
    ),
    "sources": Fact("Where can one read more? A list of addresses.", is_list=True),
    "notes": Fact("Anything else for the registry."),
    "registry_authors": Fact(
        "Who fills in the entry of the registry? A list of people.", 1, is_list=True
    ),
    "purpose": Fact("For which purpose are these data processed?", title="Purpose"),
    "legal_basis": Fact("On which legal basis?", title="Legal basis"),
    "unit": Fact("Who or what is one unit of the ledger, in words?", title="One unit"),
    "custody": Fact("Where is the ledger kept, and who has access to it?", title="The ledger"),
}
MOST_TIER = 3
_SOURCE_TYPES = ("Static", "Dynamic")
# The most characters of a fact.
_LONGEST = 5000
# The most characters of a fact that has a place on the page for the officer.
_LONGEST_ON_PAGE = 300
# What YAML writes for nothing.
_NOTHING = ("", "~", "null")
Facts = Mapping[str, Any]


def questions() -> str:
    """Returns the text of a file of facts that are to be filled in."""
    import yaml

    entries = []
    for name, fact in FACTS.items():
        nothing: Any = [""] if fact.is_list else ""
        entries.append(f"# {fact.question}\n{yaml.safe_dump({name: nothing})}")
    return "\n".join(entries)


def tier_of(facts: Facts) -> int | None:
    """Returns the highest tier for which all facts, also of lower tiers, are stated, or None."""
    tiers = (FACTS[name].tier for name in missing_for(MOST_TIER, facts))
    lowest_missing = min(tiers, default=MOST_TIER + 1)
    if lowest_missing == 1:
        return None
    return lowest_missing - 1


def missing_for(tier: int, facts: Facts) -> Iterator[str]:
    """Returns the names of the facts that a tier needs and that are not stated."""
    return (name for name, fact in FACTS.items() if 0 < fact.tier <= tier and not facts[name])


def read_facts(path: Path | None) -> dict[str, Any]:
    """Returns all facts, as texts or lists of texts; those without an answer or file are empty."""
    given = {} if path is None else _read(path)
    found: dict[str, Any] = {}
    for name, fact in FACTS.items():
        value = given.get(name, "")
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(each, str) for each in parts):
            raise InputError(
                f"the fact {name!r} in {str(path)!r} is neither a text nor a list of texts",
                "give a text in quotes, or a list of them, one a line, each after a dash",
            )
        told = [" ".join(each.split()) for each in parts if each.strip() not in _NOTHING]
        if len(told) > 1 and not fact.is_list:
            raise InputError(
                f"the fact {name!r} in {str(path)!r} is a list", "give one text for it"
            )
        most = _LONGEST_ON_PAGE if fact.title or name == "name" else _LONGEST
        if sum(map(len, told)) > most:
            raise InputError(
                f"the fact {name!r} in {str(path)!r} is longer than {most:,} characters",
                "say it in fewer words, and give the address of the rest under sources",
            )
        found[name] = told if fact.is_list else "".join(told)
    where = f"in {str(path)!r}"
    _check_date(found["publication_date"], where)
    if found["data_source_type"]:
        checks.choice(found["data_source_type"], _SOURCE_TYPES, f"data_source_type {where}")
    return found


def _read(path: Path) -> Mapping[str, Any]:
    """Returns the facts in a file, all as texts: so a region NO or a name 007 stays as it is."""
    import yaml

    try:
        # This loader makes texts of everything.
        loader = yaml.BaseLoader(documents.read_bytes(path, "facts").decode())
        node = loader.get_single_node()
        if node is None:
            return {}
        if not isinstance(node, yaml.MappingNode):
            raise DocumentError(f"{str(path)!r} is no list of facts", "write name: value, a line")
        names = [str(each.value) for each, _ in node.value]
        # YAML itself would take the last of two facts with one name.
        twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
        if twice is not None:
            raise InputError(f"the fact {twice!r} is twice in {str(path)!r}", "leave one of them")
        checks.keywords(names, FACTS, f"the file {str(path)!r}")
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
    """Refuse a date of publication that is not written as year, month and day."""
    try:
        sound = not text or date.fromisoformat(text).isoformat() == text
    except ValueError:
        sound = False
    if not sound:
        raise InputError(
            f"publication_date {where} is {checks.shown(text)}",
            "give year, month and day, such as 2026-05-31",
        )
