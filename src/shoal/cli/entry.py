"""Where the `shoal` command starts and ends: quiet from the first import to the last moment."""

from __future__ import annotations

import os
import signal
import sys

_FAILED = 2


def run() -> None:
    """Run the command line and leave with its status.

    Ctrl-C is one line also while modules are loaded, and ignored once the work is done: what has
    been delivered stays delivered.
    """
    try:
        from shoal.cli.main import main

        status = main(sys.argv[1:])
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.stderr.write("shoal: interrupted before anything was done.\n")
        status = _FAILED
    _leave(status)


def _leave(status: int) -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        status = _FAILED
    except OSError as error:
        # A run that failed has said its one line already.
        if status == 0:
            sys.stderr.write(f"shoal: the output cannot be written ({error.strerror}).\n")
        status = _FAILED
    sys.stderr.flush()
    # All files are closed by now; an ordinary exit lets engines print notes about themselves.
    os._exit(status)
