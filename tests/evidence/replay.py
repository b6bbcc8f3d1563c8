"""Record and replay of neighbours: two data sets that differ in the values of one user.

Every way to plan cells, every trial mechanism, every unbiased mean and every kind of question is
released twice with frozen randomness, by the public call and into a ledger of its own. The rows of
both come in orders of their own: shuffled, sorted by value or by user, hashed, in chunks. The same
lines of code must run; the draws asked for, what is charged, printed, logged and warned of must be
equal; given the noisy numbers of the one, the other must write the same manifest byte for byte; and
the numbers before noise must differ by no more than the stated loss pays for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.evidence import replay_cells, replay_means, replay_questions, replay_trials
from tests.evidence.finding import Outcome
from tests.evidence.replay_watch import Watcher, differences
from tests.support.tape import lost

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.evidence.finding import Progress
    from tests.evidence.replay_watch import Case, Seen

NAME = "record and replay of neighbours"
PROMISES = ("G-REPLAY", "G-REACH", "G-SELECTION", "G-ACCOUNTING", "G-ORDER")
UNIT = "pairs"
FULL, REDUCED, PARTS = 10_000, 48, 8

# Pairs that share a data set and its plan.
_NEIGHBOURS = 8
_ROUNDING = 1e-9


def cases() -> dict[str, Callable[..., Case]]:
    """How to make a data set with its plan, by the name of what is released."""
    families = replay_cells, replay_trials, replay_means, replay_questions
    found: dict[str, Callable[..., Case]] = {}
    for each in families:
        found |= each.CASES
    return found


def run(size: int, *, seed: int, folder: Path, progress: Progress) -> Outcome:
    """Neighbours of data sets of every case in turn."""
    every, watcher = cases(), Watcher(folder)
    rng, failures, tried, moved = np.random.default_rng(seed), [], 0, 0
    share: dict[str, float] = {}
    unclear = 0
    turn = int(rng.integers(len(every)))
    while tried < size:
        name = list(every)[turn % len(every)]
        turn += 1
        case = every[name](rng)
        watcher.watch(case, case.base())  # what is only computed once is computed here
        base = watcher.watch(case, case.base())
        for number in range(_NEIGHBOURS):
            if tried == size:
                break
            other = watcher.watch(case, case.neighbour(rng), base)
            found, part = _judge(case, base, other)
            if found and other.unclear:
                unclear += 1  # another bin was guessed: what follows is about another range
                continue
            failures += [f"{name}, neighbour {number} of seed {seed}: {line}" for line in found]
            family = f"moved, of what the loss pays for, in {name.partition(',')[0]}"
            share[family] = max(share.get(family, 0.0), 100 * part)
            moved += part > 0
            tried += 1
            progress(1)
    if size >= FULL // PARTS and moved < size / 4:
        failures.append(f"only {moved} of {size} neighbours moved anything: the attack is weak")
    note = f"{len(every)} mechanisms with their settings, in turn"
    counts = {
        "pairs whose numbers before noise differ": moved,
        "further pairs that could not be compared": unclear,
    }
    return Outcome(tried, tuple(failures), (note,), counts, share)


def _judge(case: Case, base: Seen, other: Seen) -> tuple[list[str], float]:
    """What differs that must not, and the part of the stated loss that the numbers moved by."""
    found = differences(base, other)
    if found:
        return found, 0.0
    apart, one, another = 0.0, base.tape, other.tape
    if case.slots is not None:
        apart = case.slots.apart(one, another)
        one, another = (case.slots.without(tape) for tape in (one, another))
    epsilon, rho = lost(one, another, gaussian=case.rho > 0 and case.epsilon == 0)
    epsilon += apart
    part = max(_part(epsilon, case.epsilon), _part(rho, case.rho))
    if part > 1 + _ROUNDING:
        found.append(f"numbers moved by {part:.6f} times what the loss pays for")
    return found, part


def _part(used: float, stated: float) -> float:
    return 0.0 if used == 0 else used / stated if stated > 0 else float("inf")
