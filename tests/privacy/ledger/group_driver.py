"""Processes that share commits: leaders that are killed, forks within, and strangers.

Run as `python -m tests.privacy.ledger.group_driver JOB FOLDER ...` from the repository's folder.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import signal
import socket
import sqlite3
import sys
import time
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.privacy.budget import Budget
from shoal.privacy.ledger import group_commit, recording
from shoal.privacy.ledger.entry import Draft, digest_of
from shoal.privacy.ledger.file import operate
from shoal.privacy.ledger.ledger import Ledger
from shoal.privacy.ledger.mask import masked, receipt
from shoal.privacy.ledger.message import encoded
from shoal.privacy.ledger.place import look
from shoal.privacy.ledger.queue import Turn
from shoal.privacy.privacy_unit import PrivacyUnit
from tests.privacy.ledger.driver import POINTS, Facts, deliver, die_at, drain, fork, seen, tell

if TYPE_CHECKING:
    from collections.abc import Callable


def handed_over(folder: Path, followers: int) -> list[Facts]:
    """Kill the leader of a group at each point of each draft, while its followers wait."""
    found = []
    for point in POINTS:
        for skip in range(1 + followers * (point in ("checked", "inserted"))):
            book = Ledger.create(folder / f"{point} {skip}", epsilon=1000, delta="0.5")

            def lead(
                writing: int, point: str = point, skip: int = skip, book: Ledger = book
            ) -> None:
                vars(recording)["_at"] = die_at(point, skip)
                deliver(book, writing, "leader")

            with Turn(book.path, 60):
                leader, end = fork(lead)
                await_names(book, 1)
                started = [fork(partial(follow, book, at)) for at in range(followers)]
                await_names(book, 1 + followers)
            drain(end)
            lines = [line for _, reading in started for line in drain(reading)]
            clean = [os.waitpid(child, 0)[1] for child, _ in started] == [0] * followers
            numbers = [entry.number for entry in book.entries()]
            found.append(seen(book, leader, lines, point=point, clean=clean, number=numbers[-1]))
    return found


def killed_crowd(folder: Path, crowd: int, rounds: int) -> Facts:
    """Kill or interrupt one of many that record without pause, at any moment, again and again."""
    book = Ledger.create(folder / "crowd", epsilon=1000, delta="0.5")
    started, lines, statuses = list[tuple[int, int]](), list[Any](), set[int]()

    def work(writing: int) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number in range(10_000):
            with suppress(KeyboardInterrupt):
                deliver(book, writing, f"{os.getpid()} {number}")

    def end(signals: tuple[int, ...]) -> None:
        child, reading = started.pop(0)
        for number in signals:
            os.kill(child, number)
            time.sleep(secrets.randbelow(20) / 1000)
        lines.extend(drain(reading))
        statuses.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    for turn in range(rounds):
        while len(started) < crowd:
            started.append(fork(work))
        time.sleep(secrets.randbelow(30) / 1000)
        end((signal.SIGINT, signal.SIGKILL) if turn % 2 else (signal.SIGKILL,))
    while started:
        end((signal.SIGKILL,))
    book.verify()
    entries = book.entries()
    kept = {entry.question: base64.b64encode(entry.document).decode() for entry in entries}
    return {
        "statuses": sorted(statuses),
        "delivered": len(lines),
        "unrecorded": sum(kept.get(request) != document for request, document in lines),
        "undelivered": len(entries) - len(lines),
        "shared": len(entries) - _writes(book),
        "spent_is_sum": book.spent.epsilon == sum(entry.epsilon for entry in entries),
    }


def _writes(book: Ledger) -> int:
    """How many transactions have written it."""
    with closing(sqlite3.connect(book.path)) as connection:
        [[mark]] = connection.execute("SELECT mark FROM head").fetchall()
    return int(mark.split(":")[1])


def follow(book: Ledger, at: int, writing: int) -> None:
    """Record while a leader listens."""
    deliver(book, writing, str(at))


def await_names(book: Ledger, wanted: int) -> None:
    """Wait until so many sockets have the name of a ledger's group: a leader and its followers."""
    name = f"-{book.path.stat().st_ino:x}"
    until = time.monotonic() + 60
    while time.monotonic() < until:
        lines = Path("/proc/net/unix").read_text(encoding="utf-8").splitlines()
        if sum(line.endswith(name) and "@shoal-ledger-" in line for line in lines) >= wanted:
            return
        time.sleep(0.002)
    raise TimeoutError


def forked_within(folder: Path) -> Facts:
    """Fork in a signal's handler while a leader waits: what sockets does the child have?"""
    book, children = Ledger.create(folder / "within", epsilon=1, delta="0.5"), list[Any]()

    def sockets(writing: int) -> None:
        count = 0
        for handle in list(Path("/proc/self/fd").iterdir()):
            with suppress(FileNotFoundError):  # the folder's own
                count += str(handle.readlink()).startswith("socket:")
        tell(writing, count)

    def work(writing: int) -> None:
        def handler(*_: object) -> None:
            sockets(writing)
            children.append(fork(sockets))

        signal.signal(signal.SIGALRM, handler)
        book.record("leader", unit="person", epsilon=1, document=b"x")
        tell(writing, "child", *drain(children[0][1])[0])

    with Turn(book.path, 60):
        child, reading = fork(work)
        await_names(book, 1)
        os.kill(child, signal.SIGALRM)
        time.sleep(0.3)
    lines = drain(reading)
    return {"clean": os.waitpid(child, 0)[1] == 0, "lines": lines}


def strangers(folder: Path) -> Facts:
    """Another user listens at the name of a group, then hands a whole draft over."""
    book = Ledger.create(folder / "strangers", epsilon=1, delta="0.5")
    draft = Draft("s", "", "", PrivacyUnit("person"), Budget.of("1/1000"), b"s", digest_of(b"s"))
    founding = operate(book.path, None, lambda now: now.founding)
    message = masked(founding.identity, encoded(founding.hash, draft))
    done = receipt(founding.identity, message)
    name = group_commit._name(look(book.path))

    def listen(writing: int) -> None:
        os.setuid(65534)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(name)
            listener.listen()
            tell(writing, "listens")
            peer, _ = listener.accept()
            tell(writing, len(peer.recv(2**17)))

    def ask(writing: int) -> None:
        os.setuid(65534)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
            peer.connect(name)
            peer.send(message)
            with suppress(ConnectionError):
                tell(writing, *([] if peer.recv(100) == done else ["not done"]))

    with Turn(book.path, 60):
        stranger, heard = fork(listen)
        await_names(book, 1)
        first = fork(lambda writing: deliver(book, writing, "first"))
        os.waitpid(stranger, 0)
    os.waitpid(first[0], 0)
    with Turn(book.path, 60):
        second = fork(lambda writing: deliver(book, writing, "second"))
        await_names(book, 1)
        stranger, answers = fork(ask)
        await_names(book, 2)
    os.waitpid(second[0], 0)
    os.waitpid(stranger, 0)
    told = [drain(heard)[-1], drain(answers)]
    return {"told": told, "entries": [entry.question for entry in book.entries()]}


def main(job: str, place: str, *numbers: str) -> None:
    """Do one job and print what was seen."""
    folder, counts = Path(place), [int(number) for number in numbers]
    jobs: dict[str, Callable[[], object]] = {
        "handed over": lambda: handed_over(folder, *counts),
        "killed crowd": lambda: killed_crowd(folder, *counts),
        "forked within": lambda: forked_within(folder),
        "strangers": lambda: strangers(folder),
    }
    sys.stdout.write(json.dumps(jobs[job]()))


if __name__ == "__main__":
    main(*sys.argv[1:])
