"""Gaussian noise: its exact delta by integration, other accountants, and sums over the lattice."""

import itertools
import math
import warnings
from fractions import Fraction
from functools import cache
from importlib import import_module
from typing import Any, cast

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.theory import gaussian
from tests.support.loop import loop_over

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
    found = DIGITS.mpf(gaussian.delta_of(epsilon, rho))
    assert found >= min(exact, 1)
    assert exact < 1e-300 or found <= exact * (1 + 1e-10)


def test_delta_at_the_ends() -> None:
    """No loss costs nothing; a vanishing delta is still no zero; an epsilon of 0 is a distance."""
    assert gaussian.delta_of(1.0, 0.0) == 0
    assert 0 < gaussian.delta_of(1.0, 1e-9) < 1e-300
    assert gaussian.delta_of(1.0, 1e12) == 1
    assert gaussian.delta_of(0.0, 0.5) == pytest.approx(math.erf(1 / math.sqrt(8)), rel=1e-12)


@given(epsilon=EPSILONS, delta=DELTAS)
def test_rho_of_is_the_largest(epsilon: float, delta: float) -> None:
    """What is returned keeps delta, and 1e-9 more does not."""
    rho = gaussian.rho_of(epsilon, delta)
    assert exact_delta(epsilon, rho) <= delta
    assert exact_delta(epsilon, rho * (1 + 1e-9)) > delta


@given(rho=st.floats(-18, 9).map(lambda power: 10.0**power), delta=DELTAS)
def test_epsilon_of_is_the_least(rho: float, delta: float) -> None:
    """What is returned keeps delta, and 1e-9 less does not."""
    epsilon = gaussian.epsilon_of(rho, delta)
    assert exact_delta(epsilon, rho) <= delta
    assert epsilon == 0 or exact_delta(epsilon * (1 - 1e-9), rho) > delta


def test_no_epsilon_is_needed_when_the_distance_is_below_delta() -> None:
    """The total variation distance of the outputs is the delta at epsilon 0."""
    assert gaussian.epsilon_of(1e-6, 0.01) == 0
    assert gaussian.epsilon_of(0.0, 1e-300) == 0


@loop_over(
    ("call", "arguments"),
    [
        (gaussian.delta_of, (-1.0, 0.1)),
        (gaussian.delta_of, (math.nan, 0.1)),
        (gaussian.delta_of, (2e9, 0.1)),
        (gaussian.delta_of, (1.0, -0.1)),
        (gaussian.delta_of, (1.0, math.inf)),
        (gaussian.epsilon_of, (math.nan, 1e-6)),
        (gaussian.epsilon_of, (0.1, 0.0)),
        (gaussian.epsilon_of, (0.1, 1.0)),
        (gaussian.rho_of, (0.0, 1e-6)),
        (gaussian.rho_of, (1.0, 1e-301)),
        (gaussian.rho_of, (1.0, math.nan)),
        (gaussian.rho_of_lattice, (1.0, 1e-9, 10, 10)),
        (gaussian.epsilon_of_lattice, (0.1, 1e-9, 10, 10)),
        (gaussian.lattice_correction, (0.1, 0, 20)),
        (gaussian.lattice_correction, (0.1, 1, -1)),
        (gaussian.lattice_correction, (0.1, 1, 62)),
        *((gaussian.tail_quantile, (1.0, beta)) for beta in (0.0, 1.0, -1.0, math.nan)),
        *((gaussian.tail_quantile, (scale, 0.05)) for scale in (0.5, 1.5, -1.0, math.inf)),
        *((gaussian.mean_absolute, (scale,)) for scale in (0.5, 1.5, -1.0, math.nan, math.inf)),
    ],
)
def test_what_is_not_proven_is_refused(call: Any, arguments: Any) -> None:
    """Outside the ranges, on a lattice too coarse for delta, and between whole numbers of steps."""
    with pytest.raises(InputError):
        call(*arguments)


BITS = [0, 1, 2, 3]
SCALES = [(0.1, 0.2), (0.1, 0.031), (0.1, 0.03), (0.2, 0.05), (1.0, 0.01), (3.0, 5.0)]
LOSSES = [0.0, 0.1, 0.5, 1.0, 3.0]


@cache
def distribution(scale: int) -> dict[int, Any]:
    """P[Z = z], from the definition, with 60 digits."""
    weight = {
        z: DIGITS.exp(-DIGITS.mpf(z * z) / (2 * scale * scale))
        for z in range(-12 * scale, 12 * scale + 1)
    }
    total = DIGITS.fsum(weight.values())
    return {z: value / total for z, value in weight.items()}


def worst_event(move: tuple[int, ...], scale: int, epsilon: float) -> float:
    """The largest P[S] - e^epsilon P'[S]: the sum of all positive differences."""
    z = np.array(list(distribution(scale)), dtype=np.float64)

    def outcomes(moves: tuple[int, ...]) -> np.ndarray:
        joint = np.ones(())
        for m in moves:
            chance = np.exp(-((z - m) ** 2) / (2 * scale**2))
            joint = np.multiply.outer(joint, chance / np.exp(-(z**2) / (2 * scale**2)).sum())
        return joint

    apart = outcomes(move) - math.exp(epsilon) * outcomes((0,) * len(move))
    return float(np.maximum(0, apart).sum())


@loop_over("bits", BITS)
@loop_over("epsilon", LOSSES)
def test_no_event_of_one_number_exceeds_delta(bits: int, epsilon: float) -> None:
    """All moves up to three scales, the worst event each."""
    scale = 2**bits
    for move in range(1, 3 * scale + 1):
        rho = move**2 / (2 * scale**2)
        found = worst_event((move,), scale, epsilon)
        assert found <= gaussian.delta_of_lattice(epsilon, rho, 1, bits)


@loop_over("moves", [(1, 1), (2, 1), (3, 2), (1, 1, 1), (2, 1, 1)])
@loop_over("epsilon", LOSSES)
def test_no_event_of_several_numbers_exceeds_delta(moves: tuple[int, ...], epsilon: float) -> None:
    """Every outcome of two and three numbers that one user moves."""
    rho = sum(m * m for m in moves) / 8
    found = worst_event(moves, 2, epsilon)
    assert found <= gaussian.delta_of_lattice(epsilon, rho, len(moves), 1)


def test_correction_near_its_first_order() -> None:
    """(k + rho) / (12 4^bits), from above, in exact agreement on fine lattices."""
    for numbers, rho, bits in itertools.product([1, 40, 10**6], [0.0, 0.03, 7.0], [14, 26, 61]):
        found = gaussian.lattice_correction(rho, numbers, bits)
        first = (numbers + rho) / 12 / 4**bits
        assert first <= found <= first * (1 + 1e-2)
    assert gaussian.lattice_correction(1e12, 10**9, 0) == 1


@given(
    epsilon=st.floats(1e-3, 50),
    delta=st.floats(-14, -1).map(lambda power: 10.0**power),
    numbers=st.integers(1, 500),
)
def test_inverses_keep_delta(epsilon: float, delta: float, numbers: int) -> None:
    """A loss or an epsilon that is returned keeps delta; sharp on a fine lattice."""
    bits = 40
    rho = gaussian.rho_of_lattice(epsilon, delta, numbers, bits)
    back = gaussian.epsilon_of_lattice(rho, delta, numbers, bits)
    assert gaussian.delta_of_lattice(epsilon, rho, numbers, bits) <= delta
    assert gaussian.delta_of_lattice(back, rho, numbers, bits) <= delta
    assert gaussian.rho_of(epsilon, delta) == pytest.approx(rho, rel=1e-3)
    assert epsilon * (1 - 1e-3) <= back <= epsilon


def test_inverses_on_a_coarse_lattice() -> None:
    """Also where the correction is a good part of delta, they keep it."""
    for epsilon, numbers, bits in itertools.product([0.5, 2.0, 8.0], [1, 7], [4, 6, 9]):
        delta = 2 * numbers * 4.0**-bits
        rho = gaussian.rho_of_lattice(epsilon, delta, numbers, bits)
        back = gaussian.epsilon_of_lattice(rho, delta, numbers, bits)
        assert gaussian.delta_of_lattice(epsilon, rho, numbers, bits) <= delta
        assert gaussian.delta_of_lattice(back, rho, numbers, bits) <= delta
        assert back <= epsilon


@pytest.mark.parametrize("scale", [1, 2, 3, 8, 50])
def test_moments_are_never_below_the_sums(scale: int) -> None:
    """E|Z| against the sum; the excess falls with the square of the scale."""
    chances = distribution(scale)
    absolute = DIGITS.fsum(abs(z) * p for z, p in chances.items())
    capacity = 1 + 0.6 / scale**2
    assert absolute <= gaussian.mean_absolute(scale) <= absolute * capacity
    # Of the squared noise plans take 4 phi(1) t^2.
    quadratic = DIGITS.fsum(abs(z * z - scale * scale) * p for z, p in chances.items())
    stated = gaussian.SQUARE_NOISE * scale**2 * (1 + 1e-12)
    assert quadratic <= stated <= quadratic * capacity


@given(scale=st.sampled_from([1, 2, 5, 16]), beta=st.floats(-14, -0.01).map(lambda p: 10.0**p))
def test_tail_quantile_is_the_least_or_one_above(scale: int, beta: float) -> None:
    """The tail beyond z is at most beta; two less is too few."""
    z = gaussian.tail_quantile(scale, beta)

    def tail(at: int) -> Any:
        return 1 - DIGITS.fsum(p for k, p in distribution(scale).items() if abs(k) <= at)

    assert tail(z) <= beta
    assert z < 2 or tail(z - 2) > beta


def test_tail_quantile_at_a_fine_scale() -> None:
    """On a fine lattice it is the normal quantile."""
    normal = float(DIGITS.sqrt(2) * DIGITS.erfinv(0.95))
    assert gaussian.tail_quantile(2.0**30, 0.05) / 2**30 == pytest.approx(normal, rel=1e-8)


@pytest.mark.parametrize(("first", "second"), SCALES)
def test_joint_rate_is_the_most_over_all_pairs(first: float, second: float) -> None:
    """A convex function of two points of the hull is largest on the curve: all pairs."""
    y = np.linspace(-0.5, 0.5, 2001)
    apart = ((y[:, None] - y) / first) ** 2 + ((y**2)[:, None] - y**2) ** 2 / second**2
    stated = float(gaussian.joint_rate(first, second))
    assert apart.max() <= stated * (1 + 1e-12)
    assert apart.max() == pytest.approx(stated, rel=1e-6)


@given(first=st.floats(1e-6, 1e6), second=st.floats(1e-6, 1e6), move=st.fractions(0, 1))
def test_joint_rate_is_rounded_upwards(first: float, second: float, move: Fraction) -> None:
    """No move D, in exact rationals, is further apart than stated."""
    a, b = Fraction(first), Fraction(second)
    found = Fraction(float(gaussian.joint_rate(first, second)))
    near_best = Fraction((3 - math.sqrt(max(0.0, 1 - 8 * (second / first) ** 2))) / 4)
    for d in (move, near_best, Fraction(1)):
        assert (d / a) ** 2 + (d * (1 - d) / b) ** 2 <= found
