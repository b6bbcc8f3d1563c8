"""Single bits of a ledger's file flipped.

All bits of the first hundred bytes, and bits anywhere else, one at a time. The ledger must refuse
with an error of its own, to `open`, to `verify` or to be read; or it is harmless: everything that
can be read of it is what it was, and the field is named below. And whatever a flipped ledger says,
it must neither accept a charge beyond what was left, nor deliver another document for a question
that it holds, nor draw and charge it again, nor forget a name that it was recorded under.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import ShoalError
from shoal.privacy.ledger.ledger import Ledger
from tests.evidence.finding import Outcome
from tests.evidence.sqlite_fields import UNUSED, field_at

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from shoal.privacy.ledger.ledger import Budget, Entry, PrivacyUnit
    from tests.evidence.finding import Progress

    State = tuple[Budget, Budget, PrivacyUnit | None, str, tuple[Entry, ...]]

NAME = "bit flips of ledgers"
PROMISES = ("G-LEDGER",)
UNIT = "flips"
FULL, REDUCED, PARTS = 10_000, 250, 4

_HEADER, _FEW = 800, 0.1


def run(size: int, *, seed: int, folder: Path, progress: Progress) -> Outcome:
    """Flip, look, ask, charge."""
    path, other = folder / "whole.ledger", folder / "flipped.ledger"
    true = _state(_make(path))
    whole = path.read_bytes()
    rng, failures = np.random.default_rng(seed), []
    counts = {"refused": 0}
    for number in range(size):
        bit = _pick(whole, number, rng)
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        other.write_bytes(flipped)
        found = _judge(other, true, int(rng.integers(len(true[4]))))
        if found.startswith("refused"):
            counts[found] = counts.get(found, 0) + 1
        elif found == "harmless":
            kind = f"harmless: {field_at(whole, bit // 8)}"
            counts[kind] = counts.get(kind, 0) + 1
        else:
            failures.append(f"bit {bit}, {field_at(whole, bit // 8)}: {found}")
        progress(1)
    return Outcome(size, tuple(failures), counts=counts)


def _pick(whole: bytes, number: int, rng: np.random.Generator) -> int:
    """A tenth of the bits in the header, of the others few in unused space."""
    if number % 10 == 0:
        return int(rng.integers(_HEADER))
    while True:
        bit = int(rng.integers(8 * len(whole)))
        if field_at(whole, bit // 8) != UNUSED or rng.random() < _FEW:
            return bit


def _make(path: Path) -> Ledger:
    """Twelve releases of several charges, names and sizes, and a fifth of the budget left."""
    book = Ledger.create(path, epsilon=10, delta="1/100")
    for number in range(12):
        book.record(
            f"question {number // 2 * 2 + 1}",
            name=f"2013-{number + 2:02}",
            unit="person",
            epsilon=("1/2", "1/3", "7/6")[number % 3],
            delta=("0", "1/10000")[number % 2],
            document=bytes(range(256)) * (1 + 4 * (number % 3)),
        )
    return book


def _state(book: Ledger) -> State:
    """Everything that can be read."""
    return book.budget, book.spent, book.unit, book.head, tuple(book.entries())


def _judge(path: Path, true: State, known: int) -> str:
    """`refused`, `harmless`, or what is wrong; the known entry is asked for again."""
    journal = path.with_name(path.name + "-journal")
    journal.unlink(missing_ok=True)
    backup = path.with_suffix(".backup")
    shutil.copyfile(path, backup)
    try:
        book = Ledger.open(path)
        book.verify()
        found = "harmless" if _state(book) == true else "verifies, but says something else"
    except ShoalError:
        found = "refused"
    except Exception as error:  # noqa: BLE001
        found = f"{type(error).__name__} instead of an error of shoal"
    charged = _overspends(path, true)
    shutil.copyfile(backup, path)
    forgets, asked = _forgets(path, true[4], true[4][known]), true[4][known]
    return charged or forgets or _redelivers(path, asked) or found


def _overspends(path: Path, true: State) -> str:
    """Whether a charge goes through that is more than what was left, also in two steps."""
    budget, spent = true[0], true[1]
    left = budget - spent
    try:
        book = Ledger.open(path)
        for charge in (left.epsilon, "1/1000000"):
            book.record(f"more {charge}", unit="person", epsilon=charge, document=b"more")
    except ShoalError:
        return ""
    except Exception as error:  # noqa: BLE001
        return f"record raises {type(error).__name__}"
    return "a charge beyond the budget was accepted"


def _forgets(path: Path, entries: tuple[Entry, ...], known: Entry) -> str:
    """Whether a recorded release, or another name of its question, is not found."""
    names = sorted(entry.name for entry in entries if entry.question == known.question)
    looks: dict[str, Callable[[Ledger], bool]] = {
        "a name of a recorded question is forgotten": lambda book: (
            book.names(known.question) == names
        ),
        "a recorded release is not found": lambda book: (
            book.find(known.question, known.name) == known
        ),
    }
    for wrong, look in looks.items():
        try:
            if not look(Ledger.open(path)):
                return wrong
        except ShoalError:
            continue
        except Exception as error:  # noqa: BLE001
            return f"a look raises {type(error).__name__}"
    return ""


def _redelivers(path: Path, known: Entry) -> str:
    """Whether a recorded question is answered with another document, or charged again."""
    try:
        book = Ledger.open(path)
        again = book.record(
            known.question, name=known.name, unit="person", epsilon="1/1000", document=b"another"
        )
    except ShoalError:
        return ""
    except Exception as error:  # noqa: BLE001
        return f"asking again raises {type(error).__name__}"
    if again.document == b"another":
        return "a recorded release was drawn and charged again"
    return "" if again.document == known.document else "another document was delivered"
