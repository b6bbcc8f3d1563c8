"""Computes with pairs (epsilon, delta) in exact rationals: budgets, charges and sums, as text too.

A plan's exact loss has thousands of digits; what it states, and a ledger charges, is short.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

from shoal import checks
from shoal.checks import amount
from shoal.errors import InputError

Amount = Fraction | float | int | str
LEAST_EPSILON = Fraction(1, 10**9)
MOST_EPSILON = Fraction(10**6)
MOST_DELTA = Fraction(1, 100)
# The largest epsilon of all releases of a data set together; more is a slip of the keyboard.
MOST_TOTAL = Fraction(10**15)
# The digits of a stated loss.
STATED_DIGITS = 12
# The largest denominator of a running sum.
MOST_DENOMINATOR = 10**60
# e to the power of more than this is no float, and any delta times it counts as 1.
_LARGEST_EXPONENT = 700
# More than the relative error of such a power in floating point.
_EXP_ERROR = 2.0**-40

_RANGE: dict[str, Any] = {"Emin": MIN_EMIN, "Emax": MAX_EMAX, "traps": []}
_PLAIN = Context(2 * STATED_DIGITS, **_RANGE)
_STORED = re.compile(r"-?[0-9]+(?:/0*[1-9][0-9]*)?", re.ASCII)


@dataclass(frozen=True)
class Budget:
    """An exact loss and the probability of a larger one, which may be or have been spent."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    @classmethod
    def of(cls, epsilon: Amount, delta: Amount = 0) -> Budget:
        """A charge, zero or more; a float counts as its shortest decimal. InputError if not."""
        return cls(amount(epsilon, "epsilon"), amount(delta, "delta"))

    @classmethod
    def total(cls, epsilon: Amount, delta: Amount = 0) -> Budget:
        """A budget: epsilon above zero, delta from zero to below one. InputError if not."""
        budget = cls.of(epsilon, delta)
        if budget.epsilon == 0:
            raise _bad("epsilon", "0", "a finite number above 0", "1")
        if budget.epsilon > MOST_TOTAL:
            raise _bad("epsilon", checks.shown(epsilon), f"at most {float(MOST_TOTAL):g}", "1")
        if budget.delta >= 1:
            raise _bad("delta", checks.shown(delta), "a number from 0 to below 1", "0")
        return budget

    @classmethod
    def stated(
        cls, exact: Budget, epsilon: Fraction | None = None, delta: Fraction | None = None
    ) -> Budget:
        """Returns the loss that a plan states: at least the exact one, in few digits.

        Each part is the exact one rounded up to twelve significant digits, or what was asked for
        where that is between the two.
        """
        return cls(_stated(exact.epsilon, epsilon), _stated(exact.delta, delta))

    def __add__(self, other: Budget) -> Budget:
        return Budget(self.epsilon + other.epsilon, self.delta + other.delta)

    def __sub__(self, other: Budget) -> Budget:
        return Budget(self.epsilon - other.epsilon, self.delta - other.delta)

    def plus(self, charge: Budget) -> Budget:
        """Returns a running sum, exact unless a denominator grows beyond 10^60: then rounded up."""
        total = self + charge
        return Budget(_short(total.epsilon), _short(total.delta))

    def in_all(self, periods: int) -> Budget:
        """Returns the loss of a user who loses this in each of several periods, by group privacy.

        Source: Vadhan, The Complexity of Differential Privacy (2017), Lemma 2.2. The delta grows to
        at most `delta periods e^((periods - 1) epsilon)`, here rounded upwards.
        """
        epsilon = self.epsilon * periods
        if not self.delta:
            return Budget(epsilon)
        exponent = float(epsilon - self.epsilon)
        if exponent > _LARGEST_EXPONENT:
            return Budget(epsilon, Fraction(1))
        # In a single period nothing is rounded.
        factor = Fraction(1)
        if periods > 1:
            factor = Fraction(math.exp(exponent) * (1 + _EXP_ERROR))
        return Budget(epsilon, min(self.delta * periods * factor, Fraction(1)))

    def within(self, other: Budget) -> bool:
        """Whether both parts are at most those of another budget."""
        return self.epsilon <= other.epsilon and self.delta <= other.delta

    def __str__(self) -> str:
        """Both parts with twelve significant digits, rounded upwards."""
        return (
            f"epsilon {show(self.epsilon, STATED_DIGITS)}, delta {show(self.delta, STATED_DIGITS)}"
        )

    def show(self, *, up: bool) -> str:
        """Returns both parts with six digits, without a delta of 0.

        A charge is rounded up, and a budget that is left down.
        """
        delta = f", delta {show(self.delta, up=up)}" if self.delta else ""
        return f"epsilon {show(self.epsilon, up=up)}{delta}"

    def to_document(self) -> dict[str, str | float]:
        """Both parts exactly as texts, and as numbers that are rounded upwards."""
        return {
            "epsilon": str(self.epsilon),
            "epsilon_at_most": round_up(self.epsilon),
            "delta": str(self.delta),
            "delta_at_most": round_up(self.delta),
        }


def from_text(stored: str) -> Fraction:
    """The inverse of `str` of a fraction; ValueError for any other text."""
    match = _STORED.fullmatch(stored)
    if match is None or str(Fraction(stored)) != stored:
        raise ValueError
    return Fraction(stored)


def round_up(value: Fraction) -> float:
    """The least float that is not below an exact value: a privacy loss is never understated."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def show(value: Fraction | float, digits: int = 6, *, up: bool = True) -> str:
    """An amount with significant digits, rounded upwards or downwards: small ones never become 0.

    Example:
        >>> show(Fraction(1, 3)), show(Fraction(1, 10**9)), show(Fraction(1)), show(0.1)
        ('0.333334', '1e-9', '1', '0.1')
    """
    exact = Fraction(repr(value)) if isinstance(value, float) else value
    decimal = _rounded(exact, digits, up=up).normalize(_PLAIN)
    if -5 < decimal.adjusted() < digits:
        return f"{decimal:f}"
    return f"{decimal:e}".replace("e+", "e")


def check_epsilon(epsilon: Amount) -> Fraction:
    """An epsilon within what any release may cost, exactly; InputError if it is not."""
    exact = Budget.total(epsilon).epsilon
    if not LEAST_EPSILON <= exact <= MOST_EPSILON:
        raise InputError(
            f"epsilon is {checks.shown(epsilon)}",
            f"give {float(LEAST_EPSILON):g} to {float(MOST_EPSILON):g}, commonly 1: a far larger "
            "one protects nobody, a far smaller one gives only noise",
        )
    return exact


def check_delta(delta: Amount) -> Fraction:
    """A delta within what any release may cost, exactly, or 0; InputError if it is not."""
    exact = Budget.of(0, delta).delta
    if exact and not Fraction(1, 10**100) <= exact <= MOST_DELTA:
        raise InputError(
            f"delta is {checks.shown(delta)}",
            f"give 0, or a number from 1e-100 to {float(MOST_DELTA):g}, far below one over the "
            "number of users, such as 1e-9",
        )
    return exact


def _bad(name: str, value: str, allowed: str, example: str) -> InputError:
    return InputError(f"{name} is {value}", allowed, f"give for example {name}={example}")


def _stated(exact: Fraction, asked: Fraction | None) -> Fraction:
    """Returns one part of `Budget.stated`."""
    short = Fraction(_rounded(exact, STATED_DIGITS, up=True))
    if asked is not None and exact <= asked <= short:
        return asked
    return short


def _short(value: Fraction) -> Fraction:
    """Returns an amount, rounded up if its denominator is too large."""
    if value.denominator <= MOST_DENOMINATOR:
        return value
    return Fraction(math.ceil(value * MOST_DENOMINATOR), MOST_DENOMINATOR)


def _rounded(value: Fraction, digits: int, *, up: bool) -> Decimal:
    """Returns an amount with so many significant digits, rounded up or down."""
    # The caller's own decimal context may raise an error where a number is rounded.
    context = Context(digits, ROUND_CEILING if up else ROUND_FLOOR, **_RANGE)
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))
