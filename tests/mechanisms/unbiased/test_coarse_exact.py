"""The coarse step's privacy, exactly: small data sets, every offset's bins, every outcome.

Noise has P[Z = z] proportional to q^|z|. Probabilities are computed in rationals with q a rational
near exp(-2^-j), and a loss of s steps is a factor q^-s, so that nothing is rounded.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from shoal.errors import InputError
from shoal.mechanisms.noise import Simulated
from shoal.mechanisms.unbiased.coarse import Coarse, Places

Q = Fraction(1, 2)
BINS = 3
USERS = 4 if os.environ.get("SHOAL_PROVE") else 3


@dataclass(frozen=True)
class Small:
    """A coarse step on a small lattice with q = 1/2: a loss of s steps is a factor 2^s."""

    per_user: int
    threshold: int

    @property
    def slip(self) -> Fraction:
        """P[m + Z >= h]."""
        return at_least(self.threshold - self.per_user)

    @property
    def factor(self) -> Fraction:
        """exp(epsilon): two bins, a user's steps each."""
        return Q ** (-2 * self.per_user)

    @property
    def sound(self) -> bool:
        """What `Coarse` checks: p <= 1 - exp(-m/2^j)."""
        return self.slip <= 1 - Q**self.per_user


def at_least(steps: int) -> Fraction:
    """P[Z >= steps] = q^s/(1 + q) for s >= 1; by symmetry below."""
    if steps >= 1:
        return Q**steps / (1 + Q)
    return 1 - at_least(1 - steps)


@cache
def outcomes(case: Small, bins: tuple[int, ...]) -> dict[int | None, Fraction]:
    """The law of the outcome: the bin of the best score, lowest or highest of ties by a fair coin.

    Scores 60 steps above all counts and more are left out: their probability is below 2^-58.
    """
    counts = {k: bins.count(k) for k in sorted(set(bins))}
    start = {k: case.per_user * c for k, c in counts.items()}
    top = max(*start.values(), case.threshold) + 60
    law: dict[int | None, Fraction] = dict.fromkeys(counts, Fraction(0))
    below = {k: 1 - at_least(case.threshold - s) for k, s in start.items()}
    law[None] = Fraction(1)
    for chance in below.values():
        law[None] *= chance
    for score in range(case.threshold, top):
        exact = {k: at_least(score - s) - at_least(score + 1 - s) for k, s in start.items()}
        under = {k: 1 - at_least(score - s) for k, s in start.items()}
        for size in range(1, len(counts) + 1):
            for tied in itertools.combinations(counts, size):
                chance = Fraction(1)
                for k in counts:
                    chance *= exact[k] if k in tied else under[k]
                law[tied[0]] += chance / 2
                law[tied[-1]] += chance / 2
    return law


def hockey(case: Small) -> Fraction:
    """Largest sum of (P - e^epsilon P')+ over all neighbours: the true delta, to 2^-58."""
    worst = Fraction(0)
    for users in range(1, USERS + 1):
        for others in itertools.combinations_with_replacement(range(BINS), users - 1):
            laws = [outcomes(case, tuple(sorted((*others, mine)))) for mine in range(BINS)]
            for one, other in itertools.permutations(laws, 2):
                worst = max(worst, divergence(one, other, case.factor))
    return worst


def divergence(
    one: dict[int | None, Fraction], other: dict[int | None, Fraction], factor: Fraction
) -> Fraction:
    """Sum of (P - factor P')+ over the outcomes."""
    zero = Fraction(0)
    gaps = (one.get(k, zero) - factor * other.get(k, zero) for k in {*one, *other})
    return sum((max(zero, gap) for gap in gaps), zero)


CASES = [Small(m, h) for m in (1, 2) for h in range(m + 1, m + 8)]


@pytest.mark.parametrize("case", [c for c in CASES if c.sound], ids=str)
def test_coarse_step_is_as_private_as_accounted(case: Small) -> None:
    """G-COARSE: no neighbours differ by more than (2m/2^j, P[m + Z >= h]), in any outcome."""
    assert hockey(case) <= case.slip


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.sound and c.threshold > c.per_user + 1], ids=str
)
def test_too_low_a_threshold_is_caught(case: Small) -> None:
    """The enumeration rejects it: one step lower has a delta above the accounted one."""
    assert hockey(Small(case.per_user, case.threshold - 1)) > case.slip


def test_the_slip_is_attained() -> None:
    """Nothing is given away: a lone user's bin shows with probability p, and no less."""
    case = Small(2, 8)
    assert 0 <= case.slip - hockey(case) <= Fraction(1, 2**58)


def test_fitted_steps_keep_loss_and_delta() -> None:
    """G-BUDGET: fitted parts cost at most what was asked for, and hardly less; exact arithmetic."""
    for epsilon, delta in itertools.product(("1/100", "1/3", "1", "5"), ("1e-12", "1e-6", "1/50")):
        wanted, most = Fraction(epsilon), Fraction(delta)
        coarse = Coarse.fit(500, 0, wanted, most)
        assert wanted * Fraction(999_990, 10**6) <= coarse.loss <= wanted
        assert coarse.slip <= most
        q = np.exp(-1 / np.longdouble(2) ** coarse.bits)
        exact = q ** (coarse.threshold - coarse.per_user) / (1 + q)
        assert float(exact) <= coarse.slip
        if most < Fraction(1, 1000):
            assert float(exact) > 0.999 * float(most)


def test_a_hand_made_threshold_that_is_too_low_is_refused() -> None:
    """The condition p <= 1 - exp(-m/2^j) is checked wherever a coarse step is made."""
    good = Coarse.fit(100, 0, Fraction(1, 1000), Fraction(1, 10**6))
    with pytest.raises(InputError):
        Coarse(good.users, 0, good.per_user, good.bits, good.per_user + 1)


@pytest.mark.parametrize("seed", range(3))
def test_the_code_has_the_law_of_the_enumeration(seed: int) -> None:
    """What `guess` draws has these probabilities, at 1e-9; those of a lower threshold are rejected.

    The lattice of scale 1 step has q = exp(-1), so the law is computed anew in floating point.
    """
    coarse = Coarse(4, 0, 1, 0, 4)
    runs = 200_000
    data = np.array([0.0, 0.0, 0.1, 5.0])
    # Offsets below 1/2 - 0.1 and above -1/2 leave bins 0 and 5 for all T, but for small changes.
    places = Places.of(np.tile(data, (runs, 1)), 0)
    found = coarse.guess(places, Simulated(seed))
    failed = float(found.failed.mean())
    offset = (2 * found.offset.astype(np.float64) + 1) / 2**61 - 0.5
    together = found.failed.sum(), (offset[~found.failed] != 0).sum()
    assert sum(together) == runs
    q = np.exp(-1.0)

    def tail(s: int) -> float:
        return float(q**s / (1 + q)) if s >= 1 else 1 - tail(1 - s)

    # Bin of three users and of one; or, for the tenth of offsets that part 0.1, of two, one, one.
    whole = (1 - tail(4 - 3)) * (1 - tail(4 - 1))
    parted = (1 - tail(4 - 2)) * (1 - tail(4 - 1)) ** 2
    truth = 0.9 * whole + 0.1 * parted
    slack = 6.2 * np.sqrt(truth * (1 - truth) / runs)
    assert abs(failed - truth) <= slack
    lower = 0.9 * (1 - tail(3 - 3)) * (1 - tail(3 - 1)) + 0.1 * (1 - tail(1)) * (1 - tail(2)) ** 2
    assert abs(failed - lower) > slack
