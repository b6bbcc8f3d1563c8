"""A light process without threads that forks, races and kills children on one ledger.

Run as `python -m tests.support.ledger_driver JOB FOLDER NUMBER SEED`; prints what it saw as JSON.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

from shoal.errors import BudgetError
from shoal.privacy.ledger import Ledger
from shoal.privacy.unit import Periods, Unit

Facts = dict[str, Any]
CHARGES = 40
_DOCUMENT = 5000


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


def _record(book: Ledger, question: str, writing: int) -> None:
    """Record a random document, and deliver what the ledger returns."""
    facts = {
        "privacy_unit": Unit("person", "public"),
        "epsilon": "1/40",
        "document": os.urandom(_DOCUMENT),
    }
    entry = book.record(question, **facts)
    told = [question, sha256(entry.document).hexdigest()]
    os.write(writing, json.dumps(told).encode() + b"\n")


def _drain(reading: int) -> dict[str, str]:
    with os.fdopen(reading, "rb") as stream:
        return dict(json.loads(line) for line in stream.read().split(b"\n")[:-1])


def _seen(book: Ledger, delivered: dict[str, str]) -> Facts:
    """What a ledger holds beside what was delivered from it."""
    state, entries = book.verify(), book.entries()
    kept = {each.question: each.document_sha256 for each in entries}
    return {
        "delivered": len(delivered),
        "entries": len(entries),
        "lost": sum(kept.get(question) != hashed for question, hashed in delivered.items()),
        "sum_is_exact": state.spent.epsilon == sum(each.charge.epsilon for each in entries),
        "overspent": not state.spent.within(state.budget),
        "left": str(state.left.epsilon),
    }


def kills(folder: Path, number: int, seed: int) -> list[Facts]:
    """Kill a child that records without pause, at a random moment, and look at the ledger."""
    rng, book = (
        random.Random(seed),
        Ledger.create(
            folder / "kills.ledger", epsilon=1000, privacy_unit="person", counts="public"
        ),
    )
    found, delivered, before = [], dict[str, str](), 0
    for turn in range(number):

        def work(writing: int, turn: int = turn) -> None:
            for at in range(10**6):
                _record(book, f"{turn} {at}", writing)

        child, reading = fork(work)
        time.sleep(rng.random() * 0.06)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        hot = Path(f"{book.path}-journal").exists()
        delivered |= (now := _drain(reading))
        facts = _seen(book, delivered)
        # At most the one that was committed and not delivered yet.
        unseen = facts["entries"] - before - len(now)
        found.append({**facts, "unseen": unseen, "journal": hot})
        before = facts["entries"]
    return found


def creations(folder: Path, number: int, seed: int) -> list[Facts]:
    """Kill a child that creates a ledger; what is left is a ledger or an empty file."""
    rng, found = random.Random(seed), []
    for turn in range(number):
        path = folder / f"{turn}.ledger"
        child, reading = fork(
            lambda _, path=path: (
                Ledger.create(path, epsilon=1, privacy_unit="person", counts="public") and None
            )
        )
        time.sleep(rng.random() * 0.01)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)
        found.append({"error": _opened(path)})
    return found


def _opened(path: Path) -> str:
    try:
        Ledger(path).verify()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def crowd(folder: Path, number: int, _seed: int) -> Facts:
    """Many processes ask at once for more than the budget, and all of them for one question."""
    book = Ledger.create(folder / "crowd.ledger", epsilon=1, privacy_unit="person", counts="public")
    gate, opened = os.pipe()

    def work(writing: int, at: int) -> None:
        os.close(opened)
        os.read(gate, 1)
        try:
            for question in ("all", f"{at}"):
                _record(book, question, writing)
        except BudgetError:
            return

    children = [fork(lambda writing, at=at: work(writing, at)) for at in range(number)]
    os.close(opened)
    told = [_drain(reading) for _, reading in children]
    statuses = [os.waitpid(child, 0)[1] for child, _ in children]
    facts = _seen(book, {question: each for one in told for question, each in one.items()})
    answers = {one["all"] for one in told if "all" in one}
    return {**facts, "failed": sum(map(bool, statuses)), "answers": len(answers)}


def months(folder: Path, number: int, seed: int) -> Facts:
    """Processes charge one to three of four months each; two are killed meanwhile."""
    unit = Unit("person", "public", "month")
    book = Ledger.create(
        folder / "months.ledger", epsilon=1, privacy_unit="person", counts="public", period="month"
    )

    def work(writing: int, at: int) -> None:
        rng = random.Random(seed + at)
        for turn in range(10):
            names = rng.sample("abcd", rng.randint(1, 3))
            given = {"privacy_unit": unit, "periods": Periods.of("month(at)", "dates", names)}
            with suppress(BudgetError):
                entry = book.record(f"{at} {turn}", epsilon="1/7", document=b"", **given)
                os.write(writing, json.dumps([entry.question, entry.hash]).encode() + b"\n")

    children = [fork(lambda writing, at=at: work(writing, at)) for at in range(number)]
    time.sleep(0.02)
    for child, _ in children[:2]:
        os.kill(child, signal.SIGKILL)
    told = dict(each for _, reading in children for each in _drain(reading).items())
    statuses = [os.waitpid(child, 0)[1] for child, _ in children][2:]
    state, entries = book.verify(), book.entries()
    sums = dict.fromkeys("abcd", Fraction(0))
    for each in entries:
        for name in each.periods.names:
            sums[name] += each.charge.epsilon
    kept = {each.question: each.hash for each in entries}
    return {
        "failed": sum(map(bool, statuses)),
        "lost": sum(kept.get(question) != hashed for question, hashed in told.items()),
        "sums_are_exact": sums == {name: each.epsilon for name, each in state.booked.items()},
        "most": str(max(sums.values())),
        "refused": len(entries) < 10 * (number - 2),
    }


if __name__ == "__main__":
    job, where, many, begin = sys.argv[1:]
    jobs: dict[str, Callable[[Path, int, int], object]] = {
        "kills": kills, "creations": creations, "crowd": crowd, "months": months
    }  # fmt: skip
    print(json.dumps(jobs[job](Path(where), int(many), int(begin))))
