"""Where a ledger lies: one name for one file, and nothing of another ledger beside it.

SQLite finds what a killed writer left by the ledger's name: NAME-journal. Under a second name the
journal would be ignored, and under the first one it would later take back what was recorded. So a
ledger has one name, and knows the one under which it was last written.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from shoal.errors import LedgerError, raise_alone
from shoal.files import LEDGER_PARTS, PARTS, is_part

DRAFTS = (".shoal-", ".new")  # how the names of ledgers in the making start and end
_PART = 2**20


def check_name(path: Path) -> None:
    """Refuse a ledger that is called like a part of another: SQLite would delete it with that one.

    Links are followed, as SQLite does.

    Raises:
        LedgerError: It is called so.
    """
    for name in {path.name, os.fsdecode(os.path.basename(place_of(path)))}:  # noqa: PTH119
        if is_part(name):
            raise LedgerError(
                f"a ledger named {name!r}, as a database calls what it keeps beside it",
                f"a name that does not end in {', '.join(PARTS)}: such a file may be deleted with "
                "the database that it seems to belong to",
                "choose another name; a ledger that is called so is renamed first",
            )


def look(path: Path) -> None:
    """Refuse what is no file with one name of its own.

    Never by opening it: closing any handle of a file drops SQLite's locks on it.

    Raises:
        LedgerError: Missing, no file, empty, with a second name, or called like a ledger's part.
    """
    try:
        check_name(path)
        found = path.stat()
        if found.st_nlink > 1:
            _drop_drafts(path, found)
            found = path.stat()
    except (OSError, ValueError) as error:
        raise_alone(unreachable(path, error, "opened"))
    if not stat.S_ISREG(found.st_mode) or found.st_size == 0:
        what = "an empty file" if stat.S_ISREG(found.st_mode) else "not a file"
        if stat.S_ISDIR(found.st_mode):
            what = "a directory"
        raise foreign(path, what)
    if found.st_nlink > 1:
        raise LedgerError(
            f"the ledger {str(path)!r} has a second name (a hard link)",
            "one name for one ledger: what a crash leaves beside it is found by that name",
            "remove the other name (find it with `find -samefile`)",
        )


def place_of(path: Path) -> bytes:
    """Where a ledger lies, links followed, as it is noted within."""
    # `Path.resolve` raises a RuntimeError where links lead in a circle.
    return os.fsencode(os.path.realpath(path))


def look_again(path: Path, place: bytes, identity: str) -> None:
    """Look at an open ledger, which may have been given a second name since, and whence it came.

    A moved ledger is refused if its unfinished charge cannot be taken back, as its journal stayed.
    A journal beside another ledger is that one's own, and one that another ledger wrote is not
    this one's: moved here it would be played into this ledger.

    Args:
        path: Where the ledger lies.
        place: Where it was last written.
        identity: Its random name, which stands in the first page that a charge changes.

    Raises:
        LedgerError: As `look`; or there is such a journal under the old name, here or where the
            ledger was.
    """
    look(path)
    here, was = place_of(path), place
    for there in {was, os.path.join(os.path.dirname(here), os.path.basename(was))}:  # noqa: PTH118, PTH119, PTH120
        journal = there + b"-journal"
        if there == here or os.path.lexists(there) or not os.path.lexists(journal):
            continue
        own = _names(journal, identity)
        if own is False:
            continue
        old, left, now = map(os.fsdecode, (there, journal, here))
        if own is None:
            raise LedgerError(
                f"the ledger {str(path)!r} was moved, and {left!r} lies where it was: it cannot be "
                "read, so that nobody knows whose it is",
                "a ledger with all its parts",
                "make that file readable; move it nowhere before it is known whose it is",
            )
        raise LedgerError(
            f"the ledger {str(path)!r} was moved after a crash: what takes an unfinished charge "
            f"back stayed behind as {left!r}",
            "a ledger with all its parts",
            f"move that file to {now + '-journal'!r}, or the ledger back to {old!r}",
        )


def _names(journal: bytes, identity: str) -> bool | None:
    """Whether a journal holds a page with a ledger's random name; None if it cannot be read.

    SQLite writes the old page before it changes the ledger: a journal without it changed nothing.
    """
    wanted, end = identity.encode(), b""
    try:
        with open(journal, "rb") as stream:  # noqa: PTH123
            while part := stream.read(_PART):
                if wanted in end + part:
                    return True
                end = part[-len(wanted) :]
    except FileNotFoundError:  # its ledger has taken its charge back, or finished it
        return False
    except OSError:
        return None
    return False


def check_new(path: Path) -> None:
    """Refuse a new ledger called like a part, or beside parts of an old one, taken for its own.

    Raises:
        LedgerError: As `check_name`, or there are some.
    """
    check_name(path)
    for ending in LEDGER_PARTS:
        beside = f"{path}{ending}"
        if os.path.lexists(beside) and not os.path.lexists(path):
            raise LedgerError(
                f"{beside!r} lies there, a part of a ledger that was called {path.name!r}",
                "a place with no part of another ledger",
                "move that part to its ledger and open it, or choose another path",
            )


def foreign(path: Path, what: str) -> LedgerError:
    """The error of a file that is no ledger."""
    return LedgerError(
        f"{str(path)!r} is {what}", "a file made by `shoal ledger create`", "check the path"
    )


def unreachable(path: Path, error: OSError | ValueError, what: str) -> LedgerError:
    """The error of a path where nothing can be opened or created."""
    reason = getattr(error, "strerror", None) or "not a path"
    return LedgerError(
        f"the ledger {str(path)!r} cannot be {what} ({reason})",
        "a path in an existing, writable folder of a file system with hard links"
        if what == "created"
        else "a file made by `shoal ledger create`",
        "check the path, its permissions and the free space",
    )


def _drop_drafts(path: Path, found: os.stat_result) -> None:
    """Take away the name under which a ledger was made: its maker does, or was killed before."""
    start, end = DRAFTS
    for draft in Path(os.path.realpath(path)).parent.glob(f"{start}*{end}"):
        with suppress(OSError):
            if os.path.samestat(draft.lstat(), found):
                draft.unlink()
