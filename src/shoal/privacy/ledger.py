"""A ledger: one SQLite file that adds up the privacy losses of one data set and keeps each result.

All rules are decided inside one write transaction (see `Ledger`).

The journal is a rollback journal and no write-ahead log: a backup that copies the one file between
two releases holds every charge. Each entry carries a hash over itself and the one before it, so
that a lost or changed entry is noticed; note the head elsewhere to recognise an old copy.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from random import random
from typing import Any

from shoal import checks
from shoal.documents import LEDGER_ENDING as ENDING
from shoal.errors import BudgetError, InputError, LedgerError, ShoalError
from shoal.files import folder_fault
from shoal.files.text_table import Shown, TextTable, counted
from shoal.privacy.budget import Amount, Budget, from_text
from shoal.privacy.unit import (
    DATES,
    EACH_ROW,
    NAMES,
    TRUTHS,
    UNZONED,
    ZONED,
    Periods,
    Unit,
    checked_name,
    first_and_last,
    over_all,
    plain_spelling,
)

SCHEMA_VERSION = 9
APPLICATION_ID = 0x53686F61  # "Shoa"
_PATIENCE = 60.0  # seconds to wait for other processes
_PAUSES = 0.005, 0.2  # seconds between two attempts, at first and at last
_SCHEMA = """
CREATE TABLE ledger (
    id TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL, privacy_unit TEXT NOT NULL,
    counts TEXT NOT NULL, period TEXT, total TEXT, created_at TEXT NOT NULL, hash TEXT NOT NULL);
CREATE TABLE entry (
    number INTEGER PRIMARY KEY, question TEXT NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL,
    epsilon TEXT NOT NULL, delta TEXT NOT NULL, spent_epsilon TEXT NOT NULL,
    spent_delta TEXT NOT NULL, recorded_at TEXT NOT NULL, periods TEXT,
    withdraws INTEGER, reason TEXT, document_sha256 TEXT NOT NULL,
    hash TEXT NOT NULL, document BLOB NOT NULL, UNIQUE (question, name));
"""
_FACTS = (
    "number, question, name, kind, epsilon, delta, spent_epsilon, spent_delta, recorded_at, "
    "periods, withdraws, reason, document_sha256, hash"
)
# The place of an entry's hash among its facts.
_HASH = 13
# The place of the hash in the row of the ledger itself.
_FIRST_HASH = 8
_NOTHING = Budget(Fraction(0))
# The step to take if the column of periods held this in earlier releases, and something else now.
_AS_BEFORE = {
    ZONED: "give the times with their zone, such as 2026-06-01T02:00+05:30",
    UNZONED: "give the times without a zone, by the same clocks as in the earlier releases, and "
    "with hours: midnights alone are dates",
    DATES: "give the days alone, by the same clocks as in the earlier releases",
    TRUTHS: "give the column as booleans",
    NAMES: "give the column as text, with the names of the earlier releases",
}
# Less than this part of the budget is shown as "next to nothing".
_NEXT_TO_NOTHING = Fraction(1, 1000)
# The kind of an entry that takes a release back.
WITHDRAWAL = "withdrawal"
_DURABLE = "PRAGMA synchronous = EXTRA; PRAGMA fullfsync = ON"  # macOS needs the second
_WRITABLE = "a file and a folder that this user may read and write"
_DAMAGED = (
    "a whole ledger",
    "restore the newest backup, remove NAME-journal beside it, and run `shoal ledger verify`",
)
_REASONS = {
    sqlite3.SQLITE_FULL: ("the disk is full", "free space and try again"),
    sqlite3.SQLITE_READONLY: ("it cannot be written", _WRITABLE, "change permissions, try again"),
    sqlite3.SQLITE_CANTOPEN: (
        "it is missing or cannot be opened",
        _WRITABLE,
        "check the path, or make one with `shoal ledger create`",
    ),
    sqlite3.SQLITE_BUSY: ("another process holds it", "end that process"),
    sqlite3.SQLITE_NOTADB: ("it is not a ledger", "check the path"),
    sqlite3.SQLITE_IOERR: ("reading or writing failed", "check the disk and try again"),
    sqlite3.SQLITE_CORRUPT: ("it has damaged pages", *_DAMAGED),
    sqlite3.SQLITE_ERROR: ("it has other tables than a ledger", *_DAMAGED),
}


@dataclass(frozen=True)
class Entry:
    """One recorded release: its question and name, its charge, and its result.

    Numbers count from 1. `spent` is the sum of charges up to this one; `hash` covers all facts of
    the entry and the hash of the entry before. `document` is the result byte for byte, and empty in
    a list of entries. In a ledger with a period the charge is booked on each of `periods`, and
    `spent` is the most that a user with records in all periods has lost. An entry that `withdraws`
    another one, by its number and with a `reason`, has no charge and no document. `withdrawn` of
    that other entry says when and why; it is empty for entries in force.
    """

    number: int
    question: str
    name: str
    kind: str
    charge: Budget
    spent: Budget
    recorded_at: str
    periods: Periods | None
    withdraws: int | None
    reason: str | None
    document_sha256: str
    hash: str
    document: bytes = field(default=b"", repr=False)
    withdrawn: str = ""

    @property
    def title(self) -> str:
        """The entry's name, or which entry it withdraws and why."""
        return self.name if self.withdraws is None else f"of entry {self.withdraws}: {self.reason}"

    @property
    def withdrawal(self) -> str:
        """The sentence of a withdrawal about the release that it withdraws."""
        return f"withdrawn on {self.recorded_at[:10]}: {self.reason}"

    @property
    def in_all(self) -> Budget:
        """The loss of a user with records in all periods of the entry."""
        return self.charge if self.periods is None else self.charge.in_all(len(self.periods.names))


@dataclass(frozen=True)
class State:
    """The state of a ledger: what was spent, exactly or rounded up, and the newest entry's hash.

    In a ledger with a period the budget holds in each period. Then `booked` is what was spent in
    each; `spent` is the most that a user with records in all of them has lost, and `total` the most
    that it may lose. `rule` says how the releases so far divide records into periods, and `holds`
    what the column of that rule holds.
    """

    privacy_unit: Unit
    budget: Budget
    spent: Budget
    entries: int
    head: str
    total: Budget | None = None
    booked: Mapping[str, Budget] = field(default_factory=dict)
    rule: str = ""
    holds: str = ""

    @property
    def left(self) -> Budget:
        """Budget less spent; less what was spent in the fullest period if there are periods."""
        if self.privacy_unit.period is None:
            return self.budget - self.spent
        return self.left_in(self.booked)

    def left_in(self, names: Iterable[str]) -> Budget:
        """Returns the budget that is left in each of these periods."""
        spent = [self.booked.get(name, _NOTHING) for name in names] or [_NOTHING]
        most = Budget(max(each.epsilon for each in spent), max(each.delta for each in spent))
        return self.budget - most

    def left_in_words(self, names: Iterable[str] | None = None) -> str:
        """Returns the budget that is left, in all or in these periods, as text and rounded down."""
        left = self.left if names is None else self.left_in(names)
        if 0 < left.epsilon < self.budget.epsilon * _NEXT_TO_NOTHING:
            return "next to nothing"
        return left.show(up=False)

    def balance(self, names: Iterable[str] | None = None) -> list[str]:
        """Says what is left, in all or in these periods, and then what all periods cost a user."""
        budget = self.budget.show(up=False)
        if self.privacy_unit.period is None:
            return [f"of {budget}, {self.left_in_words()} is left"]
        # The periods in which the same amount is left are named together.
        with_left: dict[str, list[str]] = {}
        for name in sorted(self.booked if names is None else names):
            with_left.setdefault(self.left_in_words([name]), []).append(name)
        left = [f"{amount} is left in {first_and_last(same)}" for amount, same in with_left.items()]
        if names is None:
            left.append(f"{budget} in each {'other ' if left else ''}{self.privacy_unit.period}")
        sentences = ["; ".join(left)]
        ceiling = "" if self.total is None else self.total.show(up=False)
        if self.booked:
            lost = over_all(self.privacy_unit, len(self.booked), self.spent, "has lost")
            sentences.append(f"{lost}, and may lose {ceiling}" if ceiling else lost)
        elif ceiling:
            sentences.append(f"{ceiling} over all {self.privacy_unit.period}s")
        return sentences

    def check(self, charge: Budget, unit: Unit, periods: Periods | None = None) -> Budget:
        """Returns the sum after a charge; refuses another unit, and a charge that does not fit."""
        ours = self.privacy_unit
        if unit != ours:
            raise InputError(
                f"the charge protects {unit}. The ledger protects {ours}", _other_unit(unit, ours)
            )
        kind_of_period = None if periods is None else periods.kind
        if kind_of_period != ours.period:
            raise InputError(
                "the charge does not say which periods it is of", "give the periods of the records"
            )
        if periods is not None:
            self._check_division(periods)
        if charge.delta and not self.budget.delta:
            raise BudgetError(
                f"the charge of {charge.show(up=True)} has a delta, but the ledger allows none",
                "plan with delta=0, as the budget of a ledger never changes",
            )
        if periods is None:
            _check_sum(self.spent, charge, self.budget, "")
            return self.spent.plus(charge)
        for name in periods.names:
            _check_sum(self.booked.get(name, _NOTHING), charge, self.budget, f" in {name}")
        in_all = charge.in_all(len(periods.names))
        if self.total is not None:
            _check_sum(self.spent, in_all, self.total, " over all periods")
        return self.spent.plus(in_all)

    def _check_division(self, periods: Periods) -> None:
        """Refuse periods in which a record could lie that earlier releases booked on others."""
        if self.rule not in ("", periods.rule):
            raise InputError(
                f"the records are divided by {periods.rule}, and those of earlier releases in this "
                f"ledger by {self.rule}: one record could lie in two periods",
                "divide them in the same way; rename a column that has another name in this file",
            )
        if self.holds not in ("", periods.holds):
            raise InputError(
                f"the records are divided by {periods.rule}, whose column holds {periods.holds} "
                f"here, and {self.holds} in earlier releases of this ledger: one record could lie "
                "in two periods",
                _AS_BEFORE[self.holds],
            )
        # Booked periods come first, so that a new name is the one that is refused.
        names = [*self.booked, *(each for each in periods.names if each not in self.booked)]
        first_with: dict[str, str] = {}
        for name, plain in zip(names, _plain(names), strict=True):
            first = first_with.setdefault(plain, name)
            if first != name:
                raise InputError(
                    f"the period {name!r} is equal to {first!r} but for blanks around it, or as a "
                    "number: they would be two periods",
                    f"spell it {first!r}, or put a letter before it if it is another period",
                )


def _plain(names: list[str]) -> list[str]:
    """Returns names in the spelling in which they are compared: see `plain_spelling`."""
    import pyarrow as pa

    found: list[str] = plain_spelling(pa.array(names, pa.string())).to_pylist()
    return found


def _check_sum(spent: Budget, charge: Budget, limit: Budget, where: str) -> None:
    """Refuse a charge that does not fit what is left of a limit."""
    if not spent.plus(charge).within(limit):
        raise BudgetError(
            f"the charge of {charge.show(up=True)} exceeds what is left{where}, "
            f"{(limit - spent).show(up=False)}",
            "plan a release with a smaller loss, or repeat a recorded one, which costs nothing",
        )


def _other_unit(unit: Unit, ours: Unit) -> str:
    """Returns the step to take with a charge that protects another unit than the ledger."""
    if unit.counts != ours.counts:
        return (
            f"use a ledger that was made with counts={unit.counts!r} (--counts "
            f"{unit.counts}): the losses of the two are never added up"
        )
    if unit.period != ours.period:
        return _other_period(unit, ours)
    same = "row" if unit.name == EACH_ROW else unit.name
    return (
        f"if each {same} is one {ours.name.removeprefix('each ')}, give "
        f"privacy_unit={ours.name!r} (--privacy-unit {ours.name!r}); else use another ledger"
    )


def _other_period(unit: Unit, ours: Unit) -> str:
    """Returns the step to take with a charge of another period than the ledger's."""
    made = "without a period"
    if unit.period is not None:
        made = f"with period={unit.period!r} (--period {unit.period})"
    if ours.period is None:
        return f"use a ledger that was made {made}"
    return (
        f"give records that are divided by {ours.period} (period=, --period), or use a ledger that "
        f"was made {made}; trials, means and arrays have no period"
    )


class Ledger(Shown):
    """A handle on one ledger file, which exists: `Ledger.create` makes one.

    The handle holds no connection, so threads and processes may share it.

    Attributes:
        path: The file, which `create` made; its name ends in `.ledger`.
        privacy_unit: Whose losses are added up and what of it is protected, a `Unit` that was
            fixed when it was created.
        budget: All the privacy loss that may be spent, in each period if the unit has one; fixed
            when it was created.

    Raises:
        LedgerError: Missing, damaged, or not a ledger of this version.

    Guarantees: the charges of all entries never exceed the budget, in exact rationals rounded
    against us, however many processes ask at once; all of them are about one privacy unit; an
    entry's charge and document are recorded together, durably, or not at all; a question is
    charged once under a name and answered with the same bytes ever after. A copy of the file is a
    second budget: keep one, and note the head elsewhere to recognise an old one.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> place = folder.name + "/flights.ledger"
        >>> ledger = Ledger.create(place, epsilon=1, privacy_unit="tailnum", counts="public")
        >>> asked = {"question": "speeds", "name": "2013-05", "privacy_unit": ledger.privacy_unit}
        >>> entry = ledger.record(**asked, epsilon=0.1, document=b"412.7")
        >>> ledger.record(**asked, epsilon=0.1, document=b"another draw").document
        b'412.7'
        >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = _path(path)
        self._first = ""
        with self._transaction() as (_, creation):
            self._first = creation.head
        self.privacy_unit = creation.privacy_unit
        self.budget = creation.budget

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        epsilon: Amount,
        delta: Amount = 0,
        privacy_unit: str,
        counts: str = "private",
        period: str | None = None,
        total: Amount | None = None,
    ) -> Ledger:
        """Make a ledger with a budget and a privacy unit that never change.

        Args:
            path: A new file in an existing folder; its name ends in `.ledger`.
            epsilon: All the privacy loss that a unit may ever have: a fraction, number, or
                text such as "0.1" or "1/3". A float counts as its shortest decimal.
            delta: The same for delta, from 0 to below 1.
            privacy_unit: Whose losses are added up: the user column's name, or `each row`.
            counts: Whether it is `private` who has how many records in which cell, and so who is
                in the data at all, or `public`. A ledger takes releases of one of the two.
            period: The kind of period, `day`, `week`, `month`, `quarter`, `year`, or the name of a
                column: the budget then holds for each user in each period, and a charge is booked
                on the periods of the records (docs/ledger.md#a-budget-that-comes-back).
            total: The largest epsilon that a user with records in all periods may lose; by default
                there is no limit.

        Raises:
            InputError: The path, the budget or the unit is not usable.
            LedgerError: The path exists or cannot be written.
        """
        budget = Budget.total(epsilon, delta)
        unit = Unit(privacy_unit, counts, period)  # type: ignore[arg-type]
        if total is not None and (period is None or budget.delta):
            raise InputError(
                "a total over all periods is given for a ledger without a period, or with a delta",
                "leave total out; with a period and delta=0 it limits the sum over periods",
            )
        most = None if total is None else Budget.total(total)
        if most is not None and most.epsilon < budget.epsilon:
            raise InputError(
                f"the total over all periods is below the epsilon of one {period}",
                f"give a total of at least {budget.show(up=True)}, or a smaller epsilon",
            )
        ceiling = None if most is None else str(most.epsilon)
        place = _path(path)
        facts = (
            *(str(uuid.uuid4()), str(budget.epsilon), str(budget.delta)),
            *(unit.name, unit.counts, unit.period, ceiling, _now()),
        )
        _make_file(place, path)
        try:
            # One transaction: a crash leaves a ledger, or an empty file, which is refused.
            with _plain_errors(place), closing(_connection(place)) as connection:
                connection.executescript(
                    f"{_DURABLE}; BEGIN; PRAGMA application_id = {APPLICATION_ID}; "
                    f"PRAGMA user_version = {SCHEMA_VERSION}; {_SCHEMA}"
                )
                row = (*facts, _hash("", facts))
                connection.execute("INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
                connection.execute("COMMIT")
        except LedgerError:
            place.unlink(missing_ok=True)
            raise
        return cls(place)

    def state(self) -> State:
        """Unit, budget, what is spent, how many entries and the head, read at one moment."""
        with self._transaction() as (connection, creation):
            return self._newest(connection, creation)

    @property
    def spent(self) -> Budget:
        """The sum of all charges, read now."""
        return self.state().spent

    def find(self, question: str, name: str = "", *, withdrawn: bool = False) -> Entry | None:
        """The release recorded for a question under a name, with its document, or None.

        One that was withdrawn is refused by a LedgerError, which says when and why, unless it is
        wanted all the same.
        """
        wanted = checked_name(question, "a question"), checked_name(name)
        with self._transaction() as (connection, _):
            return self._found(connection, *wanted, withdrawn=withdrawn)

    def names(self, question: str) -> list[str]:
        """The names that a question was recorded under, in their order; empty if it never was."""
        query = "SELECT name FROM entry WHERE question = ? ORDER BY name"
        with self._transaction() as (connection, _):
            return [name for (name,) in connection.execute(query, (question,))]

    def entries(self) -> list[Entry]:
        """All recorded releases and withdrawals in order, without their documents."""
        with self._transaction() as (connection, _):
            return _entries(connection)

    def releases(self) -> list[Entry]:
        """All recorded releases in order, without their documents."""
        return [each for each in self.entries() if each.withdraws is None]

    def withdraw(self, *, reason: str, name: str = "", number: int | None = None) -> Entry:
        """Take a release back: it is not delivered any more, and its charge stays spent.

        The correction is another release under a new name, with a charge of its own
        (docs/ledger.md#correct-a-release).

        Args:
            reason: Why, in a few words that everybody may read.
            name: The name of the release.
            number: The number of its entry instead, if the name is not unique.

        Returns:
            The entry that withdraws it.

        Raises:
            InputError: No reason, or not one entry of this name or number.
            LedgerError: It was withdrawn before; or as `record`.

        Example:
            >>> import tempfile
            >>> folder = tempfile.TemporaryDirectory()
            >>> place = folder.name + "/flights.ledger"
            >>> ledger = Ledger.create(place, epsilon=1, privacy_unit="tailnum", counts="public")
            >>> asked = {"name": "2013-05", "privacy_unit": ledger.privacy_unit}
            >>> entry = ledger.record("speeds", **asked, epsilon=0.1, document=b"412.7")
            >>> ledger.withdraw(name="2013-05", reason="wrong file").withdraws
            1
            >>> ledger.find("speeds", "2013-05")
            Traceback (most recent call last):
            shoal.errors.LedgerError: the release '2013-05' (entry 1) was withdrawn on ...
            >>> folder.cleanup()
        """
        why = checked_name(reason, "a reason")
        if not why:
            raise InputError("a release is withdrawn without a reason", 'give one: "wrong file"')
        with self._transaction(write=True) as (connection, creation):
            state = self._newest(connection, creation)
            entry = the_entry(_entries(connection), name, number)
            check_in_force(entry)
            asked = (_withdrawal_of(entry.number), "", WITHDRAWAL)
            of_entry = (entry.number, why)
            return _add(connection, state, asked, _NOTHING, state.spent, b"", None, of_entry)

    def record(
        self,
        question: str,
        *,
        privacy_unit: Unit,
        periods: Periods | None = None,
        epsilon: Amount,
        delta: Amount = 0,
        document: bytes,
        name: str = "",
        kind: str = "",
    ) -> Entry:
        """Record a result and its charge in one durable transaction; deliver what is returned.

        If the question was recorded before under this name, that entry is returned and nothing is
        charged: its document is the release, not the one given here. An error or an interrupt
        leaves either the whole entry or nothing; asking again is always safe.

        Args:
            question: Digest of everything public that decides the release.
            privacy_unit: Whose loss the charge is.
            periods: The periods of the records, if the unit has a period: the charge is booked on
                each of them.
            epsilon: The charge, as in `create`; 0 is allowed.
            delta: The same for delta.
            document: The result, kept byte for byte.
            name: What the release is of, such as a period: another name is charged again.
            kind: What is released, such as `cells`; shown, and not part of the question.

        Raises:
            InputError: An argument is not usable, or the ledger is about another privacy unit.
            BudgetError: The charge does not fit what is left; nothing was recorded.
            LedgerError: The ledger is missing, damaged, locked or cannot be written.
        """
        charge = Budget.of(epsilon, delta)
        unit = checks.instance(privacy_unit, Unit, "the privacy unit", "give a Unit")
        asked = (
            checked_name(question, "a question"),
            checked_name(name),
            checked_name(kind, "a kind"),
        )
        if not isinstance(document, bytes):
            raise InputError(f"document is a {type(document).__name__}", "encode it as bytes first")
        with self._transaction(write=True) as (connection, creation):
            recorded = self._found(connection, *asked[:2])
            if recorded is not None:
                return recorded
            state = self._newest(connection, creation)
            spent = state.check(charge, unit, periods)
            return _add(connection, state, asked, charge, spent, document, periods)

    def verify(self, head: str = "") -> State:
        """Recompute every hash and every running sum: any change, also of a document, is found.

        A file put back to an older state holds: a head noted elsewhere finds that.

        Raises:
            LedgerError: The ledger is damaged, was changed, or lacks the head that was noted.
        """
        with self._transaction() as (connection, creation):
            if connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
                raise self._damaged("damaged pages")
            spent = creation.spent
            newest_hash = creation.head
            hashes = {newest_hash}
            state = self._newest(connection, creation)
            rows = connection.execute(f"SELECT {_FACTS}, document FROM entry ORDER BY number")
            for number, row in enumerate(rows, 1):
                entry = _entry(row)
                spent = spent.plus(entry.in_all)
                newest_hash = _hash(newest_hash, row[:_HASH])
                hashes.add(newest_hash)
                computed = number, spent, newest_hash, _sha256(entry.document)
                if computed != (entry.number, entry.spent, entry.hash, entry.document_sha256):
                    raise self._damaged(f"an entry {number} that was changed or is missing")
        # With a period the budget holds in each, and a total, if there is one, over all of them.
        sums = [*state.booked.values()] if state.privacy_unit.period else [spent]
        within_total = state.total is None or spent.within(state.total)
        if not (within_total and all(each.within(state.budget) for each in sums)):
            raise self._damaged("charges beyond its budget")
        if head and head not in hashes:
            raise LedgerError(
                f"the ledger {str(self.path)!r} does not contain the given head",
                "look for a newer copy: entries are missing, or this is another ledger",
            )
        return state

    def __repr__(self) -> str:
        return f"<ledger {str(self.path)!r}, budget {self.budget.show(up=False)}>"

    def _text(self) -> TextTable:
        """Returns the ledger as text: what is spent and left, and a row for each entry."""
        state = self.state()
        entries = self.entries()
        budget = state.budget.show(up=False)
        balance = [f"{state.spent.show(up=True)} spent of {budget}, {state.left_in_words()} left"]
        columns = ["entry", "kind", "charge", "recorded at", "name"]
        rows = [
            [str(each.number), each.kind, each.charge.show(up=True), each.recorded_at, each.title]
            for each in entries
        ]
        if state.privacy_unit.period is not None:
            balance = state.balance()
            columns.append("periods")
            for row, each in zip(rows, entries, strict=True):
                row.append("" if each.periods is None else str(each.periods))
        releases = counted(sum(each.withdraws is None for each in entries), "release")
        first, *others = balance
        head = "\n".join([f"{releases}: {first}", *others, f"protects {state.privacy_unit}"])
        return TextTable(head, columns, rows, [f"head {state.head}"])

    def _found(
        self, connection: sqlite3.Connection, question: str, name: str, *, withdrawn: bool = False
    ) -> Entry | None:
        """Returns the entry of a question and name, and refuses a withdrawn one unless wanted."""
        query = f"SELECT {_FACTS}, document FROM entry WHERE question = ? AND name = ?"
        row = connection.execute(query, (question, name)).fetchone()
        if row is None:
            return None
        entry = _entry(row)
        if _sha256(entry.document) != entry.document_sha256:
            raise self._damaged(f"a document of entry {entry.number} that was changed")
        query = f"SELECT {_FACTS} FROM entry WHERE question = ? AND withdraws = ?"
        row = connection.execute(query, (_withdrawal_of(entry.number), entry.number)).fetchone()
        if row is not None:
            entry = replace(entry, withdrawn=_entry(row).withdrawal)
        if not withdrawn:
            check_in_force(entry)
        return entry

    @contextmanager
    def _transaction(self, *, write: bool = False) -> Iterator[tuple[sqlite3.Connection, State]]:
        """A connection in one transaction, and the state at creation; an early end rolls back."""
        with _plain_errors(self.path), closing(_connection(self.path)) as connection:
            if write:
                connection.executescript(_DURABLE)
                # Another program may have set a write-ahead log, which the file remembers.
                _patiently(connection, "PRAGMA journal_mode = DELETE")
            _patiently(connection, "BEGIN IMMEDIATE" if write else "BEGIN")
            self._check_version(connection)
            # No other program can set a write-ahead log while this process holds the lock.
            if write and connection.execute("PRAGMA journal_mode").fetchone() != ("delete",):
                raise LedgerError(
                    f"another program has set the ledger {str(self.path)!r} to a write-ahead log",
                    "end the programs that have it open, and try again; nothing was charged",
                )
            yield connection, self._creation(connection)
            _patiently(connection, "COMMIT")

    def _check_version(self, connection: sqlite3.Connection) -> None:
        """Refuse a file that is no ledger of this version."""
        names = ("application_id", "user_version", "page_count")
        kind, version, pages = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names
        )
        if (kind, version) != (APPLICATION_ID, SCHEMA_VERSION):
            what = "is not a ledger"
            if not pages:
                what = "is empty: its creation was interrupted"
            elif kind == APPLICATION_ID:
                what = "is of another version of shoal"
            raise LedgerError(
                f"{str(self.path)!r} {what}",
                "check the path, or create a new ledger under another name",
            )

    def _creation(self, connection: sqlite3.Connection) -> State:
        """Returns the facts that never change, as the state of a ledger without entries."""
        rows = connection.execute("SELECT * FROM ledger").fetchall()
        if len(rows) != 1 or _hash("", rows[0][:_FIRST_HASH]) != rows[0][_FIRST_HASH]:
            raise self._damaged("a creation record that was changed")
        _, epsilon, delta, name, counts, period, total, _, first = rows[0]
        # While the handle is made, no first hash is known.
        if self._first not in ("", first):
            raise LedgerError(
                f"{str(self.path)!r} was replaced by another ledger after it was opened",
                "open it again, and find out why it was replaced",
            )
        budget = Budget(from_text(epsilon), from_text(delta))
        ceiling = None if total is None else Budget(from_text(total))
        return State(Unit(name, counts, period), budget, _NOTHING, 0, first, ceiling)

    def _newest(self, connection: sqlite3.Connection, creation: State) -> State:
        """Returns the state after the newest entry; reads two entries, or all with periods."""
        query = f"SELECT {_FACTS} FROM entry ORDER BY number DESC LIMIT 2"
        rows = connection.execute(query).fetchall()
        if not rows:
            return creation
        newest, *before = rows
        last = _entry(newest)
        hash_before = before[0][_HASH] if before else creation.head
        if _hash(hash_before, newest[:_HASH]) != last.hash:
            raise self._damaged(f"an entry {last.number} that was changed")
        state = replace(creation, spent=last.spent, entries=last.number, head=last.hash)
        if state.privacy_unit.period is None:
            return state
        # All entries have the same rule, and its column holds the same: `State.check` sees to that.
        rule = ""
        holds = ""
        booked: dict[str, Budget] = {}
        query = f"SELECT {_FACTS} FROM entry WHERE periods IS NOT NULL ORDER BY number"
        for entry in map(_entry, connection.execute(query)):
            assert entry.periods is not None
            rule = entry.periods.rule
            holds = entry.periods.holds
            for name in entry.periods.names:
                booked[name] = booked.get(name, _NOTHING).plus(entry.charge)
        return replace(state, booked=booked, rule=rule, holds=holds)

    def _damaged(self, what: str) -> LedgerError:
        return LedgerError(f"the ledger {str(self.path)!r} has {what}", *_DAMAGED)


def _path(path: str | os.PathLike[str]) -> Path:
    """Returns the absolute path of a ledger, whose name must have the ending of ledgers."""
    place = Path(checks.path(path, "the ledger path")).absolute()
    if place.suffix != ENDING:
        raise InputError(
            f"the ledger is named {place.name!r}",
            f"end its name in {ENDING}: {place.stem + ENDING!r}",
        )
    return place


def _make_file(place: Path, path: str | os.PathLike[str]) -> None:
    """Makes an empty file at an absolute place, and never touches one that is there.

    `path` is the place as it was given, in which a fault of its folder is told.
    """
    try:
        place.touch(exist_ok=False)
    except FileExistsError:
        raise LedgerError(
            f"there is a ledger or another file at {str(place)!r} already",
            "open the ledger that is there, or choose another path",
        ) from None
    except OSError as error:
        failed = f"the ledger {str(place)!r} cannot be created ({error.strerror})"
        fault = folder_fault(Path(path)) or (failed, "choose a path in a writable folder")
        raise LedgerError(*fault) from None


def _connection(path: Path) -> sqlite3.Connection:
    """Returns a connection that begins no transactions by itself and never makes a file."""
    uri = f"{path.as_uri()}?mode=rw"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_PATIENCE)


def _patiently(connection: sqlite3.Connection, statement: str) -> None:
    """Wait for a lock in short random steps: SQLite's own waiting starves the unlucky."""
    until = time.monotonic() + _PATIENCE
    pause, longest_pause = _PAUSES
    connection.execute("PRAGMA busy_timeout = 0")
    while True:
        try:
            connection.execute(statement)
        except sqlite3.OperationalError as error:
            # The lower byte is the kind of error; others only say more about it.
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() > until:
                raise
            time.sleep(pause * random())
            pause = min(2 * pause, longest_pause)
        else:
            break
    connection.execute(f"PRAGMA busy_timeout = {int(1000 * _PATIENCE)}")


@contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    """Turns SQLite's errors into plain sentences; rows that cannot be read are damage."""
    try:
        yield
    except ShoalError:
        raise
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        unknown = f"SQLite fails with code {code}", "try again"
        what, *steps = _REASONS.get(code, unknown)
        raise LedgerError(f"the ledger {str(path)!r} cannot be used: {what}", *steps) from None
    except (TypeError, ValueError, ArithmeticError):
        raise LedgerError(f"the ledger {str(path)!r} has unreadable rows", *_DAMAGED) from None


def _entry(row: tuple[Any, ...]) -> Entry:
    """Returns the entry of a row, with its document if the row has it."""
    number, question, name, kind, epsilon, delta, spent_epsilon, spent_delta = row[:8]
    charge = Budget(from_text(epsilon), from_text(delta))
    spent = Budget(from_text(spent_epsilon), from_text(spent_delta))
    recorded_at, listed, *others = row[8:]
    periods = None if listed is None else Periods.of_list(json.loads(listed))
    return Entry(number, question, name, kind, charge, spent, recorded_at, periods, *others)


def _entries(connection: sqlite3.Connection) -> list[Entry]:
    """Returns all entries in order, without documents; withdrawn ones say so."""
    rows = connection.execute(f"SELECT {_FACTS} FROM entry ORDER BY number")
    entries = [_entry(row) for row in rows]
    said = {each.withdraws: each.withdrawal for each in entries if each.withdraws is not None}
    return [replace(each, withdrawn=said.get(each.number, "")) for each in entries]


def the_entry(entries: list[Entry], name: str, number: int | None) -> Entry:
    """Returns the one release of this number or, without one, of this name; InputError if none."""
    releases = [each for each in entries if each.withdraws is None]
    if number is None:
        matching = [each for each in releases if each.name == name]
    else:
        matching = [each for each in releases if each.number == number]
    if len(matching) != 1:
        listed = ", ".join(f"{each.number} ({each.name or 'without a name'})" for each in releases)
        raise InputError(
            f"{len(matching)} entries of the ledger match, not one; its entries are "
            f"{listed or 'none'}",
            "choose one entry by its number with --entry, or by a name that only it has",
        )
    return matching[0]


def _withdrawal_of(number: int) -> str:
    """Returns the question of a withdrawal, by which it is found."""
    return f"{WITHDRAWAL} of entry {number}"


def check_in_force(entry: Entry) -> None:
    """Refuse an entry that was withdrawn."""
    if entry.withdrawn:
        raise LedgerError(
            f"the release {entry.name!r} (entry {entry.number}) was {entry.withdrawn}",
            "release the correction under a new name, or see the old numbers with `shoal show "
            "--withdrawn`",
        )


def _add(
    connection: sqlite3.Connection,
    state: State,
    asked: tuple[str, str, str],
    charge: Budget,
    spent: Budget,
    document: bytes,
    periods: Periods | None = None,
    withdrawal: tuple[int | None, str | None] = (None, None),
) -> Entry:
    """Add an entry of question, name and kind after the newest one."""
    listed = None if periods is None else json.dumps(periods.listed)
    facts = (
        *(state.entries + 1, *asked, str(charge.epsilon), str(charge.delta)),
        *(str(spent.epsilon), str(spent.delta), _now(), listed, *withdrawal, _sha256(document)),
    )
    row = (*facts, _hash(state.head, facts), document)
    marks = ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO entry ({_FACTS}, document) VALUES ({marks})", row)
    return _entry(row)


def _hash(previous: str, facts: tuple[Any, ...]) -> str:
    """Returns the hash of an entry, which covers the hash of the one before it."""
    return _sha256(json.dumps([previous, *facts]).encode())


def _sha256(document: bytes) -> str:
    return hashlib.sha256(document).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
