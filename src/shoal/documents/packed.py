"""Packs columns of whole numbers in a document: little-endian integers, deflated, in base 64."""

import base64
import binascii
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.arrays import Ints
from shoal.documents.strict_json import Document
from shoal.errors import DocumentError

_TYPES = ("<u1", "<u2", "<u4", "<u8")
_PARTS = {"type", "length", "data"}
# A column may always unpack to this many bytes.
_FREE = 2**16
# A longer column has at most this many times its packed bytes, so that a small file takes little
# time and memory. Columns that repeat more are packed byte by byte, each in a bit or more.
_RATIO = 8


def pack_integers(values: NDArray[np.integer[Any]]) -> Document:
    """Packs non-negative integers as the smallest fixed type, deflated, in base 64.

    Example:
        >>> unpack_integers(pack_integers(np.array([3, 1, 4])), "x").tolist()
        [3, 1, 4]
    """
    kind = _smallest(values)
    raw = values.astype(kind).tobytes()
    packed = zlib.compress(raw, level=1)
    if not _fits(len(raw), len(packed)):
        worker = zlib.compressobj(strategy=zlib.Z_HUFFMAN_ONLY)
        packed = worker.compress(raw) + worker.flush()
    return {"type": kind, "length": len(values), "data": base64.b64encode(packed).decode()}


def unpack_integers(packed: object, what: str) -> Ints:
    """Unpacks what `pack_integers` packed, and nothing else.

    Raises:
        DocumentError: The array is damaged, has too many bytes, or is far longer than the file.
    """
    try:
        values = _inflate(packed)
    except (TypeError, ValueError, OverflowError, binascii.Error, zlib.error):
        values = None
    if values is None:
        raise DocumentError(
            f"the packed integers of {what} are damaged", "write the file again with shoal"
        )
    return values


def _inflate(packed: object) -> Ints | None:
    """Returns the numbers, or None if they are not packed exactly as by `pack_integers`."""
    if not isinstance(packed, dict) or packed.keys() != _PARTS or packed["type"] not in _TYPES:
        return None
    length = packed["length"]
    text = packed["data"]
    # True and False are no lengths, but instances of int.
    if type(length) is not int or length < 0 or not isinstance(text, str):
        return None
    data = base64.b64decode(text, validate=True)
    # Base 64 has several spellings: only the canonical one counts.
    if base64.b64encode(data).decode() != text:
        return None
    size = length * np.dtype(packed["type"]).itemsize
    if not _fits(size, len(data)):
        return None
    stream = zlib.decompressobj()
    # At most one byte more than stated is inflated.
    raw = stream.decompress(data, size + 1)
    if len(raw) != size or not stream.eof or stream.unused_data:
        return None
    found = np.frombuffer(raw, dtype=str(packed["type"]))
    if packed["type"] != _smallest(found):
        return None
    values = found.astype(np.int64)
    # Numbers from 2^63 on turn negative.
    return values if int(values.min(initial=0)) >= 0 else None


def _smallest(values: NDArray[np.integer[Any]]) -> str:
    """Returns the smallest type that holds all values."""
    largest = int(values.max()) if len(values) else 0
    return next(kind for kind in _TYPES if largest <= np.iinfo(kind).max)


def _fits(size: int, packed: int) -> bool:
    """Whether a column of `size` bytes may be packed in `packed` bytes."""
    return size <= max(_FREE, _RATIO * packed)
