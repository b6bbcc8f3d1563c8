"""Charges a second: with a long history, and with many processes at one ledger."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from shoal.errors import BudgetError
from shoal.privacy import ledger as module
from shoal.privacy.budget import Budget
from shoal.privacy.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ENTRIES = (10, 10_000, 1_000_000)
PROCESSES = (1, 8, 64)
UNIT = "person"
CHARGE = Budget.of("1/1000")
DOCUMENT = b"412.7 " * 50
# A budget that a crowd uses up, in charges.
_FEW = 1000
_FIGURE = re.compile(r"\s*([\d,]+ (?:entries|processes)):.*?([\d.]+)(?: charges)? a second")


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


def beside(
    checkout: Path, lines: Sequence[str], most: int, options: Sequence[Any]
) -> Iterator[str]:
    """Run this benchmark of another checkout, and yield a table of both.

    Args:
        checkout: A folder with another version of shoal and its studies.
        lines: What `run` has printed for this version.
        most: Histories of the other version have at most so many entries.
        options: Arguments of `run`.
    """
    entries, *rest = options
    given = [each for each in entries if each <= most], *rest
    code = f"from shoal_studies.benchmarks.ledger import run; print(*run(*{given!r}), sep='\\n')"
    paths = f"{checkout / 'src'}{os.pathsep}{checkout / 'studies' / 'src'}"
    command, own = [sys.executable, "-c", code], {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, env=own, capture_output=True, text=True, check=True)
    before, now = _figures(done.stdout.splitlines()), _figures(lines)
    yield f"{'charges a second':>20}{'before':>10}{'now':>10}{'ratio':>8}"
    for name, rate in now.items():
        old = before.get(name)
        told = "" if old is None else f"{old:10.0f}{rate:10.0f}{rate / old:8.2f}"
        yield f"{name:>20}" + (told or f"{'-':>10}{rate:10.0f}{'-':>8}")


def fill(book: Ledger, entries: int) -> None:
    """Write a history at once: the entries that as many charges would have made."""
    state, hashed = book.state(), hashlib.sha256(DOCUMENT).hexdigest()
    head, spent, at = state.head, state.spent, "2026-01-01T00:00:00+00:00"
    with closing(sqlite3.connect(book.path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for number in range(state.entries + 1, state.entries + 1 + entries):
            spent = spent.plus(CHARGE)
            amounts = [str(each) for pair in (CHARGE, spent) for each in (pair.epsilon, pair.delta)]
            facts = (number, _digest(f"history {number}"), "bench", "cells", *amounts, at, hashed)
            head = module._hash(head, facts)
            marks = ", ".join("?" * (len(facts) + 2))
            connection.execute(f"INSERT INTO entry VALUES ({marks})", (*facts, head, DOCUMENT))
        connection.execute("COMMIT")


def charge(book: Ledger, what: str) -> float:
    """Seconds of one charge."""
    started = time.perf_counter()
    book.record(_digest(what), unit=UNIT, epsilon=CHARGE.epsilon, document=DOCUMENT, name="bench")
    return time.perf_counter() - started


def _digest(what: str) -> str:
    return hashlib.sha256(what.encode()).hexdigest()


def _new(path: Path, charges: int = 10**12) -> Ledger:
    return Ledger.create(path, epsilon=CHARGE.epsilon * charges, unit=UNIT)


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


def exact(processes: int = 64) -> str:
    """What a crowd records that asks for more than a budget of 1,000 charges holds."""
    with tempfile.TemporaryDirectory() as folder:
        book = _new(Path(folder) / "few.ledger", _FEW)
        _together(book, processes, 3600.0)
        state = book.verify()
    return f"{processes} processes, a budget of {_FEW:,} charges: {state.entries:,} recorded"


def _figures(lines: Sequence[str]) -> dict[str, float]:
    found = (_FIGURE.match(line) for line in lines)
    return {each[1]: float(each[2]) for each in found if each}


class _Crowd(NamedTuple):
    rate: float
    longest: float


def _crowds(folder: Path, processes: Sequence[int], seconds: float, rounds: int) -> Iterator[str]:
    found: dict[int, list[_Crowd]] = {crowd: [] for crowd in processes}
    for turn in range(rounds):
        for crowd in processes:
            found[crowd].append(_together(_new(folder / f"{turn} {crowd}.ledger"), crowd, seconds))
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
    book = Ledger(path)
    # A process is slow the first time, as code is loaded.
    charge(book, f"{number} first")
    gate.wait()
    began, longest, charged = time.time(), 0.0, 0
    with suppress(BudgetError):
        while time.time() < began + seconds:
            longest = max(longest, charge(book, f"{number} {charged}"))
            charged += 1
    answers.put((began, time.time(), longest, charged))
