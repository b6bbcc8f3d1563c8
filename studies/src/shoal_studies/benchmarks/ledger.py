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
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from statistics import median
from typing import Any

from shoal.errors import BudgetError
from shoal.privacy import ledger as module
from shoal.privacy.budget import Budget
from shoal.privacy.ledger import Ledger

ENTRIES = (10, 10_000, 1_000_000)
PROCESSES = (1, 8, 64)
UNIT, CHARGE, DOCUMENT = "person", Budget.of("1/1000"), b"412.7 " * 50
# Entries of the longest history that another version is asked for, and a budget in charges.
_MOST, _FEW = 10_000, 1000
_FIGURE = re.compile(r"\s*([\d,]+ (?:entries|processes)):.*?([\d.]+)(?: charges)? a second")


def run(
    entries: Sequence[int], processes: Sequence[int], charges: int, seconds: float, rounds: int
) -> Iterator[str]:
    """Time `charges` after each history, and crowds for some seconds in rounds; yield lines."""
    with tempfile.TemporaryDirectory() as folder:
        yield from _histories(Path(folder), entries, charges)
        yield from _crowds(Path(folder), processes, seconds, rounds)


def beside(checkout: Path | None, options: Sequence[Any]) -> Iterator[str]:
    """Yield what `run` does and, with another checkout, a table of both."""
    lines = list[str]()
    for line in run(*options):
        lines.append(line)
        yield line
    if checkout is None:
        return
    yield _exact()
    given = [each for each in options[0] if each <= _MOST], *options[1:]
    code = f"from shoal_studies.benchmarks.ledger import run; print(*run(*{given!r}), sep='\\n')"
    paths = f"{checkout / 'src'}{os.pathsep}{checkout / 'studies' / 'src'}"
    command, own = [sys.executable, "-c", code], {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, env=own, capture_output=True, text=True, check=True)
    before, now = (
        {each[1]: float(each[2]) for each in map(_FIGURE.match, found) if each}
        for found in (done.stdout.splitlines(), lines)
    )
    yield f"{'charges a second':>20}{'before':>10}{'now':>10}{'ratio':>8}"
    for name, rate in now.items():
        old = before.get(name)
        ends = (f"{old:10.0f}", f"{rate / old:8.2f}") if old else (f"{'-':>10}", f"{'-':>8}")
        yield f"{name:>20}{ends[0]}{rate:10.0f}{ends[1]}"


def _exact() -> str:
    """What a crowd records that asks for more than a budget of 1,000 charges holds."""
    with tempfile.TemporaryDirectory() as folder:
        book = _new(Path(folder) / "few.ledger", _FEW)
        _together(book, PROCESSES[-1], 3600.0)
        return f"{PROCESSES[-1]} processes, budget for {_FEW}: {book.verify().entries} recorded"


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


def _crowds(folder: Path, processes: Sequence[int], seconds: float, rounds: int) -> Iterator[str]:
    for crowd in processes:
        books = (_new(folder / f"{turn} {crowd}.ledger") for turn in range(rounds))
        rate = median(_together(book, crowd, seconds) for book in books)
        yield f"{crowd:>9} processes: {rate:6.0f} charges a second together"


def _together(book: Ledger, crowd: int, seconds: float) -> float:
    context: Any = multiprocessing.get_context("fork")
    gate, answers = context.Barrier(crowd), context.SimpleQueue()
    for number in range(crowd):
        shared = str(book.path), gate, answers, seconds, number
        context.Process(target=_work, args=shared).start()
    began, ended, charged = zip(*(answers.get() for _ in range(crowd)), strict=True)
    return float(sum(charged) / (max(ended) - min(began)))


def _work(path: str, gate: Any, answers: Any, seconds: float, number: int) -> None:
    book, charged = Ledger(path), 0
    charge(book, f"{number} first")
    gate.wait()
    began = time.time()
    with suppress(BudgetError):
        while time.time() < began + seconds:
            charge(book, f"{number} {charged}")
            charged += 1
    answers.put((began, time.time(), charged))
