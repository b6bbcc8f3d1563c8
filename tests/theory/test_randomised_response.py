"""Randomised responses: exact losses."""

import itertools
from fractions import Fraction
from typing import Any, cast

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.theory.randomised_response import (
    ratio_epsilon,
    ratio_for,
    replacement_for,
    response_epsilon,
)

DIGITS = cast("Any", mpmath.mp).clone()
DIGITS.dps = 80
BITS = 32
POINTS = 12
# Three units in the last place of a double, twice: the logarithm and its argument.
CLOSE = 1 + DIGITS.mpf(2) ** -49
probabilities = st.fractions(0, 1, max_denominator=2**40)
LAMBDAS = [Fraction(1, 5), Fraction(4, 5)]
PARTS = [Fraction(1, 9), Fraction(1)]
DELTAS = [Fraction(0), Fraction(1, 10**6), Fraction(1, 100), Fraction(1, 4)]


def real(value: Fraction) -> Any:
    """A fraction with the digits of the context."""
    return DIGITS.mpf(value.numerator) / value.denominator


def exact_loss(keep: Fraction, least: Fraction, delta: Fraction) -> Any:
    """ln(1 + (k - delta)/(lambda gamma)), at least 0, with 80 digits."""
    return DIGITS.log1p(max(real(keep - delta), DIGITS.mpf(0)) / real(least))


def priors(levels: int, floor: Fraction) -> NDArray[np.float64]:
    """All priors on a grid whose least share is the floor, a row each."""
    parts = [p for p in itertools.product(range(POINTS + 1), repeat=levels) if sum(p) == POINTS]
    return np.asarray(float(floor) + (1 - levels * float(floor)) * np.array(parts) / POINTS)


def hockey_stick(lam: Fraction, floor: Fraction, levels: int, epsilon: Fraction) -> float:
    """Largest P(set) - e^epsilon P'(set) over outcomes, priors on the grid and sets of responses.

    Outcomes are interchangeable, as all orders of a prior are on the grid.
    """
    drawn = float(lam) * priors(levels, floor)
    one, other = drawn.copy(), drawn.copy()
    one[:, 0] += float(1 - lam)
    other[:, 1] += float(1 - lam)
    apart = one - float(DIGITS.exp(real(epsilon))) * other
    return float(np.maximum(apart, 0).sum(axis=1).max())


@given(probabilities, probabilities, probabilities)
def test_the_loss_is_never_understated(keep: Fraction, least: Fraction, delta: Fraction) -> None:
    """At most a hair above the logarithm with 80 digits, never below it."""
    assume(least > 0 and delta < 1)
    found, wanted = real(response_epsilon(keep, least, delta)), exact_loss(keep, least, delta)
    assert wanted <= found <= wanted * CLOSE


@pytest.mark.parametrize("exponent", [50, 400, 3000])
def test_tiny_floors_are_not_understated(exponent: int) -> None:
    """Ratios beyond floating-point numbers are rounded upwards too."""
    least = Fraction(1, 10**exponent)
    found = real(response_epsilon(Fraction(1, 2), least))
    wanted = exact_loss(Fraction(1, 2), least, Fraction(0))
    assert wanted <= found <= wanted * DIGITS.mpf("1.01")


@pytest.mark.parametrize("levels", [2, 3, 4])
@pytest.mark.parametrize("delta", DELTAS)
def test_no_prior_does_worse_and_one_attains_it(levels: int, delta: Fraction) -> None:
    """All priors on a grid: the hockey-stick divergence at the stated loss is delta, or less."""
    for lam, part in itertools.product(LAMBDAS, PARTS):
        floor = part / levels
        stated = response_epsilon(1 - lam, lam * floor, delta)
        found = hockey_stick(lam, floor, levels, stated)
        assert found <= float(delta) + 1e-12
        if stated > 0:
            assert found >= float(delta) - 1e-12


@given(
    st.fractions(Fraction(1, 1000), 8, max_denominator=10**6),
    st.sampled_from(DELTAS),
    st.fractions(Fraction(1, 10**4), Fraction(1, 2), max_denominator=10**6),
)
def test_the_least_replacement(epsilon: Fraction, delta: Fraction, floor: Fraction) -> None:
    """It costs at most epsilon; one part less would cost more, up to the rounding of losses."""
    number = replacement_for(epsilon, delta, floor, BITS)
    lam = Fraction(number, 2**BITS)
    assert response_epsilon(1 - lam, lam * floor, delta) <= epsilon
    less = lam - Fraction(1, 2**BITS)
    assume(less > 0)
    # One part of 2^-32 moves the loss by far more than the rounding of a double.
    assert exact_loss(1 - less, less * floor, delta) > real(epsilon) / CLOSE


def test_unusable_numbers_are_refused() -> None:
    """No probabilities, no loss that is infinite."""
    for numbers in ((2, 1, 0), (1, -1, 0), (1, 1, 1), (1, 0, 0)):
        with pytest.raises(InputError):
            response_epsilon(*map(Fraction, numbers))
    for epsilon, delta, floor in ((-1, 0, 1), (1, 1, 1), (1, 0, 0)):
        with pytest.raises(InputError):
            replacement_for(Fraction(epsilon), Fraction(delta), Fraction(floor), BITS)


@given(ratio=st.fractions(1, 10**9, max_denominator=2**62))
def test_the_loss_of_a_ratio_is_never_understated(ratio: Fraction) -> None:
    """Ln(ratio) to 80 digits, from below and within a part of 2^-49."""
    found, true = real(ratio_epsilon(ratio)), DIGITS.log(real(ratio))
    assert true <= found <= true * CLOSE


@given(epsilon=st.fractions(Fraction(1, 10**9), 600))
def test_a_ratio_costs_what_was_asked_for(epsilon: Fraction) -> None:
    """Never more than epsilon, and hardly less."""
    ratio = ratio_for(epsilon)
    assert ratio_epsilon(ratio) <= epsilon
    assert DIGITS.log(real(ratio)) >= real(epsilon) * (1 - DIGITS.mpf(2) ** -46)


def test_ratios_that_are_none_are_refused() -> None:
    """A ratio below 1, and no loss at all."""
    with pytest.raises(InputError):
        ratio_epsilon(Fraction(1, 2))
    with pytest.raises(InputError):
        ratio_for(Fraction(0))
