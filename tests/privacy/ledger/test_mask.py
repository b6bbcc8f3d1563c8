"""The mask of what processes tell one another: read with the key alone."""

from __future__ import annotations

import pytest

from shoal.privacy.ledger.mask import masked, receipt, unmasked

pytestmark = [pytest.mark.unit, pytest.mark.full]

KEY, OTHER = "0a1b2c3d-0000-4000-8000-123456789abc", "0a1b2c3d-0000-4000-8000-123456789abd"


@pytest.mark.parametrize("message", [b"", b"x", bytes(100), b"\xff" * 2**16])
def test_who_has_the_key_reads_what_was_sent(message: bytes) -> None:
    """And nobody else, nor anything that was changed or cut."""
    sent = masked(KEY, message)
    assert unmasked(KEY, sent) == message
    assert unmasked(OTHER, sent) is None
    for at in {0, 31, len(sent) - 1}:
        changed = sent[:at] + bytes([sent[at] ^ 1]) + sent[at + 1 :]
        assert unmasked(KEY, changed) is None
    assert unmasked(KEY, sent[:-1]) is None
    assert unmasked(KEY, sent + b"\0") is None
    assert len({receipt(KEY, sent), receipt(OTHER, sent), receipt(KEY, sent + b"x")}) == 3


def test_each_message_has_a_mask_of_its_own() -> None:
    """Two that differ little have nothing in common that tells it."""
    one, other = masked(KEY, bytes(1000)), masked(KEY, bytes(999) + b"x")
    assert sum(a == b for a, b in zip(one, other, strict=True)) < 40
    assert one[32:] != bytes(1000)
