"""Where the embedded engine puts what it cannot hold in memory: sums of users are private."""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import tempfile
import threading

_LOCK = threading.Lock()
# The folder of this process, or of the one that it was forked from.
_made: str | None = None


def spill_folder() -> str:
    """A name for one engine's files, in a folder of the system's that only this user can open.

    The engine makes the folder of that name when memory is short and removes it afterwards; what is
    around it goes at the end of the process that made it. What is killed leaves both.

    Returns:
        A path that nothing has, or an empty text, with which engines write nothing, where the
        system has no place for temporary files.

    Guarantees: G-SPILL.

    Example:
        >>> os.path.exists(spill_folder()), spill_folder() == spill_folder()
        (False, False)
    """
    global _made  # noqa: PLW0603  one folder a process
    try:
        with _LOCK:
            if _made is None or not os.path.isdir(_made):  # noqa: PTH112
                _made = tempfile.mkdtemp(prefix="shoal-")
                atexit.register(_remove, _made, os.getpid())
            return os.path.join(_made, secrets.token_hex(8))  # noqa: PTH118
    except OSError:
        return ""


def _remove(folder: str, maker: int) -> None:
    """A forked child must not take away what its parent reads."""
    if os.getpid() == maker:
        shutil.rmtree(folder, ignore_errors=True)
