"""The head of a ledger: its newest entry, where it lies, and how often it was written.

Every transaction writes the head first, so that what SQLite keeps to take it back starts with the
page of the head as it was. Its mark is found there without SQLite, which would play it at once.
Nothing but the head lies on that page, so that no name or document is taken for a mark.
"""

from __future__ import annotations

import hashlib
import re
import struct
from typing import TYPE_CHECKING, NamedTuple

from shoal.privacy.ledger.place import damaged

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

    from shoal.privacy.ledger.entry import Founding

_MARK = re.compile(r"([0-9a-f-]{36}):([0-9]{20})")
# As SQLite writes a head: the ledger's name, up to 8 bytes of a number, a hash, the mark.
_RAW = re.compile(rb"([0-9a-f-]{36})[\x00-\xff]{0,8}[0-9a-f]{64}\1:([0-9]{20})\Z")
_RAW_LENGTH = 36 + 8 + 64 + 36 + 21
# Hashes are everywhere, colons before digits are not.
_RAW_END = re.compile(rb":[0-9]{20}")
# A new ledger is laid out so. https://www.sqlite.org/fileformat.html#b_tree_pages
FOUNDING_PAGE, HEAD_PAGE, PAGE_SIZE = 2, 4, 4096
_LEAF, _POINTER = b"\x0d", slice(8, 10)
# Of a journal's header: sizes of a sector, which the first page follows, and of a page.
_JOURNAL = struct.Struct(">20xII")
# All of a part's header: what it starts with, how many pages follow, and both sizes. Each page has
# its number before it and a sum behind. https://www.sqlite.org/fileformat.html#the_rollback_journal
_PART = struct.Struct(">8sI8xII")
_AROUND = 8
MAGIC = bytes.fromhex("d9d505f920a163d7")
# Digits of a seal, which ends a head's row.
_SEAL = 64


class Mark(NamedTuple):
    """What every transaction writes into the head.

    Attributes:
        identity: The ledger's random name.
        writes: Transactions that have written, with this one.
    """

    identity: str
    writes: int

    @classmethod
    def read(cls, text: object) -> Mark | None:
        """The inverse of `str`; None if it is no mark."""
        found = _MARK.fullmatch(text) if isinstance(text, str) else None
        return None if found is None else cls(found[1], int(found[2]))

    def next(self) -> Mark:
        """That of the next transaction."""
        return Mark(self.identity, self.writes + 1)

    def __str__(self) -> str:
        """Text of one length."""
        return f"{self.identity}:{self.writes:020d}"


def mark_of_ledger(path: bytes | Path) -> Mark | None:
    """The mark of a ledger as it lies there, read without SQLite; None if there is none.

    Of the most writes on the page of the head: a page may keep bytes of what it held before.

    Raises:
        OSError: It cannot be read.
    """
    return _newest(_head_page(path))[0]


def is_written_at(path: bytes | Path, place: bytes) -> bool:
    """Whether a ledger's head, read without SQLite, says that it was last written at a place.

    Args:
        path: Of the ledger.
        place: Where.

    Raises:
        OSError: It cannot be read.
    """
    page = _head_page(path)
    mark, end = _newest(page)
    return mark is not None and page.startswith(place + _seal(mark, place).encode(), end)


def _head_page(path: bytes | Path) -> bytes:
    with open(path, "rb") as stream:
        stream.seek((HEAD_PAGE - 1) * PAGE_SIZE)
        return stream.read(PAGE_SIZE)


def mark_of_journal(path: bytes | Path) -> Mark | None:
    """The mark of the state that a journal takes its ledger back to; None if there is none.

    That of the only row on the page of the head, which is the first that a journal keeps: names,
    documents and places may be spelled like a mark.

    Args:
        path: Of what SQLite keeps beside a ledger.

    Raises:
        OSError: It cannot be read.
    """
    page = _page_before(path)
    if page is None:
        return None
    return next((mark for mark, _ in _marks(page[int.from_bytes(page[_POINTER]) :])), None)


def _page_before(path: bytes | Path) -> bytes | None:
    """The page of the head that a journal keeps, which is the first; None if it keeps none."""
    with open(path, "rb") as stream:
        header = stream.read(_JOURNAL.size)
        if len(header) < _JOURNAL.size:
            return None
        sector, size = _JOURNAL.unpack(header)
        stream.seek(sector)
        number, page = stream.read(4), stream.read(PAGE_SIZE)
    whole = size == PAGE_SIZE and number == HEAD_PAGE.to_bytes(4) and page[:1] == _LEAF
    return page if whole else None


def place_before(path: bytes | Path) -> bytes | None:
    """Where the ledger lay in the state that a journal takes it back to; None if that is not known.

    Args:
        path: Of what SQLite keeps beside a ledger.

    Raises:
        OSError: It cannot be read.
    """
    page = _page_before(path)
    row = page[int.from_bytes(page[_POINTER]) :] if page else b""
    mark, end = next(_marks(row), (None, 0))
    if mark is None:
        return None
    length, at = _varint(row, 0)
    # A row that is too long for its page goes on elsewhere.
    place = row[end : _varint(row, at)[1] + length - _SEAL]
    return place if row.startswith(_seal(mark, place).encode(), end + len(place)) else None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number as SQLite writes it, and where it ends."""
    value = 0
    for end in range(at, min(at + 9, len(data))):
        value = value << 7 | data[end] & 0x7F
        if data[end] < 0x80:
            return value, end + 1
    return value, len(data)


def notes_a_place(path: bytes | Path) -> bool:
    """Whether a journal is of a transaction that noted a new place: see `touch_founding`.

    Args:
        path: Of what SQLite keeps beside a ledger.

    Raises:
        OSError: It cannot be read.
    """
    with open(path, "rb") as stream:
        while len(header := stream.read(_PART.size)) == _PART.size:
            magic, pages, sector, size = _PART.unpack(header)
            if magic != MAGIC or size != PAGE_SIZE or sector < _PART.size:
                return False
            start = stream.tell() - _PART.size + sector
            for page in range(pages):
                stream.seek(start + page * (size + _AROUND))
                number = stream.read(4)
                if number in (b"", FOUNDING_PAGE.to_bytes(4)):
                    return number != b""
            end = start + pages * (size + _AROUND)
            stream.seek(-(-end // sector) * sector)
    return False


def touch_founding(connection: sqlite3.Connection) -> None:
    """Have the journal keep a page that no charge changes, so that it is known what it is of."""
    [(unit,)] = connection.execute("SELECT unit FROM ledger").fetchall()
    # A row that stays as it is is not written.
    for each in (f"{unit} ", unit):
        connection.execute("UPDATE ledger SET unit = ?", (each,))


def _newest(page: bytes) -> tuple[Mark | None, int]:
    """The mark of the most writes and where it ends."""
    return max(_marks(page), key=lambda found: found[0].writes, default=(None, 0))


def _marks(data: bytes) -> Iterator[tuple[Mark, int]]:
    """Marks, and where they end."""
    for end in _RAW_END.finditer(data):
        each = _RAW.search(data, max(0, end.end() - _RAW_LENGTH), end.end())
        if each is not None:
            yield Mark(each[1].decode(), int(each[2])), end.end()


def insert_head(connection: sqlite3.Connection, founding: Founding, place: bytes) -> None:
    """Write the head of an empty ledger."""
    mark = Mark(founding.identity, 0)
    row = (founding.identity, founding.hash, str(mark), place, _seal(mark, place))
    connection.execute("INSERT INTO head VALUES (?, 0, ?, ?, ?, ?)", row)


def read_head(connection: sqlite3.Connection, path: Path, founding: Founding) -> tuple[bytes, Mark]:
    """Where the ledger lay when it was last written, and the mark of that transaction.

    Raises:
        LedgerError: Missing or changed.
    """
    rows = connection.execute("SELECT place, seal, ledger, mark FROM head").fetchall()
    place, seal, identity, text = rows[0] if len(rows) == 1 else (None, None, None, None)
    mark = Mark.read(text)
    if mark is None or not isinstance(place, bytes) or _seal(mark, place) != seal:
        raise damaged(path, "another place than it was written at")
    if not identity == mark.identity == founding.identity:
        raise damaged(path, "the head of another ledger")
    return place, mark


def move_head(connection: sqlite3.Connection, mark: Mark, place: bytes) -> Mark:
    """Begin to write: note that, and where the ledger lies.

    Args:
        connection: In a transaction.
        mark: The present one.
        place: Where the ledger lies.

    Returns:
        The new mark.
    """
    after = mark.next()
    connection.execute(
        "UPDATE head SET mark = ?, place = ?, seal = ?", (str(after), place, _seal(after, place))
    )
    return after


def _seal(mark: Mark, place: bytes) -> str:
    return hashlib.sha256(str(mark).encode() + place).hexdigest()
