"""Packed columns: exact, and no larger than what they are packed in allows."""

import base64
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import documents
from shoal.errors import DocumentError
from tests.support.loop import loop_over

TRUE = np.array([3, 1, 4, 1, 5, 300])


def packed(raw: bytes, **changes: Any) -> documents.Document:
    """A column of two-byte numbers."""
    data = base64.b64encode(zlib.compress(raw, level=1)).decode()
    return {"type": "<u2", "length": len(raw) // 2, "data": data, **changes}


def _data(change: Any) -> documents.Document:
    true = documents.pack_integers(TRUE)
    return {**true, "data": base64.b64encode(change(base64.b64decode(true["data"]))).decode()}


RAW = TRUE.astype("<u2").tobytes()
GAMES: dict[str, object] = {
    "bytes after the stream": _data(lambda data: data + b"epsilon 0"),
    "a cut stream": _data(lambda data: data[:-1]),
    "no checksum": _data(lambda data: data[:-4]),
    "a type that is wider than needed": packed(np.array([1, 2], "<u4").tobytes(), type="<u4",
                                               length=2),
    "another byte order": packed(RAW, type=">u2"),
    "signed": packed(RAW, type="<i2"),
    "one more": packed(RAW, length=7),
    "one less": packed(RAW, length=5),
    "a length that is no whole number": packed(RAW, length=6.0),
    "a length that is true": packed(np.array([300], "<u2").tobytes(), length=True),
    "something added": packed(RAW, note="epsilon 0"),
    "something missing": {"type": "<u2", "length": 6},
    "text that is no base 64": packed(RAW, data="!"),
    "domains in base 64": packed(RAW, data=" " + packed(RAW)["data"]),
    "bits that are not used": packed(RAW, data="eAEDAAAAAAF=="),
    "beyond 63 bits": documents.pack_integers(np.array([2**63], dtype=np.uint64)),
    "a type that cannot be looked up": packed(RAW, type=["<u2"]),
}  # fmt: skip


@loop_over("game", GAMES)
def test_a_packed_column_has_one_form(game: str) -> None:
    """No bytes too many, the smallest type, canonical base 64, the exact length."""
    with pytest.raises(DocumentError, match="damaged"):
        documents.unpack_integers(GAMES[game], "x")


@given(st.lists(st.integers(0, 2**63 - 1), max_size=30))
def test_columns_come_back(numbers: list[int]) -> None:
    """Whatever is packed is unpacked."""
    column = np.array(numbers, dtype=np.int64)
    assert documents.unpack_integers(documents.pack_integers(column), "x").tolist() == numbers


def test_a_long_column_is_at_most_eight_times_as_long_as_its_packing() -> None:
    """What is read of a document is in proportion to it; more is refused unread."""
    raw = bytes(2**20)
    tight = base64.b64encode(zlib.compress(raw, level=9)).decode()
    with pytest.raises(DocumentError):
        documents.unpack_integers({"type": "<u1", "length": len(raw), "data": tight}, "x")
    short = base64.b64encode(zlib.compress(raw[: 2**16], level=9)).decode()
    free = {"type": "<u1", "length": 2**16, "data": short}
    assert len(documents.unpack_integers(free, "x")) == 2**16


@pytest.mark.parametrize("length", [0, 3, 4, 6, 100])
def test_a_column_is_exactly_as_long_as_it_says(length: int) -> None:
    """Five numbers packed as any other many, one more or one less among them."""
    data = base64.b64encode(zlib.compress(bytes([9, 8, 7, 6, 5]), level=1)).decode()
    whole = {"type": "<u1", "length": 5, "data": data}
    assert documents.unpack_integers(whole, "numbers").tolist() == [9, 8, 7, 6, 5]
    with pytest.raises(DocumentError, match="damaged"):
        documents.unpack_integers({**whole, "length": length}, "numbers")
