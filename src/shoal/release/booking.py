"""One release, one charge: find what was recorded, or draw, record and deliver."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.errors import InputError, ShoalWarning
from shoal.privacy.charge_rounding import booked
from shoal.privacy.ledger.arguments import release_name
from shoal.privacy.ledger.ledger import Ledger

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from shoal.privacy.ledger.entry import Link
    from shoal.privacy.ledger.ledger import Entry
    from shoal.privacy.ledger.rules import Answer
    from shoal.privacy.privacy_unit import Whose
    from shoal.release.question import Question

_SHOWN = 3


@dataclass(frozen=True)
class Delivery:
    """What may leave the process.

    Attributes:
        document: The release, byte for byte as recorded.
        entry: The ledger's entry.
        from_ledger: Whether it had been recorded before: no value was read, nothing charged.
    """

    document: bytes
    entry: Entry
    from_ledger: bool


def deliver(
    ledger: str | os.PathLike[str] | Ledger,
    question: Question,
    draw: Callable[[], bytes],
    *,
    again: bool = False,
    check_shape: Callable[[], None] = lambda: None,
) -> Delivery:
    """Deliver what a ledger recorded for a question and name; else draw it and record it.

    Guarantees: nothing is drawn if it was recorded or would not fit, or if nobody said whose loss
    a ledger without entries is to add up (G-LEDGER); of two processes with the
    same question one draw is recorded, and the other is thrown away before anyone sees it. A
    question that was recorded is answered without a name only if `again` says so: the records
    may have changed since. A new name for a question that was recorded without one warns before
    anything is drawn.

    Args:
        ledger: The data set's ledger, or its path.
        question: What is asked for.
        draw: Makes the document; called at most once.
        again: Whether only what is recorded for the question may be delivered, also without a name
            if there is but one: nothing is drawn or charged.
        check_shape: Called before a recorded release is delivered or a name is asked for: refuses
            records whose public shape is not that of the question, and reads no value.

    Raises:
        InputError: An unusable name, or none where one is needed; `again` and nothing recorded;
            another privacy unit, or one that nobody said.
        BudgetError: The charge does not fit what is left.
        LedgerError: The ledger is missing, damaged or cannot be written.

    Example:
        >>> import tempfile
        >>> from shoal.privacy.budget import Budget
        >>> from shoal.privacy.privacy_unit import PrivacyUnit, Whose
        >>> from shoal.release.question import Question
        >>> folder = tempfile.TemporaryDirectory()
        >>> book = Ledger.create(folder.name + "/a.ledger", epsilon=1)
        >>> whose, loss = Whose(PrivacyUnit("person"), True), Budget.of("1/2")
        >>> may = Question("cells", {}, {"of": "speeds"}, {}, whose, loss, "", "", name="May")
        >>> deliver(book, may, lambda: b"3.1").document
        b'3.1'
        >>> deliver(book, may, lambda: b"2.7").document
        b'3.1'
        >>> folder.cleanup()
    """
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    check_request(question.name, again=again, recorded=True)
    held = book.look_up(question.key, question.name)
    recorded = _recorded(book, question, held, check_shape, again=again)
    if recorded is not None:
        return Delivery(recorded.document, recorded, from_ledger=True)
    charge, whose = question.loss, question.whose
    _check_said(book, held, whose)
    held.check(booked(charge), whose.unit)
    document = draw()
    entry = book.record(
        question.key,
        name=question.name,
        kind=question.kind,
        unit=whose.unit,
        epsilon=charge.epsilon,
        delta=charge.delta,
        document=document,
    )
    # Another process may have recorded the same question first: its numbers are the release.
    return Delivery(entry.document, entry, from_ledger=entry.document != document)


def _check_said(book: Ledger, held: Answer, whose: Whose) -> None:
    """Refuse to fix a ledger's unit by a guess: later charges by person would not add up."""
    if whose.said or held.unit is not None:
        return
    raise InputError(
        f"a first release into the ledger {str(book.path)!r} that does not say whose loss it is",
        "a privacy unit that somebody said: a ledger keeps it, and each row is only a guess",
        f'if nobody has two rows say privacy_unit="{whose.unit.name}" (--privacy-unit '
        f'"{whose.unit.name}"), else give the column that tells units apart (unit= or users=; '
        "--unit or --user), or make the ledger with its unit",
    )


def _recorded(
    book: Ledger,
    question: Question,
    held: Answer,
    check_shape: Callable[[], None],
    *,
    again: bool,
) -> Entry | None:
    """The entry that is meant; None if there is none and one may be drawn."""
    found, names = held.entry, held.names
    if question.name:
        if found is not None or again:
            check_shape()
        if found is None and again:
            raise _nothing(book, question, names)
        if found is None and "" in names:
            _say_unnamed(book, question)
        return found
    if not names and not again:
        return None
    # Whoever brings other records needs another plan: a name would not help.
    check_shape()
    if again and not names:
        raise _nothing(book, question, names)
    if again and ("" in names or len(names) == 1):
        return found or book.find(question.key, names[0])
    raise InputError(
        f"a question that the ledger {str(book.path)!r} holds {_told_names(names)}, and no name",
        "a name, such as a period, that says what the release is of",
        "give that name to have the recorded one; a new name without again (--again) draws and "
        "charges"
        if again
        else "give a name to draw and charge again, or again=True (--again) to have the recorded "
        "one delivered: no value is read",
    )


def _say_unnamed(book: Ledger, question: Question) -> None:
    """Ask whether a new name is meant for what has none, before it is drawn and charged."""
    warnings.warn(
        f"the same question was recorded in the ledger {str(book.path)!r} without a name before, "
        f"and a new name such as {question.name!r} draws and charges anew; if that is this "
        "release, deliver it with again=True and no name (--again)",
        ShoalWarning,
        stacklevel=2,
    )


def _nothing(book: Ledger, question: Question, names: list[str]) -> InputError:
    """The error of asking again for what was never recorded: it is not drawn instead."""
    path = str(book.path)
    if not names:
        return InputError(
            f"again=True (--again) and a question of which the ledger {path!r} holds no release",
            "a question that was released into this ledger: again never draws or charges",
            "leave again out to draw and charge; else give the ledger, the plan and the options of "
            "the recorded release (`shoal ledger show` lists what there is)",
        )
    return InputError(
        f"again=True (--again) and the name {question.name!r}; the ledger {path!r} holds the "
        f"question {_told_names(names)}",
        "a name under which it is recorded: again never draws or charges",
        "give such a name, or leave again out to draw and charge under the new one",
    )


def _told_names(names: list[str]) -> str:
    """Under which names a question is held."""
    named = ", ".join(repr(name) for name in names[:_SHOWN] if name)
    parts = ["without a name"] * ("" in names) + [f"under {named}"] * bool(named)
    return " and ".join(parts) + (", ..." if len(names) > _SHOWN else "")


def told(entry: Link | None, *, again: bool) -> str:
    """What a release says of where it is booked, and whether it was drawn just now.

    Args:
        entry: Of the ledger; None if no ledger has it.
        again: Whether it had been recorded before.

    Example:
        >>> from shoal.privacy.budget import Budget
        >>> from shoal.privacy.ledger.entry import Link
        >>> from shoal.privacy.privacy_unit import PrivacyUnit
        >>> loss, unit = Budget.of(1), PrivacyUnit("person")
        >>> charge = unit, loss.epsilon, loss.delta, loss
        >>> may = Link(3, "q", "May", "cells", *charge, "2026-06-01T08:00:00+00:00", "", "", "")
        >>> told(may, again=False), told(None, again=False)
        ("entry 3 of the ledger, named 'May'", 'not recorded in a ledger')
        >>> told(may, again=True).split(", ")[:2]
        ['delivered again from the ledger', 'entry 3 recorded 2026-06-01T08:00:00+00:00']
    """
    if entry is None:
        return "not recorded in a ledger"
    named = f"named {entry.name!r}" if entry.name else "without a name"
    if not again:
        return f"entry {entry.number} of the ledger, {named}"
    return (
        f"delivered again from the ledger, entry {entry.number} recorded {entry.recorded_at}, "
        f"{named}; no value was read"
    )


def check_request(name: object, *, again: object, recorded: bool) -> None:
    """Refuse a release's name and the request to have it again if they are of no use.

    Args:
        name: What the release is of; may be empty.
        again: Whether only what is recorded is wanted.
        recorded: Whether there is a ledger, which alone has anything recorded.

    Raises:
        InputError: No printable text, or blanks around it or two in a row, which no reader sees;
            no truth value; `again` without a ledger.

    Example:
        >>> check_request("2013-05", again=True, recorded=True)
    """
    release_name(name)
    if not isinstance(again, bool):
        raise InputError(f"again is a {type(again).__name__}", "True or False", "leave it out")
    if again and not recorded:
        raise InputError(
            "again=True without a ledger, so that it would be drawn",
            "again with the ledger that holds the release: again never draws",
            "give the ledger, or leave again out",
        )
