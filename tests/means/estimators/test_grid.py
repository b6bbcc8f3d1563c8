"""Ticks by powers of two, weighed sums with noise, and what one user moves."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.means.estimators.clipped import noise_for
from shoal.means.estimators.coarse import Coarse, Guess, Places
from shoal.means.estimators.grid import Grid
from shoal.means.estimators.middle import ticks
from shoal.means.estimators.noisy_sum import NoisySum, laplace_variance
from shoal.means.estimators.sampled import Chance
from shoal.means.estimators.symmetric import Symmetric
from shoal.means.estimators.weights import Weights
from shoal.privacy.noise import OperatingSystem, Simulated
from shoal.theory.clipping import Moment

pytestmark = pytest.mark.property

NUMBERS = st.floats(-1e6, 1e6) | st.sampled_from([-5e-324, 5e-324, 0.0, -0.0, 1e300, -1e300])


@given(st.floats(-1000, 1000), st.floats(1e-3, 1000), NUMBERS)
def test_random_rounding_has_the_exact_expectation(low: float, width: float, x: float) -> None:
    """The chance of each neighbouring tick, word for word, gives the clipped value."""
    grid = Grid.around(low, low + width)
    edges = grid.edges
    inside = Fraction(min(max(x, edges[0]), edges[1])) / Fraction(2) ** grid.exponent
    extremes = grid.whole(np.array([x, x]), np.array([0, 2**64 - 1], np.uint64)) + grid.middle
    one, other = map(int, extremes)
    assert {one, other} <= {math.floor(inside), math.ceil(inside)}
    assert grid.low <= min(one, other) <= max(one, other) <= grid.high
    # The word from which on the value stays: by bisection, exactly.
    start, end = 0, 2**64
    while start < end:
        middle = (start + end) // 2
        moved = grid.whole(np.array([x]), np.array([middle], np.uint64))[0] + grid.middle
        if int(moved) == other:
            end = middle
        else:
            start = middle + 1
    chance = Fraction(start, 2**64)
    assert abs(chance * one + (1 - chance) * other - inside) <= Fraction(1, 2**64)


@given(st.integers(1, 2**23), st.integers(1, 2**30), st.fractions(Fraction(1, 1000), Fraction(50)))
def test_noise_keeps_its_loss_and_hardly_wastes(
    sensitivity: int, users: int, epsilon: Fraction
) -> None:
    """Never above epsilon; at most a 50th below at the largest sums."""
    found = NoisySum.fit(sensitivity, users * sensitivity, epsilon)
    assert found.loss <= epsilon
    assert found.loss >= epsilon * Fraction(98, 100)
    assert users * sensitivity * found.per_unit <= 2**60


def test_noise_has_its_variance() -> None:
    """Measured over draws, at 1e-9; a variance 5% off is rejected."""
    found = NoisySum.fit(1000, 10**6, Fraction(1))
    drawn = np.array([float(x) for x in found.add([7] * 100_000, OperatingSystem(), 1)]) - 7
    slack = 6.2 * math.sqrt(20 / len(drawn))
    assert abs(float((drawn**2).mean()) / found.variance - 1) <= slack
    assert abs(float((drawn**2).mean()) / (found.variance * 1.25) - 1) > slack
    assert laplace_variance(1.0) == pytest.approx(
        sum(2 * z * z * math.exp(-z) * math.tanh(0.5) for z in range(1, 99))
    )


@pytest.mark.parametrize("weight", [[1, 1, 1], [1, 2, 2], [1, 1, 5]])
def test_no_neighbour_moves_a_clipped_sum_by_more_than_accounted(weight: list[int]) -> None:
    """All small data, all rounding words: the most is the reach, and it is attained."""
    weights, grid = Weights(np.array(weight)), Grid(0, -2, 2)
    noise = noise_for(weights, grid.ticks, Fraction(1))
    words = np.array([0, 2**63, 2**64 - 1], np.uint64)
    values = np.array([-1e300, -0.5, 0.25, 1e300])
    each = {int(grid.whole(np.array([v]), np.array([w]))[0]) for v in values for w in words}
    sums = itertools.product(each, repeat=3)
    worst = 0
    for data in sums:
        for user, other in itertools.product(range(3), each):
            moved = abs(other - data[user]) * weight[user]
            worst = max(worst, moved * noise.per_unit)
        assert abs(np.dot(data, weight)) <= noise.most
    assert worst == noise.sensitivity * noise.per_unit
    assert Fraction(worst, 2**noise.bits) == noise.loss


def small_symmetric(half: int = 4, shift: int = 1) -> Symmetric:
    """A symmetric mean with a grid of few ticks."""
    coarse = Coarse.fit(3, 0, Fraction(5), Fraction(1, 10))
    weights = Weights(np.array([1, 1, 2]))
    noise = NoisySum.fit(2 * half * 2, half * 4, Fraction(1))
    return Symmetric(
        weights,
        (Moment(2, 1),),
        coarse=coarse,
        reuse=True,
        shift=shift,
        half=half,
        noise=noise,
        chance=Chance(2**63),
        coarse_delta=Fraction(1, 10),
        farthest=1.0,
    )


@given(
    st.lists(st.floats(-9, 9) | st.sampled_from([1e300, -1e300]), min_size=3, max_size=3),
    st.integers(0, 2**60 - 1),
    st.integers(-5, 5),
    st.integers(1, 59),
)
def test_ticks_about_a_guess_are_odd_and_within_reach(
    data: list[float], offset: int, bins: int, shift: int
) -> None:
    """Mirrored values about a mirrored guess have minus the ticks."""
    part = small_symmetric(shift=shift)
    values = np.array([data])
    failed = np.array([False])
    here = Guess(np.array([offset]), np.array([bins]), failed)
    one = ticks(Places.of(values, 0), here, shift, part.half)
    mirror = Guess(np.array([2**60 - 1 - offset]), np.array([-bins]), failed)
    other = ticks(Places.of(-values, 0), mirror, shift, part.half)
    assert one.tolist() == (-other).tolist()
    assert int(np.abs(one).max()) <= part.half
    guess = here.exactly(0, 0)
    for x, tick in zip(data, one[0].tolist(), strict=True):
        truth = (Fraction(x) - guess) * 2**shift
        clipped = min(max(truth, -part.half), part.half)
        assert abs(clipped - tick) <= Fraction(1, 2) + Fraction(1, 2**40)
    # The reach: twice the half, times the heaviest weight.
    assert part.noise.sensitivity == 2 * part.half * 2


@given(st.fractions(Fraction(1, 2**63), 1))
def test_chances_are_exact_and_not_above_delta(delta: Fraction) -> None:
    """The largest multiple of 2^-64 up to delta, kept by exactly so many words."""
    found = Chance.at_most(delta)
    assert 0 <= delta - found.exact < Fraction(1, 2**64)
    edge = np.array([found.words - 1], dtype=np.uint64)
    assert found.happens(edge).all()
    if found.words < 2**64:
        assert not found.happens(edge + np.uint64(1)).any()


def test_weights_out_of_order_or_range_are_refused() -> None:
    """Ascending, from 1, not too heavy; other shapes and types are refused too."""
    for bad in ([2, 1], [0, 1], [2**30, 1], []):
        with pytest.raises(InputError):
            Weights(np.array(bad, dtype=np.int64))
    with pytest.raises(InputError):
        Weights(np.array([1.0]))
    with pytest.raises(InputError):
        Grid.around(1e20, 1e20 + 1e5)


def test_simulated_runs_repeat() -> None:
    """The same seed gives the same numbers."""
    part = small_symmetric()
    data = np.array([1.0, 1.1, 0.9])
    assert part.release(data, Simulated(1)) == part.release(data, Simulated(1))
