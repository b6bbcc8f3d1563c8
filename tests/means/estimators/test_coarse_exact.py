"""The coarse step's privacy, exactly: small data sets, every offset's bins, every outcome.

Noise has P[Z = z] proportional to q^|z|. Probabilities are computed in rationals with q a rational
near exp(-2^-j), and a loss of s steps is a factor q^-s, so that nothing is rounded.
"""

import itertools
import os
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from shoal.errors import InputError
from shoal.means.estimators.coarse import Coarse, Places
from shoal.privacy.noise import Simulated
from tests.support.loop import loop_over

pytestmark = pytest.mark.property

Q = Fraction(1, 2)
# Two windows each: a user's may be apart from another's, or share one.
BINS = {1: 3, 2: 4}
USERS = 4 if os.environ.get("SHOAL_FULL") else 3


@dataclass(frozen=True)
class Small:
    """A coarse step on a small lattice with q = 1/2: a loss of s steps is a factor 2^s."""

    per_user: int
    threshold: int
    windows: int = 1

    @property
    def coarse_delta(self) -> Fraction:
        """P[m + Z >= h], for each window."""
        return self.windows * at_least(self.threshold - self.per_user)

    @property
    def factor(self) -> Fraction:
        """exp(epsilon): a user's steps up and down; with windows 1 + 2p, which is below exp(2p)."""
        return Q ** (-2 * self.per_user) * (1 + self.coarse_delta * (self.windows - 1))

    @property
    def sound(self) -> bool:
        """What `Coarse` checks: p <= 1 - exp(-m/2^j), p for each window."""
        return self.coarse_delta <= 1 - Q**self.per_user


def at_least(steps: int) -> Fraction:
    """P[Z >= steps] = q^s/(1 + q) for s >= 1; by symmetry below."""
    if steps >= 1:
        return Q**steps / (1 + Q)
    return 1 - at_least(1 - steps)


@cache
def outcomes(case: Small, bins: tuple[int, ...]) -> dict[int | None, Fraction]:
    """The distribution of the bin of the best score: of ties the lowest or highest by a fair coin.

    Scores 60 steps above all counts and more are left out: their probability is below 2^-58.
    """
    each = [k for cell in bins for k in range(cell, cell + case.windows)]
    start = {k: case.per_user * each.count(k) for k in sorted(set(each))}
    top = max(*start.values(), case.threshold) + 60
    distribution: dict[int | None, Fraction] = dict.fromkeys(start, Fraction(0))
    distribution[None] = Fraction(1)
    for s in start.values():
        distribution[None] *= 1 - at_least(case.threshold - s)
    for score in range(case.threshold, top):
        under = {k: 1 - at_least(score - s) for k, s in start.items()}
        upto = {k: 1 - at_least(score + 1 - s) for k, s in start.items()}
        for k in start:
            lowest = highest = (upto[k] - under[k]) / 2
            for other in start:
                if other != k:
                    lowest *= under[other] if other < k else upto[other]
                    highest *= under[other] if other > k else upto[other]
            distribution[k] += lowest + highest
    return distribution


def hockey(case: Small) -> Fraction:
    """Largest sum of (P - e^epsilon P')+ over all neighbours: the true delta, to 2^-58."""
    worst = Fraction(0)
    for users in range(1, USERS + 1):
        cells = range(BINS[case.windows])
        for others in itertools.combinations_with_replacement(cells, users - 1):
            distributions = [outcomes(case, tuple(sorted((*others, mine)))) for mine in cells]
            for one, other in itertools.permutations(distributions, 2):
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
CASES += [Small(m, h, 2) for m, h in ((1, 3), (1, 5), (2, 4), (2, 8))]


@loop_over("case", [c for c in CASES if c.sound])
def test_coarse_step_is_as_private_as_accounted(case: Small) -> None:
    """No neighbours differ by more than (2m/2^j, p) or (2m/2^j + 2p, 2p) anywhere."""
    assert hockey(case) <= case.coarse_delta


def test_the_slip_is_attained() -> None:
    """Nothing is given away: a lone user's bin shows with probability p, of two hardly less."""
    case = Small(2, 8)
    assert 0 <= case.coarse_delta - hockey(case) <= Fraction(1, 2**58)
    both = Small(2, 8, 2)
    assert (
        0 <= both.coarse_delta - hockey(both) <= (both.coarse_delta / 2) ** 2 + Fraction(1, 2**58)
    )


def test_windows_need_their_own_budget() -> None:
    """Counted as one bin, with p and 2m/2^j, sliding windows would be accounted too low."""
    for case in (c for c in CASES if c.windows == 2 and c.sound):
        assert hockey(case) > case.coarse_delta / 2


def test_fitted_steps_keep_loss_and_delta() -> None:
    """Fitted parts cost at most what was asked for, and hardly less; exact arithmetic."""
    for epsilon, delta, windows in itertools.product(
        ("1/30", "1/3", "1", "5"), ("1e-12", "1e-6", "1/50"), (1, 2)
    ):
        wanted, most = Fraction(epsilon), Fraction(delta)
        coarse = Coarse.fit(500, 0, wanted, most, windows)
        lost = most * (windows - 1) if most > Fraction(1, 1000) else 0
        assert wanted * Fraction(999_970, 10**6) - lost <= coarse.loss <= wanted
        assert coarse.delta <= most
        q = np.exp(-1 / np.longdouble(2) ** coarse.bits)
        p = q ** (coarse.threshold - coarse.per_user) / (1 + q)
        exact = p * windows
        assert coarse.loss >= Fraction(2 * coarse.per_user, 2**coarse.bits) - (windows - 1) * (
            Fraction(float(np.log1p(-p)))
        )
        assert float(exact) <= coarse.delta
        if most < Fraction(1, 1000):
            assert float(exact) > 0.999 * float(most)


def test_a_hand_made_threshold_that_is_too_low_is_refused() -> None:
    """The condition p <= 1 - exp(-m/2^j) is checked wherever a coarse step is made."""
    good = Coarse.fit(100, 0, Fraction(1, 1000), Fraction(1, 10**6))
    with pytest.raises(InputError):
        Coarse(good.users, 0, good.per_user, good.bits, good.per_user + 1)


def tail(s: int) -> float:
    """P[Z >= s] for noise of scale one step."""
    q = np.exp(-1.0)
    return float(q**s / (1 + q)) if s >= 1 else 1 - tail(1 - s)


def fails(threshold: int, *counts: int) -> float:
    """P[no score reaches the threshold]."""
    return float(np.prod([1 - tail(threshold - count) for count in counts]))


@pytest.mark.parametrize("windows", [1, 2])
def test_the_code_has_the_law_of_the_enumeration(windows: int) -> None:
    """What `guess` draws has these probabilities, at 1e-9; those of a lower threshold are rejected.

    The lattice of scale 1 step has q = exp(-1), so the distribution is computed anew in floating
    point.
    """
    coarse = Coarse(4, 0, 1, 0, 4, windows)
    runs = 200_000
    places = Places.of(np.tile(np.array([0.0, 0.0, 0.1, 5.0]), (runs, 1)), 0)
    found = coarse.guess(places, Simulated(windows))
    # Three users share a bin and one is alone; or a tenth of the offsets part 0.1 from the others.
    together, parted = ((3, 1), (2, 1, 1)) if windows == 1 else ((3, 3, 1, 1), (2, 3, 1, 1, 1))

    def distribution(threshold: int) -> float:
        return 0.9 * fails(threshold, *together) + 0.1 * fails(threshold, *parted)

    truth, failed = distribution(4), float(found.failed.mean())
    slack = 6.2 * np.sqrt(truth * (1 - truth) / runs)
    assert abs(failed - truth) <= slack
    assert abs(failed - distribution(3)) > slack
    # Every guess is the middle of a bin or window that holds a value.
    exact = [found.exactly(i, 0) for i in range(0, runs, 50) if not found.failed[i]]
    assert all(min(abs(x), abs(x - Fraction(1, 10)), abs(x - 5)) < windows / 2 for x in exact)
