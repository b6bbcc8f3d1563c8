"""Reads and writes JSON documents with a versioned schema, canonical bytes and packed integers.

Every document that shoal writes (counts, plan, manifest) is one JSON object whose `schema` names
its kind and version. Equal contents have equal bytes, and no other bytes are read.
"""

import hashlib
import os
import stat
from contextlib import suppress

from shoal import checks
from shoal.documents.packed import pack_integers, unpack_integers
from shoal.documents.strict_json import MOST_BYTES, Document, canonical_bytes, plain
from shoal.errors import DocumentError, InputError

# The ending of a ledger's file. To open it beside SQLite would drop the locks of this process.
LEDGER_ENDING = ".ledger"
# Kinds of documents by the first part of their schema.
KINDS = {
    "shoal.manifest": "the manifest of a release",
    "shoal.record": "the record of a release",
    "shoal.counts": "counts",
    "shoal.plan": "a plan",
    "shoal.trial-plan": "the plan of a trial",
    "shoal.mean-plan": "the plan of an unbiased mean",
    "shoal.presence-plan": "a plan of private counts",
    "shoal.distributions-plan": "a plan of distributions",
}
# The longest part of a path in a message.
_LONGEST = 300

__all__ = [
    "Document",
    "canonical_bytes",
    "digest",
    "expect",
    "pack_integers",
    "plain",
    "read_bytes",
    "unpack_integers",
]


def digest(document: Document) -> str:
    """Returns the SHA-256 of the canonical bytes, in hexadecimal."""
    return hashlib.sha256(canonical_bytes(document)).hexdigest()


def expect(document: object, schema: str, what: str) -> Document:
    """Refuse a document that has another schema, and say what it is instead.

    Raises:
        DocumentError: Another kind or version.

    Example:
        >>> expect({"schema": "shoal.plan/7"}, "shoal.manifest/9", "manifest")
        Traceback (most recent call last):
        shoal.errors.DocumentError: manifest is not of the schema shoal.manifest/9: it is a plan...
    """
    said = document.get("schema") if isinstance(document, dict) else None
    if isinstance(document, dict) and said == schema:
        return document
    kind = said.partition("/")[0] if isinstance(said, str) else ""
    is_another_kind = kind in KINDS and kind != schema.partition("/")[0]
    if is_another_kind:
        raise DocumentError(
            f"{what} is not of the schema {schema}: it is {KINDS[kind]}",
            "give another file; shoal.load reads plans, manifests and records of all kinds",
        )
    raise DocumentError(
        f"{what} is not of the schema {schema}",
        "check that this is the right file and the right version of shoal",
    )


def read_bytes(path: str | os.PathLike[str], what: str) -> bytes:
    """Read the contents of a regular file, without ever waiting for a pipe or a device.

    Raises:
        DocumentError: Missing, unreadable, no regular file, or too large.
    """
    why = "its path is not usable"
    name = checks.shown(path, _LONGEST)
    with suppress(InputError):
        place = checks.path(path)
        name = checks.shown(place, _LONGEST)
        if place.endswith(LEDGER_ENDING):
            raise DocumentError(
                f"{what} {name} is a ledger",
                "look at it with `shoal ledger show LEDGER`; check a manifest against it with "
                "`shoal verify MANIFEST --ledger LEDGER`",
            )
        try:
            return _contents(place)
        except OSError as error:
            why = str(error.strerror)
    raise DocumentError(
        f"{what} {name} cannot be read ({why})", "give the path of a readable regular file"
    )


def _contents(path: str) -> bytes:
    """Returns the bytes of a regular file; an OSError says why it is not read."""
    # Opening a pipe for reading waits for a writer unless it is told not to.
    with open(path, "rb", opener=_at_once) as stream:
        found = os.fstat(stream.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
            raise OSError(0, "not a regular file" if found.st_size <= MOST_BYTES else "too large")
        data: bytes | None = stream.read(MOST_BYTES + 1)
    if data is None or len(data) > MOST_BYTES:
        # Some files of the system say that they are regular, but wait or never end.
        raise OSError(0, "no data" if data is None else "too large")
    return data


def _at_once(path: str, flags: int) -> int:
    """Opens a file without waiting."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
