"""The mark of a head is found in the bytes of a file, without SQLite and without delay."""

from __future__ import annotations

import secrets
import struct
import time
from typing import TYPE_CHECKING

import pytest

from shoal.privacy.ledger.head import (
    HEAD_PAGE,
    PAGE_SIZE,
    Mark,
    mark_of_journal,
    mark_of_ledger,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.unit, pytest.mark.full]

LEDGER = "0a1b2c3d-0000-4000-8000-123456789abc"


def _head(writes: int) -> bytes:
    mark = Mark(LEDGER, writes)
    return LEDGER.encode() + b"\x07" + secrets.token_hex(32).encode() + str(mark).encode()


def _page(*parts: bytes, at: int = 0) -> bytes:
    """A page of one row, which begins after some of its parts."""
    start = 12 + sum(map(len, parts[:at]))
    start_of_row = b"\x0d\0\0\0\1\0\0\0" + start.to_bytes(2) + b"\0\0"
    return (start_of_row + b"".join(parts)).ljust(PAGE_SIZE, b"\0")


def _journal(page: bytes, number: int = HEAD_PAGE, sector: int = 512) -> bytes:
    header = struct.pack(">20xII", sector, PAGE_SIZE).ljust(sector, b"\0")
    return header + number.to_bytes(4) + page + b"sums" + b"\0\0\0\5" + _page(_head(99))


def test_a_ledger_has_the_newest_mark_on_the_page_of_its_head(tmp_path: Path) -> None:
    """Whatever other pages hold, and beside what only looks like a mark."""
    file, before = tmp_path / "pages", (HEAD_PAGE - 1) * _page(_head(11))
    likes = [b":" + b"0" * 20, str(Mark(LEDGER, 9)).encode()]
    file.write_bytes(before + _page(_head(5), *likes, _head(7), b"x" * 90) + _page(_head(12)))
    assert mark_of_ledger(file) == Mark(LEDGER, 7)
    file.write_bytes(before + _page(_head(5)[1:]) + _page(_head(12)))
    assert mark_of_ledger(file) is None
    file.write_bytes(before)
    assert mark_of_ledger(file) is None


@pytest.mark.parametrize("sector", [512, 4096])
def test_a_journal_has_the_mark_of_its_first_row(tmp_path: Path, sector: int) -> None:
    """Of no page but that of the head, not of what it held before, nor of its place."""
    file, parts = tmp_path / "journal", (_head(3), b"\x09", _head(7), b"/home/" + _head(50))
    file.write_bytes(_journal(_page(*parts, at=1), sector=sector))
    assert mark_of_journal(file) == Mark(LEDGER, 7)
    for bad in (
        _journal(_page(*parts, at=1), number=HEAD_PAGE + 1, sector=sector),
        _journal(b"\x05" + _page(*parts, at=1)[1:], sector=sector),
        _journal(_page(), sector=sector),
        _journal(_page(*parts), sector=sector)[: sector + 20],
        b"",
        b"x" * 27,
    ):
        file.write_bytes(bad)
        assert mark_of_journal(file) is None


def test_hashes_do_not_delay_the_search(tmp_path: Path) -> None:
    """Pages of a ledger are full of hashes; each of them was tried from every digit."""
    file, text = tmp_path / "pages", secrets.token_hex(2**23).encode()
    file.write_bytes(text)
    began = time.process_time()
    for _ in range(100):
        assert mark_of_ledger(file) is None
    assert time.process_time() - began < 2
