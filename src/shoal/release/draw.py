"""The one way from a question and private data to recorded and delivered bytes."""

import os
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, TypeVar

from shoal import documents
from shoal.errors import DocumentError, InputError
from shoal.privacy.ledger import Entry, Ledger
from shoal.privacy.noise import Noise, Simulated, source_of
from shoal.privacy.unit import checked_name
from shoal.release.manifest import make_manifest
from shoal.release.question import Question

Drawn = TypeVar("Drawn")


class Draw(Protocol[Drawn]):
    """What a family brings: how to draw from its private data, and how to write that down."""

    def check(self) -> None:
        """Refuse private data whose public shape is not the question's; reads no value."""

    def draw(self, noise: Noise) -> Drawn:
        """Check, read the private data and draw once; nothing else does."""

    def results(self, drawn: Drawn) -> Any:
        """What was drawn and what follows from it, as JSON."""


class Delivered(NamedTuple):
    """What may leave the process: the manifest's bytes, where they are recorded, what was drawn.

    There is no entry without a ledger; nothing was drawn, and no manifest read, if it had been
    recorded before.
    """

    document: bytes
    entry: Entry | None
    from_ledger: bool
    drawn: Any = None
    manifest: Any = None


def release(
    question: Question,
    way: Draw[Any],
    *,
    ledger: str | os.PathLike[str] | Ledger | None,
    noise: Simulated | None,
) -> Delivered:
    """Deliver what the ledger holds for a question and its name, or draw, record and deliver.

    Nothing is drawn if the charge does not fit, and nothing is delivered before it is recorded. If
    another process recorded the same question first, its result is delivered and ours is discarded.

    Raises:
        InputError: An unknown noise or one with a ledger, an unusable name, another privacy unit.
        DataError: The private data do not have the question's public shape.
        BudgetError: The charge does not fit what is left.
        LedgerError: The ledger is missing, damaged or cannot be written.
    """
    source = source_of(noise, recorded=ledger is not None)
    checked_name(question.name)

    def draw() -> Delivered:
        drawn = way.draw(source)
        manifest = make_manifest(question, way.results(drawn), simulated=noise is not None)
        document, read = _written(manifest, question)
        return Delivered(document, None, from_ledger=False, drawn=drawn, manifest=read)

    if ledger is None:
        return draw()
    book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    known = book.find(question.key, question.name)
    if known is None:
        book.state().check(question.loss, question.unit)
        made = draw()
        known = book.record(
            question.key,
            name=question.name,
            kind=question.kind,
            unit=question.unit,
            epsilon=question.loss.epsilon,
            delta=question.loss.delta,
            document=made.document,
        )
        if known.document == made.document:
            return made._replace(entry=known)
    way.check()
    return Delivered(known.document, known, from_ledger=True)


def _written(manifest: documents.Document, question: Question) -> tuple[bytes, Any]:
    """A manifest's bytes, and what is read in them; one that nobody could read is not recorded."""
    with suppress(DocumentError):
        found = documents.canonical_bytes(manifest)
        return found, question.read(found)
    raise InputError(
        "a manifest cannot hold public facts as long as these; nothing was charged",
        "give shorter names and keys, rounded times, and amounts with fewer digits",
    )
