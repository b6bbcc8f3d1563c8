"""Sensitivity and bias of the variance against enumeration of all small data sets."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.theory import variance

if TYPE_CHECKING:
    from numpy.typing import NDArray

pytestmark = pytest.mark.property

CLOSE = 1 + Fraction(1, 2**49)


def data_sets(points: int, n: int) -> NDArray[np.int64]:
    """All data sets of n whole values 0..points-1, shape (n, points, ..., points)."""
    return np.indices((points,) * n)


def spread(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The variance over the first axis, times its length squared: a whole number."""
    return np.asarray(len(values) * (values**2).sum(axis=0) - values.sum(axis=0) ** 2)


def three_cases(k: int, n: int) -> Fraction:
    """V(k, n) over U^2 as docs/theory/variance.md states it."""
    if n > 2 * k:
        return Fraction(k * (n - k), n**2)
    return Fraction(1, 4) * (1 - Fraction(n % 2, n**2))


def stated(k: int, n: int) -> Fraction:
    """The function under test."""
    return Fraction(float(variance.sensitivity(np.array([k]), np.array([n]))[0]))


@pytest.mark.parametrize(("points", "most"), [(3, 8), (5, 6)])
def test_all_data_sets(points: int, most: int) -> None:
    """V(k, n) is attained and never exceeded by changing k values, for every k and n."""
    for n in range(1, most + 1):
        variances = spread(data_sets(points, n))
        for k in range(1, n + 1):
            own = tuple(range(k))
            moves = variances.max(axis=own) - variances.min(axis=own)
            exact = Fraction(int(moves.max()), (n * (points - 1)) ** 2)
            assert exact == three_cases(k, n)
            assert exact <= stated(k, n) <= exact * CLOSE


@pytest.mark.parametrize("n", range(1, 9))
def test_erratum_1_bias_has_the_product_when_fewer_than_half_are_dropped(n: int) -> None:
    """All data sets on five points, every q: the condition is n > 2q, with q dropped."""
    values = data_sets(5, n)
    whole = spread(values)
    for q in range(n):
        kept = n - q
        difference = np.abs(whole * kept**2 - spread(values[q:]) * n**2).max()
        exact = Fraction(int(difference), (4 * n * kept) ** 2)
        found = Fraction(float(variance.bias(np.array([q]), np.array([n]))[0]))
        assert exact == (three_cases(q, n) if q else 0)
        assert exact <= found <= exact * CLOSE


def test_erratum_1_as_printed_one_of_a_hundred_would_cost_a_quarter() -> None:
    """The printed condition, with K records kept, picks the other case."""
    n, q = 100, 1
    printed = 0.25 if n <= 2 * (n - q) else q * (n - q) / n**2
    assert printed == 0.25
    assert variance.bias(np.array([q]), np.array([n]))[0] == pytest.approx(0.0099)


@given(k=st.integers(1, 10**9), extra=st.integers(0, 10**9))
def test_rounded_upwards_and_never_falling_in_k(k: int, extra: int) -> None:
    """The stated number is at most a hair above the exact one, never below."""
    n = k + extra
    exact = three_cases(k, n)
    assert exact <= stated(k, n) <= exact * CLOSE
    assert three_cases(min(k + 1, n), n) >= exact


def test_one_record_moves_an_eighth_of_the_textbook_bound() -> None:
    """One record of n: U^2 (n - 1)/n^2, where 8 U^2/n is in use."""
    n = np.arange(3, 100)
    one = variance.sensitivity(np.ones(97, int), n)
    np.testing.assert_allclose(one, (n - 1) / n**2, rtol=1e-14)
    assert (8 * one < 8 / n).all()
