"""Checks a record against the ledger: that it was recorded, as what, at which charge, for whom."""

from fractions import Fraction
from typing import Any

from shoal import documents
from shoal.documents.strict_json import strict
from shoal.errors import LedgerError
from shoal.files.text_table import counted
from shoal.privacy.ledger import Entry, Ledger
from shoal.privacy.unit import Unit
from shoal.verification.verdict import Check

RECORDED = "recorded in the ledger"


def recorded(sha256: str, ledger: Ledger) -> bytes | None:
    """Returns the record with this digest if the ledger holds it, or None."""
    for each in ledger.entries():
        if each.document_sha256 == sha256:
            known = ledger.find(each.question, each.name, withdrawn=True)
            return None if known is None else known.document
    return None


def record_checks(sha256: str, ledger: Ledger) -> list[Check]:
    """Returns whether the ledger holds a record, for its request, kind, charge and unit."""
    try:
        ledger.verify()
        entries = ledger.releases()
    except LedgerError as error:
        return [Check("chain of the ledger", holds=False, found=error.got)]
    with_record = [each for each in entries if each.document_sha256 == sha256]
    chain = Check("chain of the ledger", holds=True, found=counted(len(entries), "release"))
    if not with_record:
        return [chain, Check(RECORDED, holds=False, found="no such record")]
    record: Any = strict(recorded(sha256, ledger) or b"", "record")
    # Several entries may hold the same bytes, and one of them must fit: the best is shown.
    by_entry = (_of_entry(record, each, ledger.privacy_unit) for each in with_record)
    return [chain, *max(by_entry, key=lambda checks: sum(check.holds for check in checks))]


def _of_entry(record: documents.Document, entry: Entry, whose: Unit) -> list[Check]:
    """Returns whether an entry of a ledger fits the record that it holds, in every respect."""
    guarantee = record["guarantee"]
    charge = entry.charge
    request = documents.digest({"question": entry.question, "name": entry.name})
    epsilon = Fraction(guarantee["epsilon"])
    charged = charge.epsilon >= epsilon and charge.delta >= Fraction(guarantee["delta"])
    checks = []
    if whose.period is not None:
        booked = None if entry.periods is None else [*entry.periods.names]
        same = booked == guarantee.get("periods")
        checks.append(Check("periods in the ledger", same, str(entry.periods)))
    if entry.withdrawn:
        checks.append(Check("state in the ledger", holds=True, found=entry.withdrawn))
    return [
        *checks,
        Check(RECORDED, holds=True, found=f"entry {entry.number}, {entry.recorded_at}"),
        Check("request in the ledger", request == record["request"], request[:16]),
        Check("kind in the ledger", entry.kind == record["kind"], entry.kind or "not said"),
        Check("charge in the ledger", charged, charge.show(up=True)),
        Check("unit in the ledger", whose == Unit.of_document(guarantee["unit"]), str(whose)),
    ]
