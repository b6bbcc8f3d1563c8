"""What processes tell one another is for those who can read the ledger: its identity is the key.

All processes of a network namespace can find a socket of the kernel, also those of the same user
that are kept from the ledger's folder: they can neither read a draft nor make one.

The mask is a synthetic initialization vector (https://eprint.iacr.org/2006/221) with SHAKE-256:
a keyed digest of all of a message stands before it and starts the key stream.
"""

from __future__ import annotations

import hashlib
import hmac

_TAG = 32


def masked(key: str, message: bytes) -> bytes:
    """A message that nobody reads or makes without the key.

    Args:
        key: Identity of the ledger, a random text.
        message: Any bytes.

    Returns:
        Digest and masked message; the same for the same message.
    """
    tag = _stream("tag", key, message, _TAG)
    return tag + _mixed(key, tag, message)


def unmasked(key: str, message: bytes) -> bytes | None:
    """The inverse of `masked`; None if it was made without the key or changed."""
    tag = message[:_TAG]
    plain = _mixed(key, tag, message[_TAG:])
    return plain if hmac.compare_digest(tag, _stream("tag", key, plain, _TAG)) else None


def receipt(key: str, message: bytes) -> bytes:
    """What only somebody with the key can answer to a message."""
    return _stream("receipt", key, message, _TAG)


def _mixed(key: str, tag: bytes, data: bytes) -> bytes:
    stream = _stream("mask", key, tag, len(data))
    mixed = int.from_bytes(data) ^ int.from_bytes(stream)
    return mixed.to_bytes(len(data))


def _stream(use: str, key: str, data: bytes, length: int) -> bytes:
    start = f"shoal {use} {len(key)} {key} ".encode()
    return hashlib.shake_256(start + data).digest(length)
