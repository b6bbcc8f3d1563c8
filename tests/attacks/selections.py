"""Private selections (permute-and-flip), as releases draw them.

They are compared with their exact probabilities, by enumeration of all orders of the candidates;
the same selections must reject a scale that is a little too small.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shoal.privacy.noise import OperatingSystem
from tests.attacks.goodness import judge
from tests.support.selections import by_permutations

SIZE, UNIT = 1_000_000, "selections"

# Scores and scale; the first tells a wrong scale best and gets most of the draws.
CASES = (
    ((0, 3), 3.0, 0.8),
    ((0, 0, 0), 1.0, 0.05),
    ((-5, 0, 2, 2, -1000), 4.0, 0.1),
    ((-(2**40), -(2**40) + 700, -(2**40) + 900), 512.0, 0.05),
)


def probabilities(scores: NDArray[np.int64], scale: float, factor: float) -> NDArray[np.float64]:
    """Of each candidate, if the scale were multiplied by a factor."""
    return by_permutations(scores, factor * scale)


def attack(size: int, _seed: int, _folder: Path) -> Iterator[str]:
    """Select again and again."""
    source = OperatingSystem()
    for numbers, scale, part in CASES:
        scores, many = np.array(numbers, dtype=np.int64), -int(-size * part // 1)
        seen = np.zeros(len(scores), dtype=np.int64)
        for at in range(many):
            seen[source.select(scores, scale, at)] += 1
        what = f"a selection from scores {list(numbers)} at scale {scale:g}"
        broken = judge(what, seen, partial(probabilities, scores, scale))
        # Candidates that are all alike have no scale to tell.
        yield from (line for line in broken if len(set(numbers)) > 1 or "low" not in line)
