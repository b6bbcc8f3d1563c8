"""The books of one data set: a file that outlives processes and never exceeds its budget."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from shoal import checks
from shoal.errors import InputError, LedgerError, raise_alone
from shoal.privacy.budget import Amount, Budget
from shoal.privacy.charge_rounding import booked
from shoal.privacy.ledger.arguments import check_document, checked_text, to_find, to_record
from shoal.privacy.ledger.entry import Draft, Entry, Founding, digest_of
from shoal.privacy.ledger.file import create_file, operate
from shoal.privacy.ledger.place import damaged
from shoal.privacy.ledger.recording import recorded, utc_now
from shoal.privacy.ledger.rules import Answer, refuse_beyond, refuse_other_unit
from shoal.privacy.privacy_unit import PrivacyUnit

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from shoal.privacy.ledger.entry import Link
    from shoal.privacy.ledger.file import Found, Session

_MOST_NAMES = 10
__all__ = ["Budget", "Entry", "Ledger", "PrivacyUnit"]


class Ledger:
    """A handle on one ledger file, made with `Ledger.create` or `Ledger.open`.

    The handle holds no connection: each operation opens its own, so one handle may be used from
    many threads and processes, also after a fork.

    Args:
        path: The file.
        founding: Its creation record.

    Guarantees: the charges of all entries never exceed the budget, in exact rationals rounded
    against us, however many processes ask at once; all of them are about one privacy unit; an
    entry's charge and document are recorded together, durably, or not at all; a question is
    charged once under a name and answered with the same bytes ever after. A copy of the file is a
    second budget: keep one, and note `head` elsewhere to recognise an old one.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger.create(folder.name + "/flights.ledger", epsilon=1)
        >>> asked = {"question": "speeds", "name": "2013-05", "unit": "tailnum"}
        >>> entry = ledger.record(**asked, epsilon=0.1, document=b"412.7")
        >>> ledger.record(**asked, epsilon=0.1, document=b"another draw").document
        b'412.7'
        >>> ledger.remaining, str(ledger.unit)
        (Budget(epsilon=Fraction(9, 10), delta=Fraction(0, 1)), 'all values of one tailnum')
        >>> folder.cleanup()
    """

    def __init__(self, path: Path, founding: Founding) -> None:
        self.path, self._founding = path, founding

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        epsilon: Amount,
        delta: Amount = 0,
        unit: str | PrivacyUnit | None = None,
    ) -> Ledger:
        """Make a ledger with a budget that never changes.

        Args:
            path: A new file in an existing folder.
            epsilon: All the privacy loss that a unit may ever have: a fraction, number, or
                text such as "0.1" or "1/3". A float counts as its shortest decimal.
            delta: The same for delta, from 0 to below 1.
            unit: Whose losses are added up, such as the user column's name; the first entry
                says it if this does not.

        Returns:
            A handle on the new file.

        Raises:
            InputError: The budget or unit is not usable.
            LedgerError: The path exists or cannot be written.
        """
        budget = Budget.total(epsilon, delta)
        whose = None if unit is None else PrivacyUnit.of(unit)
        founding = Founding(str(uuid.uuid4()), budget, whose, utc_now())
        place = _absolute(path)
        create_file(place, founding)
        return cls(place, founding)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Ledger:
        """Open a ledger that exists; the chain is left to `verify`.

        Args:
            path: A file made by `create`.

        Returns:
            A handle.

        Raises:
            LedgerError: Missing, damaged, or not a ledger of this version.
        """
        place = _absolute(path)
        return operate(place, None, lambda found: cls(place, found.founding))

    @property
    def budget(self) -> Budget:
        """The privacy loss that may be spent in all: epsilon and delta."""
        return self._founding.budget

    @property
    def unit(self) -> PrivacyUnit | None:
        """The privacy unit, read now; None if neither the creation nor an entry says it."""
        return self._read(lambda now: now.chain.state().unit)

    @property
    def spent(self) -> Budget:
        """The sum of all charges, read now: exact, or rounded upwards where it gets too long."""
        return self._read(lambda now: now.chain.state().spent)

    @property
    def remaining(self) -> Budget:
        """Budget less spent, read now."""
        return self.budget - self.spent

    @property
    def head(self) -> str:
        """The hash of the newest entry, or of the creation record if there is none."""
        return self._read(lambda now: now.chain.state().head)

    def entries(self) -> list[Entry]:
        """All recorded releases in order, each checked against its own hash.

        Returns:
            With their documents.

        Raises:
            LedgerError: The ledger cannot be read or an entry was changed.
        """
        return self._read(lambda now: list(now.chain.entries()))

    def links(self) -> list[Link]:
        """All entries in order without their documents, each checked against its own hash.

        Returns:
            Without their documents.

        Raises:
            LedgerError: The ledger cannot be read or an entry was changed.
        """
        return self._read(lambda now: list(now.chain.links()))

    def find(self, question: str, name: str = "") -> Entry | None:
        """The release recorded for a question under a name, or None.

        Args:
            question: As in `record`.
            name: The same.

        Returns:
            The entry, if there is one.

        Raises:
            LedgerError: The ledger cannot be read, or the entry or its place was changed.
        """
        wanted = to_find(question, name)

        def look(now: Session) -> Entry | None:
            now.chain.state()
            return now.chain.find(*wanted)

        return self._read(look)

    def names(self, question: str, most: int = _MOST_NAMES) -> list[str]:
        """The first names that a question was recorded under; empty if it never was.

        Args:
            question: As in `record`.
            most: How many at most, from 1.

        Returns:
            Names, in the order of their texts.

        Raises:
            InputError: An argument is not usable.
            LedgerError: The ledger cannot be read.
        """
        wanted = checked_text(question, "question")
        limit = checks.whole(most, "most", least=1, example=_MOST_NAMES)
        return self._read(lambda now: now.chain.names(wanted, limit))

    def look_up(self, question: str, name: str = "") -> Answer:
        """What is recorded for a question and name, and what is left, read at one moment.

        Args:
            question: As in `record`.
            name: The same.

        Returns:
            The entry, if there is one, names of the question, unit, budget and sum of charges.

        Raises:
            LedgerError: The ledger cannot be read, or the entry or its place was changed.
        """
        wanted = to_find(question, name)

        def look(now: Session) -> Answer:
            state, names = now.chain.state(), now.chain.names(wanted[0], _MOST_NAMES)
            entry = now.chain.find(*wanted) if names else None
            return Answer(entry, names, state.unit, self.budget, state.spent)

        return self._read(look)

    def check(
        self, epsilon: Amount, delta: Amount = 0, *, unit: str | PrivacyUnit | None = None
    ) -> None:
        """Refuse early what would not fit now; only `record` decides.

        Args:
            epsilon: As in `record`.
            delta: The same.
            unit: The same.

        Raises:
            InputError: The charge is not usable, or about another privacy unit.
            BudgetError: The charge does not fit what is left.
        """
        charge = booked(Budget.of(epsilon, delta))
        whose = None if unit is None else PrivacyUnit.of(unit)
        state = self._read(lambda now: now.chain.state())
        refuse_other_unit(state.unit, whose or state.unit)
        refuse_beyond(self.budget, state.spent, charge)

    def record(
        self,
        question: str,
        *,
        unit: str | PrivacyUnit,
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
            unit: Whose loss the charge is: a name such as the user column's, or `each row`.
            epsilon: The charge, as in `create`; 0 is allowed. A fraction whose denominator is
                above 10^40 is rounded upwards (`shoal.privacy.charge_rounding`).
            delta: The same for delta.
            document: The result, kept byte for byte.
            name: What the release is of, such as a period: another name is charged again. Up to 200
                printable characters, with no blanks around them or two in a row.
            kind: What is released, such as `cells`; shown, and not part of the question.

        Returns:
            The entry that stands: deliver its document.

        Raises:
            InputError: An argument is not usable, or the ledger is about another privacy unit.
            BudgetError: The charge does not fit what is left; nothing was recorded.
            LedgerError: The ledger is missing, damaged, locked or cannot be written.

        Guarantees: G-LEDGER.
        """
        charge = booked(Budget.of(epsilon, delta))
        texts = to_record(question, name, kind)
        check_document(document)
        whose, digest = PrivacyUnit.of(unit), digest_of(document)
        draft = Draft(*texts, whose, charge, document, digest)
        return recorded(self.path, self._founding, draft)

    def verify(self, head: str | None = None) -> None:
        """Recompute the whole chain of hashes and every running sum of charges.

        Any change of the budget, of an entry or of a document, and any entry removed or moved,
        is found. A file put back to an older state holds: a head noted elsewhere finds that.

        Args:
            head: A head noted elsewhere, which must be in the chain.

        Raises:
            InputError: The head is no text.
            LedgerError: The ledger is damaged, was changed, or lacks the head.
        """
        if head is not None:
            head = checked_text(head, "head")

        def recompute(now: Session) -> set[str]:
            found = now.connection.execute("PRAGMA integrity_check(1)").fetchone()
            if found != ("ok",):
                raise damaged(self.path, "damaged pages")
            return now.chain.verify()

        hashes = self._read(recompute)
        if head is not None and head not in hashes:
            raise LedgerError(
                f"the ledger {str(self.path)!r} does not contain the head given",
                "a ledger with every entry up to the head noted elsewhere",
                "look for a newer copy: entries are missing, or this is another ledger",
            )

    def _read(self, look: Callable[[Session], Found]) -> Found:
        """One transaction that reads."""
        return operate(self.path, self._founding, look)

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


def _absolute(path: str | os.PathLike[str]) -> Path:
    try:
        given = checks.path(path, "the ledger path")
    except InputError:
        if not isinstance(path, str | Path):
            raise
        told = "the ledger path, which is not a path that a file can have"
        raise_alone(LedgerError(told, "text that is a path", "give its file name"))
    try:
        return Path(given).absolute()
    except OSError:  # a relative path needs the current folder
        raise_alone(
            LedgerError(
                f"the ledger {given!r} cannot be found: the current folder was removed",
                "an absolute path, or a current folder that exists",
                "change to a folder that exists",
            )
        )
