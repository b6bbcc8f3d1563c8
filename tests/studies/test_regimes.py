"""Which estimator errs least, by its certificate."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shoal_studies import regimes

POWERS = st.floats(-6, 0).map(lambda power: 10.0**power)
EPSILONS = st.floats(-3, 1).map(lambda power: 10.0**power)
ORDERS = st.one_of(st.just(2.0), st.floats(2, 12))
USERS = st.integers(1, 10**7)


def test_regimes_follow_delta_and_releases() -> None:
    """Little delta: clip; more, or many releases: unbiased ones; no bias and no delta: nothing."""
    assert regimes.regime(10_000, 0.1, 1e-6, 0.1, (4, 1.0)).name == "clipped_mean"
    assert "1.45 times" in regimes.regime(10_000, 0.1, 0, 0.1, (4, 1.0)).sentence
    names = [regimes.regime(10_000, 0.1, 0.01, 0.1, (4, 1.0), releases=r).name for r in (1, 10**4)]
    assert names == ["clipped_mean", "clipped_plus_residual"]
    assert regimes.regime(10_000, 0.1, 0.9, 0, (2, 1.0)).name == "sampled_mean"
    none = regimes.regime(10_000, 0.1, 0, 0, (2, 1.0))
    assert none.name == "none"
    assert none.rmse == math.inf


@given(n=USERS, epsilon=EPSILONS, bias=POWERS, order=ORDERS, releases=st.integers(1, 10**6))
def test_the_clipped_regime_keeps_its_bias(
    n: int, epsilon: float, bias: float, order: float, releases: int
) -> None:
    """The bias it proposes is at most the one allowed; its margin keeps it at the worst case."""
    found = regimes.regime(n, epsilon, 0, bias, (order, 1.0), releases=releases)
    assert 0 < found.clip_bias <= bias
    margin = float(regimes.clip_margin(order, np.array([found.clip_bias]))[0])
    # X = t with probability t^-order is the worst for E(|X| - margin)^+.
    worst = margin * order / (order - 1)
    assert worst ** (-order) * (worst - margin) == pytest.approx(found.clip_bias, rel=1e-6)
    more = regimes.regime(n, epsilon, 0, bias, (order, 1.0), releases=releases * 4)
    assert more.rmse <= found.rmse
