"""A draft as one message from process to process: one spelling, and nothing else is read."""

from __future__ import annotations

import json
import struct

from shoal.errors import ShoalError
from shoal.privacy.budget import Budget
from shoal.privacy.charge_rounding import booked
from shoal.privacy.ledger.arguments import to_record
from shoal.privacy.ledger.entry import Draft, digest_of
from shoal.privacy.privacy_unit import PrivacyUnit

FORMAT = 1
_SIZE = struct.Struct(">I")


def encoded(ledger: str, draft: Draft) -> bytes:
    """The length of a draft's facts, these as JSON, the document.

    Args:
        ledger: Hash of the ledger's creation record.
        draft: What is to be recorded.
    """
    texts = (draft.question, draft.name, draft.kind, draft.unit.to_text())
    facts = json.dumps([ledger, *texts, *draft.charge.texts(), draft.document_sha256]).encode()
    return _SIZE.pack(len(facts)) + facts + draft.document


def decoded(ledger: str, message: bytes) -> Draft | None:
    """The inverse of `encoded`, checked as `Ledger.record` checks its arguments.

    Args:
        ledger: As in `encoded`.
        message: Whatever somebody has sent.

    Returns:
        The draft; None if this is not what a process that records in that ledger sends.
    """
    try:
        end = _SIZE.size + _SIZE.unpack_from(message)[0]
        facts, document = json.loads(message[_SIZE.size : end]), message[end:]
        _, question, name, kind, unit, epsilon, delta, _ = facts
        texts = to_record(question, name, kind)
        charge = Budget.from_texts(epsilon, delta)
        if min(charge.epsilon, charge.delta) < 0 or booked(charge) != charge:
            return None
        whose, digest = PrivacyUnit.from_text(unit), digest_of(document)
        draft = Draft(*texts, whose, charge, document, digest)
        # Another ledger, another digest, or another spelling makes another message.
        return draft if encoded(ledger, draft) == message else None
    except (ShoalError, struct.error, ValueError, TypeError, RecursionError):
        return None
