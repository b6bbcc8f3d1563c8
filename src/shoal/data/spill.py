"""Where the embedded engine puts what it cannot hold in memory: sums of users are private."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
import threading
from multiprocessing.util import Finalize

_LOCK = threading.Lock()
# The folder of this process.
_made: str | None = None


def spill_folder() -> str:
    """A name for one engine's files, in a folder of the system's that only this user can open.

    The engine makes the folder of that name when memory is short and removes it afterwards; what is
    around it goes at the end of the process that made it, of a forked one, too. What a signal ends
    leaves both. A folder that was swept away, and whatever took its name, is not used again.

    Returns:
        A path that nothing has, or an empty text, with which engines write nothing, where the
        system has no place for temporary files.



    Example:
        >>> os.path.exists(spill_folder()), spill_folder() == spill_folder()
        (False, False)
    """
    global _made
    try:
        with _LOCK:
            if _made is None or not _is_private(_made):
                _made = tempfile.mkdtemp(prefix="shoal-")
                # Unlike `atexit` this also runs where a worker ends, and only in its own process.
                Finalize(None, shutil.rmtree, (_made, True), exitpriority=-100)
            return os.path.join(_made, secrets.token_hex(8))
    except OSError:
        return ""


def remove_spill_folder() -> None:
    """Remove what this process made: for whoever leaves without an ordinary exit."""
    if _made is not None:
        shutil.rmtree(_made, ignore_errors=True)


def _is_private(folder: str) -> bool:
    """Whether it is a folder of this user's that nobody else can open, and no link to one."""
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    if not stat.S_ISDIR(found.st_mode):
        return False
    # Where there are no owners, such as on Windows, folders for temporary files are the user's own.
    return not hasattr(os, "getuid") or (
        found.st_uid == os.getuid() and stat.S_IMODE(found.st_mode) & 0o777 == stat.S_IRWXU
    )


def _after_in_child() -> None:
    """A child has a folder of its own: the parent's goes with the parent."""
    global _LOCK, _made
    # Whoever held it is not in the child.
    _LOCK, _made = threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_in_child)
