"""The coarse step: its exact privacy by enumeration, and that the code is that step.

Noise has P[Z = z] proportional to q^|z|. Probabilities are computed in rationals with q = 1/2, and
a loss of s steps is a factor 2^s, so that nothing is rounded.
"""

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from shoal.errors import InputError
from shoal.means.guess import FINE, Coarse, Places, exactly
from tests.support.loop import loop_over

pytestmark = pytest.mark.property

Q = Fraction(1, 2)
# A user's two windows may be apart from another's, or share one.
CELLS, USERS = 4, 3
Law = dict[int | None, Fraction]


@dataclass(frozen=True)
class Small:
    """A coarse step on a small lattice with q = 1/2."""

    per_user: int
    threshold: int

    @property
    def delta(self) -> Fraction:
        """P[m + Z >= h], for each of two windows."""
        return 2 * at_least(self.threshold - self.per_user)

    @property
    def factor(self) -> Fraction:
        """exp(epsilon): a user's steps up and down, and 1 + 2p, which is below exp(2p)."""
        return Q ** (-2 * self.per_user) * (1 + self.delta)


def at_least(steps: int) -> Fraction:
    """P[Z >= steps] = q^s/(1 + q) for s >= 1; by symmetry below."""
    return Q**steps / (1 + Q) if steps >= 1 else 1 - at_least(1 - steps)


@cache
def outcomes(case: Small, cells: tuple[int, ...]) -> Law:
    """The law of the window of the best score: of ties the lowest or highest by a fair coin.

    Scores 60 steps above all counts and more are left out: their probability is below 2^-58.
    """
    each = [k for cell in cells for k in (cell, cell + 1)]
    start = {k: case.per_user * each.count(k) for k in sorted(set(each))}
    law: Law = dict.fromkeys(start, Fraction(0))
    law[None] = math.prod((1 - at_least(case.threshold - s) for s in start.values()), start=Q * 2)
    for score in range(case.threshold, max(*start.values(), case.threshold) + 60):
        under = {k: 1 - at_least(score - s) for k, s in start.items()}
        upto = {k: 1 - at_least(score + 1 - s) for k, s in start.items()}
        for k in start:
            lowest = highest = (upto[k] - under[k]) / 2
            for other in start:
                if other != k:
                    lowest *= under[other] if other < k else upto[other]
                    highest *= under[other] if other > k else upto[other]
            law[k] += lowest + highest
    return law


def hockey(case: Small) -> Fraction:
    """Largest sum of (P - e^epsilon P')+ over all neighbours: the true delta, to 2^-58."""
    worst, zero = Fraction(0), Fraction(0)
    for users in range(1, USERS + 1):
        for others in itertools.combinations_with_replacement(range(CELLS), users - 1):
            laws = [outcomes(case, tuple(sorted((*others, mine)))) for mine in range(CELLS)]
            for one, other in itertools.permutations(laws, 2):
                gaps = (one.get(k, zero) - case.factor * other.get(k, zero) for k in one)
                worst = max(worst, sum((max(zero, gap) for gap in gaps), zero))
    return worst


@loop_over("case", [Small(1, 3), Small(1, 5), Small(2, 4), Small(2, 8)])
def test_no_neighbours_differ_by_more_than_accounted(case: Small) -> None:
    """(2m/2^j + 2p, 2p) holds everywhere, and p instead of 2p does not."""
    assert case.delta <= 1 - Q**case.per_user
    assert case.delta / 2 < hockey(case) <= case.delta
    rare = (case.delta / 2) ** 2 + Fraction(1, 2**58)
    assert case != Small(2, 8) or case.delta - hockey(case) <= rare


@loop_over(("epsilon", "delta"), itertools.product(("1/30", "1", "5"), ("1e-12", "1e-6", "1/50")))
def test_fitted_steps_keep_loss_and_delta(epsilon: str, delta: str) -> None:
    """Fitted parts cost at most what was asked for, and hardly less; in 80 digits."""
    wanted, most = Fraction(epsilon), Fraction(delta)
    if most >= wanted:
        return
    coarse = Coarse.fit(500, 0, wanted, most)
    import mpmath

    with mpmath.workdps(80):
        q = mpmath.exp(-(mpmath.mpf(2) ** -coarse.bits))
        p = q ** (coarse.threshold - coarse.per_user) / (1 + q)
        stated = mpmath.mpf(coarse.delta.numerator) / coarse.delta.denominator
        assert 2 * p <= stated <= 2 * p * (1 + mpmath.mpf(10) ** -30)
    assert coarse.loss == Fraction(2 * coarse.per_user, 2**coarse.bits) + coarse.delta
    assert wanted * Fraction(999_970, 10**6) - most <= coarse.loss <= wanted
    assert most * Fraction(999, 1000) <= coarse.delta <= most or most > Fraction(1, 1000)


def test_a_threshold_that_is_too_low_is_refused_and_no_chance_is_0() -> None:
    """2p <= 1 - exp(-m/2^j) is checked wherever a step is made; far chances are given upwards."""
    good = Coarse.fit(100, 0, Fraction(1, 1000), Fraction(1, 10**6))
    with pytest.raises(InputError):
        Coarse.of(**{**good.model_dump(), "threshold": good.per_user + 1})
    assert Coarse(users=10, exponent=0, per_user=1, bits=0, threshold=2**50).delta > 0


class Given:
    """Offset, coin and noise that are given."""

    def __init__(self, offset: int, coin: int, noise: list[int]) -> None:
        self.offset, self.coin, self.noise = offset, coin, noise

    def bits(self, size: int, draw: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """The same word for all."""
        word = {4: self.offset << (64 - FINE), 6: self.coin << 63}[draw]
        return np.full(size, word, dtype=np.uint64)

    def add_laplace(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """The noise in the order of the slots."""
        assert (lattice_bits, draw) == (0, 5)
        return [x + z for x, z in zip(steps, self.noise, strict=True)]


def guess_of(coarse: Coarse, data: Any, *given: Any) -> Fraction | None:
    """One coarse step with everything given, in the value's unit."""
    source: Any = Given(*given)
    found = coarse.guess(Places.of(np.array([data]), coarse.exponent), source)
    if found.failed[0]:
        return None
    return exactly((int(found.bin[0]), int(found.offset[0])), coarse.exponent)


def rational_guess(values: list[float], source: Given, exponent: int) -> Fraction | None:
    """The guess by rational arithmetic: 2 steps a user, a threshold of 5."""
    offset, far = Fraction(2 * source.offset + 1, 2**61) - Fraction(1, 2), Fraction(2**61)
    bins = [min(max(Fraction(x) / Fraction(2) ** exponent, -far), far) for x in values]
    places = [math.floor(Fraction(round(x * 2**60), 2**60) - offset) for x in bins]
    slots = sorted([*places, *(k + 1 for k in places)])
    score = {k: 2 * slots.count(k) + source.noise[slots.index(k)] for k in slots}
    tied = [k for k in score if score[k] == max(score.values())]
    if max(score.values()) < 5:
        return None
    return ((max(tied) if source.coin else min(tied)) + offset) * Fraction(2) ** exponent


def test_guesses_are_those_of_rational_arithmetic() -> None:
    """Huge, tiny, tied and extreme: the code is the mechanism whose privacy was enumerated."""
    rng, failed = np.random.default_rng(2), 0
    bases = (0.0, 0.3, 1e5, 2.0**55, 2.0**62, -(2.0**62), 1e150, 2.0**-300)
    for case in range(600):
        exponent, users = int(rng.choice([0, -3, 5])), int(rng.integers(1, 6))
        steps = rng.choice([0, 1, 0.5, -0.5, 0.25, float(rng.normal(0, 2))], users)
        values = bases[case % len(bases)] + steps * 2.0**exponent
        offset = (0, 2**60 - 1, int(rng.integers(2**60)))[case % 3]
        given_words = offset, case // 3 % 2, rng.integers(-3, 4, 2 * users).tolist()
        coarse = Coarse(users=users, exponent=exponent, per_user=2, bits=0, threshold=5)
        truth = rational_guess(values.tolist(), Given(*given_words), exponent)
        assert guess_of(coarse, values, *given_words) == truth
        failed += truth is None
    assert 40 < failed < 560
