"""Randomised responses of trials, drawn as releases draw them.

They are compared with their exact probabilities: of outcomes that are kept or replaced, with priors
and floors at the edges of what is allowed, and of the best tables. The same responses must reject
probabilities that are a little nearer to those of other levels.
"""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shoal.privacy.noise import OperatingSystem
from shoal.privacy.noisy import NoisySum
from shoal.trials.best_table import best_table
from shoal.trials.cluster_prior import PriorChoice, prior_of
from shoal.trials.randomiser import ONE, PART, ResponseTable, with_prior
from tests.attacks.goodness import judge

SIZE, UNIT = 10_000_000, "responses"

# Levels in use, part replaced, floor in parts of 1/levels, noisy shares of a group.
CASES: tuple[tuple[int, float, float, tuple[float, ...]], ...] = (
    (2, 0.5, 0.5, (0.7, 0.3)),
    (2, 0.9, 1.0, (0.5, 0.5)),
    (3, 0.3, 0.1, (0.95, 0.05, -0.4)),
    (5, 0.6, 0.3, (3.0, 0.0, 0.0, 0.2, 0.1)),
    (10, 0.97, 0.01, (0.1,) * 10),
)
# Losses and levels of the best tables.
BEST = (("1", 5), ("2", 11), ("4", 3))
_AT_ONCE = 500_000


def tables() -> Iterator[tuple[str, ResponseTable]]:
    """All tables by name."""
    for levels, replaced, floor, shares in CASES:
        chosen = PriorChoice(
            kept=np.arange(levels),
            floor=int(floor * PART / levels),
            replaced=int(replaced * PART),
            counts=NoisySum(per_unit=2**20, bits=20),
        )
        noisy = np.array([[int(share * 2**20 * 1000) for share in shares]])
        (prior,) = prior_of(noisy, np.array([1000]), chosen)
        made = with_prior(np.arange(float(levels)), chosen.replaced, prior)
        yield f"responses on {levels} levels with {replaced:.0%} replaced", made
    for epsilon, levels in BEST:
        made, _ = best_table(np.arange(float(levels)), Fraction(epsilon))
        yield f"best table of {levels} levels at epsilon {epsilon}", made


def attack(size: int, seed: int, _folder: Path) -> Iterator[str]:
    """Respond for outcomes that are equally often on every level."""
    each = -(-size // (len(CASES) + len(BEST)))
    for at, (what, table) in enumerate(tables()):
        levels, responses = len(table.levels), len(table.above)
        seen = np.zeros(levels * responses, dtype=np.int64)
        for start in range(0, each, _AT_ONCE):
            many = min(_AT_ONCE, each - start)
            # Outcomes in equal parts would not be multinomial: they are drawn, too.
            codes = np.random.default_rng([seed, at, start]).integers(0, levels, many)
            given = table.respond(codes, OperatingSystem().bits(many, 0))
            seen += np.bincount(codes * responses + given, minlength=len(seen))

        def chances(factor: float, table: ResponseTable = table) -> NDArray[np.float64]:
            """As if so much of each response were that of its level, the rest that of any."""
            own = table.numbers.T / ONE
            mixed = factor * own + (1 - factor) * own.mean(axis=0)
            return np.asarray(mixed.ravel() / len(table.levels))

        yield from judge(what, seen, chances)
