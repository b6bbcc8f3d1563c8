"""Faults seeded into lines of the library that privacy depends on, one at a time.

A halved sensitivity, a dropped clip, a tie that goes to the wrong side, a cap that is off by one,
noise 1% too small, a charge that is forgotten: each is put into a copy of the library, and the
named tests of `make test` are run on it until one fails. A fault that no test notices is a failure
of this attack. What noticed faults is then run without any: it must pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.evidence.finding import Outcome
from tests.evidence.seeded.catalogue import FAULTS
from tests.evidence.seeded.runner import WORKERS, Copy, tried

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.evidence.finding import Progress
    from tests.evidence.seeded.fault import Fault

NAME = "seeded faults"
PROMISES = tuple(sorted({fault.promise for fault in FAULTS}))
UNIT = "faults"
FULL, REDUCED, PARTS = len(FAULTS), 4, 12
# Of the seed of a part: which part it is.
_RUNS = 10_000


def run(size: int, *, seed: int, folder: Path, progress: Progress) -> Outcome:
    """Seed that many faults; each must make one of its tests fail."""
    chosen, fates = of_part(size, seed), []
    for fate in tried(chosen or spread(FAULTS, size, seed), folder, 1 if chosen else WORKERS):
        fates.append(fate)
        progress(1)
    # With all their parameters: a fault can add cases that are not there without it.
    killers = tuple(dict.fromkeys(fate.killer.partition("[")[0] for fate in fates if fate.killed))
    code, text = Copy(folder / "whole").pytest(killers) if killers else (0, "")
    if code != 0:
        return Outcome(0, (f"tests fail without any fault: {text[-500:]}",))
    return Outcome(
        len(fates),
        tuple(f"{each.fault.name}: {each.killer}" for each in fates if not each.killed),
        tuple(
            f"{each.fault.name}: noticed by `{each.killer}` after {each.seconds:.0f} s"
            for each in fates
            if each.killed
        ),
    )


def of_part(size: int, seed: int) -> list[Fault]:
    """The faults of one of the parts of a full run, all parts together all faults; or none."""
    begin, end = (FULL * at // PARTS for at in (seed % _RUNS, seed % _RUNS + 1))
    return list(FAULTS[begin:end]) if size == end - begin else []


def spread(faults: Sequence[Fault], size: int, seed: int) -> list[Fault]:
    """That many faults, evenly over the list, so that every layer has its turn."""
    step = len(faults) / max(size, 1)
    return [faults[int(at * step + seed) % len(faults)] for at in range(size)]
