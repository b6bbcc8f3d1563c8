"""64 processes ask one ledger at once for twice as many charges as fit.

They start together and ask for releases of their own; then they race for the same ones. Exactly as
many charges as fit are accepted, their sum is the budget exactly, the ledger holds every accepted
document byte for byte and verifies; who asks for the same release gets the same document, at one
charge.
"""

from __future__ import annotations

import os
from fractions import Fraction
from typing import TYPE_CHECKING

from shoal.errors import BudgetError
from shoal.privacy.ledger.ledger import Ledger
from tests.evidence.finding import Outcome
from tests.privacy.ledger.driver import drain, fork, tell

if TYPE_CHECKING:
    from pathlib import Path

    from tests.evidence.finding import Progress

NAME = "64 processes on one budget"
PROMISES = ("G-LEDGER",)
UNIT = "charges that fit"
FULL, REDUCED = 1000, 64

_CHILDREN = 64


def run(size: int, *, seed: int, folder: Path, progress: Progress) -> Outcome:  # noqa: ARG001
    """One race on a budget for so many charges, and one for the same releases."""
    failures = _race(folder, size, same=False)
    progress(size)
    failures += _race(folder, _CHILDREN // 4, same=True)
    note = f"{_CHILDREN} processes, {2 * size:,} asked and {size:,} accepted in the end"
    return Outcome(size, tuple(failures), (note,) if not failures else ())


def _race(folder: Path, size: int, *, same: bool) -> list[str]:
    """What went wrong when all ask at once."""
    charge = Fraction(1, size)
    book = Ledger.create(folder / f"race {same}.ledger", epsilon=1)
    tries = size if same else -(-2 * size // _CHILDREN)
    gate_out, gate_in = os.pipe()

    def work(writing: int) -> None:
        os.close(gate_in)
        os.read(gate_out, 1)  # returns when the starter closes its end
        for number in range(tries):
            question = str(number) if same else f"{os.getpid()} {number}"
            document = f"drawn by {os.getpid()} for {number}".encode()
            try:
                entry = book.record(question, unit="person", epsilon=charge, document=document)
            except BudgetError:
                tell(writing, question, "")
            else:
                tell(writing, question, entry.document.decode())

    started = [fork(work) for _ in range(_CHILDREN)]
    os.close(gate_in)
    answers = [answer for _, reading in started for answer in drain(reading)]
    statuses = [os.waitpid(child, 0)[1] for child, _ in started]
    os.close(gate_out)
    book.verify()
    kept = {entry.question: entry.document.decode() for entry in book.entries()}
    accepted = [(name, document) for name, document in answers if document]
    wrong = sum(kept.get(name) != document for name, document in accepted)
    found = {
        "processes that ended badly": (sum(map(bool, statuses)), 0),
        "answers": (len(answers), _CHILDREN * tries),
        "accepted": (len(accepted), _CHILDREN * tries if same else size),
        "delivered but not as recorded": (wrong, 0),
        "entries": (len(kept), size),
        "spent": (book.spent.epsilon, 1),
    }
    kind = "the same releases" if same else "releases of their own"
    return [
        f"{_CHILDREN} processes for {kind}: {what} {seen}, not {wanted}"
        for what, (seen, wanted) in found.items()
        if seen != wanted
    ]
