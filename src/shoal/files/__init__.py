"""Files on their way out: whole or not at all, and never over what is there unless asked to."""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
import unicodedata
from contextlib import closing, suppress
from pathlib import Path

from shoal import checks
from shoal.errors import DocumentError, InputError
from shoal.files.own import is_own

# What SQLite keeps beside a database, and DuckDB: a file that is called so may be taken for a part
# of it, played into it and deleted.
LEDGER_PARTS = ("-journal", "-wal", "-shm")
PARTS = (*LEDGER_PARTS, ".wal")
# Of a name: file systems take 255 bytes, and a draft has a longer one.
_LONGEST = 230
# One page of SQLite, at the least: https://www.sqlite.org/fileformat.html
_LEAST_DATABASE = 512
_DEVICES, _MOST_LINKS = ("/dev/", "/proc/"), 40
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def write_bytes(path: str | os.PathLike[str], data: bytes, *, overwrite: bool = False) -> None:
    """Make a file in one step: readers see nothing or all of it, never a part.

    Where the file system has no hard links, a new file is filled under its own name.

    Args:
        path: Where to.
        data: The contents.
        overwrite: Replace an output of shoal that is there; nothing else is ever replaced.

    Raises:
        DocumentError: There is a file already, the place cannot be written, or the disk is full.
        InputError: `overwrite` is neither True nor False.

    Guarantees: G-REFUSE.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> write_bytes(folder.name + "/a.json", b'{"schema":"shoal.plan/3"}')
        >>> write_bytes(folder.name + "/a.json", b"{}", overwrite=True)
        >>> Path(folder.name + "/a.json").read_bytes()
        b'{}'
        >>> folder.cleanup()
    """
    overwrite = checks.truth(overwrite, "overwrite")
    target = place_of(path)
    check_free(target, overwrite=overwrite)
    handle, draft = _beside(target)
    try:
        with os.fdopen(handle, "wb") as stream:
            _fill(stream.fileno(), data)
        if overwrite:
            # A ledger may have been made here since the first look.
            check_free(target, overwrite=True)
            draft.replace(target)
        else:
            _take(draft, target, data)
    except FileExistsError:
        failure = _there(target)
    except OSError as error:
        failure = _unwritable(target, error)
    else:
        return
    finally:
        draft.unlink(missing_ok=True)
    raise failure


def place_of(path: str | os.PathLike[str]) -> Path:
    """A path that can be written to, as far as its text tells.

    Raises:
        DocumentError: No path, or the name of a part of a database.
    """
    try:
        target = Path(checks.path(path))
    except InputError:
        target = None
    if target is None or max(map(len, target.parts), default=0) > _LONGEST:
        raise DocumentError(
            f"a place to write to of type {type(path).__name__} that is no path",
            "a text or a path",
            "give a file name",
        )
    if is_part(target.name):
        raise DocumentError(
            f"an output named {os.fspath(target)!r}",
            f"a name that does not end in {', '.join(PARTS)}: databases keep such files",
            "choose another name",
        )
    return target


def is_part(name: str) -> bool:
    """Whether a file of this name is a part of a ledger or of another database beside it.

    Letters are compared as file systems do that fold case.

    Example:
        >>> is_part("a.ledger-journal"), is_part("A.DUCKDB.WAL"), is_part("journal.ledger")
        (True, True, False)
    """
    return unicodedata.normalize("NFKC", name).casefold().endswith(PARTS)


def check_free(target: Path, *, overwrite: bool) -> None:
    """Refuse a place where something is that must not be replaced.

    Raises:
        DocumentError: A file and no `overwrite`, or one that is no output of shoal.
    """
    if not os.path.lexists(target):
        return
    if _leads_to_a_device(target) or (target.exists() and not target.is_file()):
        raise DocumentError(
            f"{os.fspath(target)!r} is no regular file", "a file or a new name", "choose another"
        )
    if not overwrite:
        raise _there(target)
    # A link that leads nowhere may lead to a disk that is not there now.
    if not target.exists() or is_database(target) or not is_own(target):
        raise DocumentError(
            f"{os.fspath(target)!r}, which is a ledger or another file that shoal did not make",
            "an earlier output: records, ledgers and other files are never replaced, forced or not",
            "choose another name, or remove the file yourself",
        )


def _leads_to_a_device(target: Path) -> bool:
    """Whether a path, or a link on its way, lies where the system keeps its devices."""
    path = os.path.abspath(target)
    for _ in range(_MOST_LINKS):
        if path.startswith(_DEVICES):
            return True
        if not os.path.islink(path):
            return False
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return True


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a place where `write_bytes` could not make a file, before any work is done for it.

    Raises:
        DocumentError: The folder is missing or not writable.
    """
    handle, draft = _beside(place_of(path))
    os.close(handle)
    draft.unlink()


def is_database(path: Path) -> bool:
    """Whether a regular file is a database of SQLite, as ledgers are, or cannot be told from one.

    SQLite itself looks: to close any other handle of the file would drop the locks that this
    process may hold on it.

    Example:
        >>> is_database(Path(__file__))
        False
    """
    try:
        if path.stat().st_size < _LEAST_DATABASE:
            return False
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=0)) as found:
            found.execute("PRAGMA application_id").fetchone()
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
        return code & 0xFF != sqlite3.SQLITE_NOTADB
    except (OSError, ValueError):
        return True
    return True


def _take(draft: Path, target: Path, data: bytes) -> None:
    """Give a finished draft its name unless somebody has it, also if they took it a moment ago."""
    try:
        os.link(draft, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
    else:
        return
    handle = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        _fill(handle, data)
    except OSError:
        with suppress(OSError):
            target.unlink()
        raise
    finally:
        os.close(handle)


def _fill(handle: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]
    os.fsync(handle)


def _beside(target: Path) -> tuple[int, Path]:
    """A new file in the folder that the system finds the target in, which text may tell otherwise.

    The kernel takes the process's mask off its mode: to ask for the mask is to change it.
    """
    draft = target.parent / f".{target.name}.{secrets.token_hex(8)}"
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)
    try:
        return os.open(draft, flags, 0o666), draft
    except (OSError, ValueError) as error:
        failure = _unwritable(target, error)
    raise failure


def _there(target: Path) -> DocumentError:
    return DocumentError(
        f"there is a file {os.fspath(target)!r} already",
        "a new name, or --force (overwrite=True in Python) to replace it",
        "choose another name",
    )


def _unwritable(target: Path, error: OSError | ValueError) -> DocumentError:
    return DocumentError(
        f"{os.fspath(target)!r} cannot be written ({getattr(error, 'strerror', 'bad name')})",
        "a file in a writable folder with free space",
        "choose another path or make room",
    )
