"""Strategies in whole numbers: the loss of every unit, outcome and move, exactly."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from shoal.errors import InputError
from shoal.theory.questions import integer_strategy as whole
from shoal.theory.questions.laplace_strategy import laplace_strategy
from shoal.theory.questions.weights import arm_means, effect, scaled, stack

pytestmark = pytest.mark.property

ARM, CLUSTER = np.array([0, 1, 0, 1, 1, 0]), np.array([0, 0, 0, 1, 1, 1])
ROWS = stack([effect(ARM, CLUSTER), arm_means(ARM)])


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(7, 10), Fraction(5)])
@pytest.mark.parametrize("levels", [2, 3, 5])
def test_no_unit_loses_more_than_the_exact_loss(epsilon: Fraction, levels: int) -> None:
    """Every unit, outcome and move: at most, and attained."""
    vectors = scaled(ROWS, 3.0)
    strategy = laplace_strategy(vectors)
    released = strategy.released @ vectors / 3.0
    found = whole.integer_strategy(released, 3.0, epsilon)
    outcomes = np.linspace(-whole.TICKS // 2, whole.TICKS // 2, levels).astype(np.int64)
    most = Fraction(0)
    for others in np.random.default_rng(1).choice(outcomes, (3, 6)):
        for unit, (old, new) in itertools.product(range(6), itertools.permutations(outcomes, 2)):
            pair = []
            for each in (old, new):
                ticks = others.copy()
                ticks[unit] = each
                pair.append(whole.answers(found.rows, found.steps, ticks))
            moved = sum(abs(a - b) for a, b in zip(*pair, strict=True))
            most = max(most, Fraction(moved, 2**found.bits))
    assert most <= found.loss <= epsilon
    assert most >= epsilon * (1 - Fraction(1, 10**6))


def test_answers_are_exact() -> None:
    """Against Python's whole numbers, also at the ends of all ranges."""
    rng = np.random.default_rng(2)
    rows = rng.integers(-(2**40), 2**40 + 1, (3, 500))
    rows[:, :4] = [2**40, -(2**40), 1, -1]
    ticks = rng.integers(-(2**19), 2**19 + 1, 500)
    for vector in (ticks, np.full(500, 2**19), np.sign(rows[0]) * 2**19):
        steps = np.array([1, 3, 10**12])
        wanted = [
            sum(a * t for a, t in zip(row, vector.tolist(), strict=True)) // step
            for row, step in zip(rows.tolist(), steps.tolist(), strict=True)
        ]
        assert whole.answers(rows, steps, vector) == wanted


def test_outcomes_outside_of_the_range_count_as_its_ends() -> None:
    """No unit moves further than its range, and no message says so."""
    rows, steps = np.array([[3, 5]]), np.array([1])
    far, end = np.array([2**62, -(2**62)]), np.array([2**19, -(2**19)])
    assert whole.answers(rows, steps, far) == whole.answers(rows, steps, end)


def test_rounding_of_weights_is_nothing() -> None:
    """Weights differ by 2^-40 of a row's largest, and steps say what they are worth."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(4, 300)) * [[1.0], [1e-3], [1e3], [1.0]]
    found = whole.integer_strategy(rows, 2.0, Fraction(1))
    tick = 2.0 / whole.TICKS
    most = np.abs(rows).max(axis=1, keepdims=True)
    unit = (found.values / found.steps / tick)[:, None]
    assert float((np.abs(found.rows * unit - rows) / most).max()) <= 2.0**-40
    ticks = rng.integers(-(2**19), 2**19, 300)
    numbers = np.array(whole.answers(found.rows, found.steps, ticks)) * found.values
    exact = rows @ (ticks * tick)
    assert bool((np.abs(numbers - exact) <= found.values * 1.001).all())
    # The noise of every number is that of the real strategy, to a millionth.
    scale = found.values * 2.0**found.bits
    np.testing.assert_allclose(scale, 2.0 * np.abs(rows).sum(axis=0).max(), rtol=1e-6)


def test_the_loss_by_hand() -> None:
    """Ceilings of every number add up; the unit that loses most counts."""
    rows, steps = np.array([[3, -5], [1, 0]]), np.array([2**20 * 2, 2**20 * 4])
    assert whole.unit_steps(rows, steps).tolist() == [2 + 1, 3]
    assert whole.exact_loss(rows, steps, 3) == Fraction(3, 8)


@pytest.mark.parametrize(
    "call",
    [
        lambda: whole.integer_strategy(ROWS, 1.0, Fraction(0)),
        lambda: whole.integer_strategy(ROWS, 1.0, Fraction(1, 10**12)),
        lambda: whole.integer_strategy(np.array([[1.0, 1.0], [0, 1e-12]]), 1.0, Fraction(1)),
        lambda: whole.unit_steps(np.array([[2**41]]), np.array([1])),
        lambda: whole.unit_steps(np.array([[1]]), np.array([0])),
        lambda: whole.unit_steps(np.full((2, 1), 2**40), np.array([1, 1])),
        lambda: whole.answers(np.ones(3, np.int64), np.array([1]), np.array([1])),
    ],
)
def test_what_does_not_fit_is_refused(call: object) -> None:
    """No wrapped sums, no steps of nothing."""
    assert callable(call)
    with pytest.raises(InputError):
        call()
