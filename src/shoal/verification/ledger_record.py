"""What a ledger says of a manifest: recorded, as what, at which charge, and in whose name."""

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

from shoal import documents
from shoal.errors import LedgerError
from shoal.verification.verdict import Check

RECORDED = "recorded in the ledger"


class Loss(Protocol):
    """An exact privacy loss."""

    @property
    def epsilon(self) -> Fraction:
        """The privacy loss."""

    @property
    def delta(self) -> Fraction:
        """The probability with which it may be larger."""

    def show(self, *, up: bool) -> str:
        """Its two parts as text, rounded to the safe side."""


class Recorded(Protocol):
    """What stands in a ledger of one release."""

    @property
    def number(self) -> int:
        """Place among the entries, from 1."""

    @property
    def question(self) -> str:
        """Digest of the request, without its name."""

    @property
    def name(self) -> str:
        """What the release is of."""

    @property
    def kind(self) -> str:
        """What was released; empty if whoever recorded it did not say."""

    @property
    def charge(self) -> Loss:
        """Charged for it."""

    @property
    def recorded_at(self) -> str:
        """Date and time."""

    @property
    def document_sha256(self) -> str:
        """Of the bytes that were delivered."""


class Books(Protocol):
    """A ledger, as far as the second opinion looks at it."""

    @property
    def unit(self) -> str:
        """Whose losses it adds up."""

    def verify(self) -> object:
        """Check the whole chain of entries."""

    def entries(self) -> Sequence[Recorded]:
        """Its entries, oldest first."""


def record_checks(manifest: documents.Document, ledger: Books) -> list[Check]:
    """Whether a ledger holds a manifest and charged for it what the manifest says it costs.

    Args:
        manifest: Of its schema.
        ledger: The data set's ledger.

    Returns:
        Claims about the whole chain, the bytes, the request, the kind, the charge and the unit.

    Raises:
        LedgerError: The ledger is missing or cannot be read.
    """
    try:
        ledger.verify()
        entries = ledger.entries()
    except LedgerError as error:
        return [Check("chain of the ledger", holds=False, found=error.got)]
    sha256 = hashlib.sha256(documents.canonical_bytes(manifest)).hexdigest()
    own = [each for each in entries if each.document_sha256 == sha256]
    checks = [Check("chain of the ledger", holds=True, found=f"{len(entries)} entries")]
    if not own:
        return [*checks, Check(RECORDED, holds=False, found="not these bytes")]
    # The same bytes under several questions: one of them must fit, the best is shown.
    found = max((_of_entry(manifest, each, ledger.unit) for each in own), key=_held)
    return [*checks, *found]


def _held(checks: list[Check]) -> int:
    return sum(check.holds for check in checks)


def _of_entry(manifest: documents.Document, entry: Recorded, whose: str) -> list[Check]:
    guarantee = manifest["guarantee"]
    request = documents.digest({"question": entry.question, "name": entry.name})
    costs = Fraction(guarantee["epsilon"]), Fraction(guarantee["delta"])
    charged = entry.charge.epsilon >= costs[0] and entry.charge.delta >= costs[1]
    return [
        Check(RECORDED, holds=True, found=f"entry {entry.number}, {entry.recorded_at}"),
        Check("request in the ledger", request == manifest["request"], request[:16]),
        Check("kind in the ledger", entry.kind == manifest["kind"], entry.kind or "not said"),
        Check("charge in the ledger", charged, entry.charge.show(up=True)),
        Check("unit in the ledger", whose == guarantee["unit"]["name"], whose),
    ]
