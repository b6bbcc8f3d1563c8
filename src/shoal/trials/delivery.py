"""Draw once, record, deliver: a trial release goes the way of every release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal import documents
from shoal.privacy.noise import source_of
from shoal.privacy.privacy_unit import Whose
from shoal.release.booking import Booking, check_request, deliver
from shoal.release.rehearsal import rehearse
from shoal.trials.manifest import CONFIDENCE, SCHEMA, make_manifest
from shoal.trials.result import PrivateTrial, read_released

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from shoal.privacy.ledger.ledger import Ledger
    from shoal.privacy.noise import Randomness, Simulated
    from shoal.trials.released import Released
    from shoal.trials.request import Question


def deliver_trial(
    question: Question,
    draw: Callable[[Randomness], Released],
    blank: Callable[[], Released],
    *,
    ledger: str | os.PathLike[str] | Ledger | None,
    said: bool,
    again: bool,
    noise: Simulated | None,
) -> PrivateTrial:
    """Deliver what the ledger recorded for a question, or draw, record and deliver.

    Args:
        question: All public facts; its key is what the ledger knows the release by.
        draw: Reads the outcomes and gives what leaves the mechanism.
        blank: Gives the same with placeholders for all numbers, from public facts alone.
        ledger: Where result and charge are recorded; without one nothing is.
        said: Whether anybody said what the question's unit is.
        again: Deliver what is recorded: by its name, without one the unnamed or only one;
            never draw or charge.
        noise: A marked simulation, which touches no ledger.

    Raises:
        InputError: A ledger with simulated noise or of another privacy unit, an unknown noise, an
            unusable name, or none for a question that the ledger holds.
        BudgetError: The charge does not fit what is left.
        LedgerError: The ledger cannot be read or written.
    """
    check_request(question.name, again=again, recorded=ledger is not None)
    source = source_of(noise, recorded=ledger is not None)

    def make() -> bytes:
        rehearse(
            lambda: make_manifest(question, blank(), simulated=source.simulated),
            SCHEMA,
            lambda found: read_released(found["question"], found["released"]).effects(CONFIDENCE),
        )
        manifest = make_manifest(question, draw(source), simulated=source.simulated)
        return documents.canonical_bytes(manifest)

    if ledger is None:
        return PrivateTrial(make())
    whose = Whose(question.unit, said)
    booking = Booking(question.key, question.name, "trial", whose, question.charge, again)
    # The question holds the whole assignment: other units are another question.
    done = deliver(ledger, booking, make)
    return PrivateTrial(done.document, done.entry, done.from_ledger)
