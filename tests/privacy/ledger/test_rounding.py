"""Charges and sums as fractions of bounded length: never understated, short ones exact."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.privacy.budget import Budget
from shoal.privacy.charge_rounding import LONGEST_CHARGE, LONGEST_SUM, added, booked, ceiling
from shoal.privacy.ledger.ledger import Ledger

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

LONG = st.builds(Fraction, st.integers(0, 10**60), st.integers(1, 10**60))


@given(value=st.fractions(min_value=0, max_value=5), most=st.integers(1, 60))
def test_the_next_short_fraction_is_the_least_of_all(value: Fraction, most: int) -> None:
    """By brute force over all denominators, none lies between value and booking."""
    found = ceiling(value, most)
    assert found == min(Fraction(-(-value.numerator * q // value.denominator), q)
                        for q in range(1, most + 1))  # fmt: skip
    assert found.denominator <= most


@given(charges=st.lists(LONG, min_size=1, max_size=12))
def test_sums_are_never_understated(charges: list[Fraction]) -> None:
    """Whatever is charged, the running sum is at least the exact one, and short."""
    spent, exact = Budget.of(0), Fraction(0)
    for charge in charges:
        once = booked(Budget(charge, charge))
        spent, exact = added(spent, once), exact + charge
        assert once.epsilon == once.delta >= charge
        assert once.epsilon.denominator <= LONGEST_CHARGE
        assert spent.epsilon == spent.delta >= exact
        assert spent.epsilon.denominator <= LONGEST_SUM
        assert spent.epsilon - exact < len(charges) * Fraction(2, LONGEST_CHARGE)


@given(value=LONG, limit=st.fractions(min_value=0, max_denominator=10**12))
def test_a_charge_within_a_limit_is_not_booked_beyond_it(value: Fraction, limit: Fraction) -> None:
    """What keeps 1/3 is booked at no more than 1/3; short fractions stay."""
    assert booked(Budget(limit)) == Budget(limit)
    if value <= limit:
        assert booked(Budget(value)).epsilon <= limit


def test_charges_of_hundreds_of_digits_do_not_stall_a_ledger(tmp_path: Path) -> None:
    """Forty distinct charges with denominators of 390 digits stay short and fit."""
    book = Ledger.create(tmp_path / "a.ledger", epsilon=41)
    exact, started = Fraction(0), time.process_time()
    for number in range(40):
        long = 1 - Fraction(1, 10**390 + 7 * number + 1)
        exact += long
        entry = book.record(str(number), unit="person", epsilon=long, document=b"x")
        assert long <= entry.epsilon <= 1
    assert exact <= book.spent.epsilon <= 40
    assert book.spent.epsilon.denominator <= LONGEST_SUM
    book.verify()
    assert time.process_time() - started < 20
