"""One operation on a ledger at a time in a process, and none while it forks."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# SQLite's locks belong to the process. A child forked while a connection is open would believe it
# holds them, so forks wait for the end of an operation; and to close any other handle of the file
# drops them, so who must open one waits as well.
GATE: Any = threading.RLock()
# Threads that wait or hold the gate for a fork, and not by a `with` of their own.
_FORKING = set[int]()
# Signals that came while a fork waited: their handlers have not seen them.
_LATE = dict[int, object]()
_MOMENT = 0.01


def within() -> bool:
    """Whether this thread holds the gate: a signal's handler, or a finalizer, may run in between.

    It must not open a ledger's file beside SQLite: to close it would drop the locks of the
    operation that it has interrupted.
    """
    return bool(GATE._is_owned()) and threading.get_ident() not in _FORKING


def _before() -> None:
    """Hold the gate: what a hook raises is only printed, and the fork would go on without it."""
    if GATE._is_owned():
        return
    _FORKING.add(threading.get_ident())
    if not GATE.acquire(blocking=False):
        with _signals_wait():
            GATE.acquire()


def _after_in_parent() -> None:
    """Let go of what the fork took, and send the signals that came meanwhile."""
    this = threading.get_ident()
    if this in _FORKING:
        if GATE._is_owned():
            GATE.release()
        _FORKING.discard(this)
    while _LATE:
        number, _ = _LATE.popitem()
        threading.Thread(target=_send, args=(number,), daemon=True).start()


def _after_in_child() -> None:
    """Only this thread is left: whoever else held the gate will never let go of it."""
    if not GATE._is_owned():
        GATE._at_fork_reinit()
    elif threading.get_ident() in _FORKING:
        GATE.release()
    _FORKING.clear()
    _LATE.clear()


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Note signals instead of handling them: a handler that raises would end the wait."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python handles signals in the main thread alone
        return
    known = {number: signal.getsignal(number) for number in signal.valid_signals()}
    handlers = {number: handler for number, handler in known.items() if callable(handler)}
    try:
        for number in handlers:
            signal.signal(number, _LATE.setdefault)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _send(number: int) -> None:
    """Send it anew, when the fork has returned: in a hook the interrupt would be lost."""
    time.sleep(_MOMENT)
    signal.pthread_kill(threading.main_thread().ident or 0, number)


if hasattr(os, "register_at_fork"):
    # Twice, and each does what is left to do: a signal that comes as a hook is entered ends it.
    for _ in range(2):
        os.register_at_fork(
            before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
        )
