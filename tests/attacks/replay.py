"""Record and replay of neighbours: two data sets that differ in the values of one user.

Every way to plan cells, every trial mechanism, every unbiased mean and every kind of question is
released for many random data sets, each with several neighbours (`tests.support.replay`).
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.support.replay import Watcher, compare
from tests.support.replay_cases import CASES

SIZE, UNIT = 10_000, "neighbours"
_NEIGHBOURS = 8


def attack(size: int, seed: int, folder: Path) -> Iterator[str]:
    """Neighbours of data sets of every case in turn."""
    rng, watcher, tried, moved = np.random.default_rng(seed), Watcher(folder), 0, 0
    turn = int(rng.integers(len(CASES)))
    while tried < size:
        name = list(CASES)[turn % len(CASES)]
        turn += 1
        case = CASES[name](rng)
        # What is computed once a process is computed here.
        watcher.watch(case, case.base(), trace=False)
        base = watcher.watch(case, case.base())
        for number in range(_NEIGHBOURS):
            other = watcher.watch(case, case.neighbour(rng), base)
            wrong, part = compare(case, base, other)
            if wrong and other.unclear:
                continue  # another bin was guessed: what follows is about another range
            tried += 1
            moved += part > 0
            yield from (f"{name}, neighbour {number} of seed {seed}: {line}" for line in wrong)
    if size >= SIZE // 8 and moved < size / 4:
        yield f"only {moved} of {tried} neighbours moved anything: the attack is weak"
