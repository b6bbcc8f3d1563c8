"""A process forks between operations on ledgers, whatever signals come while it waits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.audit,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here"),
    pytest.mark.full,
]

START = """
import os, signal, sys, threading, time
from shoal.documents import fork_gate
from shoal.documents.fork_gate import GATE

def child():
    # A gate that nobody in the child holds would make it wait for ever: another thread of it, or
    # this one, as another may be called like one that the parent has.
    seen = []
    take = lambda: seen.append(GATE.acquire(timeout=5) and GATE.release() is None)
    other = threading.Thread(target=take)
    other.start(); other.join(); take()
    os._exit(0 if seen == [True, True] else 9)

def ended(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""
WAITING = """
class Late(Exception):
    pass

def late(*_):
    raise Late

expected = signal.default_int_handler if SIGNAL == signal.SIGINT else late
signal.signal(SIGNAL, expected)
freed, held, both = [], threading.Event(), threading.Event()

def session():
    with GATE:
        held.set()
        # Both signals come while the fork waits, however slow the machine is.
        both.wait(30)
        time.sleep(0.4)
        freed.append(True)

def send():
    for _ in range(2):
        time.sleep(0.3)
        os.kill(os.getpid(), SIGNAL)
    both.set()

threading.Thread(target=session).start()
held.wait()
threading.Thread(target=send).start()
stop, code = "nothing", None
try:
    pid = os.fork()
    if not pid:
        child()
    print("session over:", bool(freed))
    code = ended(pid)
    time.sleep(2)
except (KeyboardInterrupt, Late) as error:
    stop = type(error).__name__
code = ended(pid) if code is None else code
print("child:", code, "raised:", stop)
assert signal.getsignal(SIGNAL) == expected
seen = []
one = threading.Thread(target=lambda: seen.append(GATE.acquire(timeout=5)))
one.start(); one.join()
print("free:", seen)
"""
WITHIN = """
for pid in [os.fork()]:
    pid or child()
    print(ended(pid))
with GATE:
    pid = os.fork()
    if not pid:
        with GATE:
            pass
    if pid:
        print(ended(pid))
        seen = []
        one = threading.Thread(target=lambda: seen.append(GATE.acquire(blocking=False)))
        one.start(); one.join()
        print(seen)
pid or child()
"""
# The hooks of a module that is imported while a fork is on its way run after the fork alone.
LATE = """
taken = threading.Event()
def hold():
    with GATE:
        taken.set()
        time.sleep(1)
threading.Thread(target=hold, daemon=True).start()
taken.wait()
fork_gate._before.__code__ = (lambda: None).__code__
pid = os.fork()
pid or child()
print(ended(pid))
"""


def _run(script: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", START + script],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize(
    ("number", "raised"), [("SIGINT", "KeyboardInterrupt"), ("SIGALRM", "Late")]
)
def test_a_signal_does_not_end_the_wait_of_a_fork(number: str, raised: str) -> None:
    """The fork waits on, the interrupt comes after it, the child may charge."""
    said, errors = _run(f"SIGNAL = {int(getattr(signal, number))}\n{WAITING}")
    lines = said.splitlines()
    assert "session over: False" not in said
    assert lines[-2:] == [f"child: 0 raised: {raised}", "free: [True]"]
    assert errors == ""


def test_a_fork_within_an_operation_keeps_it_closed() -> None:
    """Who holds the gate and forks holds it still, and the child can let go."""
    assert _run(WITHIN) == ("0\n0\n[False]\n", "")


def test_a_fork_that_began_before_the_hooks_were_there_leaves_the_child_free() -> None:
    """Another thread may import shoal while a fork waits for something else."""
    assert _run(LATE) == ("0\n", "")
