"""Where the `shoal` command starts and ends: quiet from the first import to the last moment."""

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

from shoal.cli import streams

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

# A busy machine may take a while to come back from where an interrupt was dropped.
_FAILED, _SOON = 2, 0.1


def run() -> None:
    """Run the command line and leave with its status.

    Status 1 is said by a verb alone, of what does not hold; whatever goes wrong is 2. Ctrl-C is one
    line also while modules are loaded, and ignored once the work is done: what has been delivered
    stays delivered.
    """
    try:
        sys.unraisablehook = _again
        streams.open_all()
        from shoal.cli.main import main

        status = main(sys.argv[1:])
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        streams.complain("interrupted before anything was done.")
        status = _FAILED
    except BaseException as error:
        streams.complain(f"unexpected {type(error).__name__} before anything was done.")
        status = _FAILED
    _leave(status)


def _again(ignored: "UnraisableHookArgs") -> None:
    """Raise Ctrl-C once more where Python drops it, as in what it calls back while it imports.

    Nothing else is shown: the text of an error could hold a private value.
    """
    if issubclass(ignored.exc_type, KeyboardInterrupt):
        # A signal of its own ends what waits, such as a read; a mark would be seen afterwards.
        to = threading.main_thread().ident, signal.SIGINT
        soon = threading.Timer(_SOON, signal.pthread_kill, to)
        soon.daemon = True
        soon.start()


def _leave(status: int) -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader had enough; the work was done all the same.
        pass
    except (OSError, ValueError) as error:
        # A run that failed has said its one line already.
        if status != _FAILED:
            why = error.strerror if isinstance(error, OSError) else "closed"
            streams.complain(f"the output cannot be written ({why}).")
        status = _FAILED
    # All files are closed by now; an ordinary exit lets engines print notes about themselves.
    os._exit(status)
