"""What a ledger says of a manifest: recorded, as what, at which charge, and in whose name."""

import hashlib
from fractions import Fraction

from shoal import documents
from shoal.errors import LedgerError
from shoal.files.text_table import counted
from shoal.privacy.ledger import Entry, Ledger
from shoal.privacy.unit import Unit
from shoal.verification.verdict import Check

RECORDED = "recorded in the ledger"


def record_checks(manifest: documents.Document, ledger: Ledger) -> list[Check]:
    """Whether a ledger's chain holds a manifest, for its request, kind, charge and unit."""
    try:
        ledger.verify()
        entries = ledger.entries()
    except LedgerError as error:
        return [Check("chain of the ledger", holds=False, found=error.got)]
    sha256 = hashlib.sha256(documents.canonical_bytes(manifest)).hexdigest()
    own = [each for each in entries if each.document_sha256 == sha256]
    chain = Check("chain of the ledger", holds=True, found=counted(len(entries), "release"))
    if not own:
        return [chain, Check(RECORDED, holds=False, found="no such manifest")]
    # The same bytes under several questions: one of them must fit, the best is shown.
    found = (_of_entry(manifest, each, ledger.privacy_unit) for each in own)
    return [chain, *max(found, key=lambda checks: sum(check.holds for check in checks))]


def _of_entry(manifest: documents.Document, entry: Entry, whose: Unit) -> list[Check]:
    guarantee = manifest["guarantee"]
    charge = entry.charge
    request = documents.digest({"question": entry.question, "name": entry.name})
    costs = Fraction(guarantee["epsilon"]), Fraction(guarantee["delta"])
    charged = charge.epsilon >= costs[0] and charge.delta >= costs[1]
    return [
        Check(RECORDED, holds=True, found=f"entry {entry.number}, {entry.recorded_at}"),
        Check("request in the ledger", request == manifest["request"], request[:16]),
        Check("kind in the ledger", entry.kind == manifest["kind"], entry.kind or "not said"),
        Check("charge in the ledger", charged, charge.show(up=True)),
        Check("unit in the ledger", whose.to_document() == guarantee["unit"], str(whose)),
    ]
