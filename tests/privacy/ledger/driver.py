"""A light process without threads that forks, races and kills children on one ledger.

Run as `python driver.py JOB FOLDER ...`; prints what it saw as JSON for the tests to judge.
"""

from __future__ import annotations

import base64
import json
import os
import resource
import secrets
import select
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import BudgetError, ShoalError
from shoal.privacy.ledger import file as ledger_file
from shoal.privacy.ledger import recording as module
from shoal.privacy.ledger.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable

POINTS = ("begun", "checked", "inserted", "before commit", "after commit")
Facts = dict[str, Any]


def fork(work: Callable[[int], None]) -> tuple[int, int]:
    """Run work in a child that can write to a pipe; return its id and the end to read."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            work(writing)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    return child, reading


def tell(writing: int, *facts: str | int) -> None:
    """Deliver one line in one write."""
    os.write(writing, json.dumps(facts).encode() + b"\n")


def drain(reading: int) -> list[Any]:
    """All whole lines until the other end is gone."""
    with os.fdopen(reading, "rb") as stream:
        return [json.loads(line) for line in stream.read().split(b"\n")[:-1]]


def deliver(book: Ledger, writing: int, request: str) -> None:
    """Record a random document and deliver what the ledger returns."""
    entry = book.record(
        request,
        unit="person",
        epsilon="1/1000",
        delta="1/1000000",
        document=secrets.token_bytes(5000),
    )
    tell(writing, request, base64.b64encode(entry.document).decode())


def die_at(point: str, skip: int = 0) -> Callable[[str], None]:
    """A hook that kills the process the moment a point is reached for the nth time."""
    left = [skip]

    def hook(reached: str) -> None:
        if reached == point:
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1

    return hook


def seen(book: Ledger, child: int, lines: list[Any], **facts: object) -> Facts:
    """What is in the ledger after a child has died."""
    _, status = os.waitpid(child, 0)
    journal = Path(f"{book.path}-journal").exists()
    book.verify()
    entries = book.entries()
    kept = {entry.question: base64.b64encode(entry.document).decode() for entry in entries}
    last = entries[-1] if entries else None
    again = last and book.record(
        last.question, unit="person", epsilon=900, document=b"another draw"
    )
    return {
        "killed": os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL,
        "journal": journal,
        "delivered": len(lines),
        "undelivered": len(entries) - len(lines),
        "unrecorded": sum(kept.get(request) != document for request, document in lines),
        "spent_is_sum": book.spent.epsilon == sum(entry.epsilon for entry in entries)
        and book.spent.delta == sum(entry.delta for entry in entries),
        "same_bytes": again == last,
        **facts,
    }


def kills_at_points(folder: Path, rounds: int) -> list[Facts]:
    """Kill a child at each hook point, after 0, 1, 2 ... whole deliveries."""
    found = []
    for turn in range(rounds):
        for point in POINTS:
            book = Ledger.create(folder / f"{turn} {point}", epsilon=1000, delta="0.5")

            def work(
                writing: int, point: str = point, turn: int = turn, book: Ledger = book
            ) -> None:
                vars(module)["_at"] = die_at(point, skip=turn % 4)
                for number in range(6):
                    deliver(book, writing, str(number))

            child, reading = fork(work)
            found.append(seen(book, child, drain(reading), point=point, turn=turn % 4))
    return found


def kills_at_random(folder: Path, rounds: int) -> list[Facts]:
    """Kill a child that records without pause, at any moment, on one ledger for all."""
    book, found, before = Ledger.create(folder / "random", epsilon=1000, delta="0.5"), [], 0
    everything: list[Any] = []
    for turn in range(rounds):

        def work(writing: int, turn: int = turn) -> None:
            for number in range(1000):
                deliver(book, writing, f"{turn}-{number}")

        child, reading = fork(work)
        select.select([reading], [], [])  # the first delivery, or the end
        until = time.perf_counter_ns() + secrets.randbelow(8_000_000)
        while time.perf_counter_ns() < until:
            pass
        os.kill(child, signal.SIGKILL)
        everything += drain(reading)
        facts = seen(book, child, everything, turn=turn)
        facts["undelivered"], before = facts["undelivered"] - before, facts["undelivered"]
        found.append(facts)
    return found


def killed_creation(folder: Path, rounds: int) -> list[Facts]:
    """Kill a child at each system step of a creation."""
    found = []
    steps = ("open", "fsync", "link", "unlink")
    for turn in range(rounds):
        for step in steps:
            for after in (False, True):
                path = folder / f"{turn} {step} {after}"

                def work(
                    _: int, step: str = step, path: Path = path, *, after: bool = after
                ) -> None:
                    real = getattr(os, step)

                    def dying(*arguments: object, **options: object) -> None:
                        if after:
                            real(*arguments, **options)
                        os.kill(os.getpid(), signal.SIGKILL)

                    setattr(os, step, dying)
                    Ledger.create(path, epsilon=1)

                child, reading = fork(work)
                drain(reading)
                _, status = os.waitpid(child, 0)
                there = path.exists()
                book = Ledger.open(path) if there else Ledger.create(path, epsilon=1)
                book.record("first", unit="person", epsilon=1, document=b"whole")
                book.verify()
                found.append(
                    {
                        "killed": os.WIFSIGNALED(status),
                        "step": step,
                        "there": there,
                        "spent": str(book.spent.epsilon),
                    }
                )
    return found


def together(folder: Path, children: int, tries: int, *, same: bool) -> Facts:
    """Many processes ask at once, for their own releases or all for the same ones."""
    book = Ledger.create(folder / f"race {same}", epsilon=1)
    gate_out, gate_in = os.pipe()

    def work(writing: int) -> None:
        os.close(gate_in)
        os.read(gate_out, 1)  # returns when the starter closes its end
        for number in range(tries):
            request = str(number) if same else f"{os.getpid()} {number}"
            document = f"drawn by {os.getpid()}".encode()
            try:
                entry = book.record(request, unit="person", epsilon="0.01", document=document)
            except BudgetError:
                tell(writing, request, "")
            else:
                tell(writing, request, entry.document.decode())

    started = [fork(work) for _ in range(children)]
    os.close(gate_in)
    answers = [answer for _, reading in started for answer in drain(reading)]
    statuses = [os.waitpid(child, 0)[1] for child, _ in started]
    book.verify()
    kept = {entry.question: entry.document.decode() for entry in book.entries()}
    return {
        "clean": statuses == [0] * children,
        "answers": len(answers),
        "accepted": sum(bool(document) for _, document in answers),
        "wrong": sum(bool(document) and kept.get(name) != document for name, document in answers),
        "entries": len(kept),
        "spent": str(book.spent.epsilon),
    }


def forks_beside_a_thread(folder: Path, rounds: int) -> Facts:
    """Fork children that record while a thread of the parent records without pause."""
    book, stop, recorded = Ledger.create(folder / "threads", epsilon=1000), threading.Event(), [0]
    ledger_file._PATIENCE = 20  # a lock lost in a fork shows soon

    def busy() -> None:
        while not stop.is_set():
            book.record(
                f"thread {recorded[0]}", unit="person", epsilon="0.001", document=bytes(20_000)
            )
            recorded[0] += 1

    thread = threading.Thread(target=busy)
    thread.start()
    statuses = []
    for turn in range(rounds):

        def work(_: int, turn: int = turn) -> None:
            book.record(f"child {turn}", unit="person", epsilon="0.001", document=b"from a child")

        child, reading = fork(work)
        drain(reading)
        statuses.append(os.waitpid(child, 0)[1])
    stop.set()
    thread.join()
    book.verify()
    entries = len(book.entries())
    return {"clean": statuses == [0] * rounds, "lost": rounds + recorded[0] - entries}


def no_room(folder: Path) -> Facts:
    """Record under a limit of the file size until the system refuses to write."""
    book = Ledger.create(folder / "full", epsilon=1000)
    secret, recorded, message = b"PRIVATE" * 3000, 0, ""

    def work(writing: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        try:
            for number in range(100):
                book.record(str(number), unit="person", epsilon="0.1", document=secret)
                tell(writing, "recorded")
        except ShoalError as error:
            tell(writing, "refused", type(error).__name__, str(error))

    child, reading = fork(work)
    for answer, *rest in drain(reading):
        recorded += answer == "recorded"
        message = " ".join(rest)
    os.waitpid(child, 0)
    book.verify()
    book.record("with room again", unit="person", epsilon="0.1", document=secret)
    return {"recorded": recorded, "message": message, "entries": len(book.entries())}


def read_only(folder: Path) -> Facts:
    """Use a ledger as a user who may read but not write the file, then not its folder."""
    os.umask(0o022)
    folder.chmod(0o755)
    path = folder / "shared" / "read only"
    path.parent.mkdir()
    book = Ledger.create(path, epsilon=1)
    book.record("first", unit="person", epsilon="0.5", document=b"PRIVATE")

    def work(writing: int) -> None:
        if os.getuid() == 0:
            os.setuid(65534)
        else:
            path.chmod(0o444)
            path.parent.chmod(0o555)
        mine = Ledger.open(path)
        mine.verify()
        for act in (
            lambda: mine.record("second", unit="person", epsilon="0.1", document=b"PRIVATE"),
            lambda: Ledger.create(path.parent / "new", epsilon=1),
        ):
            try:
                act()
            except ShoalError as error:
                tell(writing, type(error).__name__, str(error))
        tell(writing, "read", len(mine.entries()))

    child, reading = fork(work)
    lines = drain(reading)
    os.waitpid(child, 0)
    path.parent.chmod(0o755)
    path.chmod(0o644)
    return {"lines": lines, "entries": len(book.entries())}


def main(job: str, place: str, *numbers: str) -> None:
    """Do one job and print what was seen."""
    folder, counts = Path(place), [int(number) for number in numbers]
    jobs: dict[str, Callable[[], object]] = {
        "points": lambda: kills_at_points(folder, *counts),
        "random": lambda: kills_at_random(folder, *counts),
        "creation": lambda: killed_creation(folder, *counts),
        "race": lambda: together(folder, *counts, same=False),
        "same": lambda: together(folder, *counts, same=True),
        "threads": lambda: forks_beside_a_thread(folder, *counts),
        "no room": lambda: no_room(folder),
        "read only": lambda: read_only(folder),
    }
    sys.stdout.write(json.dumps(jobs[job]()))


if __name__ == "__main__":
    main(*sys.argv[1:])
