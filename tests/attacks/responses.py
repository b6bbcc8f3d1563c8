"""Randomised responses of trials, drawn as releases draw them.

They are compared with their exact probabilities: each outcome is kept or replaced, and if replaced
drawn from its group's prior. Levels, floors and priors at the edges of what is allowed are among
them. The same responses must reject a probability of replacing that is a little too small.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shoal.data.outcome_space import Space
from shoal.privacy.noise import OperatingSystem
from shoal.trials.best_table.choice import best_table
from shoal.trials.best_table.integer_table import ONE as WHOLE
from shoal.trials.parameters import ONE, Parameters
from shoal.trials.response import prior_of, respond
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
TABLES = (("1", 5), ("2", 11), ("4", 3))
_AT_ONCE = 500_000


def probabilities(
    prior: NDArray[np.int64], parameters: Parameters, factor: float
) -> NDArray[np.float64]:
    """Of each outcome and its response, outcomes being equally frequent; lambda times a factor."""
    levels = prior.shape[1]
    replaced = factor * parameters.replaced / ONE
    chance = replaced * prior[0][None, :] / ONE + (1 - replaced) * np.eye(levels)
    return np.asarray(chance.ravel() / levels)


def attack(size: int, seed: int, _folder: Path) -> Iterator[str]:
    """Respond for outcomes that are equally often on every level."""
    each = -(-size // (len(CASES) + len(TABLES)))
    for at, (levels, replaced, floor, shares) in enumerate(CASES):
        weight, units = 2**20, 1000
        parameters = Parameters(
            tuple(range(levels)),
            floor=int(floor * ONE / levels),
            replaced=int(replaced * ONE),
            weight=weight,
        )
        noisy = np.array([[int(share * weight * units) for share in shares]])
        prior = prior_of(noisy, np.array([units]), parameters)
        seen = np.zeros(levels**2, dtype=np.int64)
        for start in range(0, each, _AT_ONCE):
            many = min(_AT_ONCE, each - start)
            # Outcomes in equal parts would not be multinomial: they are drawn, too.
            codes = np.random.default_rng([seed, at, start]).integers(0, levels, many)
            words = OperatingSystem().bits(many, 0)
            given = respond(codes, np.zeros(many, dtype=np.int64), prior, parameters, words)
            seen += np.bincount(codes * levels + given, minlength=levels**2)
        what = f"responses on {levels} levels with {replaced:.0%} replaced"
        yield from judge(what, seen, partial(probabilities, prior, parameters))
    for epsilon, levels in TABLES:
        yield from _table(Fraction(epsilon), levels, each, seed)


def _table(epsilon: Fraction, levels: int, size: int, seed: int) -> list[str]:
    """Responses of the best table, for outcomes that are equally often on every level."""
    table = best_table(Space.counts(0, levels - 1), epsilon).table
    seen = np.zeros(levels * table.responses, dtype=np.int64)
    for start in range(0, size, _AT_ONCE):
        many = min(_AT_ONCE, size - start)
        codes = np.random.default_rng([seed, levels, start]).integers(0, levels, many)
        given = table.respond(codes, OperatingSystem().bits(many, 0))
        seen += np.bincount(codes * table.responses + given, minlength=len(seen))

    def chances(factor: float) -> NDArray[np.float64]:
        """As if so much of each response were that of its level, the rest that of any."""
        own = table.numbers.T / WHOLE
        return np.asarray((factor * own + (1 - factor) * own.mean(axis=0)).ravel() / levels)

    return judge(f"best table of {levels} levels at epsilon {float(epsilon):g}", seen, chances)
