"""Where a ledger lies: one name for one file, and nothing of another ledger beside it.

SQLite finds what a killed writer left by the ledger's name: NAME-journal. Under a second name the
journal would be ignored, and under the first one it would later take back what was recorded. So a
ledger has one name, and knows the one under which it was last written.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from shoal.errors import LedgerError, raise_alone

RESTORE = (
    "restore the newest copy from a backup, once the damaged file and its NAME-journal are out of "
    "the way, and run `shoal ledger verify` on it"
)
_LONGEST = 255  # bytes of a name on usual file systems
_LONGEST_PATH = 512  # bytes of a path that SQLite opens on Unix: MAX_PATHNAME in its os_unix.c
_DRAFTS = (".shoal-", ".new")  # how the names of ledgers in the making start and end

LEDGER_PARTS = ("-journal", "-wal", "-shm")
PARTS = (*LEDGER_PARTS, ".wal")


def is_part(name: str) -> bool:
    """Whether it is named like a part of a database."""
    return name.casefold().endswith(PARTS)


def check_name(path: Path) -> None:
    """Refuse a ledger that is called like a part of another: SQLite would delete it with that one.

    Or whose name or path is so long that SQLite could not make its journal: nothing can be charged.
    Links are followed, as SQLite does.

    Raises:
        LedgerError: It is called so.
    """
    longest = _LONGEST - max(map(len, LEDGER_PARTS))
    if len(os.path.basename(place_of(path))) > longest:
        raise LedgerError(
            f"a ledger whose name has more than {longest} bytes",
            "a name that leaves room for '-journal', which a database keeps beside it while it "
            "writes",
            "choose a shorter name; a ledger that is called so is renamed first",
        )
    longest = _LONGEST_PATH - max(map(len, LEDGER_PARTS))
    # SQLite counts the path as it is handed over, and as it is with links followed.
    if max(len(os.fsencode(path.absolute())), len(place_of(path))) > longest:
        raise LedgerError(
            f"a ledger whose path has more than {longest} bytes, folders included",
            "a path that leaves room for '-journal': a database opens no path of more than "
            f"{_LONGEST_PATH} bytes",
            "choose a folder nearer to the root, or a shorter name",
        )
    for name in {path.name, os.fsdecode(os.path.basename(place_of(path)))}:
        if is_part(name):
            raise LedgerError(
                f"a ledger named {name!r}, as a database calls what it keeps beside it",
                f"a name that does not end in {', '.join(PARTS)}: such a file may be deleted with "
                "the database that it seems to belong to",
                "choose another name; a ledger that is called so is renamed first",
            )


def draft_of(path: Path) -> Path:
    """Under which name a ledger is made, beside its own: a new one in every call.

    Raises:
        LedgerError: That name is longer than the ledger's, and there is no room for it.
    """
    draft = path.parent / secrets.token_hex(8).join(_DRAFTS)
    longest = _LONGEST_PATH - max(map(len, LEDGER_PARTS))
    if max(len(os.fsencode(draft.absolute())), len(place_of(draft))) > longest:
        room = longest - len(draft.name) - 1
        raise LedgerError(
            f"a new ledger in a folder whose path has more than {room} bytes",
            f"a folder with room for a name of {len(draft.name)} bytes, under which a ledger is "
            "made",
            "choose a folder nearer to the root",
        )
    return draft


class FileOf(NamedTuple):
    """Which file a path names, and how long it is."""

    device: int
    number: int
    size: int


def look(path: Path) -> FileOf:
    """Refuse what is no file with one name of its own.

    Never by opening it: closing any handle of a file drops SQLite's locks on it.

    Returns:
        Which file it is.

    Raises:
        LedgerError: Missing, no file, empty, with a second name, called like a ledger's part, or
            with too long a name.
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
    return FileOf(found.st_dev, found.st_ino, found.st_size)


def look_again(path: Path, before: FileOf) -> FileOf:
    """Refuse what has become another file, or none with one name of its own, since `look`.

    Returns:
        The same file, as long as it is now.

    Raises:
        LedgerError: It has.
    """
    try:
        found = path.stat()
    except (OSError, ValueError) as error:
        raise_alone(unreachable(path, error, "opened"))
    if found.st_nlink != 1 or not stat.S_ISREG(found.st_mode):
        look(path)
    if (found.st_dev, found.st_ino) != before[:2]:
        raise LedgerError(
            f"the ledger {str(path)!r} was replaced while it was used: nothing is delivered",
            "the same file from beginning to end",
            "find out who replaced it, put the newest copy back and ask again",
        )
    return before._replace(size=found.st_size)


def place_of(path: Path) -> bytes:
    """Where a ledger lies, links followed, as it is noted within.

    Raises:
        LedgerError: A link on the way was replaced at this moment.
    """
    # `Path.resolve` raises a RuntimeError where links lead in a circle.
    try:
        return os.fsencode(os.path.realpath(path))
    except OSError as error:
        raise_alone(unreachable(path, error, "opened"))


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


def damaged(path: Path, what: str) -> LedgerError:
    """The error of a ledger whose contents do not hold together."""
    return LedgerError(
        f"the ledger {str(path)!r} has {what}: it is damaged or was changed by hand",
        "a ledger that only shoal has written",
        RESTORE,
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
    start, end = _DRAFTS
    for draft in Path(os.path.realpath(path)).parent.glob(f"{start}*{end}"):
        with suppress(OSError):
            if os.path.samestat(draft.lstat(), found):
                draft.unlink()
