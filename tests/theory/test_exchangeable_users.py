"""Caps for exchangeable users, against their formula and brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.theory import exchangeable_users as typical

pytestmark = pytest.mark.oracle


@given(
    st.lists(st.integers(1, 60), min_size=2, max_size=40),
    st.floats(0.05, 8),
    st.sampled_from([0.0, 0.1, 0.6, 1.0]),
)
def test_errors_of_all_caps_at_once(counts: list[int], epsilon: float, between: float) -> None:
    """`typical.capped_errors` against its formula, cap by cap."""
    m = np.sort(np.array(counts))
    ranked = typical.Ranked.of(np.zeros(len(m), dtype=np.int64), m, 1)
    found = typical.capped_errors(ranked, np.array([epsilon]), between)
    for cap, error in zip(m.tolist(), found.tolist(), strict=True):
        weight = np.minimum(m, cap) / np.minimum(m, cap).sum()
        spread = between + (1 - between) / m
        apart = math.sqrt(float(((weight - m / m.sum()) ** 2 * spread).sum()))
        noise = weight.max() * typical.SPAN * math.sqrt(float((weight * spread).sum())) / epsilon
        # Close counts: the largest of equal ranks stands for all of them.
        if cap == m[np.searchsorted(m, cap, side="right") - 1]:
            expected = noise + math.sqrt(2 / math.pi) * apart
            assert math.isclose(error, expected, rel_tol=1e-6, abs_tol=1e-6)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.floats(0.05, 8))
def test_the_best_cap_has_the_least_regret(counts: list[int], epsilon: float) -> None:
    """Brute force over all counts as caps."""
    m = np.array(counts)
    cell = np.zeros(len(m), dtype=np.int64)
    ranked = typical.Ranked.of(cell, m, 1)
    errors = np.stack(
        [typical.capped_errors(ranked, np.array([epsilon]), part) for part in typical.BETWEEN]
    )
    regret = (errors / np.maximum(errors.min(axis=1, keepdims=True), 1e-300)).max(axis=0)
    cap = int(typical.best_caps(cell, m, 1, np.array([epsilon]))[0])
    assert cap in counts
    chosen = regret[ranked.count == cap]
    assert chosen.min() <= regret.min() * (1 + 1e-9)
