"""The coarse step's symmetry and shape, and its certificates."""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shoal.means.estimators.binomial_tail import binomial_tail
from shoal.means.estimators.calibrate import SearchRequest, best
from shoal.means.estimators.coarse import FINE, Coarse, Guess, Places, _runs_of
from shoal.means.estimators.failure_probability import failure_bounds
from shoal.means.estimators.first_steps import coarse_steps
from shoal.means.estimators.weights import Weights
from shoal.privacy.budget import Budget
from shoal.privacy.noise import Simulated
from shoal.theory.clipping import Moment

pytestmark = pytest.mark.oracle

COARSE = {k: Coarse.fit(6, 1, Fraction(50), Fraction(1, 10), k) for k in (1, 2)}
FINITE = st.floats(-(2.0**20), 2.0**20).map(lambda x: round(x * 2**20) / 2**20)


@dataclass
class Tape:
    """Stands for randomness: given words and noise, so that mirrored draws can be compared."""

    words: dict[int, int]
    noise: list[int]
    simulated: bool = True
    asked: list[int] = field(default_factory=list)

    def bits(self, size: int, draw: int) -> np.ndarray:
        """The same word for all."""
        return np.full(size, self.words[draw], dtype=np.uint64)

    def add_laplace(self, steps: list[int], _bits: int, _draw: int = 0) -> list[int]:
        """Given noise, slot by slot."""
        self.asked.append(len(steps))
        return [x + z for x, z in zip(steps, self.noise, strict=True)]


def run(data: list[float], offset: int, noise: int, coin: int, windows: int) -> Guess:
    """One coarse step with everything given."""
    tape = Tape({4: offset << (64 - FINE), 6: coin << 63}, [noise] * len(data) * windows)
    coarse = COARSE[windows]
    return coarse.guess(Places.of(np.array([data]), coarse.exponent), tape)


@given(
    st.lists(FINITE, min_size=6, max_size=6),
    st.integers(0, 2**FINE - 1),
    st.integers(0, 1),
    st.integers(-3, 3),
    st.sampled_from([1, 2]),
)
def test_mirrored_data_give_mirrored_guesses(
    data: list[float], offset: int, coin: int, noise: int, windows: int
) -> None:
    """Offset -T, noise carried along and the other side of the coin: exactly minus.

    The same noise on every bin makes ties of bins as likely as can be.
    """
    one = run(data, offset, noise, coin, windows)
    other = run([-x for x in data], 2**FINE - 1 - offset, noise, 1 - coin, windows)
    assert one.failed[0] == other.failed[0]
    if not one.failed[0]:
        assert one.exactly(0, 1) == -other.exactly(0, 1)


@given(
    st.lists(FINITE, min_size=6, max_size=6),
    st.integers(0, 2**FINE - 1),
    st.integers(-999, 999),
    st.sampled_from([1, 2]),
)
def test_shifted_data_give_shifted_guesses(
    data: list[float], offset: int, shift: int, windows: int
) -> None:
    """A shift by a multiple of 2^-20 shifts the guess, with the offset that fits."""
    by = Fraction(shift, 2**20)
    # In units of 2^-60 bins of width 2.
    moved = (offset + int(by / 2 * 2**FINE)) % 2**FINE
    one = run(data, offset, 1, 0, windows)
    other = run([float(Fraction(x) + by) for x in data], moved, 1, 0, windows)
    assert one.failed[0] == other.failed[0]
    if not one.failed[0]:
        assert other.exactly(0, 1) - one.exactly(0, 1) == by


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9))
def test_counts_of_bins_are_counts(bins: list[int]) -> None:
    """Against counting."""
    rows = np.array([sorted(bins)])
    first, count = _runs_of(rows)
    found = dict(zip(rows[first].tolist(), count[first].tolist(), strict=True))
    assert found == {k: bins.count(k) for k in set(bins)}
    assert not count[~first].any()


def test_every_finite_number_has_a_place() -> None:
    """Huge, tiny and negative values: no overflow, no exception, exact where a double is."""
    values = np.array([[1e300, -1e300, 5e-324, -5e-324, 0.0, 2.0**61, 1 / 3, -1 / 3]])
    places = Places.of(values, 0)
    assert (np.abs(places.whole) <= 2**61).all()
    assert ((places.rest >= 0) & (places.rest < 2**FINE)).all()
    whole, rest = int(places.whole[0, 6]), int(places.rest[0, 6])
    assert whole + Fraction(rest, 2**FINE) == Fraction(1 / 3)


@pytest.mark.parametrize(("n", "p"), [(50, 0.1), (400, 0.02), (1000, 0.3)])
def test_binomial_tails_are_above_the_truth(n: int, p: float) -> None:
    """Against SciPy."""
    for least in range(n + 2):
        assert stats.binom.sf(least - 1, n, p) <= binomial_tail(n, least, p) * (1 + 1e-9)


def test_overtaking_is_the_tail_of_a_difference() -> None:
    """Against adding up the discrete distribution."""
    coarse = Coarse(10, 0, 3, 2, 40)
    q = np.exp(-1 / 4)
    z = np.arange(-400, 401)
    distribution = (1 - q) / (1 + q) * q ** np.abs(z)
    both = np.convolve(distribution, distribution)
    values = np.arange(-800, 801)
    for users in (1, 2, 5, 9):
        truth = both[values >= 3 * users].sum()
        assert coarse.overtakes(users) == pytest.approx(truth, rel=1e-9)
        assert coarse.overtakes(users) >= truth * (1 - 1e-12)


@pytest.mark.parametrize("windows", [1, 2])
@pytest.mark.parametrize("distribution", ["normal", "two points"])
def test_guesses_go_astray_less_often_than_bounded(distribution: str, windows: int) -> None:
    """Measured failures and bad guesses are within their bounds where these are not tiny."""
    rng, n, runs = np.random.default_rng(4), 60, 4000
    coarse = Coarse.fit(n, 2, Fraction(1), Fraction(1, 100), windows)
    found = failure_bounds(coarse, (Moment(2, 1), Moment(8, 1.8)))
    shape = (runs, n)
    data = (
        rng.normal(size=shape) if distribution == "normal" else rng.choice([-1.0, 1.0], size=shape)
    )
    data += 0.37
    guess = coarse.guess(Places.of(data, 2), Simulated(5))
    slack = 6.2 * np.sqrt(found.fail / runs) + 6.2**2 / runs
    assert guess.failed.mean() <= found.fail + slack
    centre = np.array([float(guess.exactly(i, 2)) for i in range(runs)])
    good = np.abs(centre[~guess.failed] - 0.37) <= found.near + coarse.width / 2
    assert 1 - good.mean() <= found.far_squares + 6.2**2 / runs


def test_search_beats_the_papers_choice() -> None:
    """At n = 1e5 the certificate is within 1.5% of 1/sqrt(n), for both a split and reuse."""
    moments = (Moment(2, 1), Moment(8, 105**0.125))
    one, tiny = Fraction(1), Fraction(1, 10**6)
    for reuse in (True, False):
        found = best(SearchRequest(Weights.equal(10**5), moments, one, tiny, reuse, 1e6))
        assert found.rmse_bound * 10**2.5 <= 1.015
        assert found.loss.epsilon <= one
        assert found.loss.delta <= tiny
    chosen = best(SearchRequest(Weights.equal(10**5), moments, one, tiny, None, 1e6))
    assert chosen.reuse
    assert chosen.rmse_bound * 10**2.5 <= 1.007


@pytest.mark.parametrize(
    ("n", "epsilon", "most"), [(1000, "1", 1.41), (10**4, "0.1", 2.67), (3000, "0.1", 12.7)]
)
def test_more_attempts_lower_the_certificate(n: int, epsilon: str, most: float) -> None:
    """Middle steps and windows are planned where they err less, here by a sixth or more."""
    moments = (Moment(2, 1), Moment(8, 1.8))
    wanted = SearchRequest(
        Weights.equal(n), moments, Fraction(epsilon), Fraction(1, 10**6), None, 2.0**20
    )
    found = best(wanted)
    assert found.rmse_bound * n**0.5 <= most
    assert found.loss.within(Budget(wanted.epsilon, wanted.delta))
    bins = [first for first in coarse_steps(wanted) if first.setting.coarse.windows == 1]
    before = min(first.error(2 ** (k / 2)) for first in bins for k in range(-4, 15))
    assert found.rmse_bound < before**0.5 / 1.2


def test_data_of_one_size_take_the_same_draws() -> None:
    """As many numbers of noise for one bin as for many."""
    asked = []
    for data in ([0.0] * 6, [0.0, 10, 20, 30, 40, 1e300]):
        tape = Tape({4: 0, 6: 0}, [0] * 6)
        COARSE[1].guess(Places.of(np.array([data]), 1), tape)
        asked.append(tape.asked)
    assert asked == [[6], [6]]
