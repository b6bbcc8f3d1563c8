"""What SQLite keeps to take an unfinished charge back: it belongs to one state of one ledger."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from shoal.errors import LedgerError, raise_alone
from shoal.privacy.ledger.head import (
    MAGIC,
    is_written_at,
    mark_of_journal,
    mark_of_ledger,
    notes_a_place,
    place_before,
)

if TYPE_CHECKING:
    from pathlib import Path

    from shoal.privacy.ledger.head import Mark

_ENDING, _WAL = b"-journal", b"-wal"
# While somebody writes, journal and ledger change between two looks: what was left stays.
_LOOKS, _MOST_LOOKS, _PAUSE = 50, 1000, 0.002


def check_journal(path: Path, here: bytes) -> None:
    """Refuse a ledger with a journal of another of its states, or of another file, beside it.

    SQLite plays a journal as soon as it opens the ledger. A ledger that was charged elsewhere since
    its journal was left would lose these charges.

    A transaction is taken back to the state before it: the ledger has the journal's mark, or that
    of the transaction itself, of one more write. A ledger that was charged at another place was
    written at least twice there, as it notes its place first; but a crash that notes a place leaves
    a journal that the old place knows nothing of. Such a one fits one more write only if that
    write noted another place.

    Args:
        path: Where the ledger lies.
        here: The same, links followed (`place_of`).

    Raises:
        LedgerError: There is such a journal, or it cannot be read.
    """
    if _is_there(here + _WAL):
        raise LedgerError(
            f"beside the ledger {str(path)!r} lies {os.fsdecode(here + b'-wal')!r}, which SQLite "
            "would play into it, and which shoal never leaves",
            "a ledger that nothing but shoal writes",
            "move that file out of the way; another program has left it",
        )
    journal, before, same = here + _ENDING, None, 0
    for _ in range(_MOST_LOOKS):
        if same == _LOOKS or not _is_there(journal):
            break
        try:
            marks = mark_of_journal(journal), mark_of_ledger(here)
            empty = marks[0] is None and not _is_whole(journal)
            fits = _fits(*marks, own=not notes_a_place(journal) or _is_noted(journal, here))
        except FileNotFoundError:
            # Its transaction has ended meanwhile.
            return
        except OSError:
            raise_alone(_unreadable(path, journal))
        if empty or fits:
            return
        same, before = same + 1 if marks == before else 1, marks
        time.sleep(_PAUSE)
    if same < _LOOKS:
        return
    old = os.fsdecode(journal)
    raise LedgerError(
        f"beside the ledger {str(path)!r} lies {old!r}, which was left by a crash before the ledger"
        " was charged elsewhere, or by another ledger: SQLite would take charges back with it",
        "what takes back an unfinished charge of this ledger as it is, or nothing",
        f"move {old!r} out of the way, if the ledger was used elsewhere since that crash; else move"
        " both to where they lay together",
    )


def _is_noted(journal: bytes, here: bytes) -> bool:
    """Whether a ledger has another place than before the transaction that noted one."""
    before = place_before(journal)
    return before is None or not is_written_at(here, before)


def _is_whole(journal: bytes) -> bool:
    """Whether SQLite would play a journal: until it is on the disk it starts with zeros."""
    with open(journal, "rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


def _fits(left: Mark | None, now: Mark | None, *, own: bool) -> bool:
    if left is None or now is None:
        return False
    return left.identity == now.identity and 0 <= now.writes - left.writes <= int(own)


def is_alone(here: bytes) -> bool:
    """Whether nothing lies beside a ledger, links followed, that SQLite would play into it."""
    return not any(_is_there(here + ending) for ending in (_ENDING, _WAL))


def check_nothing_left(path: Path, here: bytes, place: bytes, identity: str) -> None:
    """Refuse a moved ledger whose unfinished charge cannot be taken back, as its journal stayed.

    A journal that another ledger wrote is not this one's: moved here it would be played into this
    ledger.

    Args:
        path: Where the ledger lies.
        here: The same, links followed (`place_of`).
        place: Where it was last written.
        identity: Its random name.

    Raises:
        LedgerError: There is such a journal under the old name, here or where the ledger was, or
            nobody may look.
    """
    for there in {was_at(here, place), place}:
        journal = there + _ENDING
        if there == here or not _is_there(journal) or _is_beside(journal, here):
            continue
        try:
            left = mark_of_journal(journal)
        except FileNotFoundError:
            # Its ledger has taken its charge back, or finished it.
            continue
        except OSError:
            raise_alone(_unreadable(path, journal))
        if left is None or left.identity != identity:
            continue
        old, beside, now = map(os.fsdecode, (there, journal, here))
        raise LedgerError(
            f"the ledger {str(path)!r} was moved after a crash: what takes an unfinished charge "
            f"back stayed behind as {beside!r}",
            "a ledger with all its parts",
            f"move that file to {now + '-journal'!r}, or the ledger back to {old!r}",
        )


def _is_beside(journal: bytes, here: bytes) -> bool:
    """Whether a journal lies beside the ledger, too: one folder may be seen at two places."""
    try:
        return os.path.samefile(journal, here + _ENDING)
    except OSError:
        return False


def was_at(here: bytes, place: bytes) -> bytes:
    """The old name in the new folder: a folder may have been moved with all that is in it."""
    return os.path.join(os.path.dirname(here), os.path.basename(place))


def _is_there(journal: bytes) -> bool:
    """Whether there is a journal; one that nobody may look for might be there."""
    try:
        return os.lstat(journal).st_size > 0
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _unreadable(path: Path, journal: bytes) -> LedgerError:
    left = os.fsdecode(journal)
    return LedgerError(
        f"a journal {left!r} that the ledger {str(path)!r} may have left cannot be read, so that "
        "nobody knows whose it is",
        "a ledger with all its parts, or an old place where one may look",
        "make that file or its folder readable; move it nowhere before it is known whose it is",
    )
