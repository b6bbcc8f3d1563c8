"""Second moments in whole numbers beside linear ones: every unit, outcome and move."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from shoal.errors import InputError
from shoal.theory.questions import integer_moments as moments
from shoal.theory.questions import integer_strategy as whole
from shoal.theory.questions.laplace_strategy import laplace_strategy
from shoal.theory.questions.weights import arm_means, effect, scaled, stack

pytestmark = pytest.mark.property

ARM, CLUSTER = np.array([0, 1, 0, 1, 1, 0]), np.array([0, 0, 0, 1, 1, 1])
ROWS = stack([effect(ARM, CLUSTER), arm_means(ARM)])
# Moves of nine tenths of the range lose most where second moments have too little noise.
OUTCOMES = np.rint((np.array([0, 0.1, 0.5, 0.9, 1]) - 0.5) * whole.TICKS).astype(np.int64)


def most_lost(found: whole.IntegerStrategy, step: int) -> Fraction:
    """The most that any unit loses by any move, whatever the others' outcomes."""
    most = Fraction(0)
    for others in np.random.default_rng(1).choice(OUTCOMES, (4, 6)):
        for unit, (old, new) in itertools.product(range(6), itertools.permutations(OUTCOMES, 2)):
            pair = []
            for each in (old, new):
                ticks = others.copy()
                ticks[unit] = each
                linear = whole.answers(found.rows, found.steps, ticks)
                pair.append(linear + moments.second_moments(ARM, ticks, step))
            moved = sum(abs(a - b) for a, b in zip(*pair, strict=True))
            most = max(most, Fraction(moved, 2**found.bits))
    return most


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5)])
def test_all_numbers_together_cost_no_more_than_stated(epsilon: Fraction) -> None:
    """At most the stated loss, attained to a millionth; with less noise it is more."""
    vectors = scaled(ROWS, 3.0)
    strategy = laplace_strategy(vectors)
    found = whole.integer_strategy(strategy.released @ vectors / 3.0, 3.0, epsilon, bits=32)
    step = moments.moment_step(found.rows, found.steps)
    stated = moments.loss_with_moments(found.rows, found.steps, step, found.bits)
    most = most_lost(found, step)
    assert most <= stated
    assert most >= epsilon * (1 - Fraction(1, 10**6))
    assert most_lost(found, step * 4 // 5) > stated * Fraction(101, 100)
    with pytest.raises(InputError, match="not free"):
        moments.loss_with_moments(found.rows, found.steps, step - 1, found.bits)


def test_moments_are_exact_and_outcomes_outside_are_the_ends() -> None:
    """Sums of squares of a million units, and no message for what lies outside."""
    ticks = np.full(2**20, 2**62)
    found = moments.second_moments(np.zeros(2**20, dtype=np.int64), ticks, 3)
    assert found == [2**58 // 3]
    with pytest.raises(InputError, match="codes from 0"):
        moments.second_moments(np.array([-1, 0]), np.array([0, 0]), 1)
