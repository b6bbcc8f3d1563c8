"""A draft as a message: what was sent, or nothing."""

from __future__ import annotations

import json
import struct
from fractions import Fraction

import pytest

from shoal.privacy.budget import Budget
from shoal.privacy.ledger.entry import Draft, digest_of
from shoal.privacy.ledger.message import decoded, encoded
from shoal.privacy.privacy_unit import PrivacyUnit
from tests.support.loop import loop_over

pytestmark = [pytest.mark.unit, pytest.mark.full]

LEDGER = "ab" * 32
PERSON = PrivacyUnit("person")
DRAFT = Draft(
    "q", "Mai ä", "cells", PERSON, Budget.of("1/3"), b"\0document", digest_of(b"\0document")
)


def _facts(**changed: object) -> list[object]:
    facts: dict[str, object] = {
        "ledger": LEDGER,
        "question": "q",
        "name": "",
        "kind": "",
        "unit": PERSON.to_text(),
        "epsilon": "1/3",
        "delta": "0",
        "digest": digest_of(b"x"),
    }
    return list({**facts, **changed}.values())


def _message(facts: object, document: bytes = b"x", indent: int | None = None) -> bytes:
    text = json.dumps(facts, indent=indent).encode()
    return struct.pack(">I", len(text)) + text + document


def test_a_draft_comes_as_it_was_sent() -> None:
    """Every part of it; an empty document too."""
    assert decoded(LEDGER, encoded(LEDGER, DRAFT)) == DRAFT
    assert decoded(LEDGER, _message(_facts())) is not None
    empty = Draft("q", "", "", PERSON, Budget.of(0), b"", digest_of(b""))
    assert decoded(LEDGER, encoded(LEDGER, empty)) == empty


@loop_over(
    "facts",
    [
        _facts(ledger="cd" * 32),
        _facts(question=""),
        _facts(question="x" * 1001),
        _facts(question="\ud800"),
        _facts(question=7),
        _facts(name=None),
        _facts(kind=["cells"]),
        _facts(unit=""),
        _facts(unit="person"),
        _facts(unit='{"name":"person","relation":"values"}'),
        _facts(unit="[" * 20000),
        _facts(unit=1),
        _facts(epsilon="-1/3"),
        _facts(epsilon="nan"),
        _facts(epsilon="inf"),
        _facts(epsilon="1e3"),
        _facts(epsilon="0.1"),
        _facts(epsilon="2/6"),
        _facts(epsilon="1/0"),
        _facts(epsilon=0.1),
        _facts(epsilon=float("nan")),
        _facts(epsilon=str(Fraction(1, 10**40 + 1))),
        _facts(epsilon="9" * 5000),
        _facts(delta="-1"),
        _facts(delta=""),
        _facts(digest=digest_of(b"y")),
        _facts(digest=""),
        _facts()[:-1],
        [*_facts(), ""],
        {"question": "q"},
        "q",
        None,
    ],
)
def test_what_record_would_not_send_is_no_draft(facts: object) -> None:
    """Another ledger, broken texts, charges below zero or not rounded, false digests."""
    assert decoded(LEDGER, _message(facts)) is None


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\0",
        b"\0\0\0\0",
        b"\xff\xff\xff\xff" + b"x" * 100,
        b"garbage that is no draft",
        b"\0\0\xff\xff" + b"[" * 65000,
        _message(_facts(), indent=1),
        _message(_facts()) + b"x",
        _message(_facts())[:-1],
        b"\0\0\0\1" + _message(_facts())[4:],
    ],
)
def test_another_spelling_is_no_draft(message: bytes) -> None:
    """Lengths that lie, more or fewer bytes, other bytes for the same facts."""
    assert decoded(LEDGER, message) is None
