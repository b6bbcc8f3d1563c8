"""The one way from a question and private data to delivered and booked bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from shoal import documents
from shoal.privacy.noise import source_of
from shoal.release.booking import check_request, deliver
from shoal.release.manifest import SCHEMA, make_manifest
from shoal.release.rehearsal import rehearse

if TYPE_CHECKING:
    import os

    from shoal.privacy.ledger.ledger import Entry, Ledger
    from shoal.privacy.noise import Randomness, Simulated
    from shoal.release.question import Question

Drawn = TypeVar("Drawn")


class Draw(Protocol[Drawn]):
    """What a family brings: how to draw, and how to write down and read what was drawn."""

    def draw(self, noise: Randomness) -> Drawn:
        """Read the private data and draw once; nothing else does."""

    def blank(self) -> Drawn:
        """The same with placeholders for all that is drawn, from public facts alone."""

    def results(self, drawn: Drawn) -> Any:
        """What was drawn and what follows from it, as JSON."""

    def publishes_values(self, drawn: Drawn) -> bool:
        """Whether somebody's value may stand in the results as it is."""

    def read(self, manifest: documents.Document) -> object:
        """Read a manifest the way a delivered release is read."""

    def check_shape(self) -> None:
        """Refuse private data whose public shape is not the question's; reads no value."""


class Delivered(NamedTuple):
    """What may leave the process.

    Attributes:
        document: The manifest's bytes.
        entry: The ledger's entry; None without a ledger.
        from_ledger: Whether it had been recorded before.
        drawn: What was drawn; None if it was recorded before.
    """

    document: bytes
    entry: Entry | None
    from_ledger: bool
    drawn: Any


def carry_out(
    question: Question,
    way: Draw[Any],
    *,
    ledger: str | os.PathLike[str] | Ledger | None,
    again: bool,
    noise: Simulated | None,
) -> Delivered:
    """Deliver what the ledger recorded for a question, or draw, record and deliver.

    Guarantees: nothing is drawn before its manifest could be written and read (G-LEDGER), would
    fit the budget, and is not recorded yet; nothing is delivered before it is recorded (G-LEDGER).

    Args:
        question: All public facts.
        way: The family's draw, with the private data.
        ledger: Where result and charge are recorded; without one nothing is.
        again: Deliver what is recorded, and never draw or charge.
        noise: A marked simulation, which touches no ledger.

    Raises:
        InputError: An unknown noise or one with a ledger, an unusable name, or none where one is
            needed, another privacy unit.
        DataError: The private data do not have the question's public shape.
        BudgetError: The charge does not fit what is left.
        LedgerError: The ledger is missing, damaged or cannot be written.
    """
    source = source_of(noise, recorded=ledger is not None)
    check_request(question.name, again=again, recorded=ledger is not None)
    kept: list[Any] = []
    simulated = noise is not None

    def make(drawn: object) -> documents.Document:
        return make_manifest(
            question,
            way.results(drawn),
            simulated=simulated,
            publishes_values=way.publishes_values(drawn),
        )

    def draw() -> bytes:
        rehearse(lambda: make(way.blank()), SCHEMA, way.read)
        kept.append(way.draw(source))
        return documents.canonical_bytes(make(kept[0]))

    if ledger is None:
        return Delivered(draw(), None, from_ledger=False, drawn=kept[0])
    done = deliver(ledger, question, draw, again=again, check_shape=way.check_shape)
    drawn = None if done.from_ledger else kept[0]
    return Delivered(done.document, done.entry, from_ledger=done.from_ledger, drawn=drawn)
