"""Processes that record are killed at random moments of recording and of creating a ledger.

After every kill the ledger must verify, hold every delivery byte for byte, at most one release that
was recorded and not delivered yet, and have charged exactly the sum of its entries.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SIZE, UNIT = 500, "kills"
# Kills that share a ledger; more entries only make looking slower.
_TOGETHER = 50
WHOLE = {"lost": 0, "sum_is_exact": True, "overspent": False}


def seen(job: str, folder: Path, number: int, seed: int) -> Any:
    """What the driver saw, in a process of its own."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "tests.support.ledger_driver", job, str(folder)]
    done = subprocess.run([*command, str(number), str(seed)], check=True, capture_output=True)
    return json.loads(done.stdout)


def broken(kill: dict[str, Any]) -> list[str]:
    """Which promises do not hold after a kill."""
    wrong = [name for name, value in WHOLE.items() if kill[name] != value]
    return wrong + ["unseen"] * (kill["unseen"] not in (0, 1))


def attack(size: int, seed: int, folder: Path) -> Iterator[str]:
    """Nine of ten while recording, the others in creations."""
    for turn in range(max(1, size * 9 // 10 // _TOGETHER)):
        many = min(_TOGETHER, size)
        for at, kill in enumerate(seen("kills", folder / f"{turn}", many, seed + turn)):
            yield from (f"kill {at}, seed {seed + turn}: {each}" for each in broken(kill))
    for at, kill in enumerate(seen("creations", folder / "new", max(1, size // 10), seed)):
        if kill["error"] and not any(word in kill["error"] for word in ("empty", "missing")):
            yield f"creation {at}, seed {seed}: {kill['error']}"
