"""The head of a ledger: its newest entry, where it lies, and how often it was written.

Every transaction writes the head first, so that what SQLite keeps to take it back starts with the
page of the head as it was. Its mark is found there without SQLite, which would play it at once.
"""

from __future__ import annotations

import hashlib
import re
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
_SEAM = 200


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


def newest_mark(path: bytes | Path, most: int) -> Mark | None:
    """The mark of the most writes among the first bytes of a file; None if there is none.

    A page may keep bytes of what it held before: those are of fewer writes.

    Args:
        path: Of a ledger or of what SQLite keeps beside it.
        most: How many bytes are looked at.

    Raises:
        OSError: It cannot be read.
    """
    found: list[Mark] = []
    with open(path, "rb") as stream:  # noqa: PTH123
        end = b""
        while most > 0 and (part := stream.read(min(most, 2**20))):
            most -= len(part)
            found += _marks(end + part)
            end = part[-_SEAM:]
    return max(found, key=lambda mark: mark.writes, default=None)


def _marks(data: bytes) -> Iterator[Mark]:
    for end in _RAW_END.finditer(data):
        each = _RAW.search(data, max(0, end.end() - _RAW_LENGTH), end.end())
        if each is not None:
            yield Mark(each[1].decode(), int(each[2]))


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
