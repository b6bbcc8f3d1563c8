"""JSON documents with a versioned schema: canonical bytes, packed integer arrays, safe files.

Every file shoal writes (occupancy, plan, manifest) is one JSON object whose `schema` names
its kind and version. Equal contents have equal bytes: keys are sorted and NaN is refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import DocumentError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Document = dict[str, Any]

_TYPES = ("<u1", "<u2", "<u4", "<u8")


def canonical_bytes(document: Document) -> bytes:
    """The one byte string of a document: sorted keys, no spaces, no NaN, UTF-8.

    Example:
        >>> canonical_bytes({"b": 1, "a": [True, None]})
        b'{"a":[true,null],"b":1}'
    """
    return json.dumps(
        document, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False
    ).encode()


def digest(document: Document) -> str:
    """SHA-256 of the canonical bytes, in hexadecimal."""
    return hashlib.sha256(canonical_bytes(document)).hexdigest()


def parse(text: bytes, schema: str | tuple[str, ...], what: str) -> Document:
    """Read a document and check that its schema is the expected one, or one of several.

    Raises:
        DocumentError: Not JSON, not an object, or another kind or version.
    """
    schemas = (schema,) if isinstance(schema, str) else schema
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise DocumentError(
            f"{what} is not JSON",
            f"a {' or '.join(schemas)} document",
            "write the file again with shoal",
        ) from None
    check_schema(document, schemas, what)
    return dict(document)


def check_schema(document: object, schemas: tuple[str, ...], what: str) -> None:
    """Refuse what is no object of one of some schemas.

    Raises:
        DocumentError: Another kind or version.
    """
    named = " or ".join(schemas)
    if not isinstance(document, dict) or document.get("schema") not in schemas:
        raise DocumentError(
            f"{what} is not of the schema {named}",
            f"a JSON object whose schema is {named}",
            "check that this is the right file and the right version of shoal",
        )


def read(path: str | os.PathLike[str], schema: str | tuple[str, ...], what: str) -> Document:
    """Read a document from a file.

    Raises:
        DocumentError: Missing, unreadable, or not of the schema.
    """
    return parse(read_bytes(path, what), schema, f"{what} {os.fspath(path)!r}")


def read_bytes(path: str | os.PathLike[str], what: str) -> bytes:
    """The contents of a file.

    Raises:
        DocumentError: Missing or unreadable.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise DocumentError(
            f"{what} {os.fspath(path)!r} cannot be read ({error.strerror})",
            "a readable file",
            "check the path",
        ) from None


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace a file in one step: readers see the old contents or the new, never a part.

    Raises:
        DocumentError: The place cannot be written or the disk is full.
    """
    target = Path(path)
    handle, name = _beside(target)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(target)
    except OSError as error:
        raise _unwritable(target, error) from None
    finally:
        Path(name).unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a place that `write_bytes` could not write to, before any work is done for it.

    Raises:
        DocumentError: The folder is missing or not writable, or the target is no regular file.
    """
    handle, name = _beside(Path(path))
    os.close(handle)
    Path(name).unlink()


def _beside(target: Path) -> tuple[int, str]:
    if target.exists() and not target.is_file():
        raise DocumentError(
            f"{os.fspath(target)!r} is no regular file", "a file or a new name", "choose another"
        )
    try:
        return tempfile.mkstemp(dir=target.parent or ".", prefix=f".{target.name}.")
    except (OSError, ValueError) as error:
        raise _unwritable(target, error) from None


def _unwritable(target: Path, error: OSError | ValueError) -> DocumentError:
    return DocumentError(
        f"{os.fspath(target)!r} cannot be written ({getattr(error, 'strerror', 'bad name')})",
        "a file in a writable folder with free space",
        "choose another path or make room",
    )


def pack_integers(values: NDArray[np.integer[Any]]) -> Document:
    """Non-negative integers as the smallest fixed type, deflated, in base 64.

    Example:
        >>> unpack_integers(pack_integers(np.array([3, 1, 4])), "x").tolist()
        [3, 1, 4]
    """
    largest = int(values.max()) if len(values) else 0
    kind = next(k for k in _TYPES if largest <= np.iinfo(k).max)
    packed = zlib.compress(values.astype(kind).tobytes(), level=1)
    return {"type": kind, "length": len(values), "data": base64.b64encode(packed).decode()}


def unpack_integers(packed: object, what: str) -> NDArray[np.int64]:
    """The inverse of `pack_integers`.

    Raises:
        DocumentError: The array is damaged.
    """
    try:
        values = _inflate(packed)
    except (KeyError, TypeError, ValueError, OverflowError, binascii.Error, zlib.error):
        values = None
    if values is None or (len(values) and int(values.min()) < 0):
        raise DocumentError(
            f"the packed integers of {what} are damaged",
            "an array written by shoal",
            "write the file again",
        )
    return values


def _inflate(packed: object) -> NDArray[np.int64] | None:
    if not isinstance(packed, dict) or packed["type"] not in _TYPES:
        return None
    length = int(packed["length"])
    size = length * np.dtype(packed["type"]).itemsize
    # At most one byte more than promised is inflated: a small file cannot fill the memory.
    raw = zlib.decompressobj().decompress(base64.b64decode(packed["data"], validate=True), size + 1)
    if length < 0 or len(raw) != size:
        return None
    return np.frombuffer(raw, dtype=packed["type"]).astype(np.int64)
