"""Where the `shoal` command starts and ends: quiet from the first import to the last moment."""

from __future__ import annotations

import signal
import sys


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
        sys.stderr.write("shoal: interrupted before anything was done.\n")
        status = 2
    sys.exit(status)
