"""One operation on a ledger at a time in a process, and none while it forks."""

from __future__ import annotations

import os
import threading

# SQLite's locks belong to the process. A child forked while a connection is open would believe it
# holds them, so forks wait for the end of an operation; and to close any other handle of the file
# drops them, so who must open one waits as well.
GATE = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=GATE.acquire, after_in_parent=GATE.release, after_in_child=GATE.release
    )
