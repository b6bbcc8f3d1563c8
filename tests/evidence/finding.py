"""What every attack of the evidence bench has in common: its shape and its outcome.

An attack is a module of this folder with

    NAME = "bit flips of a ledger"        # a row of docs/evidence.md
    PROMISES = ("G-LEDGER",)              # names of docs/guarantees.md
    UNIT = "flips"                        # what its size counts
    FULL, REDUCED = 10_000, 200           # sizes of `make evidence` and of `make test`
    PARTS = 4                             # pieces that a full run cuts it into (optional, 1)

    def run(size: int, *, seed: int, folder: Path, progress: Progress) -> Outcome: ...

Its docstring is printed on the page. It is listed in `ATTACKS` below by its module's name. A run is
repeatable by its seed as far as the operating system's randomness allows, writes into its own empty
folder alone and starts no threads that outlive it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    Progress = Callable[[int], None]
    """Called with how many more were tried since the last call."""

# Every attack, by the name of its module in this folder, in the order of the page.
ATTACKS: tuple[str, ...] = (
    "replay",
    "orders",
    "kills",
    "capacity",
    "flips_ledger",
    "flips_plan",
    "edits_plan",
    "honest",
    "flips_manifest",
    "lies",
    "leaves",
    "draws",
    "selections",
    "responses",
    "accounting",
    "faults",
    "fuzz_api",
    "fuzz_cli",
    "tiny",
)
_MOST_SHOWN = 50


@dataclass(frozen=True)
class Outcome:
    """What one run of an attack tried and found.

    Attributes:
        tried: How many attempts were made; fewer than asked for is a failure of the bench.
        failures: One line for each attempt that broke a promise: how to do it again, and never a
            private value.
        notes: What else a reader should know.
        counts: How many attempts were of a kind, or ended in a way; parts are added up.
        most: Largest numbers of a kind, in percent; of the parts the largest is kept.
    """

    tried: int
    failures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    most: Mapping[str, float] = field(default_factory=dict)


class Attack(Protocol):
    """A module of this folder that tries to break promises."""

    NAME: str
    PROMISES: tuple[str, ...]
    UNIT: str
    FULL: int
    REDUCED: int

    def run(self, size: int, *, seed: int, folder: Path, progress: Progress) -> Outcome:
        """Try that often to break the promises."""
        ...


def together(outcomes: Iterable[Outcome]) -> Outcome:
    """The outcomes of all parts of an attack as one; equal notes once, in their first order."""
    parts = list(outcomes)
    counts = sum((Counter(part.counts) for part in parts), Counter[str]())
    most: dict[str, float] = {}
    for part in parts:
        most.update({name: max(most.get(name, x), x) for name, x in part.most.items()})
    return Outcome(
        sum(part.tried for part in parts),
        tuple(line for part in parts for line in part.failures),
        tuple(dict.fromkeys(line for part in parts for line in part.notes)),
        dict(counts),
        most,
    )


def shown(failures: tuple[str, ...]) -> list[str]:
    """The first failures, and how many more there are."""
    more = len(failures) - _MOST_SHOWN
    return [*failures[:_MOST_SHOWN], *([f"and {more} more"] if more > 0 else [])]
