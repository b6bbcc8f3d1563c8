"""The same records in other orders and from other places, under every mechanism.

Shuffled, sorted by value and by user, hashed, in pieces; as tables in memory, CSV and Parquet
files, partitions by a hash of the values read by one and by four threads without any order, Polars
and pandas frames. With frozen randomness every number before noise, every score of a selection and
every byte of the manifest must be that of the first release.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tests.evidence import replay, replay_cells
from tests.evidence.finding import Outcome
from tests.evidence.replay_watch import Watcher, differences

if TYPE_CHECKING:
    from pathlib import Path

    from tests.evidence.finding import Progress

NAME = "orders of rows, partitions, threads and engines"
PROMISES = ("G-ORDER", "G-ENGINES", "G-REPLAY")
UNIT = "releases"
FULL, REDUCED, PARTS = 1000, 60, 4

# Releases of each data set.
_AGAIN = 6
_MOST_USERS = 400


def run(size: int, *, seed: int, folder: Path, progress: Progress) -> Outcome:
    """Data sets of every case in turn, each released again and again."""
    every, watcher = replay.cases(), Watcher(folder)
    for name in replay_cells.CASES:
        every[name] = partial(every[name], users=_MOST_USERS)
    rng, failures, tried = np.random.default_rng(seed), [], 0
    turn = int(rng.integers(len(every)))
    while tried < size:
        name = list(every)[turn % len(every)]
        turn += 1
        case = every[name](rng)
        base = watcher.watch(case, case.base(), trace=False)
        for number in range(min(_AGAIN, size - tried)):
            other = watcher.watch(case, case.again(rng, folder), base, trace=False)
            found = differences(base, other)
            if other.tape.asked != base.tape.asked:
                found.append("other numbers came before the noise")
            failures += [f"{name}, release {number} of seed {seed}: {line}" for line in found]
            tried += 1
            progress(1)
    return Outcome(tried, tuple(failures))
