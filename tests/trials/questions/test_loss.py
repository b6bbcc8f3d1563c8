"""The loss of releases of questions: every unit and move of tiny trials, as they are drawn."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from shoal.privacy.noise import Simulated
from shoal.trials import Questions, QuestionsPlan, Space
from shoal.trials.questions.numbers import BITS, Numbers

pytestmark = pytest.mark.property

ARM, HOME = np.array([0, 1, 0, 1, 1, 0]), np.array([0, 0, 0, 1, 1, 1])
AGE = np.array([1.0, 2, 5, 3, 3, 1])
# Moves of nine tenths of the range lose most where second moments have too little noise.
LEVELS = (-1.0, -0.8, 0.0, 0.8, 1.0)


class _Steps(Simulated):
    """Noise that is none: what is drawn are the steps themselves."""

    def add_laplace(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """The steps, where noise would have the stated scale and nothing would be clamped."""
        assert lattice_bits == BITS
        assert draw in {0, 1}
        assert all(0 <= each < 2**61 for each in steps)
        return list(steps)


def most_lost(plan: QuestionsPlan, numbers: Numbers) -> Fraction:
    """The most that one outcome's change moves all numbers by, in parts of the noise's scale.

    The loss of a vector of discrete Laplace noise is its largest log ratio: the sum of what its
    numbers move by over the scale, which outputs beyond both sides attain.
    """
    columns, space, source = plan.columns, plan.space, _Steps(0)
    most = 0
    every = np.array(list(itertools.product(LEVELS, repeat=columns.n)))
    for others in np.random.default_rng(3).choice(every, 40):
        for unit in range(columns.n):
            drawn = []
            for level in LEVELS:
                outcomes = others.copy()
                outcomes[unit] = level
                found = numbers.draw(outcomes, plan.reading.groups, space, source)
                drawn.append(np.array([*found.numbers, *found.moments], dtype=object))
            moved = (abs(one - two).sum() for one, two in itertools.combinations(drawn, 2))
            most = max(most, *moved)
    return Fraction(int(most), 2**BITS)


PLANS = {
    "one effect": Questions(ARM, HOME).effect(),
    "means": Questions(ARM, HOME).means(),
    "a regression": Questions(ARM, HOME, {"age": AGE}).regression(["arm", "age"]),
    "several": Questions(ARM, HOME, {"age": AGE}).effect().regression(["age"]),
}


@pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
@pytest.mark.parametrize("name", PLANS)
def test_no_outcome_loses_more_than_stated(name: str, epsilon: Fraction) -> None:
    """Linear numbers and second moments together, and the loss is attained."""
    plan = PLANS[name].plan(Space(LEVELS), epsilon)
    most = most_lost(plan, plan.numbers)
    assert most <= plan.loss.epsilon <= epsilon
    assert most >= epsilon * (1 - Fraction(1, 10**6))


@pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")
@pytest.mark.parametrize("name", PLANS)
def test_a_fifth_less_noise_on_second_moments_loses_more(name: str) -> None:
    """Their noise is not more than it must be; a release with less is found out."""
    plan = PLANS[name].plan(Space(LEVELS), 1)
    less = replace(plan.numbers, moment_step=plan.numbers.moment_step * 4 // 5)
    assert most_lost(plan, less) > plan.loss.epsilon * Fraction(1005, 1000)


def test_outcomes_beyond_the_range_count_as_its_ends() -> None:
    """Nothing is said of them, and nobody moves further than the range."""
    plan = PLANS["means"].plan(Space(LEVELS), 1)
    source = _Steps(0)
    far = plan.numbers.draw(
        np.array([9.0, -9, 9, 9, -9, 0]), plan.reading.groups, plan.space, source
    )
    end = plan.numbers.draw(
        np.array([1.0, -1, 1, 1, -1, 0]), plan.reading.groups, plan.space, source
    )
    assert far == end


@pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")
def test_every_number_has_noise_of_its_own() -> None:
    """Discrete Laplace noise of scale 2^32 steps on each number and second moment."""
    plan = PLANS["several"].plan(Space(LEVELS), 1)
    outcomes = np.array([0.5, -1, 1, 0, 0.2, -0.3])
    group, space = plan.reading.groups, plan.space
    exact = plan.numbers.draw(outcomes, group, space, _Steps(0))
    drawn = [plan.numbers.draw(outcomes, group, space, Simulated(each)) for each in range(2000)]
    numbers = np.array([[*each.numbers, *each.moments] for each in drawn], dtype=float)
    off = (numbers - [*exact.numbers, *exact.moments]) / 2**BITS
    # The mean size of Laplace noise is its scale: six deviations of 1/sqrt(2000) for each of six.
    assert off.shape == (2000, len(plan.numbers.steps) + 2)
    assert np.abs(np.abs(off).mean(axis=0) - 1).max() < 6 / np.sqrt(2000)
    assert np.abs(np.corrcoef(off.T) - np.eye(off.shape[1])).max() < 6.5 / np.sqrt(2000)
