"""The books of one data set: a file that outlives processes and never exceeds its budget."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.accounting import ledger_chain as chain
from shoal.accounting.budget import Amount, Budget
from shoal.accounting.ledger_chain import Entry, Founding
from shoal.accounting.ledger_file import create_file, session
from shoal.errors import BudgetError, InputError, LedgerError, raise_alone

if TYPE_CHECKING:
    import os
    from types import TracebackType
    from typing import Self

__all__ = ["Budget", "Entry", "Ledger"]

_MOST_BYTES = 900_000_000  # SQLite keeps rows below a billion bytes


class Ledger:
    """A handle on one ledger file, made with `Ledger.create` or `Ledger.open`.

    The handle holds no connection: each operation opens its own, so one handle may be used from
    many threads and processes, also after a fork.

    Guarantees: the charges of all entries never exceed the budget, in exact rationals, however
    many processes ask at once; an entry's charge and document are recorded together, durably,
    or not at all; a request is charged once and answered with the same bytes ever after. A copy
    of the file is a second budget: keep one, and note `head` elsewhere to recognise an old one.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger.create(folder.name + "/flights.ledger", epsilon=1)
        >>> entry = ledger.record("speeds", epsilon=0.1, document=b"412.7")
        >>> ledger.record("speeds", epsilon=0.1, document=b"another draw").document
        b'412.7'
        >>> ledger.remaining
        Budget(epsilon=Fraction(9, 10), delta=Fraction(0, 1))
        >>> folder.cleanup()
    """

    def __init__(self, path: Path, founding: Founding) -> None:
        self.path, self._founding = path, founding

    @classmethod
    def create(cls, path: str | os.PathLike[str], *, epsilon: Amount, delta: Amount = 0) -> Ledger:
        """Make a ledger with a budget that never changes.

        Args:
            path: A new file in an existing folder.
            epsilon: All the privacy loss the data set may ever have: a fraction, number, or
                text such as "0.1" or "1/3". A float counts as its shortest decimal.
            delta: The same for delta, from 0 to below 1.

        Raises:
            InputError: The budget is not usable.
            LedgerError: The path exists or cannot be written.
        """
        founding = Founding(str(uuid.uuid4()), Budget.total(epsilon, delta), _now())
        place = _absolute(path)
        create_file(place, founding)
        return cls(place, founding)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Ledger:
        """Open a ledger that exists; the chain is left to `verify`.

        Raises:
            LedgerError: Missing, damaged, or not a ledger of this version.
        """
        place = _absolute(path)
        with session(place, None) as found:
            return cls(place, found.founding)

    @property
    def budget(self) -> Budget:
        """All that may ever be spent."""
        return self._founding.budget

    @property
    def spent(self) -> Budget:
        """The exact sum of all charges, read now."""
        with session(self.path, self._founding) as now:
            return chain.read_spent(now.connection, self.path)[1]

    @property
    def remaining(self) -> Budget:
        """Budget less spent, read now."""
        return self.budget - self.spent

    @property
    def head(self) -> str:
        """The hash of the newest entry, or of the creation record if there is none."""
        with session(self.path, self._founding) as now:
            last = chain.read_last(now.connection, self.path)
            return last.hash if last else self._founding.hash

    def entries(self) -> list[Entry]:
        """All recorded releases in order, each checked against its own hash.

        Raises:
            LedgerError: The ledger cannot be read or an entry was changed.
        """
        with session(self.path, self._founding) as now:
            return list(chain.read_entries(now.connection, self.path))

    def find(self, request: str) -> Entry | None:
        """The release recorded for a request, or None.

        Raises:
            LedgerError: The ledger cannot be read or the entry was changed.
        """
        _text(request, "request")
        with session(self.path, self._founding) as now:
            return chain.read_request(now.connection, request, self.path)

    def check(self, epsilon: Amount, delta: Amount = 0) -> None:
        """Refuse early what would not fit now; only `record` decides.

        Raises:
            InputError: The charge is not usable.
            BudgetError: The charge does not fit what is left.
        """
        charge = Budget.of(epsilon, delta)
        _refuse_beyond(self.budget - self.spent, charge)

    def record(
        self, request: str, *, epsilon: Amount, delta: Amount = 0, document: bytes, label: str = ""
    ) -> Entry:
        """Record a result and its charge in one durable transaction; deliver what is returned.

        If the request was recorded before, that entry is returned and nothing is charged: its
        document is the release, not the one given here. An error or an interrupt leaves either
        the whole entry or nothing; asking again is always safe.

        Args:
            request: What the release is known by.
            epsilon: The charge, as in `create`; 0 is allowed.
            delta: The same for delta.
            document: The result, kept byte for byte.
            label: A name for people.

        Raises:
            InputError: An argument is not usable.
            BudgetError: The charge does not fit what is left; nothing was recorded.
            LedgerError: The ledger is missing, damaged, locked or cannot be written.
        """
        charge = Budget.of(epsilon, delta)
        _text(request, "request")
        _text(label, "label", empty=True)
        _document(document)
        return self._append(request, charge, document, label)

    def verify(self, head: str | None = None) -> None:
        """Recompute the whole chain of hashes and the sum of all charges.

        Any change of the budget, of an entry or of a document, and any entry removed or moved,
        is found. Newest entries cut off leave a shorter chain that holds: a head noted elsewhere
        finds that.

        Args:
            head: A head noted elsewhere, which must be in the chain.

        Raises:
            LedgerError: The ledger is damaged, was changed, or lacks the head.
        """
        with session(self.path, self._founding) as now:
            found = now.connection.execute("PRAGMA integrity_check(1)").fetchone()
            if found != ("ok",):
                raise chain.damaged(self.path, "damaged pages")
            hashes = chain.check_chain(now.connection, self._founding, self.path)
        if head is not None and head not in hashes:
            raise LedgerError(
                f"the ledger {str(self.path)!r} does not contain the head given",
                "a ledger with every entry up to the head noted elsewhere",
                "look for a newer copy: entries are missing, or this is another ledger",
            )

    def _append(self, request: str, charge: Budget, document: bytes, label: str) -> Entry:
        """One transaction; see `record`."""
        with session(self.path, self._founding, write=True) as now:
            _at("begun")
            known = chain.read_request(now.connection, request, self.path)
            if known is not None:
                return known
            count, spent = chain.read_spent(now.connection, self.path)
            last = chain.read_last(now.connection, self.path)
            if (last.number if last else 0) != count:
                raise chain.damaged(self.path, "missing entries")
            _refuse_beyond(self.budget - spent, charge)
            _at("checked")
            previous = last.hash if last else self._founding.hash
            entry = Entry.make(previous, count + 1, request, label, charge, document, _now())
            entry.insert(now.connection)
            _at("inserted")
            if not chain.read_spent(now.connection, self.path)[1].within(self.budget):
                raise chain.damaged(self.path, "charges beyond its budget")
            _at("before commit")
            now.connection.execute("COMMIT")
            _at("after commit")
        return entry

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing to close: no connection outlives an operation."""

    def __repr__(self) -> str:
        return f"<ledger {str(self.path)!r}, budget {self.budget.show(up=False)}>"


def _at(point: str) -> None:
    """Where a crash would matter most; the crash tests stop a process here."""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _absolute(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path).absolute()
    except TypeError:
        raise_alone(
            InputError(
                f"a ledger path of type {type(path).__name__}",
                "text or a path",
                "give its file name",
            )
        )


def _refuse_beyond(left: Budget, charge: Budget) -> None:
    if not charge.within(left):
        raise BudgetError(
            f"a charge of {charge.show(up=True)}",
            f"what is left of the budget, {left.show(up=False)}",
            "ask for less, or ask again for a recorded release, which costs nothing",
        )


def _text(value: object, name: str, *, empty: bool = False) -> None:
    try:
        if isinstance(value, str) and (empty or value):
            value.encode()
            return
    except UnicodeEncodeError:
        pass
    what = "empty or broken text" if isinstance(value, str) else f"a {type(value).__name__}"
    raise InputError(f"{name} is {what}", "text in Unicode", f"give {name} as text")


def _document(value: object) -> None:
    if not isinstance(value, bytes):
        raise InputError(
            f"document is a {type(value).__name__}", "bytes", "encode the document first"
        )
    if len(value) > _MOST_BYTES:
        raise InputError(
            f"document has {len(value)} bytes", f"at most {_MOST_BYTES}", "split the release"
        )
