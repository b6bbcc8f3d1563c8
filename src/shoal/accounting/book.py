"""The ledger's file: one SQLite database, opened anew for every operation."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import uuid
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.accounting.entry import Budget, Entry, genesis
from shoal.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA = "shoal.ledger/1"
# "shoa" in ASCII: other programs' databases are told apart before anything is read.
APPLICATION_ID = 0x73686F61
_WAIT_SECONDS = 60.0
_TABLES = """
create table ledger (
    id text not null, schema text not null, epsilon text not null, delta text not null
) strict;
create table entry (
    number integer primary key, request text not null unique, label text not null,
    epsilon text not null, delta text not null, document blob not null,
    document_sha256 text not null, previous text not null, hash text not null unique,
    recorded_at text not null
) strict;
"""


def create(path: Path, budget: Budget) -> None:
    """Make a new ledger file in one step: it is there whole or not at all.

    Raises:
        LedgerError: Something is at the path already, or it cannot be written.
    """
    if path.exists():
        raise _exists(path)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        with closing(_connect(Path(name))) as connection:
            connection.executescript(f"pragma application_id = {APPLICATION_ID}; {_TABLES}")
            connection.execute(
                "insert into ledger values (?, ?, ?, ?)",
                (uuid.uuid4().hex, SCHEMA, str(budget.epsilon), str(budget.delta)),
            )
        with open(name, "rb") as stream:
            os.fsync(stream.fileno())
        # A hard link fails if the name exists: two creators never overwrite each other.
        os.link(name, path)
        _sync_folder(path.parent)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        raise _unwritable(path, error) from None
    except sqlite3.Error as error:
        raise translate(path, error) from None
    finally:
        Path(name).unlink(missing_ok=True)


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection for one operation, closed afterwards; errors in words.

    A connection never lives longer, so threads and forked processes cannot share one.

    Raises:
        LedgerError: Missing, corrupt, foreign, locked, or not writable.
    """
    if not path.is_file():
        raise LedgerError(
            f"no ledger at {os.fspath(path)!r}",
            "a file made by Ledger.create",
            f"make one with `shoal ledger create {os.fspath(path)} --epsilon 1`",
        )
    try:
        with closing(_connect(path)) as connection:
            found = connection.execute("pragma application_id").fetchone()[0]
            if found != APPLICATION_ID:
                raise _foreign(path)
            yield connection
    except sqlite3.Error as error:
        raise translate(path, error) from None


def head_record(connection: sqlite3.Connection, path: Path) -> tuple[Budget, str]:
    """The budget and the hash that the first entry is chained to.

    Raises:
        LedgerError: Another version, or a damaged head.
    """
    rows = connection.execute("select id, schema, epsilon, delta from ledger").fetchall()
    if len(rows) != 1 or rows[0][1] != SCHEMA:
        raise _foreign(path)
    identity, schema, epsilon, delta = rows[0]
    try:
        budget = Budget(Fraction(epsilon), Fraction(delta))
    except (ValueError, ZeroDivisionError):
        raise _foreign(path) from None
    return budget, genesis(identity, budget, schema)


def to_entry(row: tuple[Any, ...]) -> Entry:
    """An entry from its row."""
    number, request, label, epsilon, delta, document, *rest = row
    return Entry(
        number, request, label, Fraction(epsilon), Fraction(delta), bytes(document), *rest
    )


def translate(path: Path, error: sqlite3.Error) -> LedgerError:
    """SQLite's complaint as one of ours."""
    name = getattr(error, "sqlite_errorname", "")
    place = repr(os.fspath(path))
    if name.startswith("SQLITE_FULL") or name == "SQLITE_IOERR_WRITE":
        return LedgerError(
            f"no room to write the ledger {place}", "free disk space", "make room and ask again"
        )
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return LedgerError(
            f"the ledger {place} cannot be written",
            "a writable file in a writable folder",
            "check the permissions",
        )
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return LedgerError(
            f"the ledger {place} is in use by another process",
            f"a lock within {_WAIT_SECONDS:g} s",
            "ask again later",
        )
    return _foreign(path)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)
    # A rollback journal, not WAL: the one file carries every charge, so a copy of it does too.
    connection.execute("pragma journal_mode = delete")
    connection.execute("pragma synchronous = extra")
    return connection


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _exists(path: Path) -> LedgerError:
    return LedgerError(
        f"{os.fspath(path)!r} exists already",
        "a new name: a budget is set once",
        "open it, or create another ledger for another data set",
    )


def _unwritable(path: Path, error: OSError) -> LedgerError:
    return LedgerError(
        f"the ledger {os.fspath(path)!r} cannot be made ({error.strerror})",
        "a writable folder with free space",
        "choose another place",
    )


def _foreign(path: Path) -> LedgerError:
    return LedgerError(
        f"{os.fspath(path)!r} is damaged or not a ledger of this version",
        f"a file of the schema {SCHEMA}",
        "restore it from a copy; never start a new budget for the same data",
    )
