"""The mark of a head is found in the bytes of a file, without SQLite and without delay."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

import pytest

from shoal.privacy.ledger.head import Mark, newest_mark

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

LEDGER = "0a1b2c3d-0000-4000-8000-123456789abc"


def _head(writes: int) -> bytes:
    mark = Mark(LEDGER, writes)
    return LEDGER.encode() + b"\x07" + secrets.token_hex(32).encode() + str(mark).encode()


def test_the_newest_of_all_heads_is_found(tmp_path: Path) -> None:
    """G-LEDGER: also where a read ends within one, and beside what only looks like a mark."""
    file = tmp_path / "pages"
    parts = [
        _head(5),
        bytes(100),
        b":" + b"0" * 20,
        _head(7),
        b"x" * 90,
        str(Mark(LEDGER, 9)).encode(),
    ]
    whole = b"".join(parts)
    for before in (0, 2**20 - 100, 2**20 - len(whole) // 2):
        file.write_bytes(b"y" * before + whole)
        assert newest_mark(file, 2**30) == Mark(LEDGER, 7)
        assert newest_mark(file, before + len(parts[0])) == Mark(LEDGER, 5)
    file.write_bytes(_head(5)[1:])
    assert newest_mark(file, 2**30) is None


def test_hashes_do_not_delay_the_search(tmp_path: Path) -> None:
    """G-QUEUE: pages of a ledger are full of hashes; each of them was tried from every digit."""
    file = tmp_path / "pages"
    file.write_bytes(secrets.token_hex(2**23).encode() + _head(3))
    began = time.process_time()
    assert newest_mark(file, 2**30) == Mark(LEDGER, 3)
    assert time.process_time() - began < 10
