"""Ticks, noisy sums and squares: exact expectations, and what one user moves, by enumeration."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.means.guess import FINE, Guess, Places, SumAboutGuess, exactly, moved, ticks
from shoal.means.sums import Grid, NoisySquares, SumAboutCentre
from shoal.means.users import UserWeights
from shoal.privacy.noisy import NoisySum

pytestmark = pytest.mark.property

NUMBERS = st.floats(-1e6, 1e6) | st.sampled_from([-5e-324, 5e-324, 0.0, -0.0, 1e300, -1e300])
OFFSETS = st.integers(0, 2**FINE - 1)
THREE = st.lists(st.floats(-9, 9) | st.sampled_from([1e300, -1e300]), min_size=3, max_size=3)
REACH = 64


@given(st.floats(-1000, 1000), st.floats(1e-3, 1000), NUMBERS)
def test_random_rounding_has_the_exact_expectation(low: float, width: float, x: float) -> None:
    """The chance of each neighbouring tick, word for word, gives the clipped value."""
    grid = Grid.around(low, low + width)

    def tick(word: int) -> int:
        return int(grid.whole(np.array([x]), np.array([word], np.uint64))[0]) + grid.middle

    inside = Fraction(min(max(x, grid.edges[0]), grid.edges[1])) / grid.tick
    one, other = tick(0), tick(2**64 - 1)
    assert {one, other} <= {math.floor(inside), math.ceil(inside)}
    # The word from which on the value stays: by bisection, exactly.
    start, end = 0, 2**64
    while start < end:
        middle = (start + end) // 2
        start, end = (start, middle) if tick(middle) == other else (middle + 1, end)
    chance = Fraction(start, 2**64)
    assert abs(chance * one + (1 - chance) * other - inside) <= Fraction(1, 2**64)


@given(st.integers(1, 2**23), st.integers(1, 2**30), st.fractions(Fraction(1, 1000), Fraction(50)))
def test_noise_keeps_its_loss_and_hardly_wastes(
    sensitivity: int, users: int, epsilon: Fraction
) -> None:
    """Never above epsilon; at most a 50th below at the largest sums, which fit the sampler."""
    found = NoisySum.fit(sensitivity, users * sensitivity, epsilon)
    assert epsilon * Fraction(98, 100) <= found.loss(sensitivity) <= epsilon
    found.check(users * sensitivity)
    with pytest.raises(InputError):
        found.check(2**60 // found.per_unit + 1)


def test_noise_has_its_variance() -> None:
    """Against the sum of the discrete law, for a scale of one step and of 2^40 of them."""
    truth = sum(2 * z * z * math.exp(-z) * math.tanh(0.5) for z in range(1, 99))
    assert NoisySum(per_unit=3, bits=0).variance == pytest.approx(truth / 9)
    assert NoisySum(per_unit=2**40, bits=40).variance == pytest.approx(2)


@pytest.mark.parametrize("weight", [[1, 1, 1], [1, 1, 5]])
def test_no_neighbour_moves_a_clipped_sum_by_more_than_accounted(weight: list[int]) -> None:
    """All small data, all rounding words: the most is what the loss is for, and it is attained."""
    grid, words = Grid(exponent=0, low=-2, high=2), np.array([0, 2**63, 2**64 - 1], np.uint64)
    values = np.array([-1e300, -0.5, 0.25, 1e300])
    each = {int(grid.whole(np.array([v]), np.array([w]))[0]) for v in values for w in words}
    worst = max(
        abs(other - data[user]) * weight[user]
        for data in itertools.product(each, repeat=3)
        for user, other in itertools.product(range(3), each)
    )
    assert worst == UserWeights(np.array(weight)).largest * grid.ticks


def at(offset: int, bins: int) -> Guess:
    """One guess."""
    return Guess(np.array([bins]), np.array([offset]), np.array([False]))


@given(THREE, OFFSETS, st.integers(-5, 5), st.integers(1, 59))
def test_ticks_about_a_guess_are_odd_and_clipped(
    data: list[float], offset: int, bins: int, shift: int
) -> None:
    """Mirrored values about a mirrored guess have minus the ticks, and these are the nearest."""
    one = ticks(Places.of(np.array([data]), 0), at(offset, bins), shift, 4)
    mirror = at(2**60 - 1 - offset, -bins)
    assert one.tolist() == (-ticks(Places.of(-np.array([data]), 0), mirror, shift, 4)).tolist()
    for x, tick in zip(data, one[0].tolist(), strict=True):
        truth = (Fraction(x) - exactly((bins, offset), 0)) * 2**shift
        assert abs(min(max(truth, Fraction(-4)), 4) - tick) <= Fraction(1, 2) + Fraction(1, 2**40)


class Given:
    """Stands for randomness: one number of noise."""

    def __init__(self, noise: int) -> None:
        self.noise = noise

    def add_laplace(self, steps: list[int], _bits: int, _draw: int = 0) -> list[int]:
        """Add it."""
        return [x + self.noise for x in steps]


@given(THREE, OFFSETS, st.integers(-5, 5), st.integers(1, 30), st.integers(-(2**50), 2**50))
def test_middle_guesses_move_by_whole_ticks_and_are_odd(
    data: list[float], offset: int, bins: int, shift: int, noise: int
) -> None:
    """Values, first guess and noise mirrored: exactly minus the next guess; ties round alike."""
    half = 5 << (shift // 2)
    step = SumAboutGuess(
        shift=shift, half=half, noise=NoisySum.fit(2 * half, 3 * half, Fraction(1))
    )

    def next_guess(sign: int, first: Guess) -> Fraction:
        source: Any = Given(sign * noise)
        found = step.better(Places.of(sign * np.array([data]), 0), first, source)
        return exactly((int(found.bin[0]), int(found.offset[0])), 0)

    one = next_guess(1, at(offset, bins))
    assert one == -next_guess(-1, at(2**FINE - 1 - offset, -bins))
    found = moved(at(offset, bins), np.array([noise]), shift)
    assert exactly((int(found.bin[0]), int(found.offset[0])), 0) == exactly(
        (bins, offset), 0
    ) + Fraction(noise, 2**shift)


def test_no_neighbour_moves_the_middle_sum_by_more_than_accounted() -> None:
    """All small data: the most is what the loss is for, and it is attained."""
    step = SumAboutGuess(shift=1, half=3, noise=NoisySum.fit(6, 6, Fraction(1, 3)))
    values = [-1e300, -1.2, 0.0, 0.6, 1.3, 1e300]
    sums = [
        int(ticks(Places.of(np.array([[x]]), 0), at(2**59 + 12345, 0), 1, 3).sum()) for x in values
    ]
    most = max(sums) - min(sums)
    assert step.loss == Fraction(most * step.noise.per_unit, 2**step.noise.bits) <= Fraction(1, 3)


def few_users(parts: int) -> SumAboutCentre:
    """One twice as heavy as the others, and noise in which steps are hardly finer than ticks."""
    noise = NoisySum(per_unit=64, bits=11)
    return SumAboutCentre(noise, UserWeights(np.array([1, 1, 2])), REACH, parts, Fraction(1))


def losses(part: SumAboutCentre, squares: NoisySquares) -> tuple[Fraction, Fraction]:
    """The most that a user loses by sum and squares, and the most where no value goes through."""
    values = range(-REACH, REACH + 1, part.parts)
    weights, most, inside = part.weights.number.tolist(), Fraction(0), Fraction(0)
    for mine, weight in enumerate(weights):
        other = weights[mine - 1] ** 2
        for fixed in (y * y * other for y in values):
            steps = [-(-(weight**2 * y * y + fixed) // squares.step) for y in values]
            for by in range(1, len(values)):
                found = max(abs(b - a) for a, b in zip(steps, steps[by:], strict=False))
                summed = Fraction(by * weight * part.noise.per_unit, 2**part.noise.bits)
                loss = summed + Fraction(found, 2**squares.bits)
                most = max(most, loss)
                inside = max(inside, loss) if by < len(values) - 1 else inside
    return most, inside


@pytest.mark.parametrize("parts", [1, 2])
def test_squares_beside_the_sum_cost_nothing(parts: int) -> None:
    """Every pair of neighbours loses what the sum loses alone, and hardly less inside the range.

    A fifth less noise costs something: the enumeration sees it, and so does the check.
    """
    part = few_users(parts)
    free, alone = part.fit(), part.noise.loss(2 * (2 * REACH // parts))
    most, inside = losses(part, free)
    assert most == alone
    assert Fraction(98, 100) * most <= inside <= most
    less = NoisySquares(step=free.step * 4 // 5, bits=free.bits)
    assert losses(part, less)[0] > alone
    with pytest.raises(InputError, match="squares do not fit"):
        part.check(less)


def test_sums_of_squares_are_exact_and_tell_the_variance() -> None:
    """The heaviest weights, against whole numbers; without noise the unbiased sample variance."""
    rng = np.random.default_rng(3)
    for number in ([1, 5, 2**28], [2**14 + 1] * 7, [1] * 50):
        part = SumAboutCentre(NoisySum(per_unit=1, bits=0), UserWeights(np.array(number)), 1, 1, Q)
        whole = rng.integers(-(2**22) - 2, 2**22 + 2, (3, len(number)))
        truth = [
            -(-sum(w * w * y * y for w, y in zip(number, row, strict=True)) // 1000)
            for row in whole.tolist()
        ]
        squares = NoisySquares(step=1000, bits=20)
        none: Any = Given(0)
        steps, beside = part.release(whole, squares, none, 0)
        assert steps == (whole @ number).tolist()
        assert beside == truth
    y, n = rng.integers(-REACH, REACH, 9).tolist(), 9
    part = SumAboutCentre(
        NoisySum(per_unit=2**10, bits=2), UserWeights(np.ones(n, dtype=int)), REACH, 1, Q
    )
    squares = NoisySquares(step=1, bits=0)
    # With hardly any noise an interval is that of Student's t.
    known = part.variance_of(squares, sum(x * x for x in y), sum(y) * 2**10)
    half = part.half(squares, 0.95, *known)
    assert half == pytest.approx(2.306 * np.std(y, ddof=1) / 3 / 2, rel=2e-3)


Q = Fraction(1, 2)
