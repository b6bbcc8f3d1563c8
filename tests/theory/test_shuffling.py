"""Amplification by shuffling against exact randomised response, and its lower bound."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shoal.errors import InputError
from shoal.theory.shuffling import Shuffled, least_added, shuffled, shuffled_trilemma
from shoal.theory.trilemma import trilemma


def exact_delta(users: int, epsilon: float, total: float) -> float:
    """Hockey-stick divergence at `total` of shuffled binary randomised response, the worst others.

    After shuffling only the number of ones is seen; one user changes its bit, k others hold 1.
    """
    keep = math.exp(epsilon) / (math.exp(epsilon) + 1)
    worst = 0.0
    for k in range(users):
        ones = stats.binom.pmf(np.arange(k + 1), k, keep)
        zeros = stats.binom.pmf(np.arange(users - k), users - 1 - k, 1 - keep)
        rest = np.convolve(ones, zeros)
        one = np.convolve(rest, [1 - keep, keep])
        zero = np.convolve(rest, [keep, 1 - keep])
        for first, second in ((one, zero), (zero, one)):
            worst = max(worst, float(np.maximum(first - math.exp(total) * second, 0).sum()))
    return worst


@pytest.mark.parametrize(("users", "epsilon"), [(150, 0.1), (250, 0.5), (400, 1.0)])
def test_never_below_exact_randomised_response(users: int, epsilon: float) -> None:
    """At the amplified epsilon no more delta is lost than stated; below it, more is."""
    for part in (0.0, 0.5, 0.9):
        added = least_added(users, epsilon) ** (1 - part)
        found = shuffled(users, epsilon, 0, added)
        if found.epsilon < epsilon:
            assert exact_delta(users, epsilon, found.epsilon) <= found.delta


def test_formula_by_hand() -> None:
    """Feldman, McMillan, Talwar 2021, Theorem 3.8."""
    m, epsilon, delta, added = 10**6, 2.0, 1e-12, 1e-8
    e = math.exp(epsilon)
    total = math.log(
        1 + (e - 1) / (e + 1) * (8 * math.sqrt(e * math.log(4 / added) / m) + 8 * e / m)
    )
    found = shuffled(m, epsilon, delta, added)
    assert found.epsilon == pytest.approx(total, rel=1e-9)
    assert found.epsilon >= total
    rest = (math.exp(total) + 1) * (1 + math.exp(-epsilon) / 2) * m * delta
    assert found.delta == pytest.approx(added + rest, rel=1e-9)


@given(
    blocks=st.integers(1, 10**12),
    epsilon=st.floats(1e-6, 50),
    delta=st.one_of(st.just(0.0), st.floats(-20, -1).map(lambda power: 10.0**power)),
    part=st.floats(0, 1),
)
def test_never_worse_than_a_fixed_order(
    blocks: int, epsilon: float, delta: float, part: float
) -> None:
    """At most epsilon; more blocks and a larger delta_1 never cost more epsilon."""
    least = least_added(blocks, epsilon)
    if least > 1:
        with pytest.raises(InputError):
            shuffled(blocks, epsilon, delta, 1.0)
        return
    added = max(least, 1e-250) ** part
    found = shuffled(blocks, epsilon, delta, added)
    assert found.epsilon <= epsilon
    assert found.delta >= delta
    assert found.epsilon < epsilon or found == Shuffled(epsilon, delta)
    pure = shuffled(blocks, epsilon, 0, added)
    assert shuffled(2 * blocks, epsilon, 0, added).epsilon <= pure.epsilon
    assert shuffled(blocks, epsilon, 0, min(1.0, 2 * added)).epsilon <= epsilon


def test_out_of_range_is_refused() -> None:
    """Too few blocks for delta_1, no loss, a delta_1 above 1."""
    for facts in [(10, 1.0, 0, 1e-6), (10**6, 0, 0.1, 0.1), (10**6, 1.0, 0, 1.5)]:
        with pytest.raises(InputError):
            shuffled(*facts)
    with pytest.raises(InputError):
        shuffled(10**6, 1.0, 0, math.nan)


def test_the_second_proof_is_valid_and_weaker() -> None:
    """Never above a certificate, nor above the first proof; about 1/(n eps bias)."""
    budgets = (0.05, 0.0, 1e-2), (0.5, 1e-12, 0.0), (0.5, 0.0, 1e-2)
    for n, (epsilon, delta, bias) in itertools.product((10, 1000), budgets):
        found = shuffled_trilemma(n, epsilon, delta, bias, (2.0, 1.0))
        first = trilemma(n, epsilon, delta, bias, (2.0, 1.0))
        assert 0 < found.rmse <= first.rmse
    rows = [shuffled_trilemma(1000, 0.05, 0, bias, (2, 1.0)) for bias in (1e-3, 1e-4)]
    assert rows[1].blocks > rows[0].blocks > 1
    # Tenfold but for a logarithm.
    assert 7 < rows[1].rmse / rows[0].rmse < 10
