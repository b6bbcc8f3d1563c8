"""One release, one charge: find what was recorded, or draw, record and deliver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.accounting.ledger import Ledger
from shoal.errors import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from shoal.accounting.budget import Budget
    from shoal.accounting.ledger import Entry

_LONGEST_NAME = 200


@dataclass(frozen=True)
class Delivery:
    """What may leave the process.

    Attributes:
        document: The release, byte for byte as recorded.
        entry: The ledger's entry.
        from_ledger: Whether it had been recorded before, so that this delivery cost nothing.
    """

    document: bytes
    entry: Entry
    from_ledger: bool


def deliver(
    ledger: str | os.PathLike[str] | Ledger,
    request: str,
    charge: Budget,
    draw: Callable[[], bytes],
    *,
    name: str,
) -> Delivery:
    """Deliver what a ledger recorded for a request; else draw it and record it with its charge.

    Guarantees: nothing is drawn if it was recorded or would not fit; of two processes with the
    same request one draw is recorded, and the other is thrown away before anyone sees it.

    Args:
        ledger: The data set's ledger, or its path.
        request: What the release is known by: the same for the same question.
        charge: Its exact privacy loss.
        draw: Makes the document; called at most once.
        name: Label for people.

    Raises:
        InputError: An unusable name.
        BudgetError: The charge does not fit what is left.
        LedgerError: The ledger is missing, damaged or cannot be written.

    Example:
        >>> import tempfile
        >>> from shoal.accounting.budget import Budget
        >>> folder = tempfile.TemporaryDirectory()
        >>> book = Ledger.create(folder.name + "/a.ledger", epsilon=1)
        >>> deliver(book, "one", Budget.of("1/2"), lambda: b"3.1", name="").document
        b'3.1'
        >>> deliver(book, "one", Budget.of("1/2"), lambda: b"2.7", name="").document
        b'3.1'
        >>> folder.cleanup()
    """
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    check_name(name)
    recorded = book.find(request)
    if recorded is not None:
        return Delivery(recorded.document, recorded, from_ledger=True)
    book.check(charge.epsilon, charge.delta)
    document = draw()
    entry = book.record(
        request, epsilon=charge.epsilon, delta=charge.delta, document=document, label=name
    )
    # Another process may have recorded the same request first: its numbers are the release.
    return Delivery(entry.document, entry, from_ledger=entry.document != document)


def check_name(name: object) -> None:
    """Refuse a release's name that is not short printable text.

    Raises:
        InputError: It is not.
    """
    if not isinstance(name, str) or not name.isprintable() or len(name) > _LONGEST_NAME:
        raise InputError(
            "a release name that is not printable text",
            f"up to {_LONGEST_NAME} printable characters",
            'give for example name="second draw"',
        )
