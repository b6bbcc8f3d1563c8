"""Budgets in exact rationals, and losses as people see them, against fractions and decimals."""

from decimal import Decimal, Inexact, Rounded, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.privacy.budget import STATED_DIGITS, Budget, from_text, round_up, show

parts = st.fractions(min_value=0, max_value=10**6, max_denominator=10**9)
budgets = st.builds(Budget, parts, parts)


@given(one=budgets, other=budgets)
def test_both_parts_add_up(one: Budget, other: Budget) -> None:
    """Sums and differences are those of epsilon and of delta, exactly."""
    for added, epsilon, delta in (
        (one + other, one.epsilon + other.epsilon, one.delta + other.delta),
        (one - other, one.epsilon - other.epsilon, one.delta - other.delta),
    ):
        assert (added.epsilon, added.delta) == (epsilon, delta)


@given(one=budgets, epsilon=st.sampled_from([-1, 0, 1]), delta=st.sampled_from([-1, 0, 1]))
def test_a_charge_fits_if_both_parts_do(one: Budget, epsilon: int, delta: int) -> None:
    """A hair above in one part is too much; exactly all of it fits."""
    hair = Fraction(1, 10**30)
    other = Budget(one.epsilon + epsilon * hair, one.delta + delta * hair)
    assert other.within(one) is (epsilon <= 0 and delta <= 0)


@pytest.mark.parametrize(
    ("amount", "exact"),
    [
        (0.1, Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        ("1/3", Fraction(1, 3)),
        (Fraction(2, 7), Fraction(2, 7)),
        (1e-9, Fraction(1, 10**9)),
        (Decimal("0.3"), Fraction(3, 10)),
        (3, Fraction(3)),
    ],
)
def test_amounts_are_their_shortest_decimals(amount: Any, exact: Fraction) -> None:
    """Ten charges of 0.1 are 1, and neither more nor less."""
    assert Budget.of(amount).epsilon == exact
    assert Budget.of(0, amount).delta == exact


@pytest.mark.parametrize("amount", [-1, -1e-300, "-1/3", Fraction(-1, 10**50), float("nan"), "x"])
def test_charges_below_zero_are_refused(amount: Any) -> None:
    """Nothing is ever given back."""
    for wrong in ((amount, 0), (0, amount)):
        with pytest.raises(InputError, match="allowed"):
            Budget.of(*wrong)


@pytest.mark.parametrize("delta", [1, "1", 1.0, 2])
def test_a_budget_has_a_delta_below_one(delta: Any) -> None:
    """At 1 nothing is protected."""
    with pytest.raises(InputError, match="below 1"):
        Budget.total(1, delta)
    assert Budget.total(1, "999/1000").delta == Fraction(999, 1000)


@given(value=parts)
def test_shown_charges_are_rounded_up_and_what_is_left_down(value: Fraction) -> None:
    """Six digits on the safe side, within a unit of the last of them."""
    up, down = (Budget(value).show(up=way).split(",")[0].split()[1] for way in (True, False))
    assert Fraction(down) <= value <= Fraction(up)
    assert Fraction(up) - Fraction(down) <= value / 10**5


@given(value=st.fractions(min_value=0, max_value=10**6, max_denominator=10**40))
def test_a_loss_is_never_understated(value: Fraction) -> None:
    """The least float that is not below, and texts that are not below."""
    found = round_up(value)
    assert Fraction(found) >= value
    assert value == 0 or Fraction(found) <= value * (1 + Fraction(1, 2**50))
    assert value <= Fraction(show(value)) <= value * (1 + Fraction(1, 10**5))


@given(value=parts)
def test_texts_are_read_back(value: Fraction) -> None:
    """As stored and hashed."""
    assert from_text(str(value)) == value


@given(
    exact=st.fractions(min_value=Fraction(1, 10**9), max_value=10**6, max_denominator=10**300),
    asked=st.fractions(min_value=0, max_value=10**6, max_denominator=1000),
)
def test_what_is_stated_is_short_and_never_below_the_loss(exact: Fraction, asked: Fraction) -> None:
    """Twelve digits rounded upwards, or what was asked for where that is between."""
    for wanted in (asked, exact + Fraction(1, 10**25), None):
        loss = Budget.stated(Budget(exact, exact), wanted, wanted)
        assert loss.epsilon == loss.delta
        assert exact <= loss.epsilon <= exact * (1 + Fraction(1, 10 ** (STATED_DIGITS - 1)))
        assert loss.epsilon == wanted or Fraction(show(loss.epsilon, STATED_DIGITS)) == loss.epsilon
    assert Budget.stated(Budget(asked), asked) == Budget(asked)
    less = asked * (1 - Fraction(1, 10**13))
    assert less <= Budget.stated(Budget(less), asked).epsilon <= asked


@pytest.mark.parametrize(
    ("value", "text"),
    [("0.5", "0.5"), ("1/3", "0.333333333334"), ("1e-9", "1e-9"), ("3", "3"), ("2e20", "2e20")],
)
def test_a_budget_prints_twelve_digits(value: str, text: str) -> None:
    """Rounded upwards."""
    assert str(Budget.of(value, "1e-30")) == f"epsilon {text}, delta 1e-30"


@pytest.mark.parametrize("text", ["1/0", "2/4", "01", "1.5", " 1", "1_0", "x", ""])
def test_only_the_one_text_of_a_fraction_is_read(text: str) -> None:
    """What a file holds otherwise was not written by shoal."""
    with pytest.raises(ValueError):  # noqa: PT011
        from_text(text)


@pytest.mark.parametrize(
    "value", ["1e400", 10**16, "1000000000000001", "1_0", "\uff10.5", "1e-4_0"]
)
def test_totals_beyond_reason_and_odd_digits_are_refused(value: object) -> None:
    """A slip of the keyboard makes no ledger."""
    with pytest.raises(InputError, match="epsilon is"):
        Budget.total(value)


def test_what_is_shown_does_not_hang_on_the_callers_decimals() -> None:
    """A caller that traps rounded decimals has the same words as others."""
    budget = Budget.of("1000001/7", "1/3000001")
    shown = str(budget), budget.show(up=True), budget.show(up=False)
    with localcontext() as context:
        context.traps[Inexact] = context.traps[Rounded] = True
        assert (str(budget), budget.show(up=True), budget.show(up=False)) == shown


@pytest.mark.parametrize("digits", [False, "1.13"])
def test_numbers_of_numpy_count_whatever_it_is_told_to_print(digits: Any) -> None:
    """With all digits that tell them from others, and no more."""
    with np.printoptions(legacy=digits):
        for given, exact in (
            (np.float64(0.1234567890123456), "0.1234567890123456"),
            (np.float32(0.1), "0.1"),
            (np.float16(0.5), "0.5"),
            (np.int64(3), "3"),
        ):
            amount: Any = given
            assert Budget.of(amount).epsilon == Fraction(exact)


def test_texts_of_numpy_are_texts() -> None:
    """An amount from an array of them."""
    assert Budget.of(np.array(["0.1"])[0]).epsilon == Fraction(1, 10)
