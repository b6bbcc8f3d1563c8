"""The transaction that records: the own draft, and with it those of processes that wait."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from shoal.errors import BudgetError, InputError, ShoalError
from shoal.privacy.budget import NOTHING
from shoal.privacy.ledger.file import operate
from shoal.privacy.ledger.place import damaged
from shoal.privacy.ledger.rules import refuse_beyond, refuse_other_unit

if TYPE_CHECKING:
    from pathlib import Path

    from shoal.privacy.ledger.entry import Draft, Entry, Founding, Link
    from shoal.privacy.ledger.file import Session

# What a draft, its pages or its commit can raise here: reading and computing in any way, also with
# decimals that trap. Not every Exception, as one of a signal's handler is the caller's.
_TROUBLE = (
    *(ShoalError, sqlite3.Error),
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
    *(MemoryError, RecursionError),
)


def recorded(path: Path, founding: Founding, draft: Draft) -> Entry:
    """The entry that stands for a draft's question and name: found, or written and charged.

    Args:
        path: The ledger's file.
        founding: Its creation record.
        draft: Checked.

    Raises:
        InputError: The ledger is about another privacy unit.
        BudgetError: The charge does not fit what is left.
        LedgerError: As `operate`.
    """

    def record(now: Session) -> Entry | None:
        _at("begun")
        state = now.chain.state()
        known = now.chain.find(draft.question, draft.name)
        refuse_other_unit(state.unit, draft.unit)
        if known is not None or now.group.told:
            return known
        entry = _enter(now, draft, state.last)
        try:
            _enter_others(now, entry)
            _at("before commit")
            now.commit()
        except _TROUBLE:
            if now.group.is_shared:
                return None
            raise
        # Outside: that the file was replaced is not the fault of others, and is never tried again.
        now.confirm()
        _at("after commit")
        now.group.tell()
        return entry

    shared = operate(path, founding, record, write=True, draft=draft)
    # What another process said but did not do, or what failed with drafts of others, is done alone.
    return shared or cast("Entry", operate(path, founding, record, write=True))


def _enter(now: Session, draft: Draft, last: Link | None) -> Entry:
    """Write an entry after the last one, if its charge fits."""
    budget = now.founding.budget
    refuse_beyond(budget, last.spent if last else NOTHING, draft.charge)
    _at("checked")
    entry = draft.after(last, now.founding, utc_now())
    now.chain.append(entry)
    _at("inserted")
    # The sum that was checked and the sum that is written are two computations.
    if not entry.spent.within(budget):
        raise damaged(now.path, "charges beyond its budget")
    return entry


def _enter_others(now: Session, last: Entry) -> None:
    """Write what followers have handed over, one after the other; what does not fit is left out."""
    for request in now.group.requests():
        draft = request.draft
        with suppress(BudgetError, InputError):
            refuse_other_unit(last.unit, draft.unit)
            if now.chain.find(draft.question, draft.name) is None:
                last = _enter(now, draft, last)
            now.group.enter(request)


def utc_now() -> str:
    """The time as ledgers note it: UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _at(point: str) -> None:
    """Where a crash would matter most; the crash tests stop a process here."""
