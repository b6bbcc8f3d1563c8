"""The file under a ledger: creation in one step, a connection per operation, plain errors."""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from contextlib import closing, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from shoal.documents.fork_gate import GATE, within
from shoal.errors import LedgerError, raise_alone
from shoal.privacy.ledger.entry import SCHEMA_VERSION
from shoal.privacy.ledger.group_commit import Group
from shoal.privacy.ledger.hash_chain import (
    APPLICATION_ID,
    TABLES,
    Chain,
    insert_founding,
)
from shoal.privacy.ledger.head import PAGE_SIZE, touch_founding
from shoal.privacy.ledger.journal import check_journal, check_nothing_left, is_alone
from shoal.privacy.ledger.place import (
    RESTORE,
    check_new,
    damaged,
    draft_of,
    foreign,
    look,
    look_again,
    place_of,
    unreachable,
)
from shoal.privacy.ledger.queue import Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from shoal.privacy.ledger.entry import Draft, Founding
    from shoal.privacy.ledger.place import FileOf

Found = TypeVar("Found")

_PATIENCE = 60  # seconds to wait for another process
_IN_LINE = 10  # of them in the queue, which whoever may read the folder can keep
_PAUSE = 0.00005  # seconds between two looks at a lock
_CROWD = 300  # looks are rarer where the system has no queue
# On macOS a plain fsync does not reach the disk.
_DURABLE = ("PRAGMA synchronous = EXTRA", "PRAGMA fullfsync = ON")
_REASONS = {
    sqlite3.SQLITE_FULL: ("the disk is full", "free space on its disk", "make room and ask again"),
    sqlite3.SQLITE_READONLY: (
        "it or its folder cannot be written",
        "a file and a folder that this user may write",
        "change their permissions and ask again",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "it cannot be opened, or its folder cannot be written",
        "a file and a folder that this user may read and write",
        "check their permissions",
    ),
    sqlite3.SQLITE_BUSY: (
        f"another process kept it locked for {_PATIENCE} seconds",
        "one writer at a time, each for a moment",
        "end the process that holds it and ask again",
    ),
    sqlite3.SQLITE_NOTADB: (
        "it is another kind of file",
        "a file made by `shoal ledger create`",
        "check the path",
    ),
    sqlite3.SQLITE_CORRUPT: (
        "it is damaged, or was moved after a crash without the -journal file beside its old place",
        "a whole ledger",
        f"look for that file first and move it here, under the new name; else {RESTORE}",
    ),
    sqlite3.SQLITE_IOERR: (
        "reading or writing failed",
        "a healthy disk with free space, within this user's limits",
        "check the disk and ask again: what was recorded is delivered at no cost",
    ),
}
_REASONS[sqlite3.SQLITE_LOCKED] = _REASONS[sqlite3.SQLITE_BUSY]


class TooLateError(Exception):
    """Somebody kept a lock for longer than anybody waits."""


def create_file(path: Path, founding: Founding) -> None:
    """Make a ledger in one step: there is the whole file, durable, or none.

    Raises:
        LedgerError: The path exists, is called like a part of a ledger or such parts lie beside
            it, or the place cannot be written.
    """
    try:
        check_new(path)
        draft = draft_of(path)
        # Opened here and not by SQLite, so that it must be new and has the user's usual mode.
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
        try:
            with GATE, _translated(path), closing(_connect(draft)) as connection:
                _lay_out(connection, founding, place_of(path))
            _sync(draft)
            os.link(draft, path)
        finally:
            draft.unlink(missing_ok=True)
        _sync(path.parent)
    except FileExistsError:
        raise_alone(
            LedgerError(
                f"there is already a file {str(path)!r}",
                "a new path: a budget never changes and is never started afresh",
                "open the ledger that is there, or choose another path",
            )
        )
    except (OSError, ValueError) as error:
        raise_alone(unreachable(path, error, "created"))


def operate(
    path: Path,
    founding: Founding | None,
    act: Callable[[Session], Found],
    *,
    write: bool = False,
    draft: Draft | None = None,
) -> Found:
    """Carry one operation on a ledger out: its own connection and one transaction.

    What is not committed when it ends, however it ends, is rolled back. A signal may end it at any
    moment, also as a block begins or ends, where Python runs nothing of that block's: so all is
    closed again, from outside.

    Args:
        path: The ledger's file.
        founding: The creation record it must have; None accepts any ledger.
        act: What is done in the transaction.
        write: Take the write lock at once.
        draft: What is recorded, if the process whose turn is next may do it: the session is told
            if it says so, and reads.

    Returns:
        What was found.

    Raises:
        LedgerError: The file is missing, foreign, damaged, locked, has a second name, was moved
            without what a crash left, was replaced meanwhile, or cannot be written; or this thread
            is within another operation.
    """
    steps = _operation(path, founding, draft, write=write)
    try:
        with steps as now:
            return act(now)
    finally:
        steps.gen.close()


@contextmanager
def _operation(
    path: Path, founding: Founding | None, draft: Draft | None, *, write: bool
) -> Iterator[Session]:
    if within():
        raise LedgerError(
            f"an operation on the ledger {str(path)!r} while another one of this thread goes on",
            "one at a time: a signal's handler, or what runs when an object goes, may not ask then",
            "let the handler note what it wants, and ask when the operation is over",
        )
    with GATE, _translated(path):
        file, here = look(path), place_of(path)
        turn, group = Turn(path, _IN_LINE), Group(file, founding, draft)
        try:
            # Who is told that its draft is recorded has no turn: it reads.
            write = write and not (turn.is_taken() and group.join())
            with closing(_connect(path)) as connection:
                if write:
                    _prepare(connection, here)
                # A turn ends with its transaction: what comes after goes on beside other charges.
                try:
                    with turn if write else nullcontext() as first:
                        check_journal(path, here)
                        _begin(connection, path, write=write, first=bool(first))
                        chain = _checked(connection, path, founding, file, write=write)
                        yield Session(connection, chain.founding, chain, path, file, group)
                finally:
                    # Explicit, as a half-read cursor would keep the transaction past the close.
                    if connection.in_transaction:
                        with suppress(sqlite3.Error):
                            connection.execute("ROLLBACK")
                    turn.leave()
                    group.leave()
        finally:
            group.leave()
            turn.leave()


def _checked(
    connection: sqlite3.Connection,
    path: Path,
    founding: Founding | None,
    file: FileOf,
    *,
    write: bool,
) -> Chain:
    """What is there, once nobody else can write: the same ledger, with all of its parts."""
    chain = _identify(connection, path, founding)
    found = chain.founding
    if founding is not None and found != founding:
        raise LedgerError(
            f"{str(path)!r} is not the ledger that was opened",
            "the same file from opening to recording",
            "find out who replaced it and open the right one",
        )
    # Again, as the file may have been given a second name meanwhile.
    size = look_again(path, file).size
    here = place_of(path)
    check_nothing_left(path, here, chain.place, found.identity)
    if write:
        _check_size(connection, path, size)
        _note_place(connection, chain, here)
    return chain


class Session(NamedTuple):
    """An open transaction: its connection, the ledger's record and entries, file and processes."""

    connection: sqlite3.Connection
    founding: Founding
    chain: Chain
    path: Path
    file: FileOf
    group: Group

    def commit(self) -> None:
        """End the transaction: all of it is on the disk.

        Raises:
            TooLateError: Somebody kept on reading.
        """
        # Whoever looks at a ledger delays a commit; SQLite's own waiting makes milliseconds of it.
        self.connection.execute("PRAGMA busy_timeout = 0")
        _insist(self.connection, "COMMIT", crowd=1)

    def confirm(self) -> None:
        """See, after the commit, that it is in the file that has the ledger's name.

        Raises:
            LedgerError: The file was replaced meanwhile.
        """
        look_again(self.path, self.file)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=rw", uri=True, timeout=_PATIENCE, isolation_level=None
    )
    # A changed file cannot smuggle in code through its schema.
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _prepare(connection: sqlite3.Connection, here: bytes) -> None:
    """What a charge can do beside the charges of others, before its turn."""
    # SQLite's own waiting backs off to 100 ms, so that one busy writer starves the others.
    connection.execute("PRAGMA busy_timeout = 0")
    if is_alone(here):
        # These read the schema, if nobody is in the way.
        _granted(connection, *_DURABLE)


def _begin(connection: sqlite3.Connection, path: Path, *, write: bool, first: bool) -> None:
    """Begin a transaction; one that writes has SQLite's lock, and is durable."""
    if not write:
        connection.execute("BEGIN")
        return
    _insist(connection, *_DURABLE, "BEGIN IMMEDIATE", crowd=1 if first else _CROWD)
    # What is too long for SQLite's memory is written before the end, once nobody reads.
    connection.execute(f"PRAGMA busy_timeout = {1000 * _PATIENCE:.0f}")
    _check_durable(connection, path)


def _insist(connection: sqlite3.Connection, *statements: str, crowd: int = _CROWD) -> None:
    """Carry statements out, as soon as no other process has a lock that is in their way."""
    until = time.monotonic() + _PATIENCE
    while not _granted(connection, *statements):
        if time.monotonic() > until:
            raise TooLateError
        time.sleep(_PAUSE * (1 + secrets.randbelow(crowd)))


def _granted(connection: sqlite3.Connection, *statements: str) -> bool:
    """Carry statements out; tell whether no lock was in their way."""
    try:
        for statement in statements:
            connection.execute(statement)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True


def _check_durable(connection: sqlite3.Connection, path: Path) -> None:
    # A rollback journal and not WAL: a ledger copied as a single file must carry every
    # committed charge.
    mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
    if mode == "wal":
        connection.execute("ROLLBACK")
        mode = connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
        connection.execute("BEGIN IMMEDIATE")
    level = connection.execute("PRAGMA synchronous").fetchone()[0]
    if (mode, level) != ("delete", 3):
        raise LedgerError(
            f"this SQLite cannot write the ledger {str(path)!r} durably",
            "a rollback journal with synchronous EXTRA",
            "use SQLite 3.12 or newer",
        )


def _check_size(connection: sqlite3.Connection, path: Path, found: int) -> None:
    """A charge reads few pages; that none was cut off is seen by their number alone."""
    pages, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size")
    )
    if found != pages * size:
        raise damaged(path, "another length than it should have")


def _note_place(connection: sqlite3.Connection, chain: Chain, here: bytes) -> None:
    """By itself: a crash in the charge that follows must find it on the disk."""
    if chain.place != here:
        chain.move(here)
        touch_founding(connection)
        connection.execute("COMMIT")
        _insist(connection, "BEGIN IMMEDIATE")


def _lay_out(connection: sqlite3.Connection, founding: Founding, place: bytes) -> None:
    # A draft needs no journal: if it is interrupted nobody has seen it.
    connection.execute("PRAGMA journal_mode = OFF")
    # So that the head has the page where it is looked for without SQLite.
    connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
    connection.execute("PRAGMA auto_vacuum = NONE")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    for table in TABLES:
        connection.execute(table)
    insert_founding(connection, founding, place)


def _identify(connection: sqlite3.Connection, path: Path, known: Founding | None) -> Chain:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION_ID:
        raise foreign(path, "a database of another application")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != SCHEMA_VERSION:
        raise LedgerError(
            f"the ledger {str(path)!r} has schema version {version}",
            f"version {SCHEMA_VERSION}",
            "use the version of shoal that wrote it",
        )
    schema = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    # Not in order: a damaged text may be bytes.
    if len(schema) != len(TABLES) or {sql for (sql,) in schema} != set(TABLES):
        raise foreign(path, "a database with other tables than a ledger's")
    return Chain(connection, path, known)


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    code = sqlite3.SQLITE_OK
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None) or sqlite3.SQLITE_CORRUPT
    except TooLateError:
        code = sqlite3.SQLITE_BUSY
    except (UnicodeError, MemoryError, OverflowError):  # SQLite met lengths or texts of no ledger
        code = sqlite3.SQLITE_CORRUPT
    if code == sqlite3.SQLITE_OK:
        return
    # SQLite's own text can quote contents: neither message nor context keeps it.
    default = (f"SQLite failed with code {code}", "a whole ledger", "run `shoal ledger verify`")
    reason, allowed, todo = _REASONS.get(code & 0xFF, default)
    raise_alone(LedgerError(f"the ledger {str(path)!r} failed: {reason}", allowed, todo))


def _sync(path: Path) -> None:
    if os.name == "nt" and path.is_dir():  # Windows has no handles of folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
