"""Processes that record are killed: at every named point, at random moments, in creations.

A child forks off, records documents and delivers what the ledger returns through a pipe, and gets
SIGKILL: at each step of the transaction, at a random moment of recording without pause, before or
after each system call of a creation. After every kill the ledger must verify, hold every delivery
byte for byte, have charged exactly the sum of its entries, and deliver what it charged when asked
again, at no cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.privacy.ledger import driver

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


SIZE, UNIT = 1000, "kills"

_WHOLE = {"unrecorded": 0, "killed": True, "spent_is_sum": True, "same_bytes": True}
# Kills that share a ledger; more entries only make looking slower.
_AT_RANDOM = 20
_STEPS_OF_A_CREATION = 8


def attack(size: int, seed: int, folder: Path) -> Iterator[str]:
    """Two fifths at named points, two fifths at random moments, a fifth in creations."""
    for turn in range(-(-size * 2 // 5 // len(driver.POINTS))):
        for kill in driver.kills_at_points(_new(folder, f"points {turn}"), 1):
            yield from _at_point(kill, seed)
    for turn in range(-(-size * 2 // 5 // _AT_RANDOM)):
        for kill in driver.kills_at_random(_new(folder, f"random {turn}"), _AT_RANDOM):
            yield from _at_random(kill, seed)
    for turn in range(-(-size // 5 // _STEPS_OF_A_CREATION)):
        for kill in driver.killed_creation(_new(folder, f"creation {turn}"), 1):
            yield from _in_creation(kill, seed)


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
