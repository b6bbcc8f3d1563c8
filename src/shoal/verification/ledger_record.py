"""What a ledger says of a manifest: recorded, as what, at which charge, and in whose name."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

from shoal import documents
from shoal.errors import LedgerError
from shoal.verification.verdict import Check

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RECORDED = "recorded in the ledger"


class Unit(Protocol):
    """A privacy unit."""

    def to_document(self) -> Mapping[str, object]:
        """Its column, relation of neighbours and records."""


class Loss(Protocol):
    """An exact privacy loss."""

    def show(self, *, up: bool) -> str:
        """Its two parts as text, rounded to the safe side."""


class Charge(Protocol):
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
    def epsilon(self) -> Fraction:
        """Charged for it."""

    @property
    def delta(self) -> Fraction:
        """Charged for it."""

    @property
    def charge(self) -> Loss:
        """Both together."""

    @property
    def recorded_at(self) -> str:
        """Date and time."""

    @property
    def document_sha256(self) -> str:
        """Of the bytes that were delivered."""

    @property
    def unit(self) -> Unit:
        """Whose loss was charged."""


class Recorded(Protocol):
    """A ledger, as far as the second opinion looks at it."""

    def verify(self) -> object:
        """Check the whole chain of entries."""

    def links(self) -> Sequence[Charge]:
        """Its entries, oldest first."""


def record_checks(manifest: documents.Document, ledger: Recorded) -> list[Check]:
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
        links = ledger.links()
    except LedgerError as error:
        return [Check("chain of the ledger", holds=False, found=error.got)]
    sha256 = hashlib.sha256(documents.canonical_bytes(manifest)).hexdigest()
    own = [link for link in links if link.document_sha256 == sha256]
    checks = [Check("chain of the ledger", holds=True, found=f"{len(links)} entries")]
    if not own:
        return [*checks, Check(RECORDED, holds=False, found="not these bytes")]
    # The same bytes under several questions: one of them must fit, the best is shown.
    found = max((_of_link(manifest, link) for link in own), key=_held)
    return [*checks, *found]


def _held(checks: list[Check]) -> int:
    return sum(check.holds for check in checks)


def _of_link(manifest: documents.Document, link: Charge) -> list[Check]:
    guarantee = manifest["guarantee"]
    request = documents.digest({"question": link.question, "name": link.name})
    costs = Fraction(guarantee["epsilon"]), Fraction(guarantee["delta"])
    charged = link.epsilon >= costs[0] and link.delta >= costs[1]
    same = link.unit.to_document() == guarantee["unit"]
    return [
        Check(RECORDED, holds=True, found=f"entry {link.number}, {link.recorded_at}"),
        Check("request in the ledger", request == manifest["request"], request[:16]),
        Check("kind in the ledger", link.kind == manifest["kind"], link.kind or "not said"),
        Check("charge in the ledger", charged, link.charge.show(up=True)),
        Check("unit in the ledger", same, str(link.unit)),
    ]
