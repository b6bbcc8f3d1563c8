"""Charges a second: with a long history, and with many processes at one ledger."""

from __future__ import annotations

import hashlib
import multiprocessing
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from shoal.privacy.budget import Budget
from shoal.privacy.ledger import Draft, digest_of
from shoal.privacy.ledger.file import operate
from shoal.privacy.ledger import Ledger
from shoal.privacy.privacy_unit import PrivacyUnit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shoal.privacy.ledger.file import Session

ENTRIES = (10, 10_000, 1_000_000)
PROCESSES = (1, 8, 64)
UNIT = PrivacyUnit("person")
CHARGE = Budget.of("1/1000")
DOCUMENT = b"412.7 " * 50
# Pages of the file kept in memory while a long history is written at once, in KiB.
_CACHE = 262_144


def run(
    entries: Sequence[int], processes: Sequence[int], charges: int, seconds: float, rounds: int
) -> Iterator[str]:
    """Time charges, the sizes and the crowds in turn, and yield lines to print.

    Args:
        entries: Histories to charge after.
        processes: Crowds to charge together.
        charges: Of every history.
        seconds: Of every crowd in each round.
        rounds: A crowd's figure is a median over so many.
    """
    with tempfile.TemporaryDirectory() as folder:
        yield from _histories(Path(folder), entries, charges)
        yield from _crowds(Path(folder), processes, seconds, rounds)


def fill(book: Ledger, entries: int) -> None:
    """Write a history at once: the entries that as many charges would have made."""
    at = datetime.now(UTC).isoformat(timespec="seconds")

    def write(now: Session) -> None:
        now.connection.execute(f"PRAGMA cache_size = -{_CACHE}")
        last = now.chain.state().last
        first = last.number if last else 0
        for number in range(first, first + entries):
            last = _draft(f"history {number}").after(last, now.founding, at)
            now.chain.append(last)
        now.commit()

    operate(book.path, None, write, write=True)


def charge(book: Ledger, what: str) -> float:
    """Seconds of one charge."""
    started = time.perf_counter()
    draft = _draft(what)
    book.record(
        draft.question, unit=UNIT, epsilon=CHARGE.epsilon, document=draft.document, name="bench"
    )
    return time.perf_counter() - started


def _draft(what: str) -> Draft:
    question = hashlib.sha256(what.encode()).hexdigest()
    return Draft(question, "bench", "cells", UNIT, CHARGE, DOCUMENT, digest_of(DOCUMENT))


def _new(path: Path) -> Ledger:
    return Ledger.create(path, epsilon=10**9, unit=UNIT)


def _histories(folder: Path, entries: Sequence[int], charges: int) -> Iterator[str]:
    books, seconds = {}, {size: list[float]() for size in entries}
    for size in entries:
        books[size] = _new(folder / f"{size}.ledger")
        fill(books[size], size)
    for turn in range(charges):
        # In turn, so that whatever else the machine does slows all of them alike.
        for size, book in books.items():
            seconds[size].append(charge(book, f"charge {turn}"))
    first = median(seconds[entries[0]])
    for size in entries:
        middle = median(seconds[size])
        yield (
            f"{size:>9,} entries: {1000 * middle:8.2f} ms a charge, {1 / middle:6.0f} a second; "
            f"{middle / first:.2f} times {entries[0]:,}"
        )


class _Crowd(NamedTuple):
    rate: float
    longest: float


def _crowds(folder: Path, processes: Sequence[int], seconds: float, rounds: int) -> Iterator[str]:
    found: dict[int, list[_Crowd]] = {crowd: [] for crowd in processes}
    for turn in range(rounds):
        for crowd in processes:
            found[crowd].append(_together(_new(folder / f"{turn} {crowd}"), crowd, seconds))
    first = found[processes[0]]
    for crowd in processes:
        rate = median(each.rate for each in found[crowd])
        # Of the same round: what else the machine does changes from round to round.
        ratio = median(x.rate / y.rate for x, y in zip(found[crowd], first, strict=True))
        longest = max(each.longest for each in found[crowd])
        yield (
            f"{crowd:>9} processes: {rate:6.0f} charges a second together, "
            f"{ratio:.2f} times {processes[0]}; longest wait {longest:.2f} s"
        )


def _together(book: Ledger, crowd: int, seconds: float) -> _Crowd:
    methods = multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("fork" if "fork" in methods else "spawn")
    gate, answers = context.Barrier(crowd), context.SimpleQueue()
    workers = [
        context.Process(target=_work, args=(str(book.path), gate, answers, seconds, number))
        for number in range(crowd)
    ]
    for worker in workers:
        worker.start()
    times = [answers.get() for _ in workers]
    for worker in workers:
        worker.join()
    began, ended = min(time[0] for time in times), max(time[1] for time in times)
    charged = sum(time[3] for time in times)
    return _Crowd(charged / (ended - began), max(time[2] for time in times))


def _work(path: str, gate: Any, answers: Any, seconds: float, number: int) -> None:
    book = Ledger.open(path)
    # A process is slow the first time, as code is loaded.
    charge(book, f"{number} first")
    gate.wait()
    began, longest, charged = time.time(), 0.0, 0
    while time.time() < began + seconds:
        longest = max(longest, charge(book, f"{number} {charged}"))
        charged += 1
    answers.put((began, time.time(), longest, charged))
