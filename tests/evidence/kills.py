"""Processes that record are killed: at every named point, at random moments, in creations.

A child forks off, records documents and delivers what the ledger returns through a pipe, and gets
SIGKILL: at each step of the transaction, at a random moment of recording without pause, before or
after each system call of a creation. After every kill the ledger must verify, hold every delivery
byte for byte, have charged exactly the sum of its entries, and deliver what it charged when asked
again, at no cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.evidence.finding import Outcome
from tests.privacy.ledger import driver

if TYPE_CHECKING:
    from pathlib import Path

    from tests.evidence.finding import Progress

NAME = "kills of processes that record"
PROMISES = ("G-LEDGER",)
UNIT = "kills"
FULL, REDUCED, PARTS = 1000, 40, 4

_WHOLE = {"unrecorded": 0, "killed": True, "spent_is_sum": True, "same_bytes": True}
# Kills that share a ledger; more entries only make looking slower.
_AT_RANDOM = 20
_STEPS_OF_A_CREATION = 8


def run(size: int, *, seed: int, folder: Path, progress: Progress) -> Outcome:
    """Two fifths at named points, two fifths at random moments, a fifth in creations."""
    failures: list[str] = []
    counts = {"at named points": 0, "at random moments": 0, "in creations": 0}

    def note(kind: str, found: list[str]) -> None:
        failures.extend(found)
        counts[kind] += 1
        progress(1)

    for turn in range(-(-size * 2 // 5 // len(driver.POINTS))):
        place = _new(folder, f"points {turn}")
        for kill in driver.kills_at_points(place, 1):
            note("at named points", _at_point(kill, seed))
    for turn in range(-(-size * 2 // 5 // _AT_RANDOM)):
        for kill in driver.kills_at_random(_new(folder, f"random {turn}"), _AT_RANDOM):
            note("at random moments", _at_random(kill, seed))
    turn = 0
    while sum(counts.values()) < size:
        for kill in driver.killed_creation(_new(folder, f"creation {turn}"), 1):
            note("in creations", _in_creation(kill, seed))
        turn += 1
    return Outcome(sum(counts.values()), tuple(failures), counts=counts)


def _at_point(kill: driver.Facts, seed: int) -> list[str]:
    expected = {**_WHOLE, "delivered": kill["turn"]}
    # Only between commit and delivery an entry is left that nobody has seen yet.
    expected["undelivered"] = int(kill["point"] == "after commit")
    return _wrong(kill, expected, f"a kill {kill['point']}, seed {seed}")


def _at_random(kill: driver.Facts, seed: int) -> list[str]:
    expected = {**_WHOLE, "undelivered": min(max(kill["undelivered"], 0), 1)}
    return _wrong(kill, expected, f"a kill at a random moment, seed {seed}")


def _in_creation(kill: driver.Facts, seed: int) -> list[str]:
    expected = {"killed": True, "spent": "1"}
    return _wrong(kill, expected, f"a kill of a creation at {kill['step']}, seed {seed}")


def _wrong(kill: driver.Facts, expected: driver.Facts, what: str) -> list[str]:
    return [
        f"{what}: {name} is {kill[name]}, not {value}"
        for name, value in expected.items()
        if kill[name] != value
    ]


def _new(folder: Path, name: str) -> Path:
    place = folder / name
    place.mkdir()
    return place
