"""Exact conversion of Gaussian noise against mpmath and dp-accounting."""

from __future__ import annotations

import math
import warnings
from importlib import import_module
from typing import Any, cast

import mpmath
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.theory import zcdp

pytestmark = pytest.mark.oracle

DIGITS = cast("Any", mpmath.mp).clone()
DIGITS.dps = 80

EPSILONS = st.floats(-9, 9).map(lambda power: 10.0**power)
DELTAS = st.floats(-299, -0.001).map(lambda power: 10.0**power)


def exact_delta(epsilon: float, rho: float) -> Any:
    """The formula with 80 digits."""
    e, r = DIGITS.mpf(epsilon), DIGITS.mpf(rho)
    root = 2 * DIGITS.sqrt(r)
    near, far = (e - r) / root, (e + r) / root
    return DIGITS.erfc(near) / 2 - DIGITS.exp(e) * DIGITS.erfc(far) / 2


def dp_accounting() -> Any:
    """Google's library, with its accountants."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_module("dp_accounting.pld")
        import_module("dp_accounting.rdp")
        return import_module("dp_accounting")


@given(epsilon=EPSILONS, near=st.floats(-8, 37))
@example(epsilon=1e-9, near=37.0)
@example(epsilon=1e9, near=37.0)
@example(epsilon=0.5, near=0.0)
def test_delta_is_rounded_upwards_and_close(epsilon: float, near: float) -> None:
    """Never below 80 digits, and within 1e-10, down to a delta of 1e-300."""
    # The rho at which the formula's first argument is -near.
    rho = 2 * (epsilon / (near + math.sqrt(near * near + 2 * epsilon))) ** 2
    exact = exact_delta(epsilon, rho)
    found = DIGITS.mpf(zcdp.delta_of(epsilon, rho))
    assert found >= min(exact, 1)
    assert exact < 1e-300 or found <= exact * (1 + 1e-10)


def test_delta_at_the_ends() -> None:
    """No loss costs nothing; a vanishing delta is still no zero; an epsilon of 0 is a distance."""
    assert zcdp.delta_of(1.0, 0.0) == 0
    assert 0 < zcdp.delta_of(1.0, 1e-9) < 1e-300
    assert zcdp.delta_of(1.0, 1e12) == 1
    assert zcdp.delta_of(0.0, 0.5) == pytest.approx(math.erf(1 / math.sqrt(8)), rel=1e-12)


@given(epsilon=EPSILONS, delta=DELTAS)
def test_rho_of_is_the_largest(epsilon: float, delta: float) -> None:
    """What is returned keeps delta, and 1e-9 more does not."""
    rho = zcdp.rho_of(epsilon, delta)
    assert exact_delta(epsilon, rho) <= delta
    assert exact_delta(epsilon, rho * (1 + 1e-9)) > delta


@given(rho=st.floats(-18, 9).map(lambda power: 10.0**power), delta=DELTAS)
def test_epsilon_of_is_the_least(rho: float, delta: float) -> None:
    """What is returned keeps delta, and 1e-9 less does not."""
    epsilon = zcdp.epsilon_of(rho, delta)
    assert exact_delta(epsilon, rho) <= delta
    assert epsilon == 0 or exact_delta(epsilon * (1 - 1e-9), rho) > delta


@given(epsilon=EPSILONS, delta=DELTAS, less=st.floats(0.5, 1))
@example(epsilon=1.0, delta=1e-6, less=1.0)
def test_there_and_back_never_costs_more(epsilon: float, delta: float, less: float) -> None:
    """A plan fitted to an epsilon is charged no more, and hardly less."""
    rho = zcdp.rho_of(epsilon, delta)
    assert zcdp.epsilon_of(rho * less, delta) <= epsilon
    assert zcdp.epsilon_of(rho, delta) >= epsilon - 1e-9 * (epsilon + math.sqrt(rho))


def test_no_epsilon_is_needed_when_the_distance_is_below_delta() -> None:
    """The total variation distance of the outputs is the delta at epsilon 0."""
    assert zcdp.epsilon_of(1e-6, 0.01) == 0
    assert zcdp.epsilon_of(0.0, 1e-300) == 0


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (5.0, 1e-12)])
def test_the_noise_is_that_of_another_calibration(epsilon: float, delta: float) -> None:
    """dp-accounting's analytic calibration agrees to nine digits."""
    scale = 1 / math.sqrt(2 * zcdp.rho_of(epsilon, delta))
    oracle = dp_accounting()
    assert scale == pytest.approx(oracle.get_sigma_gaussian(epsilon, delta), rel=1e-9)


@pytest.mark.parametrize("multipliers", [[2.0] * 4, [1.0, 3.0, 7.0]])
def test_several_numbers_against_other_accountants(multipliers: list[float]) -> None:
    """PLD composition agrees to six digits; the Renyi accountant charges more."""
    oracle = dp_accounting()
    pld, rdp = oracle.pld.PLDAccountant(), oracle.rdp.RdpAccountant()
    for multiplier in multipliers:
        pld.compose(oracle.GaussianDpEvent(multiplier))
        rdp.compose(oracle.GaussianDpEvent(multiplier))
    rho = sum(0.5 / multiplier**2 for multiplier in multipliers)
    found = zcdp.epsilon_of(rho, 1e-6)
    assert found == pytest.approx(float(pld.get_epsilon(1e-6)), rel=1e-5)
    assert found < float(rdp.get_epsilon(1e-6))
    assert found < rho + 2 * math.sqrt(rho * math.log(1e6))


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (zcdp.delta_of, (-1.0, 0.1)),
        (zcdp.delta_of, (math.nan, 0.1)),
        (zcdp.delta_of, (2e9, 0.1)),
        (zcdp.delta_of, (1.0, -0.1)),
        (zcdp.delta_of, (1.0, math.inf)),
        (zcdp.epsilon_of, (math.nan, 1e-6)),
        (zcdp.epsilon_of, (0.1, 0.0)),
        (zcdp.epsilon_of, (0.1, 1.0)),
        (zcdp.rho_of, (0.0, 1e-6)),
        (zcdp.rho_of, (1.0, 1e-301)),
        (zcdp.rho_of, (1.0, math.nan)),
    ],
)
def test_arguments_outside_their_ranges_are_refused(call: Any, arguments: Any) -> None:
    """Nothing is computed where nothing is proven."""
    with pytest.raises(InputError, match="allowed: a number"):
        call(*arguments)
