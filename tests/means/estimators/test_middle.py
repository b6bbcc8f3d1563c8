"""The middle step: odd, no further than accounted, and off by no more than bounded."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from shoal.errors import InputError
from shoal.means.estimators.coarse import FINE, Coarse, Guess, Places
from shoal.means.estimators.middle import Middle, moved, ticks
from shoal.means.estimators.middle_failure import Off, _bernstein, _most_far, middle_offs
from shoal.means.estimators.noisy_sum import NoisySum
from shoal.privacy.noise import Simulated
from shoal.theory.clipping import Moment

pytestmark = pytest.mark.oracle

OFFSETS = st.integers(0, 2**FINE - 1)


def at(offset: int, bins: int) -> Guess:
    """One guess."""
    return Guess(np.array([offset]), np.array([bins]), np.array([False]))


class Given:
    """Stands for randomness: one number of noise."""

    simulated = True

    def __init__(self, noise: int) -> None:
        """Keep the number."""
        self.noise = noise

    def add_laplace(self, steps: list[int], _bits: int, _draw: int = 0) -> list[int]:
        """Add it."""
        return [x + self.noise for x in steps]


@given(OFFSETS, st.integers(-5, 5), st.integers(-(2**40), 2**40), st.integers(1, 59))
def test_guesses_move_by_whole_ticks(offset: int, bins: int, steps: int, shift: int) -> None:
    """Exactly, in both directions, and the offset stays within a bin."""
    found = moved(at(offset, bins), np.array([steps]), shift)
    assert 0 <= found.offset[0] < 2**FINE
    assert found.exactly(0, 0) == at(offset, bins).exactly(0, 0) + Fraction(steps, 2**shift)


@given(
    st.lists(st.floats(-9, 9) | st.sampled_from([1e300, -1e300]), min_size=3, max_size=3),
    OFFSETS,
    st.integers(-5, 5),
    st.integers(1, 30),
    st.integers(-(2**50), 2**50),
)
def test_mirrored_values_give_mirrored_middle_guesses(
    data: list[float], offset: int, bins: int, shift: int, noise: int
) -> None:
    """Values, first guess and noise mirrored: exactly minus the next guess."""
    half = 5 << (shift // 2)
    step = Middle(3, shift, half, NoisySum.fit(2 * half, 3 * half, Fraction(1)))
    values = np.array([data])
    one = step.better(Places.of(values, 0), at(offset, bins), Given(noise))
    mirror = at(2**FINE - 1 - offset, -bins)
    other = step.better(Places.of(-values, 0), mirror, Given(-noise))
    assert one.exactly(0, 0) == -other.exactly(0, 0)


def test_no_neighbour_moves_the_sum_by_more_than_accounted() -> None:
    """All small data: the most is the reach, it is attained, and the loss is exact."""
    step = Middle(2, 1, 3, NoisySum.fit(6, 6, Fraction(1, 3)))
    guess = at(2**59 + 12345, 0)
    values = [-1e300, -1.2, 0.0, 0.6, 1.3, 1e300]
    sums = {
        pair: int(ticks(Places.of(np.array([pair]), 0), guess, 1, 3).sum())
        for pair in itertools.product(values, repeat=2)
    }
    worst = max(
        abs(sums[x, y] - sums[z, y]) for x, y, z in itertools.product(values, values, values)
    )
    assert worst == step.noise.sensitivity
    assert step.loss == Fraction(worst * step.noise.per_unit, 2**step.noise.bits) <= Fraction(1, 3)
    with pytest.raises(InputError):
        Middle(2, 1, 3, NoisySum.fit(5, 6, Fraction(1, 3)))


@pytest.mark.parametrize(("n", "chance"), [(500, 0.003), (1000, 0.1), (40, 0.0)])
def test_far_users_are_rarely_more(n: int, chance: float) -> None:
    """Against SciPy: the chance of more is at most exp(-x), and not for a tenth of the number."""
    for log in (10.0, 20.0):
        most = _most_far(n, chance, log)
        assert stats.binom.sf(most, n, chance) <= math.exp(-log)
        assert chance == 0 or stats.binom.sf(most // 10, n, chance) > math.exp(-log)


@pytest.mark.parametrize("chance", [0.01, 0.1])
def test_means_of_clipped_values_are_rarely_further(chance: float) -> None:
    """Against the exact distribution of values +-t or 0; a bound of a third would be broken."""
    n, t, log = 400, 3.0, 8.0
    bound = _bernstein(n, t * math.sqrt(chance), t, log + math.log(2))
    # The distribution of a sum is the power of a Fourier transform; sums below 0 are at the end.
    one = np.zeros(1024)
    one[[0, 1, -1]] = 1 - chance, chance / 2, chance / 2
    distribution = np.fft.irfft(np.fft.rfft(one) ** n, 1024)
    off = np.abs(np.fft.fftfreq(1024, 1 / 1024)) * t / n
    assert distribution[off > bound].sum() <= math.exp(-log)
    assert distribution[off > bound / 3].sum() > math.exp(-log)


def test_rare_cases_cost_no_more_than_bounded() -> None:
    """The moments of the noise against quadrature."""
    off, c = Off(1.0, math.exp(-6), 5.0, 9.0, 1.3), 2.5

    def square(z: float) -> float:
        return (off.start + c + z) ** 2 * math.exp(-z / off.scale) / off.scale

    beyond = integrate.quad(lambda z: square(z + off.noise) * math.exp(off.noise / 1.3), 0, 200)[0]
    usual = integrate.quad(square, 0, 200)[0]
    truth = off.chance * (beyond + 2 * usual)
    assert truth <= off.rare(c) * (1 + 1e-9)
    assert truth >= off.rare(c) / 1.1
    assert Off(3.0).rare(c) == 0


def test_middle_guesses_are_off_by_no_more_than_bounded() -> None:
    """Measured, with the first guess anywhere within its bound: few beyond, and it is not idle."""
    n, runs, moments = 400, 4000, (Moment(2, 1), Moment(4, 3**0.25))
    coarse = Coarse.fit(n, 2, Fraction(2), Fraction(1, 10**4))
    step = Middle.fit(n, 2, 8.0, Fraction(1, 2))
    off = middle_offs(coarse, step, moments)[0]
    rng = np.random.default_rng(3)
    data = rng.normal(size=(runs, n)) + 0.37
    # Off by up to 4, and half a bin for where the offset is.
    first = rng.uniform(-3.4, 3.4, runs) + 0.37
    bins = np.floor(first / 4 + 0.5).astype(np.int64)
    offset = ((first / 4 - bins + 0.5) * 2.0**52).astype(np.int64) << 8
    guess = Guess(offset, bins, np.zeros(runs, dtype=np.bool_))
    found = step.better(Places.of(data, 2), guess, Simulated(4))
    error = np.abs(np.array([float(found.exactly(i, 2)) for i in range(runs)]) - 0.37)
    assert (error > off.most).sum() <= 3 + 3 * off.chance * runs
    assert error.max() >= off.most / 3
    assert math.sqrt((error**2).mean()) >= step.scale(2)
