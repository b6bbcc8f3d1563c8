"""What a ledger says of a manifest: recorded, as what, at which charge, and in whose name."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import TYPE_CHECKING

from shoal import documents
from shoal.accounting.ledger import Ledger
from shoal.errors import LedgerError
from shoal.verdict import Check

if TYPE_CHECKING:
    import os

    from shoal.accounting.ledger_entry import Link

RECORDED = "recorded in the ledger"


def ledger_checks(
    manifest: documents.Document, ledger: str | os.PathLike[str] | Ledger
) -> list[Check]:
    """Whether a ledger holds a manifest and charged for it what the manifest says it costs.

    Args:
        manifest: Of its schema.
        ledger: The data set's ledger, or its path.

    Returns:
        Claims about the whole chain, the bytes, the request, the charge and the unit.

    Raises:
        LedgerError: The ledger is missing or cannot be read.
    """
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    try:
        book.verify()
        links = book.links()
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


def _of_link(manifest: documents.Document, link: Link) -> list[Check]:
    guarantee = manifest["guarantee"]
    request = documents.digest({"question": link.question, "name": link.name})
    costs = Fraction(guarantee["epsilon"]), Fraction(guarantee["delta"])
    charged = link.epsilon >= costs[0] and link.delta >= costs[1]
    same = link.unit.to_document() == guarantee["unit"]
    return [
        Check(RECORDED, holds=True, found=f"entry {link.number}, {link.recorded_at}"),
        Check("request in the ledger", request == manifest["request"], request[:16]),
        Check("charge in the ledger", charged, link.charge.show(up=True)),
        Check("unit in the ledger", same, str(link.unit)),
    ]
