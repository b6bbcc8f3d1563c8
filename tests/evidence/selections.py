"""Private selections (permute-and-flip), as releases draw them.

They are compared with their exact probabilities, by enumeration of all orders of the candidates;
the same selections must reject a scale that is a little too small.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from shoal.privacy.noise import OperatingSystem
from tests.evidence.finding import Outcome
from tests.evidence.goodness import judge
from tests.support.selections import by_permutations

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tests.evidence.finding import Progress

NAME = "selections against their exact distribution"
PROMISES = ("G-SELECTION",)
UNIT = "selections"
FULL, REDUCED, PARTS = 1_000_000, 5_000, 1

# Scores and scale; the first tells a wrong scale best and gets most of the draws.
CASES = (
    ((0, 3), 3.0, 0.8),
    ((0, 0, 0), 1.0, 0.05),
    ((-5, 0, 2, 2, -1000), 4.0, 0.1),
    ((-(2**40), -(2**40) + 700, -(2**40) + 900), 512.0, 0.05),
)
_EVERY = 1000


def probabilities(scores: NDArray[np.int64], scale: float, factor: float) -> NDArray[np.float64]:
    """Of each candidate, if the scale were multiplied by a factor."""
    return by_permutations(scores, factor * scale)


def run(size: int, *, seed: int, folder: Path, progress: Progress) -> Outcome:  # noqa: ARG001
    """Select again and again."""
    failures, notes, tried, source = [], [], 0, OperatingSystem()
    for numbers, scale, part in CASES:
        scores, many = np.array(numbers, dtype=np.int64), -int(-size * part // 1)
        seen = np.zeros(len(scores), dtype=np.int64)
        for at in range(many):
            seen[source.select(scores, scale, at)] += 1
            if at % _EVERY == _EVERY - 1:
                progress(_EVERY)
        progress(many % _EVERY)
        tried += many
        what = f"a selection from scores {list(numbers)} at scale {scale:g}"
        broken, note = judge(what, seen, partial(probabilities, scores, scale))
        if len(set(numbers)) == 1:  # no scale to tell: all candidates are alike
            broken, note = [line for line in broken if "low" not in line], f"{what}: uniform"
        failures += broken
        notes.append(f"{note} ({many:,} draws)")
    return Outcome(tried, tuple(failures), tuple(notes))
